"""Operators of one tensor, element by element."""

from __future__ import annotations

from tvm.ir import RelayExpr

from ..expr import Call, PrimValue
from .base import make_call
from .registry import register_rule
from .rules import unary_rule

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_not",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "erf",
    "exp",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "logical_not",
    "negative",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]


def abs(x: RelayExpr) -> Call:
    """Absolute value."""
    return make_call("abs", x)


def acos(x: RelayExpr) -> Call:
    """Inverse cosine."""
    return make_call("acos", x)


def acosh(x: RelayExpr) -> Call:
    """Inverse hyperbolic cosine."""
    return make_call("acosh", x)


def asin(x: RelayExpr) -> Call:
    """Inverse sine."""
    return make_call("asin", x)


def asinh(x: RelayExpr) -> Call:
    """Inverse hyperbolic sine."""
    return make_call("asinh", x)


def atan(x: RelayExpr) -> Call:
    """Inverse tangent."""
    return make_call("atan", x)


def atanh(x: RelayExpr) -> Call:
    """Inverse hyperbolic tangent."""
    return make_call("atanh", x)


def bitwise_not(x: RelayExpr) -> Call:
    """Every bit the other way."""
    return make_call("bitwise_not", x)


def ceil(x: RelayExpr) -> Call:
    """Rounded up."""
    return make_call("ceil", x)


def cos(x: RelayExpr) -> Call:
    """Cosine."""
    return make_call("cos", x)


def cosh(x: RelayExpr) -> Call:
    """Hyperbolic cosine."""
    return make_call("cosh", x)


def erf(x: RelayExpr) -> Call:
    """Gauss error function."""
    return make_call("erf", x)


def exp(x: RelayExpr) -> Call:
    """e to the power of x."""
    return make_call("exp", x)


def floor(x: RelayExpr) -> Call:
    """Rounded down."""
    return make_call("floor", x)


def isfinite(x: RelayExpr) -> Call:
    """Whether an element is neither infinite nor NaN."""
    return make_call("isfinite", x)


def isinf(x: RelayExpr) -> Call:
    """Whether an element is infinite."""
    return make_call("isinf", x)


def isnan(x: RelayExpr) -> Call:
    """Whether an element is NaN."""
    return make_call("isnan", x)


def log(x: RelayExpr) -> Call:
    """Natural logarithm."""
    return make_call("log", x)


def logical_not(x: RelayExpr) -> Call:
    """Whether an element is false."""
    return make_call("logical_not", x)


def negative(x: RelayExpr) -> Call:
    """-x."""
    return make_call("negative", x)


def round(x: RelayExpr) -> Call:
    """Rounded to the nearest, halves away from zero."""
    return make_call("round", x)


def rsqrt(x: RelayExpr) -> Call:
    """One over the square root."""
    return make_call("rsqrt", x)


def sigmoid(x: RelayExpr) -> Call:
    """1 / (1 + exp(-x))."""
    return make_call("sigmoid", x)


def sign(x: RelayExpr) -> Call:
    """-1, 0 or 1."""
    return make_call("sign", x)


def sin(x: RelayExpr) -> Call:
    """Sine."""
    return make_call("sin", x)


def sinh(x: RelayExpr) -> Call:
    """Hyperbolic sine."""
    return make_call("sinh", x)


def sqrt(x: RelayExpr) -> Call:
    """Square root."""
    return make_call("sqrt", x)


def square(x: RelayExpr) -> Call:
    """x * x."""
    return make_call("square", x)


def tan(x: RelayExpr) -> Call:
    """Tangent."""
    return make_call("tan", x)


def tanh(x: RelayExpr) -> Call:
    """Hyperbolic tangent."""
    return make_call("tanh", x)


def trunc(x: RelayExpr) -> Call:
    """Rounded towards zero."""
    return make_call("trunc", x)


def clip(x: RelayExpr, min: RelayExpr | float, max: RelayExpr | float) -> Call:
    """x limited to [min, max]; an infinite limit does nothing."""
    low, high = (v if isinstance(v, RelayExpr) else PrimValue(v) for v in (min, max))
    return make_call("clip", x, low, high)


for _op in (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "exp",
    "log",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
):
    register_rule(_op, unary_rule(floats=True))
for _op in (
    "abs",
    "bitwise_not",
    "ceil",
    "clip",
    "floor",
    "logical_not",
    "negative",
    "round",
    "sign",
    "square",
    "trunc",
):
    register_rule(_op, unary_rule())
for _op in ("isfinite", "isinf", "isnan"):
    register_rule(_op, unary_rule(dtype="bool"))
