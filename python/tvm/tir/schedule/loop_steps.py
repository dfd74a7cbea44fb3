"""Methods of a schedule on loops, and on how they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm.error
from tvm.ir import PrimExpr

from ..expr import IterVar
from .base import State
from .random_variables import BlockRV, ExprRV, LoopRV

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
        options = (preserve_unit_iters, disable_predication)
        return self._apply("split", [loop, list(factors), *options])

    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """One loop in the place of directly nested ones, given from outermost to innermost."""
        return self._apply("fuse", [loops, preserve_unit_iters])[0]

    def merge(self, *loops: LoopRV) -> LoopRV:
        """Nests that stand one behind the other as one nest, in each iteration of which all run::

            for i, j in T.grid(8, 8):     for i_m, j_m in T.grid(8, 8):
                B[i, j] = ...                 B[i_m, j_m] = ...
            for i, j in T.grid(8, 8):         C[i_m, j_m] = ...
                C[i, j] = ...

        Parameters
        ----------
        loops : one of each nest, equally deep below what is around all of them, with the same
            extents from there on.

        Returns
        -------
        The innermost of the merged loops.

        Raises
        ------
        ScheduleError : an iteration would read what none has written yet.
        """
        return self._apply("merge", [loops])[0]

    def loop_partition(
        self,
        loop: LoopRV,
        factors: Sequence[int | ExprRV | PrimExpr | None],
        preserve_unit_iters: bool = True,
    ) -> list[LoopRV]:
        """Loops over consecutive parts of one loop, each in a block with its own copy of the body.

        Parameters
        ----------
        factors : iterations of the parts; None, at most once, for what is left. Where they add up
            to less than the extent, one more part has the rest.
        preserve_unit_iters : keep parts of one iteration as loops; there are no others.

        Raises
        ------
        ScheduleError : the factors add up to more than the extent, or blocks inside have buffers of
            their own.
        """
        if not preserve_unit_iters:
            raise tvm.error.ValueError("loop_partition: parts of one iteration stay loops")
        return self._apply("loop_partition", [loop, list(factors), preserve_unit_iters])

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Nested loops in the order given, at the places they have together.

        Raises
        ------
        ScheduleError : something is beside the loops, or what is below depends on their order.
        """
        self._apply("reorder", [ordered_loops])

    def add_unit_loop(self, block_or_loop: LoopRV | BlockRV) -> LoopRV:
        """A loop of one trip around a loop or block."""
        return self._apply("add_unit_loop", [block_or_loop])[0]

    # How loops run

    def parallel(self, loop: LoopRV) -> None:
        """Run the iterations of a loop on several cores."""
        self._apply("parallel", [loop])

    def vectorize(self, loop: LoopRV) -> None:
        """Run the iterations of a loop, whose extent is a constant, as lanes of vectors."""
        self._apply("vectorize", [loop])

    def unroll(self, loop: LoopRV) -> None:
        """Write out the iterations of a loop, whose extent is a constant."""
        self._apply("unroll", [loop])

    def bind(self, loop: LoopRV, thread_axis: str | IterVar) -> None:
        """Let the threads of an axis, "blockIdx.x" or "threadIdx.y" for example, run a loop.

        Raises
        ------
        ScheduleError : the iterations depend on each other, loops of one kernel with the same axis
            have different extents, or values would pass between threads other than through shared
            memory.
        """
        self._apply("bind", [loop, thread_axis])

    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: Any) -> None:
        """Attach a value to a block or loop. Lowering reads keys that begin with ``pragma_``."""
        self._apply("annotate", [block_or_loop, ann_key, ann_val])

    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Remove what :meth:`annotate` attached."""
        self._apply("unannotate", [block_or_loop, ann_key])
