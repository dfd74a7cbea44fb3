"""Operators on each element, alone or with another's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm import error, relax, topi
from tvm.ir import RelayExpr, TensorType, Type
from tvm.relax.op.precision import computed_in_float32
from tvm.target import VirtualDevice

from ..expr import Call
from .registry import REQUIRED, OpPattern, define, make
from .shapes import broadcast, tensor

_E, _B = OpPattern.ELEMWISE, OpPattern.BROADCAST

__all__: list[str] = []


def _same(name: str, dtype: str | None = None) -> Any:
    def rule(types: Sequence[Type], settings: Any, args: Any) -> Type:
        data = tensor(f"relay.{name}", types[0])
        return data if dtype is None else TensorType(data.shape, dtype)

    return rule


def _combined(name: str, dtype: str | None = None) -> Any:
    def rule(types: Sequence[Type], settings: Any, args: Any) -> Type:
        where = f"relay.{name}"
        lhs, rhs = (tensor(where, t) for t in types)
        if lhs.dtype != rhs.dtype:
            raise error.TypeError(
                f"{where}: data types {lhs.dtype} and {rhs.dtype} do not match; cast one of them"
            )
        return TensorType(broadcast(where, lhs.shape, rhs.shape), dtype or str(lhs.dtype))

    return rule


def _publish(name: str, function: Callable[..., Call], doc: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    globals()[name] = function
    __all__.append(name)


def _unary(name: str, doc: str, compute: Any = None, dtype: str | None = None) -> None:
    if compute is None:
        define(name, relax_name=name, rule=_same(name, dtype), num_inputs=1)
    else:
        define(name, compute, _E, rule=_same(name, dtype), num_inputs=1)

    def call(data: RelayExpr) -> Call:
        return make(name, [data])

    _publish(name, call, doc)


def _binary(name: str, doc: str, compute: Any = None, dtype: str | None = None) -> None:
    if compute is None:
        define(name, relax_name=name, rule=_combined(name, dtype), num_inputs=2)
    else:
        define(name, compute, _B, rule=_combined(name, dtype), num_inputs=2)

    def call(lhs: RelayExpr, rhs: RelayExpr) -> Call:
        return make(name, [lhs, rhs])

    _publish(name, call, doc)


for _name, _doc in {
    "abs": "Absolute value.",
    "acos": "Inverse of the cosine.",
    "acosh": "Inverse of the hyperbolic cosine.",
    "asin": "Inverse of the sine.",
    "asinh": "Inverse of the hyperbolic sine.",
    "atan": "Inverse of the tangent.",
    "atanh": "Inverse of the hyperbolic tangent.",
    "ceil": "Smallest integer that is not below.",
    "cos": "Cosine.",
    "cosh": "Hyperbolic cosine.",
    "erf": "Error function.",
    "exp": "Exponential.",
    "floor": "Largest integer that is not above.",
    "log": "Natural logarithm.",
    "negative": "With the other sign.",
    "round": "Nearest integer.",
    "rsqrt": "One over the square root.",
    "sigmoid": "1 / (1 + exp(-x)).",
    "sign": "-1, 0 or 1.",
    "sin": "Sine.",
    "sinh": "Hyperbolic sine.",
    "sqrt": "Square root.",
    "tan": "Tangent.",
    "tanh": "Hyperbolic tangent.",
    "trunc": "Integer part.",
    "logical_not": "Whether it is false.",
    "bitwise_not": "Every bit turned over.",
}.items():
    _unary(_name, _doc)
for _name, _doc, _te in (
    ("log2", "Logarithm to the base 2.", topi.log2),
    ("log10", "Logarithm to the base 10.", topi.log10),
    ("copy", "The same elements in memory of their own.", topi.identity),
    ("fast_exp", "Exponential, by a polynomial.", topi.fast_exp),
    ("fast_tanh", "Hyperbolic tangent, by a rational function.", topi.fast_tanh),
    ("fast_erf", "Error function, by a rational function.", topi.fast_erf),
):
    _unary(_name, _doc, computed_in_float32(_te) if _name.startswith("log") else _te)
_unary("zeros_like", "Zeros of the operand's shape and type.", topi.zeros_like)
_unary("ones_like", "Ones of the operand's shape and type.", topi.ones_like)
for _name in ("isnan", "isfinite", "isinf"):
    _unary(_name, f"Whether it {_name[:2]} {_name[2:]}.", getattr(topi, _name), "bool")

for _name, _doc in {
    "add": "Sum.",
    "subtract": "Difference.",
    "multiply": "Product.",
    "divide": "Quotient; that of integers is rounded towards zero.",
    "power": "lhs to the power of rhs.",
    "floor_divide": "Quotient, rounded down.",
    "floor_mod": "What floor_divide leaves; it has the sign of rhs.",
    "maximum": "The larger of two.",
    "minimum": "The smaller of two.",
    "left_shift": "Bits moved up by rhs places.",
    "right_shift": "Bits moved down by rhs places.",
    "bitwise_and": "Bits set in both.",
    "bitwise_or": "Bits set in either.",
    "bitwise_xor": "Bits set in one of the two.",
}.items():
    _binary(_name, f"{_doc} Operands broadcast like NumPy's.")
_binary(
    "trunc_divide",
    "Quotient, rounded towards zero.",
    lambda a, b: topi.trunc(topi.divide(a, b)) if "float" in a.dtype else topi.divide(a, b),
)
_binary("trunc_mod", "What trunc_divide leaves; it has the sign of lhs.", topi.mod)
_binary("mod", "What division leaves; it has the sign of lhs.", topi.mod)
for _name in ("logical_and", "logical_or", "logical_xor"):
    _binary(_name, f"{_name[8:].capitalize()} of two booleans.", dtype="bool")
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    _binary(_name, f"Whether lhs is {_name.replace('_', ' or ')} to rhs.", dtype="bool")


def _cast_rule(types: Sequence[Type], settings: Mapping[str, Any], args: Any) -> Type:
    return TensorType(tensor("relay.cast", types[0]).shape, settings["dtype"])


define("cast", relax_name="astype", settings={"dtype": REQUIRED}, rule=_cast_rule, num_inputs=1)
define(
    "cast_like",
    lambda x, like: topi.cast(x, str(like.dtype)),
    _E,
    num_inputs=2,
    lower=lambda args, s: relax.op.astype(args[0], str(args[1].struct_info.dtype)),
)
define(
    "reinterpret", topi.reinterpret, _E, settings={"dtype": REQUIRED}, rule=_cast_rule, num_inputs=1
)
define(
    "clip",
    lambda x, a_min, a_max: topi.clip(x, a_min, a_max),
    _E,
    settings={"a_min": REQUIRED, "a_max": REQUIRED},
    rule=_same("clip"),
    num_inputs=1,
    lower=lambda args, s: relax.op.clip(args[0], s["a_min"], s["a_max"]),
)
define(
    "fixed_point_multiply",
    topi.fixed_point_multiply,
    _E,
    settings={"multiplier": REQUIRED, "shift": REQUIRED},
    num_inputs=1,
)
define(
    "device_copy",
    topi.identity,
    OpPattern.OPAQUE,
    settings={"src_virtual_device": REQUIRED, "dst_virtual_device": REQUIRED},
    rule=_same("device_copy"),
    lower=lambda args, s: args[0],
    num_inputs=1,
)


def device_copy(data: RelayExpr, src_device: Any, dst_device: Any) -> Call:
    """The value on another device.

    A program runs on one device, that of its target, so a build takes copies within it alone.

    Parameters
    ----------
    src_device, dst_device : each a `tvm.target.VirtualDevice`, a device, or its name.

    Raises
    ------
    TypeError : one of them is no device.
    """
    return make(
        "device_copy",
        [data],
        src_virtual_device=VirtualDevice.of(src_device),
        dst_virtual_device=VirtualDevice.of(dst_device),
    )


def cast(data: RelayExpr, dtype: str) -> Call:
    """The elements converted to another type."""
    return make("cast", [data], dtype=dtype)


def cast_like(data: RelayExpr, dtype_like: RelayExpr) -> Call:
    """The elements converted to the type of another tensor's."""
    return make("cast_like", [data, dtype_like])


def reinterpret(data: RelayExpr, dtype: str) -> Call:
    """The bits of the elements read as another type of the same width."""
    return make("reinterpret", [data], dtype=dtype)


def clip(a: RelayExpr, a_min: float, a_max: float) -> Call:
    """The elements held between two limits."""
    return make("clip", [a], a_min=float(a_min), a_max=float(a_max))


def fixed_point_multiply(data: RelayExpr, multiplier: int, shift: int) -> Call:
    """Integers times ``multiplier * 2**(shift - 31)``, rounded."""
    return make("fixed_point_multiply", [data], multiplier=multiplier, shift=shift)


__all__ += [
    "cast",
    "cast_like",
    "clip",
    "device_copy",
    "fixed_point_multiply",
    "reinterpret",
]


if TYPE_CHECKING:
    # The operators are entered by name.
    def __getattr__(name: str) -> Any: ...
