"""The schedule of a module of blocks: primitives that change loops and keep what is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.error import ScheduleError
from tvm.ir import IRModule, PrimExpr

from ..expr import IterVar
from ..function import PrimFunc
from ..stmt import ForKind
from . import loops as _loops
from . import marks, queries, reduction, sampling
from .random_variables import BlockRV, ExprRV, LoopRV
from .state import State
from .trace import Trace
from .tree import FuncTree

__all__ = ["Schedule"]


class Schedule(State):
    """Changes how the blocks of a module run, not what they compute, and records every step.

    Parameters
    ----------
    mod : the module, or one function, which is then called ``main``. It stays as it is.
    seed : of the sampling primitives; None draws one.
    debug_mask : "all" (or a number other than 0) checks after every step that the function is well
        formed; "none" does not.
    error_render_level : "detail" shows the function in errors, "fast" only what is wrong, "none"
        only which primitive was refused.

    Every primitive raises ScheduleError, and changes nothing, where it cannot be shown to keep the
    results. What it can be shown from is what the blocks compute: a block whose variables are all
    data-parallel writes every element once, one with an init reduces in any order, and all readers
    of a buffer see final values. Blocks of which that is not known keep their order.

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
    ) -> None:
        super().__init__(mod, seed, debug_mask, error_render_level)

    @staticmethod
    def from_trace(mod: IRModule | PrimFunc, trace: Trace, seed: int | None = None) -> Schedule:
        """A schedule of `mod` to which `trace` was applied."""
        sch = Schedule(mod, seed)
        trace.apply_to_schedule(sch, remove_postproc=False)
        return sch

    def seed(self, seed: int) -> None:
        """Start the random numbers anew."""
        self._seed(seed)

    # Blocks and loops

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of that name, in the function :meth:`work_on` chose or else in ``main``.

        Raises
        ------
        ScheduleError : there is no such block, or several; the message shows the function.
        """
        function = func_name or self._working_on or "main"
        arguments = {"name": name, "func_name": function}

        def find() -> tuple[None, Any]:
            return None, queries.block_named(self._tree(function), name)

        return self._record("get_block", arguments, [self._step("get_block", arguments, find)])[0]

    def get_loops(self, block: BlockRV) -> list[LoopRV]:
        """Loops around a block up to the next block, outermost first."""
        return self._look("get_loops", {"block": block}, block, lambda _, b: b.loops_above())

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """Blocks directly inside of a block or loop, with only loops between."""
        arguments = {"block_or_loop": block_or_loop}
        return self._look("get_child_blocks", arguments, block_or_loop, queries.child_blocks)

    def get_producers(self, block: BlockRV) -> list[BlockRV]:
        """Blocks that write what `block` reads, in order."""
        return self._look("get_producers", {"block": block}, block, queries.producers)

    def get_consumers(self, block: BlockRV) -> list[BlockRV]:
        """Blocks that read what `block` writes, in order."""
        return self._look("get_consumers", {"block": block}, block, queries.consumers)

    def get_output_blocks(self, scope_block: BlockRV | str, func_name: str = "main") -> list:
        """Blocks of a scope that write buffers the scope does not allocate."""
        if isinstance(scope_block, str):
            scope_block = self.get_block(scope_block, func_name)
        arguments = {"scope_block": scope_block}
        return self._look("get_output_blocks", arguments, scope_block, queries.output_blocks)

    def _node(self, rv: BlockRV | LoopRV) -> tuple[FuncTree, Any]:
        return self._loop(rv) if isinstance(rv, LoopRV) else self._block(rv)

    def _look(
        self,
        method: str,
        arguments: dict[str, Any],
        rv: BlockRV | LoopRV,
        find: Callable[[FuncTree, Any], Sequence[Any]],
    ) -> list:
        resolve: Callable[[Any], Any] = self._node if "block_or_loop" in arguments else self._block
        found = self._step(method, arguments, lambda: (None, find(*resolve(rv))))
        return self._record(method, arguments, found)

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
        max_innermost_factor : most the last may be; -1 for no limit.
        decision : the values to take, outermost first; None draws one of all with equal chance.

        Raises
        ------
        ScheduleError : the extent is no constant, has no such factors, or `decision` is none.
        """
        arguments = {"loop": loop, "n": n, "max_innermost_factor": max_innermost_factor}

        def draw() -> tuple[None, list[int]]:
            extent = _loops.constant_extent(self._loop(loop)[1])
            if n < 1:
                raise ScheduleError(f"n={n} factors; take at least one")
            if decision is None:
                return None, sampling.perfect_tile(self._random, extent, n, max_innermost_factor)
            return None, sampling.check_tile(
                [self._number(size) for size in decision], extent, n, max_innermost_factor
            )

        tile = self._step("sample_perfect_tile", arguments, draw)
        return self._record("sample_perfect_tile", arguments, tile, tile)

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """A variable with one of the candidates as its value.

        Parameters
        ----------
        probs : chances of the candidates, up to a common factor.
        decision : index of the candidate to take; None draws one.
        """
        values = [self._number(candidate) for candidate in candidates]
        chances = [float(getattr(p, "value", p)) for p in probs]
        arguments = {"candidates": values, "probs": chances}

        def draw() -> tuple[None, int]:
            chosen = None if decision is None else self._number(decision)
            return None, sampling.choose(self._random, values, chances, chosen)

        index = self._step("sample_categorical", arguments, draw)
        return self._record("sample_categorical", arguments, [values[index]], index)[0]

    # Loops

    def split(
        self,
        loop: LoopRV,
        factors: Sequence[int | ExprRV | PrimExpr | None],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[LoopRV]:
        """Nested loops in the place of one::

            for i in range(128):          for i_0, i_1 in T.grid(32, 4):
                ...                           ... i_0 * 4 + i_1

        Parameters
        ----------
        factors : extents, outermost first; None, at most once, for what is left. Where they
            multiply to more than the extent, blocks get a predicate.
        preserve_unit_iters : keep parts of extent 1 in the values of the blocks.
        disable_predication : promise that no predicate is needed.

        Raises
        ------
        ScheduleError : the factors multiply to less than the extent, the loop is marked already,
            or a predicate is needed against the promise.
        """
        arguments = {
            "loop": loop,
            "factors": list(factors),
            "preserve_unit_iters": preserve_unit_iters,
            "disable_predication": disable_predication,
        }

        def act() -> tuple[FuncTree, Any]:
            tree, node = self._loop(loop)
            sizes = [None if f is None else self._number(f) for f in factors]
            return tree, _loops.split(tree, node, sizes, preserve_unit_iters, disable_predication)

        return self._record("split", arguments, self._step("split", arguments, act))

    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """One loop in the place of directly nested ones, given from outermost to innermost."""
        arguments = {"loops": list(loops), "preserve_unit_iters": preserve_unit_iters}

        def act() -> tuple[FuncTree, Any]:
            tree, nodes = self._loops(loops)
            return tree, _loops.fuse(tree, nodes, preserve_unit_iters)

        return self._record("fuse", arguments, [self._step("fuse", arguments, act)])[0]

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Nested loops in the order given, at the places they have together.

        Raises
        ------
        ScheduleError : something is beside the loops, or what is below depends on their order.
        """

        def act() -> FuncTree:
            tree, nodes = self._loops(ordered_loops)
            _loops.reorder(tree, nodes)
            return tree

        self._do("reorder", {"loops": list(ordered_loops)}, act)

    def _do(self, method: str, arguments: dict[str, Any], act: Callable[[], FuncTree]) -> None:
        self._step(method, arguments, lambda: (act(), None))
        self._record(method, arguments, [])

    # How loops run

    def parallel(self, loop: LoopRV) -> None:
        """Run the iterations of a loop on several cores."""
        self._mark("parallel", loop, ForKind.PARALLEL)

    def vectorize(self, loop: LoopRV) -> None:
        """Run the iterations of a loop, whose extent is a constant, as lanes of vectors."""
        self._mark("vectorize", loop, ForKind.VECTORIZED)

    def unroll(self, loop: LoopRV) -> None:
        """Write out the iterations of a loop, whose extent is a constant."""
        self._mark("unroll", loop, ForKind.UNROLLED)

    def _mark(self, method: str, loop: LoopRV, kind: ForKind) -> None:
        def act() -> FuncTree:
            tree, node = self._loop(loop)
            marks.mark(tree, node, kind)
            return tree

        self._do(method, {"loop": loop}, act)

    def bind(self, loop: LoopRV, thread_axis: str | IterVar) -> None:
        """Let the threads of an axis, "blockIdx.x" or "threadIdx.y" for example, run a loop.

        Raises
        ------
        ScheduleError : the iterations depend on each other, loops of one kernel with the same axis
            have different extents, or values would pass between threads other than through shared
            memory.
        """
        tag = thread_axis if isinstance(thread_axis, str) else str(thread_axis.thread_tag)

        def act() -> FuncTree:
            tree, node = self._loop(loop)
            marks.bind(tree, node, tag)
            return tree

        self._do("bind", {"loop": loop, "thread_axis": tag}, act)

    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: Any) -> None:
        """Attach a value to a block or loop. Lowering reads keys that begin with ``pragma_``."""
        arguments = {"block_or_loop": block_or_loop, "ann_key": ann_key, "ann_val": ann_val}

        def act() -> FuncTree:
            tree, node = self._node(block_or_loop)
            value = ann_val
            if isinstance(value, PrimExpr) and not isinstance(value, str):
                value = self._number(value)
            marks.annotate(tree, node, ann_key, value)
            return tree

        self._do("annotate", arguments, act)

    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Remove what :meth:`annotate` attached."""

        def act() -> FuncTree:
            tree, node = self._node(block_or_loop)
            marks.unannotate(tree, node, ann_key)
            return tree

        self._do("unannotate", {"block_or_loop": block_or_loop, "ann_key": ann_key}, act)

    # Reductions

    def decompose_reduction(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """Write the first values of a reduction in a block of their own, right before `loop`::

            for i, k in T.grid(8, 8):          for i in range(8):
                with T.block("C"):                 with T.block("C_init"): ...
                    with T.init(): ...             for k in range(8):
                    ...                                with T.block("C_update"): ...

        Returns
        -------
        The block of the first values; `block` now is the update.

        Raises
        ------
        ScheduleError : `block` is no reduction, or a loop around `loop` belongs to the reduction.
        """
        arguments = {"block": block, "loop": loop}

        def act() -> tuple[FuncTree, Any]:
            tree, node = self._block(block)
            return tree, reduction.decompose_reduction(tree, node, self._loop(loop)[1])

        made = self._step("decompose_reduction", arguments, act)
        return self._record("decompose_reduction", arguments, [made])[0]

    # Traces

    def enter_postproc(self) -> None:
        """Mark in the trace that what follows is postprocessing, which a search leaves out."""
        self._record("enter_postproc", {}, [])
