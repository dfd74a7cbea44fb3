"""The postprocessor that puts intrinsics in the place of marked blocks."""

from __future__ import annotations

from tvm import tir
from tvm.tir.schedule import Schedule

from ..sch_analysis import all_blocks, annotation
from .postproc import Postproc

__all__ = ["RewriteTensorize"]

_TENSORIZE = "meta_schedule.auto_tensorize"


class RewriteTensorize(Postproc):
    """Tensorizes blocks marked with the name of an intrinsic.

    Parameters
    ----------
    vectorize_init_loop : run the start values of a tile, which no intrinsic sets, in lanes.
    """

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        marked = [
            (block, str(annotation(node, _TENSORIZE)))
            for block, node in list(all_blocks(sch))
            if annotation(node, _TENSORIZE) is not None
        ]
        for block, intrinsic in marked:
            sch.unannotate(block, _TENSORIZE)
            if intrinsic:
                try:
                    sch.tensorize(block, intrinsic)
                except tir.ScheduleError:
                    return False
            elif self.vectorize_init_loop:
                for child in sch.get_child_blocks(block):
                    sch.vectorize(sch.get_loops(child)[-1])
        return True
