"""The rule that moves work to a random place of its reader's loops."""

from __future__ import annotations

from tvm import tir
from tvm.tir.schedule import BlockRV, Schedule

from ..sch_analysis import TILED, annotation, is_root
from .schedule_rule import ScheduleRule

__all__ = ["RandomComputeLocation"]

_PRODUCER = "meta_schedule.random_compute_producer"


class RandomComputeLocation(ScheduleRule):
    """Computes what one block needs of another at a random place of its loops.

    Of a block that is marked so, what it reads is moved too.
    """

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not self._is_movable(sch, block):
            return [sch]
        # The place of the producers is sampled after the block has found its own.
        producers = []
        if annotation(sch.get(block), _PRODUCER) is not None:
            producers = sch.get_producers(block)
            sch.unannotate(block, _PRODUCER)
        return [self._moved(self._moved(sch, [block]), producers)]

    @staticmethod
    def _moved(sch: Schedule, blocks: list[BlockRV]) -> Schedule:
        """A schedule with blocks at random places; those that have none stay."""
        for block in blocks:
            after = sch.copy()
            try:
                place = after.sample_compute_location(block)
                after.compute_at(block, place, preserve_unit_loops=True)
            except tir.ScheduleError:
                continue
            sch = after
        return sch

    @staticmethod
    def _is_movable(sch: Schedule, block: BlockRV) -> bool:
        loops = sch.get_loops(block)
        # Where other blocks share the nest, the block was moved there already.
        if is_root(sch, block) or not loops or len(sch.get_child_blocks(loops[0])) > 1:
            return False
        if annotation(sch.get(block), TILED) is not None:
            return False
        marked = annotation(sch.get(block), _PRODUCER) is not None
        return marked or bool(sch.get_consumers(block))
