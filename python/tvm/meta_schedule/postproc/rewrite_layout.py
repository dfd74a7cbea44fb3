"""Storing what a program may lay out as it likes in the order in which loops read it."""

from __future__ import annotations

from tvm import tir
from tvm.error import TVMError
from tvm.tir.schedule import BlockRV, Schedule
from tvm.tir.schedule.analysis import suggest_index_map

from ..access_pattern import is_elementwise_copy
from ..sch_analysis import all_blocks
from .postproc import Postproc

__all__ = ["LAYOUT_PREPROC", "RewriteLayout"]

LAYOUT_PREPROC = "meta_schedule.layout_rewrite_preproc"
"""The annotation of blocks that only bring an operand into another layout."""


class RewriteLayout(Postproc):
    """Reads operands that a function may have in any layout from copies in the order of its loops.

    The attribute ``layout_free_buffers`` of a function gives positions of such parameters, weights
    for example. The blocks that make the copies are annotated, so that who builds the program may
    make them once and for all.
    """

    def apply(self, sch: Schedule) -> bool:
        for var, function in list(sch.mod.functions.items()):
            free = None if function.attrs is None else function.attrs.get("layout_free_buffers")
            for position in free or ():
                buffer = function.buffer_map[function.params[int(position)]]
                self._rewrite(sch, str(var.name_hint), buffer)
        return True

    def _rewrite(self, sch: Schedule, function: str, buffer: tir.Buffer) -> None:
        readers = self._readers(sch, function, buffer)
        if not readers:
            raise TVMError(
                f"RewriteLayout: no block of {function} reads the buffer {buffer.name}, which "
                "layout_free_buffers names"
            )
        if len(readers) > 1:
            return
        # Copies on the way are laid out alike.
        chain = list(readers)
        while is_elementwise_copy(sch.get(chain[-1][0])) and not _is_output(sch, chain[-1][0]):
            copied = sch.get(chain[-1][0]).writes[0].buffer
            following = self._readers(sch, function, copied)
            if len(following) != 1:
                return
            chain.append(following[0])
        block, index = chain[-1]
        loops = [sch.get(loop) for loop in sch.get_loops(block)]
        node = sch.get(block)
        values = dict(
            zip((axis.var for axis in node.iter_vars), sch.get_iter_values(block), strict=True)
        )
        places = [
            tir.stmt_functor.substitute(part.min, values) for part in node.reads[index].region
        ]
        layout = suggest_index_map(node.reads[index].buffer, places, loops, tir.const(1, "bool"))
        if layout is None:
            return
        copy = sch.cache_read(chain[0][0], chain[0][1], "global")
        for reader, at in chain:
            sch.transform_layout(reader, ("read", at), layout)
        sch.annotate(copy, LAYOUT_PREPROC, True)

    @staticmethod
    def _readers(sch: Schedule, function: str, buffer: tir.Buffer) -> list[tuple[BlockRV, int]]:
        """The innermost blocks that read a buffer, and which of their operands it is."""
        found = []
        for block, node in all_blocks(sch, function):
            if sch.get_child_blocks(block):
                continue
            for at, region in enumerate(node.reads):
                if region.buffer.same_as(buffer):
                    found.append((block, at))
        return found


def _is_output(sch: Schedule, block: BlockRV) -> bool:
    return not sch.get_consumers(block)
