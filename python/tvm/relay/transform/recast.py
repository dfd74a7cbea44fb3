"""Operators computed in another element type."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import Op, RelayExpr

from ..expr import Call, Tuple
from ..expr_functor import PostOrderMutator, post_order_visit
from ..op import cast
from ..op.registry import row_of

__all__ = ["recast"]


class _Recaster(PostOrderMutator):
    def __init__(self, layers: Sequence[Call], dtype: str, out_dtype: str) -> None:
        super().__init__()
        self._layers = set(layers)
        self._dtype, self._out_dtype = dtype, out_dtype

    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        if call not in self._layers:
            return new
        settings = dict(new.attrs) if new.attrs is not None else {}
        keeps_sums = "out_dtype" in row_of(new.op).settings
        if keeps_sums:
            settings["out_dtype"] = self._out_dtype
        made = Call(new.op, [self._lowered(arg) for arg in new.args], settings)
        wanted = str(getattr(call.checked_type_, "dtype", "") or "float32")
        has = self._out_dtype if keeps_sums else self._dtype
        return made if has == wanted else cast(made, wanted)

    def _lowered(self, arg: RelayExpr) -> RelayExpr:
        if isinstance(arg, Tuple):
            return Tuple([self._lowered(field) for field in arg.fields])
        return cast(arg, self._dtype)


def recast(
    expr: RelayExpr,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] | None = None,
    skip_layers: Sequence[int] | None = None,
) -> RelayExpr:
    """The expression with some operators computed in another element type.

    Parameters
    ----------
    dtype : type that operands are cast to. out_dtype : type in which products add up.
    ops : names of the operators, convolutions by default.
    skip_layers : which of their calls stay, counted from zero as they are computed, or from the
        last backwards (-1).
    """
    names = set(ops or ("nn.conv2d",))
    layers: list[Call] = []

    def look(node: RelayExpr) -> None:
        if isinstance(node, Call) and isinstance(node.op, Op) and str(node.op.name) in names:
            layers.append(node)

    post_order_visit(expr, look)
    skipped = {number % len(layers) for number in skip_layers or () if layers}
    chosen = [layer for i, layer in enumerate(layers) if i not in skipped]
    return _Recaster(chosen, dtype, out_dtype).visit(expr)
