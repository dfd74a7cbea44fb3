"""Calls that other, cheaper expressions equal."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.ir import Op, RelayExpr, TensorType
from tvm.ir.transform import Pass
from tvm.relax.op.quantization import integer_limits

from .. import op
from ..expr import Call, Constant, const, exact_const
from ..expr_functor import PostOrderMutator
from ..op import elementwise as ew
from ..op.registry import settings_of
from ..ty import is_dynamic
from .base import expression_pass

__all__ = ["Simplifier", "SimplifyExpr", "filling", "identity"]


class Simplifier(PostOrderMutator):
    """Operands first; each call is rewritten until no rule fits.

    Parameters
    ----------
    rules : those for an operator of a name.
    """

    def __init__(self, rules: Callable[[str], Iterable[Rule]]) -> None:
        super().__init__()
        self._rules = rules
        # Of what is new, which has the type of what it stands for.
        self._types: dict[RelayExpr, Any] = {}

    def type_of(self, expr: RelayExpr) -> Any:
        """The type of an expression of the program or of one that rules made."""
        return self._types.get(expr, expr.checked_type_)

    def is_known(self, expr: RelayExpr) -> bool:
        """Whether an expression is a tensor of fixed shape."""
        type_ = self.type_of(expr)
        return isinstance(type_, TensorType) and not is_dynamic(type_)

    def name_of(self, expr: RelayExpr) -> str:
        """The operator of a call, "" for what is none."""
        known = isinstance(expr, Call) and isinstance(expr.op, Op)
        return str(expr.op.name) if known else ""

    def visit_call(self, call: Call) -> RelayExpr:
        new: RelayExpr = super().visit_call(call)
        type_ = call.checked_type_
        self._types[new] = type_
        while isinstance(new, Call):
            found = self._rewritten(new)
            if found is None:
                return new
            if not isinstance(found, Constant):
                self._types.setdefault(found, type_)
            new = found
        return new

    def _rewritten(self, call: Call) -> RelayExpr | None:
        if not isinstance(self.type_of(call), TensorType):
            return None
        settings = settings_of(call)
        for rule in self._rules(self.name_of(call)):
            found = rule(self, call, settings)
            if found is not None:
                return found
        return None

    def made(self, expr: Any, type_: Any) -> Any:
        """An expression that a rule makes on its way, with its type."""
        self._types[expr] = type_
        return expr


Rule = Callable[["Simplifier", Call, Mapping[str, Any]], "RelayExpr | None"]


def _shape(type_: TensorType) -> list[int]:
    return [int(extent) for extent in type_.shape]


_RESHAPES = (
    *("reshape", "contrib_reverse_reshape", "reshape_like", "squeeze", "expand_dims"),
    "nn.batch_flatten",
)


def _one_reshape(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """A reshape of a reshape, or one that does nothing."""
    if not s.is_known(call) or not s.is_known(call.args[0]):
        return None
    data, wanted = call.args[0], _shape(s.type_of(call))
    if _shape(s.type_of(data)) == wanted:
        return data
    if s.name_of(data) not in _RESHAPES or not s.is_known(data.args[0]):
        return None
    if _shape(s.type_of(data.args[0])) == wanted:
        return data.args[0]
    return op.reshape(data.args[0], wanted)


def _axes(s: Simplifier, call: RelayExpr) -> list[int] | None:
    """The order of axes that a transpose, or a change of layout without blocks, gives."""
    rank = len(s.type_of(call).shape)
    if s.name_of(call) == "transpose":
        axes = settings_of(call)["axes"]
        return [a % rank for a in axes] if axes is not None else list(range(rank))[::-1]
    if s.name_of(call) == "layout_transform":
        settings = settings_of(call)
        src, dst = settings["src_layout"], settings["dst_layout"]
        if sorted(src) == sorted(dst) and src.isalpha() and src.isupper():
            return [src.index(axis) for axis in dst]
    return None


def _one_transpose(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """Transposes after each other as one, and none that change nothing."""
    data = call.args[0]
    if s.name_of(data) == s.name_of(call) == "layout_transform":
        inner = settings_of(data)
        if inner["dst_layout"] == settings["src_layout"]:
            # Blocks that do not divide an axis have padded it: then the shapes differ.
            if inner["src_layout"] != settings["dst_layout"]:
                moved = data.args[0], inner["src_layout"], settings["dst_layout"]
                return op.layout_transform(*moved)
            same = s.type_of(data.args[0]) == s.type_of(call)
            return data.args[0] if same else None
    outer = _axes(s, call)
    if outer is None:
        return None
    if outer == sorted(outer):
        return data
    below = _axes(s, data)
    if below is None:
        return None
    axes = [below[a] for a in outer]
    return data.args[0] if axes == sorted(axes) else op.transpose(data.args[0], axes)


def _one_cast(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """No cast to the type that there is; one where the first of two only widened."""
    data, dtype = call.args[0], str(s.type_of(call).dtype)
    if not isinstance(s.type_of(data), TensorType):
        return None
    if str(s.type_of(data).dtype) == dtype:
        return data
    if s.name_of(data) in ("cast", "cast_like"):
        first, middle = (str(s.type_of(e).dtype) for e in (data.args[0], data))
        if _widens(first, middle):
            return data.args[0] if first == dtype else op.cast(data.args[0], dtype)
    return op.cast(data, dtype) if s.name_of(call) == "cast_like" else None


def _widens(narrow: str, wide: str) -> bool:
    """Whether a type has every value of another."""
    return "bfloat16" not in (narrow, wide) and np.can_cast(narrow, wide, "safe")


_WHOLE = ("int8", "uint8", "int16", "uint16", "int32")


def _one_clip(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    data = call.args[0]
    if s.is_known(data) and str(s.type_of(data).dtype) in _WHOLE:
        least, most = integer_limits(str(s.type_of(data).dtype))
        if settings["a_min"] <= least and most <= settings["a_max"]:
            return data
    if s.name_of(data) != "clip":
        return None
    inner = settings_of(data)
    low = min(max(inner["a_min"], settings["a_min"]), settings["a_max"])
    high = max(min(inner["a_max"], settings["a_max"]), settings["a_min"])
    return op.clip(data.args[0], low, high)


def _like(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """An operator that takes a shape or type from an operand, where these are known."""
    type_ = s.type_of(call)
    if not s.is_known(call):
        return None
    shape, dtype, name = _shape(type_), str(type_.dtype), s.name_of(call)
    data = call.args[0]
    if name == "zeros_like":
        return op.zeros(shape, dtype)
    if name == "ones_like":
        return op.ones(shape, dtype)
    if name == "full_like":
        return op.full(call.args[1], shape, dtype)
    if name == "reshape_like":
        return op.reshape(data, shape)
    return (op.broadcast_to if name == "broadcast_to_like" else op.collapse_sum_to)(data, shape)


def _reciprocal_root(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """x / sqrt(y) as x * rsqrt(y)."""
    number, root = call.args
    if s.name_of(root) != "sqrt":
        return None
    inverse = s.made(ew.rsqrt(root.args[0]), s.type_of(root))
    is_one = filling(s, number) == 1 and s.type_of(root) == s.type_of(call)
    return inverse if is_one else number * inverse


_BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")


def filling(s: Simplifier, expr: RelayExpr) -> float | None:
    """The number that a tensor has everywhere; None if it has several or is not known."""
    if isinstance(expr, Constant):
        values = expr.data.numpy()
        if values.size and (values == values.flat[0]).all():
            return float(values.flat[0])
        return None
    name = s.name_of(expr)
    if name in ("zeros", "zeros_like", "ones", "ones_like"):
        return float(name.startswith("ones"))
    if name in ("full", "full_like"):
        return filling(s, expr.args[-1 if name == "full_like" else 0])
    return None


def identity(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """x + 0, x - 0, x * 1 and x / 1."""
    neutral = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0}
    name = s.name_of(call)
    if name not in neutral:
        return None
    x, y = call.args
    pairs = [(x, y), (y, x)] if name in ("add", "multiply") else [(x, y)]
    for kept, dropped in pairs:
        if filling(s, dropped) == neutral[name] and s.type_of(kept) == s.type_of(call):
            return kept
    return None


def _scalar_operand(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """A tensor of one number beside another operand, as that number."""
    for kept, full in itertools.permutations(call.args):
        if s.name_of(full) not in ("full", "full_like", "ones", "zeros", "ones_like", "zeros_like"):
            continue
        number = filling(s, full)
        if number is None or s.type_of(kept) != s.type_of(call):
            continue
        scalar = const(number, str(s.type_of(full).dtype))
        same = [scalar if arg.same_as(full) else arg for arg in call.args]
        return Call(call.op, same, call.attrs)
    return None


def _one_constant(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """(x + a) + b as x + (a + b), the same for products, and (x + a) * b as x * b + a * b.

    The constants' part is left to `FoldConstant`.
    """
    name = s.name_of(call)
    if name not in ("add", "multiply"):
        return None
    inner, outer = call.args
    if isinstance(inner, Constant):
        inner, outer = outer, inner
    below = s.name_of(inner)
    if not isinstance(outer, Constant) or below not in ("add", "multiply"):
        return None
    x, first = inner.args
    if isinstance(x, Constant):
        x, first = first, x
    if not isinstance(first, Constant) or isinstance(x, Constant):
        return None
    if below == "multiply" and name == "add":
        return None
    if name == below:
        return Call(call.op, [x, _combined(s, name, first, outer)])
    scaled = s.made(x * outer, s.type_of(call))
    return scaled + _combined(s, "multiply", first, outer)


def _combined(s: Simplifier, name: str, a: Constant, b: Constant) -> RelayExpr:
    """The sum or product of constants; of numbers at once."""
    if a.data.numpy().size == b.data.numpy().size == 1:
        values = a.data.numpy(), b.data.numpy()
        return exact_const((np.add if name == "add" else np.multiply)(*values))
    return a + b if name == "add" else a * b


def _of_dequantised(s: Simplifier, call: Call, settings: Mapping[str, Any]) -> RelayExpr | None:
    """Positions of the largest or sorted numbers do not change with a positive scale."""
    data = call.args[0]
    if s.name_of(data) != "qnn.dequantize":
        return None
    scale = data.args[1]
    if not isinstance(scale, Constant) or scale.data.numpy().size != 1:
        return None
    if float(scale.data.numpy().item()) <= 0:
        return None
    return Call(call.op, [data.args[0]], call.attrs)


_RULES: Mapping[str, Sequence[Rule]] = {
    "reshape": [_one_reshape],
    "contrib_reverse_reshape": [_one_reshape],
    "transpose": [_one_transpose],
    "layout_transform": [_one_transpose],
    "cast": [_one_cast],
    "cast_like": [_one_cast],
    "clip": [_one_clip],
    "divide": [_reciprocal_root],
    "argmax": [_of_dequantised],
    "argmin": [_of_dequantised],
    "argsort": [_of_dequantised],
    **{
        name: [_like]
        for name in (
            *("zeros_like", "ones_like", "full_like"),
            *("reshape_like", "broadcast_to_like", "collapse_sum_like"),
        )
    },
}
_BINARY_RULES: Sequence[Rule] = (identity, _scalar_operand, _one_constant)


def _rules(name: str) -> Iterator[Rule]:
    yield from _RULES.get(name, ())
    yield from _BINARY_RULES if name in _BINARY else ()


def SimplifyExpr() -> Pass:
    """Rewrite calls to cheaper ones that are equal.

    Reshapes, transposes, casts and clips after each other become one or none; operators that take
    a shape from a tensor get the shape; tensors of one number become that number, and what adds
    nothing or multiplies by one goes; constants added or multiplied one after the other are put
    together, for `FoldConstant` to compute; a division by a root becomes a product.
    """
    return expression_pass(lambda f, mod: Simplifier(_rules).visit(f), 0, "SimplifyExpr")
