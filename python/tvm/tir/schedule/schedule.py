"""The schedule of a module of blocks: primitives that change loops and keep what is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import tvm._ffi
from tvm.error import ScheduleError
from tvm.ir import IRModule, PrimExpr

from ..block import Block
from ..expr import IntImm
from ..function import PrimFunc
from ..statement import For
from . import _ffi_api
from .block_steps import BlockSteps
from .loop_steps import LoopSteps
from .random_variables import RV, BlockRV, ExprRV, LoopRV
from .state import ScheduleState, StmtSRef
from .trace import Trace

__all__ = ["Schedule", "ScheduleError"]


@tvm._ffi.register_object("tir.Schedule")
class Schedule(LoopSteps, BlockSteps):
    """Changes how the blocks of a module run, not what they compute, and records every step.

    Parameters
    ----------
    mod : the module, or one function, which is then called ``main``. It stays as it is.
    seed : of the sampling primitives; None draws one.
    debug_mask : "all" (or a number other than 0) checks after every step that the function is well
        formed; "none" does not.
    error_render_level : "detail" shows the function in errors, "fast" only what is wrong, "none"
        only which primitive was refused.
    enable_check : taken as in TVM, where False leaves the legality of steps to the user. Here
        every step is looked at all the same.

    Every primitive raises ScheduleError, and changes nothing, where it cannot be shown to keep the
    results. What it can be shown from is what the blocks compute: a block whose variables are all
    data-parallel writes every element once, one with an init reduces in any order, and all readers
    of a buffer see final values. Blocks of which that is not known keep their order. Where a block
    is asked for, its name will do.

    Examples
    --------
    >>> from tvm import te, tir
    >>> A = te.placeholder((128,), name="A")
    >>> B = te.compute((128,), lambda i: A[i] + 1.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> (i,) = sch.get_loops(sch.get_block("B"))
    >>> i_0, i_1 = sch.split(i, factors=[None, 4])
    >>> sch.vectorize(i_1)
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> None:
        super().__init__(mod, seed, debug_mask, error_render_level)

    @staticmethod
    def from_trace(mod: IRModule | PrimFunc, trace: Trace, seed: int | None = None) -> Schedule:
        """A schedule of `mod` to which `trace` was applied."""
        sch = Schedule(mod, seed)
        trace.apply_to_schedule(sch, remove_postproc=False)
        return sch

    @property
    def state(self) -> ScheduleState:
        """A view of the loops, blocks and dependences of the program."""
        return ScheduleState(self)

    @overload
    def get(self, rand_var_or_sref: BlockRV) -> Block: ...
    @overload
    def get(self, rand_var_or_sref: LoopRV) -> For: ...
    @overload
    def get(self, rand_var_or_sref: StmtSRef) -> Block | For | None: ...
    @overload
    def get(self, rand_var_or_sref: PrimExpr) -> IntImm: ...
    def get(self, rand_var_or_sref: RV | PrimExpr | StmtSRef) -> Block | For | IntImm | None:
        """The block or loop that a variable stands for, or the value of an expression.

        Of a reference it is None once the loop or block is gone.
        """
        if isinstance(rand_var_or_sref, StmtSRef):
            return rand_var_or_sref.stmt
        return _ffi_api.ScheduleGet(self, rand_var_or_sref)

    @overload
    def get_sref(self, rand_var_or_stmt: BlockRV | LoopRV) -> StmtSRef: ...
    @overload
    def get_sref(self, rand_var_or_stmt: Block | For) -> StmtSRef | None: ...
    def get_sref(self, rand_var_or_stmt: BlockRV | LoopRV | Block | For) -> StmtSRef | None:
        """A reference to a loop or block that stays while the program changes."""
        return self.state.get_sref(rand_var_or_stmt)

    def remove_rv(self, rand_var: BlockRV | LoopRV | ExprRV) -> None:
        """Let a variable stand for nothing from now on; what was done with it stays in the trace.

        Raises
        ------
        ScheduleError : it is no variable of this schedule, or was removed before.
        """
        _ffi_api.ScheduleRemoveRV(self, rand_var)

    # Blocks and loops

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of that name, in the function named or else in `func_working_on`.

        Raises
        ------
        ScheduleError : there is no such block, or several; the message shows the function.
        """
        return self._apply("get_block", [name, func_name])[0]

    # Newer TVM's name of it.
    get_sblock = get_block

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """Loops around a block up to the next block, outermost first."""
        return self._apply("get_loops", [block])

    def get_iter_values(self, block: BlockRV | str) -> list[PrimExpr]:
        """What the axes of a block are bound to, in terms of the loops around it."""
        return list(_ffi_api.ScheduleIterValues(self, self._rv(block)))

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """Blocks directly inside of a block or loop, with only loops between."""
        return self._apply("get_child_blocks", [block_or_loop])

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """Blocks that write what `block` reads, in order."""
        return self._apply("get_producers", [block])

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """Blocks that read what `block` writes, in order."""
        return self._apply("get_consumers", [block])

    def get_output_blocks(
        self, scope_block: BlockRV | str, func_name: str | None = None
    ) -> list[BlockRV]:
        """Blocks of a scope that write buffers the scope does not allocate."""
        if isinstance(scope_block, str):
            scope_block = self.get_block(scope_block, func_name)
        return self._apply("get_output_blocks", [scope_block])

    # Sampling

    def sample_perfect_tile(
        self,
        loop: LoopRV,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` variables whose values multiply to the extent of a loop.

        Parameters
        ----------
        max_innermost_factor : most the last that is sampled may be; -1 for no limit.
        decision : the values to take, outermost first; None draws one of all with equal chance.

        Raises
        ------
        ScheduleError : the extent is no constant, has no such factors, or `decision` is none.
        """
        tile = None if decision is None else list(decision)
        return self._apply("sample_perfect_tile", [loop, n, max_innermost_factor], tile)

    def sample_partitioned_tile(
        self,
        loop: LoopRV,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """The same, with factors from `partition_pos` on that multiply to a multiple of a number.

        Parameters
        ----------
        innerpart_factor : that number; where it does not divide the extent, the first factor is
            all of it.

        Raises
        ------
        ScheduleError : the extent is no constant, or `decision` has other factors.
        """
        tile = None if decision is None else list(decision)
        arguments = [loop, n, partition_pos, innerpart_factor]
        return self._apply("sample_partitioned_tile", arguments, tile)

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """A variable with one of the candidates as its value.

        Parameters
        ----------
        probs : chances of the candidates, up to a common factor.
        decision : index of the candidate to take; None draws one.
        """
        return self._apply("sample_categorical", [list(candidates), list(probs)], decision)[0]

    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """A place for :meth:`compute_at`: a loop of the consumers, or where to leave or inline it.

        Parameters
        ----------
        decision : how many loops around the consumers are around the place, less one; -1 leaves
            the block where it is, -2 inlines it. None draws one of those that are legal.
        """
        return self._apply("sample_compute_location", [block], decision)[0]

    def compute_locations(self, block: BlockRV) -> list[int]:
        """The decisions that :meth:`sample_compute_location` may take for a block, ascending."""
        return [int(place) for place in _ffi_api.ScheduleComputeLocations(self, block)]

    # Traces

    def enter_postproc(self) -> None:
        """Mark in the trace that what follows is postprocessing, which a search leaves out."""
        self._apply("enter_postproc", [])
