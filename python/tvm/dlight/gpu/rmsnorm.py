"""The rule for normalisations by the root of the mean of squares."""

from __future__ import annotations

from tvm import tir
from tvm.tir.schedule import Schedule

from ..base import BlockInfo
from .general_reduction import GeneralReduction

__all__ = ["RMSNorm"]


class RMSNorm(GeneralReduction):
    """A block of threads normalises a row: `GeneralReduction` of sums of squares alone.

    Fits chains of blocks of which one is a reduction, which adds up squares, and one takes a root.
    """

    def _schedule(self, sch: Schedule, blocks: list[BlockInfo], most: int) -> bool:
        reductions = [info for info in blocks if info.is_reduction()]
        if len(reductions) != 1 or not _adds_squares(sch.get(reductions[0].block_rv)):
            return False
        if not any(_takes_root(sch.get(info.block_rv)) for info in blocks):
            return False
        return super()._schedule(sch, blocks, most)


def _adds_squares(node: tir.Block) -> bool:
    store = node.body
    if not isinstance(store, tir.BufferStore) or not isinstance(store.value, tir.Add):
        return False
    return any(
        isinstance(part, tir.Mul) and tir.analysis.expr_deep_equal(part.a, part.b)
        for part in (store.value.a, store.value.b)
    )


def _takes_root(node: tir.Block) -> bool:
    found = False

    def look(part: object) -> None:
        nonlocal found
        if isinstance(part, tir.Call) and str(part.op.name) in ("tir.rsqrt", "tir.sqrt"):
            found = True

    tir.stmt_functor.post_order_visit(node.body, look)
    return found
