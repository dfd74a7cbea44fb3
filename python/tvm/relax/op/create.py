"""Operators that make tensors, or convert their element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import PrimExpr, RelayExpr

from ..expr import Call, Constant, PrimValue, ShapeExpr, const
from ..struct_info import TensorStructInfo
from .base import make_call
from .registry import register_rule
from .rules import (
    extents,
    same_as_operand,
    setting,
    shape_argument,
    simplified,
    tensor,
    with_shape,
)

__all__ = [
    "arange",
    "astype",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "wrap_param",
    "zeros",
    "zeros_like",
]

Shape = Sequence[Any] | RelayExpr


def _shape(shape: Shape) -> RelayExpr:
    if isinstance(shape, RelayExpr):
        return shape
    if not isinstance(shape, Sequence):
        raise error.TypeError(
            f"relax: a shape is a sequence of extents, got {type(shape).__name__}"
        )
    return ShapeExpr(extents(v.value if isinstance(v, PrimValue) else v for v in shape))


def full(shape: Shape, fill_value: RelayExpr | float | int, dtype: str | None = None) -> Call:
    """A tensor whose elements are all one value, a tensor of no dimensions.

    Parameters
    ----------
    dtype : element type; that of the value by default.
    """
    value = fill_value if isinstance(fill_value, RelayExpr) else const(fill_value, dtype)
    return make_call("full", _shape(shape), value, dtype=dtype or None)


def _scalar(call: Call, index: int) -> TensorStructInfo:
    info = tensor(call, index, "the value")
    if info.ndim != 0:
        raise error.ValueError(f"{call.op.name}: the value must have no dimensions, got {info}")
    return info


def _full(call: Call) -> TensorStructInfo:
    shape_argument(call, 0)
    value = _scalar(call, 1)
    dtype = setting(call, "dtype") or str(value.dtype)
    return with_shape(call.args[0], dtype, value.vdevice)


def full_like(x: RelayExpr, fill_value: RelayExpr | float | int, dtype: str | None = None) -> Call:
    """A tensor of the shape of x whose elements are all one value.

    Parameters
    ----------
    dtype : element type; that of the value by default.
    """
    value = fill_value if isinstance(fill_value, RelayExpr) else const(
        fill_value, dtype or str(x.struct_info.dtype))  # fmt: skip
    return make_call("full_like", x, value, dtype=dtype or None)


def _full_like(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    value = _scalar(call, 1)
    return same_as_operand(info, setting(call, "dtype") or str(value.dtype))


def ones(shape: Shape, dtype: str) -> Call:
    """A tensor of ones."""
    return _filled("ones", shape, dtype)


def zeros(shape: Shape, dtype: str) -> Call:
    """A tensor of zeros."""
    return _filled("zeros", shape, dtype)


def _filled(name: str, shape: Shape, dtype: str) -> Call:
    if not dtype or str(dtype) == "void":
        raise error.ValueError(f"relax.{name}: give the element type")
    return make_call(name, _shape(shape), dtype=str(dtype))


def _of_shape(call: Call) -> TensorStructInfo:
    if len(call.args) != 1:
        raise error.TypeError(f"{call.op.name}: takes a shape, got {len(call.args)} operands")
    shape_argument(call, 0)
    return with_shape(call.args[0], setting(call, "dtype"))


def ones_like(x: RelayExpr, dtype: str | None = None) -> Call:
    """A tensor of ones of the shape of x."""
    return make_call("ones_like", x, dtype=dtype or None)


def zeros_like(x: RelayExpr, dtype: str | None = None) -> Call:
    """A tensor of zeros of the shape of x."""
    return make_call("zeros_like", x, dtype=dtype or None)


def _like(call: Call) -> TensorStructInfo:
    return same_as_operand(tensor(call, 0), setting(call, "dtype"))


Scalar = RelayExpr | PrimExpr | int | float


def arange(
    start: Scalar, end: Scalar | None = None, step: Scalar = 1, dtype: str | None = None
) -> Call:
    """The numbers from start, below end, in steps; one number alone is the end.

    Parameters
    ----------
    dtype : element type; int64 if all three are integers, else float32, by default.
    """
    if end is None:
        start, end = 0, start
    values = [_value(v) for v in (start, end, step)]
    if dtype is None:
        whole = all(str(v.value.dtype).startswith(("int", "uint")) for v in values)
        dtype = "int64" if whole else "float32"
    return make_call("arange", *values, dtype=dtype)


def _value(value: Scalar) -> PrimValue:
    return value if isinstance(value, PrimValue) else PrimValue(value)


def _arange(call: Call) -> TensorStructInfo:
    dtype = setting(call, "dtype")
    start, end, step = (arg.value for arg in call.args)
    literals: list[Any] = [getattr(v, "value", None) for v in (start, end, step)]
    if None not in literals:
        first, last, gap = literals
        count = max(0, -((first - last) // gap))
        return with_shape([int(count)], dtype)
    if not all(str(v.dtype).startswith(("int", "uint")) for v in (start, end, step)):
        raise error.TypeError("relax.arange: limits that are not literals must be integers")
    start, end, step = (v.astype("int64") for v in (start, end, step))
    return with_shape([simplified(tir.floordiv(end - start + step - 1, step))], dtype)


def astype(x: RelayExpr, dtype: str) -> Call:
    """x converted to another element type."""
    return make_call("astype", x, dtype=dtype)


def wrap_param(data: RelayExpr, dtype: str = "float32") -> Call:
    """A constant that is used with another element type.

    Raises
    ------
    TypeError : data is not a constant.
    """
    if not isinstance(data, Constant):
        raise error.TypeError(f"relax.wrap_param: takes a constant, got {type(data).__name__}")
    return make_call("wrap_param", data, dtype=dtype)


register_rule("full", _full)
register_rule("full_like", _full_like)
register_rule("ones", _of_shape)
register_rule("zeros", _of_shape)
register_rule("ones_like", _like)
register_rule("zeros_like", _like)
register_rule("arange", _arange)
register_rule("astype", _like)
register_rule("wrap_param", _like)
