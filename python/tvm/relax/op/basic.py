"""Graph operators on tensors in general."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import RelayExpr

from ..expr import Call, ShapeExpr, Tuple
from .base import make_call

__all__ = [
    "add",
    "astype",
    "broadcast_to",
    "clip",
    "concat",
    "divide",
    "erf",
    "exp",
    "expand_dims",
    "flatten",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "multiply",
    "negative",
    "permute_dims",
    "power",
    "reshape",
    "rsqrt",
    "sigmoid",
    "split",
    "sqrt",
    "squeeze",
    "strided_slice",
    "subtract",
    "sum",
    "tanh",
]

Operand = RelayExpr | float | int
Axis = int | Sequence[int] | None


def exp(x: RelayExpr) -> Call:
    """e to the power of x."""
    return make_call("exp", x)


def log(x: RelayExpr) -> Call:
    """Natural logarithm."""
    return make_call("log", x)


def sqrt(x: RelayExpr) -> Call:
    """Square root."""
    return make_call("sqrt", x)


def rsqrt(x: RelayExpr) -> Call:
    """One over the square root."""
    return make_call("rsqrt", x)


def tanh(x: RelayExpr) -> Call:
    """Hyperbolic tangent."""
    return make_call("tanh", x)


def sigmoid(x: RelayExpr) -> Call:
    """1 / (1 + exp(-x))."""
    return make_call("sigmoid", x)


def erf(x: RelayExpr) -> Call:
    """Gauss error function."""
    return make_call("erf", x)


def negative(x: RelayExpr) -> Call:
    """-x."""
    return make_call("negative", x)


def clip(x: RelayExpr, min: float, max: float) -> Call:
    """x limited to [min, max]; an infinite limit does nothing."""
    return make_call("clip", x, a_min=float(min), a_max=float(max))


def astype(x: RelayExpr, dtype: str) -> Call:
    """x converted to another element type."""
    return make_call("astype", x, dtype=dtype)


def add(x1: Operand, x2: Operand) -> Call:
    """x1 + x2, broadcasting as NumPy does; so for the operators below."""
    return make_call("add", x1, x2)


def subtract(x1: Operand, x2: Operand) -> Call:
    """x1 - x2."""
    return make_call("subtract", x1, x2)


def multiply(x1: Operand, x2: Operand) -> Call:
    """x1 * x2."""
    return make_call("multiply", x1, x2)


def divide(x1: Operand, x2: Operand) -> Call:
    """x1 / x2."""
    return make_call("divide", x1, x2)


def maximum(x1: Operand, x2: Operand) -> Call:
    """The larger of x1 and x2."""
    return make_call("maximum", x1, x2)


def minimum(x1: Operand, x2: Operand) -> Call:
    """The smaller of x1 and x2."""
    return make_call("minimum", x1, x2)


def power(x1: Operand, x2: Operand) -> Call:
    """x1 to the power of x2."""
    return make_call("power", x1, x2)


def matmul(x1: RelayExpr, x2: RelayExpr) -> Call:
    """Matrix product over the last two dimensions, leading ones broadcasting."""
    return make_call("matmul", x1, x2)


def _shape(shape: Sequence[int] | ShapeExpr) -> ShapeExpr:
    return shape if isinstance(shape, ShapeExpr) else ShapeExpr([int(v) for v in shape])


def reshape(x: RelayExpr, shape: Sequence[int] | ShapeExpr) -> Call:
    """The elements of x in row-major order under another shape; one extent may be -1."""
    return make_call("reshape", x, _shape(shape))


def flatten(x: RelayExpr, start_dim: int = 0, end_dim: int = -1) -> Call:
    """Dimensions start_dim to end_dim (both included) merged into one."""
    extents = [int(v) for v in x.struct_info.shape.values]
    first, last = start_dim % len(extents), end_dim % len(extents)
    if first > last:
        raise ValueError(f"relax.flatten: dimension {start_dim} comes after {end_dim}")
    merged = 1
    for extent in extents[first : last + 1]:
        merged *= extent
    return reshape(x, [*extents[:first], merged, *extents[last + 1 :]])


def broadcast_to(x: RelayExpr, shape: Sequence[int] | ShapeExpr) -> Call:
    """x repeated along new dimensions and along those of size 1."""
    return make_call("broadcast_to", x, _shape(shape))


def permute_dims(x: RelayExpr, axes: Sequence[int] | None = None) -> Call:
    """Dimension k of the result is dimension axes[k] of x; None reverses the order."""
    return make_call("permute_dims", x, axes=None if axes is None else list(axes))


def expand_dims(x: RelayExpr, axis: int) -> Call:
    """A new dimension of size 1 at position axis of the result."""
    return make_call("expand_dims", x, axis=axis)


def squeeze(x: RelayExpr, axis: Axis = None) -> Call:
    """x without the given dimensions of size 1, or without all of them."""
    return make_call("squeeze", x, axis=_axes(axis))


def concat(tensors: Sequence[RelayExpr] | Tuple, axis: int = 0) -> Call:
    """Tensors joined along one dimension."""
    fields = tensors if isinstance(tensors, RelayExpr) else Tuple(tensors)
    return make_call("concat", fields, axis=axis)


def strided_slice(
    x: RelayExpr, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None = None
) -> Call:
    """x[begin:end:strides], one entry for each leading dimension; limits as in Python."""
    return make_call(
        "strided_slice",
        x,
        begin=list(begin),
        end=list(end),
        strides=None if strides is None else list(strides),
    )


def split(x: RelayExpr, sizes: Sequence[int], axis: int = 0) -> Call:
    """A tuple of consecutive pieces of the given sizes along one dimension."""
    return make_call("split", x, sizes=list(sizes), axis=axis)


def _axes(axis: Axis) -> list[int] | int | None:
    return axis if axis is None or isinstance(axis, int) else [int(a) for a in axis]


def sum(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Sum over the given dimensions, or over all."""
    return make_call("sum", x, axis=_axes(axis), keepdims=keepdims)


def mean(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Arithmetic mean over the given dimensions, or over all."""
    return make_call("mean", x, axis=_axes(axis), keepdims=keepdims)


def max(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Largest element over the given dimensions, or over all."""
    return make_call("max", x, axis=_axes(axis), keepdims=keepdims)


def min(x: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Smallest element over the given dimensions, or over all."""
    return make_call("min", x, axis=_axes(axis), keepdims=keepdims)
