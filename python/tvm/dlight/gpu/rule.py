"""What rules for graphics processors have in common."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tir
from tvm.target import Target
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

from ..base import BlockInfo, ScheduleRule, normalize_prim_func, try_inline

__all__ = ["GPUScheduleRule", "axes_of", "fuse_all", "run_by_threads", "threads_for"]


class GPUScheduleRule(ScheduleRule):
    """A rule for targets with the key ``gpu``; what it cannot schedule is left to the next rule."""

    def apply(self, func: tir.PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        """A schedule of `func`; None where the rule does not fit."""
        if not self.is_target_available(target):
            return None
        sch = Schedule(func)
        blocks = normalize_prim_func(sch)
        if not blocks:
            return None
        most = int(target.get_attr("max_threads_per_block", 256))
        try:
            fits = self._schedule(sch, try_inline(sch, blocks), most)
        except tir.ScheduleError:
            return None
        return sch if fits else None

    def is_target_available(self, target: Target) -> bool:
        """Whether the rule knows schedules for a target."""
        return "gpu" in target.keys

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        """Schedule the blocks that are left after inlining; False where the rule does not fit.

        Parameters
        ----------
        most : threads that a block of them may have.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it schedules")


def fuse_all(sch: Schedule, loops: Sequence[LoopRV], block: BlockRV) -> LoopRV:
    """One loop for several; a loop of one iteration around `block` where there is none."""
    if not loops:
        return sch.add_unit_loop(block)
    return loops[0] if len(loops) == 1 else sch.fuse(*loops)


def threads_for(sch: Schedule, loop: LoopRV, most: int) -> int:
    """A power of two of threads for the iterations of a loop, at most `most`."""
    extent = sch.get(loop).extent
    wanted = int(extent) if isinstance(extent, tir.IntImm) else most
    threads = 1
    while threads < wanted and threads * 2 <= most:
        threads *= 2
    return threads


def run_by_threads(sch: Schedule, loop: LoopRV, threads: int, axis: str = "threadIdx.x") -> LoopRV:
    """Share out the iterations of a loop among threads; returns the loop of each thread."""
    own, shared = sch.split(loop, factors=[None, threads])
    sch.bind(shared, axis)
    return own


def axes_of(node: tir.Block, index: tir.PrimExpr) -> set[int]:
    """Positions of the block's variables that an index depends on."""
    found: set[int] = set()

    def visit(part: object) -> None:
        for at, axis in enumerate(node.iter_vars):
            if isinstance(part, tir.Var) and part.same_as(axis.var):
                found.add(at)

    tir.stmt_functor.post_order_visit(index, visit)
    return found
