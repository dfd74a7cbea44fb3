"""Kernels that only copy elements in their order."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import arith, tir
from tvm.ir import PrimExpr, Range
from tvm.tir.functor import StmtExprVisitor

__all__ = ["has_reshape_pattern"]


class _Copies(StmtExprVisitor):
    """Loops, and the stores inside of them with the values that blocks give their variables."""

    def __init__(self) -> None:
        self.ranges: list[tuple[tir.Var, Range]] = []
        self.values: dict[tir.Var, PrimExpr] = {}
        self.stores: list[tir.BufferStore] = []
        self.other = False

    def visit_for_(self, op: tir.For) -> None:
        self.ranges.append((op.loop_var, Range.from_min_extent(op.min, op.extent)))
        self._visit_below(op)

    def visit_block_realize_(self, op: tir.BlockRealize) -> None:
        for axis, value in zip(op.block.iter_vars, op.iter_values):
            self.values[axis.var] = value
        self._visit_below(op)

    def visit_buffer_store_(self, op: tir.BufferStore) -> None:
        self.stores.append(op)

    def visit_evaluate_(self, op: tir.Evaluate) -> None:
        self.other = True

    def visit_while_(self, op: tir.While) -> None:
        self.other = True


def _position(indices: Sequence[PrimExpr], shape: Sequence[PrimExpr]) -> PrimExpr:
    """The place of an element among all of a buffer, in order."""
    place: PrimExpr = tir.const(0, "int64")
    for index, extent in zip(indices, shape):
        place = place * extent.astype("int64") + index.astype("int64")
    return place


def has_reshape_pattern(func: tir.PrimFunc) -> bool:
    """Whether a kernel copies its first buffer into its last, elements in their order.

    Then it does what ``reshape`` does. False also where that cannot be shown.
    """
    params = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    if len(params) < 2:
        return False
    source, target = params[0], params[-1]
    copies = _Copies()
    copies.visit(func.body)
    if copies.other or len(copies.stores) != 1:
        return False
    store = copies.stores[0]
    load = store.value
    if not isinstance(load, tir.BufferLoad) or str(source.dtype) != str(target.dtype):
        return False
    if not store.buffer.same_as(target) or not load.buffer.same_as(source):
        return False
    analyzer = arith.Analyzer()
    for var, extent in copies.ranges:
        analyzer.bind(var, extent)

    def flat(indices: Sequence[PrimExpr], buffer: tir.Buffer) -> PrimExpr:
        place = _position(indices, buffer.shape)
        # Blocks of blocks: what a variable stands for may be made of other variables.
        for _ in range(len(copies.values) + 1):
            new = tir.stmt_functor.substitute(place, copies.values)
            if new.same_as(place):
                break
            place = new
        return place

    written, read = flat(store.indices, target), flat(load.indices, source)
    return bool(analyzer.can_prove_equal(written, read)) and _as_many(source, target, analyzer)


def _as_many(a: tir.Buffer, b: tir.Buffer, analyzer: arith.Analyzer) -> bool:
    counts: list[PrimExpr] = []
    for buffer in (a, b):
        count: PrimExpr = tir.const(1, "int64")
        for extent in buffer.shape:
            count = count * extent.astype("int64")
        counts.append(count)
    return bool(analyzer.can_prove_equal(counts[0], counts[1]))
