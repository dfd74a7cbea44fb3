"""Exchanging blocks for tensor intrinsics."""

from __future__ import annotations

from tvm import tir
from tvm.tir.schedule import BlockRV, Schedule

from ..sch_analysis import AUTO_TENSORIZE, all_blocks, annotation
from .postproc import Postproc

__all__ = ["RewriteTensorize"]


class RewriteTensorize(Postproc):
    """Lets intrinsics do what blocks do that rules marked for them.

    Refuses a schedule where an intrinsic does not fit.

    Parameters
    ----------
    vectorize_init_loop : run start values that no intrinsic sets in lanes.
    """

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        marked: list[tuple[BlockRV, str]] = []
        for block, node in list(all_blocks(sch)):
            name = annotation(node, AUTO_TENSORIZE)
            if name is not None:
                marked.append((block, str(name)))
        for block, name in marked:
            sch.unannotate(block, AUTO_TENSORIZE)
            try:
                if name:
                    sch.tensorize(block, name)
                elif self.vectorize_init_loop:
                    for child in sch.get_child_blocks(block):
                        sch.vectorize(sch.get_loops(child)[-1])
            except tir.ScheduleError:
                return False
        return True
