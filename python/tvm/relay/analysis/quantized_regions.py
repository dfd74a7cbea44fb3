"""Real arithmetic between dequantize and quantize, as networks trained for integers have it."""

from __future__ import annotations

from collections import Counter

from tvm.ir import IRModule, Op, RelayExpr

from ..expr import Call, Constant, Function, Tuple, TupleGetItem
from ..expr_functor import post_order_visit

__all__ = ["list_fake_quantized_op_freqs"]


def _name_of(expr: RelayExpr) -> str:
    return str(expr.op.name) if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def _region(result: RelayExpr) -> list[Call] | None:
    """The calls from dequantize to a value; None if something else than those is in front."""
    found: list[Call] = []
    seen: set[RelayExpr] = set()
    pending = [result]
    is_quantized = False
    while pending:
        expr = pending.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if _name_of(expr) == "qnn.dequantize":
            is_quantized = True
        elif isinstance(expr, Tuple):
            pending.extend(expr.fields)
        elif isinstance(expr, TupleGetItem):
            pending.append(expr.tuple_value)
        elif _name_of(expr):
            found.append(expr)
            pending.extend(expr.args)
        elif not isinstance(expr, Constant):
            return None
    return found if is_quantized else None


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """How often each operator computes real numbers between dequantize and quantize.

    A region belongs to a ``qnn.quantize`` and reaches back to the ``qnn.dequantize`` in front of
    it; what reads other values than these and constants is none. A call that several regions have
    counts once. `transform.FakeQuantizationToInteger` writes such regions with integers.
    """
    calls: dict[Call, None] = {}

    def look(expr: RelayExpr) -> None:
        if isinstance(expr, Call) and _name_of(expr) == "qnn.quantize":
            calls.update(dict.fromkeys(_region(expr.args[0]) or ()))

    for func in mod.functions.values():
        if isinstance(func, Function):
            post_order_visit(func, look)
    return dict(Counter(_name_of(call) for call in calls))
