"""Quantised operators as ordinary ones."""

from __future__ import annotations

from tvm.ir import RelayExpr
from tvm.ir.transform import Pass

from ..expr import Call
from ..expr_functor import PostOrderMutator
from ..op.registry import find_row
from ..transform.base import expression_pass
from ..transform.rewrite import Legalize as _legalize

__all__ = ["CanonicalizeOps", "Legalize"]


class _Canonical(PostOrderMutator):
    def visit_call(self, call: Call) -> RelayExpr:
        row = find_row(call.op)
        if row is None or row.written is None:
            return super().visit_call(call)
        # The types are those of the operands as they were.
        written = row.written(call)
        operands = dict(zip(call.args, [self.visit(arg) for arg in call.args]))
        return _with_operands(written, operands)


class _Operands(PostOrderMutator):
    def __init__(self, values: dict[RelayExpr, RelayExpr]) -> None:
        super().__init__()
        self.memo_map.update(values)


def _with_operands(expr: RelayExpr, values: dict[RelayExpr, RelayExpr]) -> RelayExpr:
    """The expression with others in the place of parts of it."""
    return _Operands(values).visit(expr)


def CanonicalizeOps() -> Pass:
    """Write every operator of `relay.qnn.op` in relay's ordinary operators.

    `relay.build` does so itself; a program calls this to run passes over what comes out.
    """
    return expression_pass(lambda f, mod: _Canonical().visit(f), 0, "QnnCanonicalizeOps")


def Legalize() -> Pass:
    """Rewrite calls by what `relay.qnn.op.register_qnn_legalize` says of their operators."""
    return _legalize("FTVMQnnLegalize")
