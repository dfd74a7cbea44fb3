"""Casts that several readers of a value share, taken apart."""

from __future__ import annotations

from tvm.ir import Op, RelayExpr
from tvm.ir.transform import Pass

from ..expr import Call, Function
from ..expr_functor import PostOrderMutator, post_order_visit
from ..op import cast
from ..op.registry import OpPattern, find_row
from .base import expression_pass

__all__ = ["CanonicalizeCast"]


def _is_cheap(call: Call) -> bool:
    row = find_row(call.op) if isinstance(call.op, Op) else None
    return row is not None and row.pattern <= OpPattern.BROADCAST


def _is_cast(expr: RelayExpr) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op.name) == "cast"


class _Own(PostOrderMutator):
    def __init__(self, shared: set[RelayExpr]) -> None:
        super().__init__()
        self._shared = shared

    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        if not _is_cheap(call) or _is_cast(call):
            return new
        own: dict[RelayExpr, RelayExpr] = {}
        for old, made in zip(call.args, new.args):
            if old in self._shared and old not in own:
                own[old] = cast(made.args[0], str(old.attrs["dtype"]))
        args = [own.get(old, made) for old, made in zip(call.args, new.args)]
        changed = any(not a.same_as(b) for a, b in zip(args, new.args))
        return Call(new.op, args, new.attrs) if changed else new


def CanonicalizeCast() -> Pass:
    """Give each elementwise reader of a cast value a cast of its own.

    Fused with its reader, a cast costs nothing, while one that several kernels read is written to
    memory in the wider type.
    """

    def rewrite(func: Function, mod: object) -> RelayExpr:
        uses: dict[RelayExpr, int] = {}

        def look(node: RelayExpr) -> None:
            for arg in node.args if isinstance(node, Call) else ():
                if _is_cast(arg):
                    uses[arg] = uses.get(arg, 0) + 1

        post_order_visit(func, look)
        return _Own({c for c, count in uses.items() if count > 1}).visit(func)

    return expression_pass(rewrite, 3, "CanonicalizeCast")
