"""Methods of a schedule on loops, and on how they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm.error
from tvm.ir import PrimExpr

from ..expr import FloatImm, IterVar, StringImm
from ..stmt import ForKind
from . import loops as _loops
from . import marks
from .random_variables import BlockRV, ExprRV, LoopRV
from .state import State
from .tree import FuncTree

__all__ = ["LoopSteps"]


class LoopSteps(State):
    """Primitives on loops."""

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
        if not isinstance(factors, Sequence) or isinstance(factors, str):
            raise tvm.error.TypeError(f"split: factors are a list of extents, got {factors!r}")
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
        if not isinstance(thread_axis, str | IterVar):
            raise tvm.error.TypeError(
                f"bind: a thread axis is a text or an IterVar, got {thread_axis!r}"
            )
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
            value = self._annotation(ann_val)
            marks.annotate(tree, node, ann_key, value)
            return tree

        self._do("annotate", arguments, act)

    def _annotation(self, value: Any) -> Any:
        """A value that a node can hold, with the numbers that sampled variables stand for."""
        if isinstance(value, list | tuple):
            return [self._annotation(item) for item in value]
        if isinstance(value, Mapping):
            return {str(key): self._annotation(item) for key, item in value.items()}
        if isinstance(value, PrimExpr) and not isinstance(value, StringImm | FloatImm):
            return self._number(value)
        if isinstance(value, bool | int | float | str | StringImm | FloatImm):
            return value
        raise tvm.error.TypeError(
            f"annotate: values are numbers, texts, lists and dicts, got a {type(value).__name__}"
        )

    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Remove what :meth:`annotate` attached."""

        def act() -> FuncTree:
            tree, node = self._node(block_or_loop)
            marks.unannotate(tree, node, ann_key)
            return tree

        self._do("unannotate", {"block_or_loop": block_or_loop, "ann_key": ann_key}, act)
