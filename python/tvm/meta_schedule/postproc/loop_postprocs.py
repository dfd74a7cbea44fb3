"""Postprocessors of loops and sums, on any target."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

from ..sch_analysis import (
    AUTO_TENSORIZE,
    all_blocks,
    annotation,
    constant_extent,
    is_reduction,
    loop_kinds,
    parallel_sizes,
    root_annotations,
)
from .postproc import Postproc

__all__ = ["DisallowDynamicLoop", "RewriteParallelVectorizeUnroll", "RewriteReductionBlock"]

_KEYS = ("parallel", "vectorize", "unroll_explicit", "unroll_implicit")


class DisallowDynamicLoop(Postproc):
    """Refuses loops whose extent is not constant."""

    def apply(self, sch: Schedule) -> bool:
        for function in sch.mod.functions.values():
            dynamic = False

            def visit(node: Any) -> None:
                nonlocal dynamic
                if isinstance(node, tir.For):
                    dynamic = dynamic or not isinstance(node.extent, tir.IntImm)

            tir.stmt_functor.post_order_visit(function.body, visit)
            if dynamic:
                return False
        return True


class RewriteReductionBlock(Postproc):
    """Takes the start values of sums out of their loops."""

    def apply(self, sch: Schedule) -> bool:
        for block, node in list(all_blocks(sch)):
            if not is_reduction(node):
                continue
            loops = sch.get_loops(block)
            # A loop of one iteration that nothing depends on may be on either side.
            kinds = [
                "S" if kind == "O" and constant_extent(sch, loop) == 1 else kind
                for loop, kind in zip(loops, loop_kinds(sch, block))
            ]
            # An intrinsic may do a whole sum, and still does not start it.
            whole = "R" not in kinds and annotation(node, AUTO_TENSORIZE) is not None
            if not loops or "O" in kinds or not (whole or "R" in kinds):
                continue
            first = len(loops) - 1 if whole else kinds.index("R")
            if any(int(sch.get(loop).kind) == tir.ForKind.THREAD_BINDING for loop in loops[first:]):
                continue
            start = sch.decompose_reduction(block, loops[first])
            self._share_intrinsics(sch, block, start)
        return True

    @staticmethod
    def _share_intrinsics(sch: Schedule, block: BlockRV, start: BlockRV) -> None:
        """Leave the intrinsic of a product with it, and give the one of start values to these."""
        if annotation(sch.get(block), AUTO_TENSORIZE) is None:
            return
        intrinsic = annotation(sch.get(block), f"{AUTO_TENSORIZE}_init")
        sch.unannotate(start, AUTO_TENSORIZE)
        # Without an intrinsic the mark still says that the block stands for a whole tile.
        sch.annotate(start, AUTO_TENSORIZE, "" if intrinsic is None else str(intrinsic))
        if intrinsic is not None:
            sch.unannotate(block, f"{AUTO_TENSORIZE}_init")
            sch.unannotate(start, f"{AUTO_TENSORIZE}_init")


class RewriteParallelVectorizeUnroll(Postproc):
    """Does what `ParallelizeVectorizeUnroll` marked, as far as the loops of each block allow."""

    def apply(self, sch: Schedule) -> bool:
        for function, root, marks in list(root_annotations(sch)):
            limits = {
                k: int(marks[f"meta_schedule.{k}"]) for k in _KEYS if f"meta_schedule.{k}" in marks
            }
            if not limits:
                continue
            for key in limits:
                sch.unannotate(root, f"meta_schedule.{key}")
            for block, _ in list(all_blocks(sch, function)):
                if sch.get_loops(block):
                    self._rewrite(sch, block, limits)
        return True

    def _rewrite(self, sch: Schedule, block: BlockRV, limits: dict[str, int]) -> None:
        loops = sch.get_loops(block)
        # A block that stands inside of another's loops is rewritten with the outermost loop only.
        parallel = self._fuse_parallel(sch, block, loops, limits.get("parallel", -1))
        self._fuse_vector(sch, block, limits.get("vectorize", -1))
        steps = limits.get("unroll_explicit", limits.get("unroll_implicit", 0))
        if steps > 0:
            loops = sch.get_loops(block)
            loop = loops[1] if parallel and len(loops) > 1 else loops[0]
            if "pragma_auto_unroll_max_step" not in sch.get(loop).annotations:
                sch.annotate(loop, "pragma_auto_unroll_max_step", steps)
                sch.annotate(loop, "pragma_unroll_explicit", int("unroll_explicit" in limits))

    @staticmethod
    def _fuse_parallel(sch: Schedule, block: BlockRV, loops: list[LoopRV], limit: int) -> bool:
        """Run the outer independent loops on threads, up to the first that exceeds the limit.

        Returns
        -------
        Whether the outermost loop is such a one.
        """
        if limit <= 0:
            return False
        if int(sch.get(loops[0]).kind) == tir.ForKind.PARALLEL:
            return True
        sizes = parallel_sizes(sch, block)
        count = min(sum(size <= limit for size in sizes) + 1, len(sizes))
        for size in range(count, 0, -1):
            trial = sch.copy()
            try:
                outer = trial.get_loops(block)[:size]
                trial.parallel(trial.fuse(*outer) if size > 1 else outer[0])
            except tir.ScheduleError:
                continue
            sch.parallel(sch.fuse(*loops[:size]) if size > 1 else loops[0])
            return True
        return False

    @staticmethod
    def _fuse_vector(sch: Schedule, block: BlockRV, limit: int) -> None:
        """Run the inner independent loops in lanes, where neighbours lie side by side in memory."""
        if limit <= 1:
            return
        loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
        node = sch.get(block)
        product, count = 1, 0
        for loop, kind in zip(reversed(loops), reversed(kinds)):
            extent = constant_extent(sch, loop)
            serial = int(sch.get(loop).kind) == tir.ForKind.SERIAL
            if kind != "S" or extent is None or not serial or product * extent > limit:
                break
            product *= extent
            count += 1
        if not count or product == 1 or not len(node.writes):
            return
        for size in range(count, 0, -1):
            trial = sch.copy()
            try:
                inner = trial.get_loops(block)[-size:]
                trial.vectorize(trial.fuse(*inner) if size > 1 else inner[0])
            except tir.ScheduleError:
                continue
            sch.vectorize(sch.fuse(*loops[-size:]) if size > 1 else loops[-1])
            return
