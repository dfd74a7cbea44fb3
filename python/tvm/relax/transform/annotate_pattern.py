"""How kernels may be fused, read off their programs."""

from __future__ import annotations

from tvm import tir
from tvm.ir import IRModule, PrimExpr
from tvm.tir.functor import StmtExprVisitor

from ..op import OpPattern
from .graph_pass import graph_pass

__all__ = ["AnnotateTIROpPattern", "pattern_of_kernel"]


class _Blocks(StmtExprVisitor):
    """Blocks that compute something, in order, and whether something is outside of them."""

    def __init__(self) -> None:
        self.found: list[tir.Block] = []
        self.plain = False

    def visit_block_(self, op: tir.Block) -> None:
        if len(op.iter_vars) or not _has_blocks(op.body):
            self.found.append(op)
        else:
            self._visit_below(op)

    def visit_buffer_store_(self, op: tir.BufferStore) -> None:
        self.plain = True

    def visit_evaluate_(self, op: tir.Evaluate) -> None:
        self.plain = True


def _has_blocks(body: tir.Stmt) -> bool:
    found: list[tir.Block] = []
    tir.stmt_functor.post_order_visit(
        body, lambda node: found.append(node) if isinstance(node, tir.Block) else None
    )
    return bool(found)


class _Accesses(StmtExprVisitor):
    def __init__(self, block: tir.Block) -> None:
        self.stores: list[tir.BufferStore] = []
        self.loads: list[tir.BufferLoad] = []
        self.opaque = False
        self.visit(block.body)

    def visit_buffer_store_(self, op: tir.BufferStore) -> None:
        self.stores.append(op)
        self._visit_below(op)

    def visit_buffer_load_(self, op: tir.BufferLoad) -> None:
        self.loads.append(op)
        self._visit_below(op)

    def visit_evaluate_(self, op: tir.Evaluate) -> None:
        self.opaque = True

    def visit_while_(self, op: tir.While) -> None:
        self.opaque = True

    def visit_block_(self, op: tir.Block) -> None:
        self.opaque = True


def _same(a: PrimExpr, b: PrimExpr) -> bool:
    zero = isinstance(a, tir.IntImm) and isinstance(b, tir.IntImm)
    return a.same_as(b) or (zero and a.value == b.value)


def _pattern_of_block(block: tir.Block) -> OpPattern:
    accesses = _Accesses(block)
    if accesses.opaque or not accesses.stores:
        return OpPattern.OPAQUE
    target = accesses.stores[0]
    if any(not store.buffer.same_as(target.buffer) for store in accesses.stores):
        return OpPattern.OPAQUE
    reduced = {axis.var for axis in block.iter_vars if axis.iter_type != tir.IterVar.DataPar}
    loads = [load for load in accesses.loads if not load.buffer.same_as(target.buffer)]
    if reduced:
        operands = {load.buffer for load in loads}
        return OpPattern.OUT_FUSABLE if len(operands) > 1 else OpPattern.COMM_REDUCE
    written = list(target.indices)
    worst = OpPattern.ELEMWISE
    for load in loads:
        worst = max(worst, _pattern_of_load(list(load.indices), written))
    return worst


def _pattern_of_load(read: list[PrimExpr], written: list[PrimExpr]) -> OpPattern:
    if len(read) == len(written) and all(_same(a, b) for a, b in zip(read, written)):
        return OpPattern.ELEMWISE
    at = 0
    for index in read:
        if isinstance(index, tir.IntImm):
            continue
        while at < len(written) and not _same(index, written[at]):
            at += 1
        if at == len(written):
            return _beyond_broadcast(read)
        at += 1
    return OpPattern.BROADCAST


def _beyond_broadcast(read: list[PrimExpr]) -> OpPattern:
    loads: list[tir.BufferLoad] = []
    for index in read:
        tir.stmt_functor.post_order_visit(
            index, lambda node: loads.append(node) if isinstance(node, tir.BufferLoad) else None
        )
    # What is read at a place that another tensor says may be read anywhere.
    return OpPattern.OPAQUE if loads else OpPattern.INJECTIVE


def pattern_of_kernel(func: tir.PrimFunc) -> OpPattern:
    """How an element of what a function of blocks gives depends on what it takes."""
    blocks = _Blocks()
    blocks.visit(func.body)
    if blocks.plain or not blocks.found:
        return OpPattern.OPAQUE
    kinds = [_pattern_of_block(block) for block in blocks.found]
    reductions = sum(kind in (OpPattern.COMM_REDUCE, OpPattern.OUT_FUSABLE) for kind in kinds)
    # A reduction of a reduction, as in a softmax, has no place where others could be appended.
    return OpPattern.OPAQUE if reductions > 1 else max(kinds)


@graph_pass("AnnotateTIROpPattern")
def AnnotateTIROpPattern(mod: IRModule) -> IRModule:
    """The module with an attribute "op_pattern" on kernels that had none, as `FuseOps` reads it.

    The number is that of an :class:`tvm.relax.op.OpPattern`.
    """
    functions = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, tir.PrimFunc) and "op_pattern" not in func.attrs:
            func = func.with_attr("op_pattern", int(pattern_of_kernel(func)))
        functions[gvar] = func
    return mod.with_functions(functions)
