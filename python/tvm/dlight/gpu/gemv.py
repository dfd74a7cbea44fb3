"""The rule for products of a matrix and a vector."""

from __future__ import annotations

from tvm import tir
from tvm.tir.schedule import Schedule

from ..base import BlockInfo
from .reduction import is_one_reduction, reads_along_the_reduction, reduce_together
from .rule import GPUScheduleRule, axes_of

__all__ = ["GEMV", "is_gemv"]


class GEMV(GPUScheduleRule):
    """A warp sums each row of the matrix, and several rows are in a block of threads.

    Fits sums of products of two elements, of which one is the same for all rows.
    """

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        if not is_one_reduction(blocks) or not is_gemv(sch, blocks[0]):
            return False
        if reads_along_the_reduction(sch, blocks[0]):
            reduce_together(sch, blocks, rows=4, lanes=32, rows_axis="threadIdx.y")
        else:
            reduce_together(
                sch,
                blocks,
                rows=32,
                lanes=max(min(most // 32, 8), 1),
                rows_axis="threadIdx.x",
                lanes_axis="threadIdx.y",
            )
        return True


def is_gemv(sch: Schedule, info: BlockInfo) -> bool:
    """Whether a block adds up products, of which one factor is the same for all rows."""
    node = sch.get(info.block_rv)
    if len(node.reads) != 2 or not isinstance(node.body, tir.BufferStore):
        return False
    value = node.body.value
    if not isinstance(value, tir.Add) or not any(_is_product(part) for part in (value.a, value.b)):
        return False
    spatial = {
        at
        for at, axis in enumerate(node.iter_vars)
        if int(axis.iter_type) == int(tir.IterVar.DataPar)
        and not (isinstance(axis.dom.extent, tir.IntImm) and int(axis.dom.extent) == 1)
    }
    used = [
        set().union(*(axes_of(node, part.min) for part in region.region)) & spatial
        for region in node.reads
    ]
    vector, matrix = sorted(used, key=len)
    return vector < matrix == spatial


def _is_product(value: tir.PrimExpr) -> bool:
    if isinstance(value, tir.Cast):
        value = value.value
    return isinstance(value, tir.Mul)
