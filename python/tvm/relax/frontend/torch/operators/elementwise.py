"""Arithmetic, comparisons, selection and activations, element by element."""

from __future__ import annotations

import math
from typing import Any

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import TupleGetItem, const

from ..arguments import CONVERTERS, Arguments, converter

__all__: list[str] = []


def _mapped(names: str, **renamed: str) -> dict[str, str]:
    return {name: renamed.get(name, name) for name in names.split()}


# ATen name to graph operator; the operand takes the result's type, so integers become floats.
_UNARY = {
    **_mapped(
        "abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp expm1 floor log "
        "log10 log1p log2 neg round rsqrt sgn sigmoid sign sin sinh sqrt tan tanh trunc",
        neg="negative",
        sgn="sign",
    ),
    "relu": "nn.relu",
    "hardswish": "nn.hardswish",
    "hardsigmoid": "nn.hardsigmoid",
    "silu": "nn.silu",
    "mish": "nn.mish",
    "selu": "nn.selu",
    "log_sigmoid": "nn.log_sigmoid",
}


def _register_unary(aten: str, name: str) -> None:
    @converter(f"{aten}.default")
    def convert(a: Arguments) -> RelayExpr:
        return op.make_call(name, a.operand("self"))


for _aten, _name in _UNARY.items():
    _register_unary(_aten, _name)


def _same(a: Arguments) -> RelayExpr:
    return a["self"]


# Real numbers are their own conjugates.
for _aten in ("alias", "detach", "clone", "contiguous", "lift_fresh_copy", "detach_", "real",
              "_conj", "conj", "_conj_physical", "conj_physical", "resolve_conj",
              "resolve_neg"):  # fmt: skip
    CONVERTERS[f"aten.{_aten}.default"] = _same


@converter(
    *("dropout.default", "feature_dropout.default"),
    *("alpha_dropout.default", "feature_alpha_dropout.default"),
)
def _dropout(a: Arguments) -> RelayExpr:
    a.refuse_unless(not a["train"], "in training mode; call model.eval() before the export")
    # The form that writes in place calls it otherwise.
    return a["self"] if a.get("input") is None else a["input"]


@converter("native_dropout.default")
def _native_dropout(a: Arguments) -> list[RelayExpr]:
    a.refuse_unless(not a["train"], "in training mode; call model.eval() before the export")
    return [a["input"], a.tensor(True, a.shape("input"), "bool")]


def _scaled(a: Arguments) -> RelayExpr:
    """The second operand of add and sub times alpha."""
    other, alpha = a.operand("other"), a.get("alpha", 1)
    return other if alpha == 1 else a.emit(op.multiply(other, const(alpha, a.result_dtype)))


@converter("add.Tensor", "add.Scalar")
def _add(a: Arguments) -> RelayExpr:
    name = "logical_or" if a.result_dtype == "bool" else "add"
    return op.make_call(name, a.operand("self"), _scaled(a))


@converter("sub.Tensor", "sub.Scalar")
def _sub(a: Arguments) -> RelayExpr:
    return op.subtract(a.operand("self"), _scaled(a))


@converter("rsub.Scalar", "rsub.Tensor")
def _rsub(a: Arguments) -> RelayExpr:
    left, alpha = a.operand("self"), a["alpha"]
    if alpha != 1:
        left = a.emit(op.multiply(left, const(alpha, a.result_dtype)))
    return op.subtract(a.operand("other"), left)


@converter("mul.Tensor", "mul.Scalar")
def _mul(a: Arguments) -> RelayExpr:
    name = "logical_and" if a.result_dtype == "bool" else "multiply"
    return op.make_call(name, a.operand("self"), a.operand("other"))


@converter("div.Tensor", "div.Scalar", "true_divide.Tensor")
def _div(a: Arguments) -> RelayExpr:
    return op.divide(a.operand("self"), a.operand("other"))


@converter("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(a: Arguments) -> RelayExpr:
    left, right, mode = a.operand("self"), a.operand("other"), a["rounding_mode"]
    if mode == "floor":
        return op.make_call("floor_divide", left, right)
    quotient = op.divide(left, right)
    # Division of integers rounds towards zero as it is.
    is_float = a.result_dtype.startswith(("float", "bfloat"))
    return op.make_call("trunc", a.emit(quotient)) if mode == "trunc" and is_float else quotient


@converter("floor_divide.default")
def _floor_divide(a: Arguments) -> RelayExpr:
    return op.make_call("floor_divide", a.operand("self"), a.operand("other"))


@converter("reciprocal.default")
def _reciprocal(a: Arguments) -> RelayExpr:
    return op.divide(const(1, a.result_dtype), a.operand("self"))


@converter("exp2.default", "special_exp2.default")
def _exp2(a: Arguments) -> RelayExpr:
    return op.power(const(2, a.result_dtype), a.operand("self"))


@converter("signbit.default")
def _signbit(a: Arguments) -> RelayExpr:
    data = a["self"]
    if a.dtype("self").startswith(("float", "bfloat")):
        data = a.call("copysign", const(1, a.dtype("self")), data)
    return op.make_call("less", data, const(0, a.dtype("self")))


@converter("angle.default")
def _angle(a: Arguments) -> RelayExpr:
    """That of real numbers: pi of negative ones."""
    data = a.operand("self")
    start = a.emit(op.zeros_like(data))
    if a.dtype("self").startswith(("float", "bfloat")):
        start = a.emit(_selected(a, a.call("isnan", data), data, start))
    is_negative = a.call("less", data, const(0, a.result_dtype))
    turned = a.tensor(math.pi, a.result_shape, a.result_dtype)
    return _selected(a, is_negative, turned, start)


# Powers up to this one are products.
_LARGEST_PRODUCT = 8


@converter("square.default")
def _square(a: Arguments) -> RelayExpr:
    return op.multiply(a["self"], a["self"])


@converter("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def _pow(a: Arguments) -> RelayExpr:
    base, exponent = a.operand("self"), a["exponent"]
    if a.result_dtype.startswith("int"):
        a.refuse_unless(
            isinstance(exponent, int) and exponent >= 0,
            "of integers to an exponent that is a tensor",
        )
        return _integer_power(a, base, exponent)
    if not isinstance(exponent, (int, float)):
        return op.power(base, a.operand("exponent"))
    # Small powers are by far the most common, and products are nearer and faster than logarithms.
    size = abs(exponent)
    if size == 0.5:
        power: RelayExpr = op.sqrt(base)
    elif size <= _LARGEST_PRODUCT and size == int(size):
        power = _integer_power(a, base, int(size))
    else:
        return op.power(base, a.operand("exponent"))
    return power if exponent >= 0 else op.divide(const(1, a.result_dtype), a.emit(power))


def _integer_power(a: Arguments, base: RelayExpr, exponent: int) -> RelayExpr:
    power: RelayExpr | None = None
    # Squares and products, for the binary digits of the exponent.
    while exponent:
        if exponent & 1:
            power = base if power is None else a.emit(op.multiply(power, base))
        exponent >>= 1
        if exponent:
            base = a.emit(op.multiply(base, base))
    if power is None:
        return a.tensor(1, a.result_shape, a.result_dtype)
    return power


_OF_TENSORS = ("default",)
_OF_NUMBERS = ("Tensor", "Scalar")
_OF_NUMBERS_FIRST = ("Tensor", "Scalar", "Scalar_Tensor")
_OF_EITHER = ("Tensor", "Tensor_Scalar", "Scalar_Tensor")


def _register_binary(aten: str, name: str, overloads: tuple[str, ...]) -> None:
    """Operators whose operands both have the result's type."""

    @converter(*(f"{aten}.{overload}" for overload in overloads))
    def convert(a: Arguments) -> RelayExpr:
        return op.make_call(name, a.operand("self"), a.operand("other"))


for _aten, _name, _overloads in (
    ("maximum", "maximum", _OF_TENSORS),
    ("minimum", "minimum", _OF_TENSORS),
    ("remainder", "floor_mod", _OF_NUMBERS_FIRST),
    ("fmod", "mod", _OF_NUMBERS),
    ("atan2", "atan2", _OF_TENSORS),
    ("copysign", "copysign", _OF_NUMBERS),
    ("hypot", "hypot", _OF_TENSORS),
    ("nextafter", "nextafter", _OF_TENSORS),
    ("__lshift__", "left_shift", _OF_NUMBERS),
    ("__rshift__", "right_shift", _OF_NUMBERS),
    ("bitwise_left_shift", "left_shift", _OF_EITHER),
    ("bitwise_right_shift", "right_shift", _OF_EITHER),
):
    _register_binary(_aten, _name, _overloads)


def _register_comparison(aten: str, name: str) -> None:
    @converter(f"{aten}.Tensor", f"{aten}.Scalar")
    def convert(a: Arguments) -> RelayExpr:
        dtype = a.common_dtype("self", "other")
        if dtype == "bool":
            # Orders of truth values are those of 0 and 1.
            dtype = "uint8"
        return op.make_call(name, a.operand("self", dtype), a.operand("other", dtype))


for _aten, _name in {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}.items():  # fmt: skip
    _register_comparison(_aten, _name)


def _register_logic(name: str) -> None:
    @converter(f"logical_{name}.default")
    def convert_logical(a: Arguments) -> RelayExpr:
        return op.make_call(f"logical_{name}", a.operand("self"), a.operand("other"))

    @converter(f"bitwise_{name}.Tensor", f"bitwise_{name}.Scalar", f"__{name}__.Tensor",
               f"__{name}__.Scalar")  # fmt: skip
    def convert_bitwise(a: Arguments) -> RelayExpr:
        kind = "logical" if a.result_dtype == "bool" else "bitwise"
        return op.make_call(f"{kind}_{name}", a.operand("self"), a.operand("other"))


for _name in ("and", "or", "xor"):
    _register_logic(_name)


@converter("logical_not.default")
def _logical_not(a: Arguments) -> RelayExpr:
    return op.make_call("logical_not", a.operand("self"))


@converter("bitwise_not.default")
def _bitwise_not(a: Arguments) -> RelayExpr:
    kind = "logical_not" if a.result_dtype == "bool" else "bitwise_not"
    return op.make_call(kind, a["self"])


@converter("isnan.default", "isinf.default", "isfinite.default")
def _classify(a: Arguments) -> RelayExpr:
    name = a.name
    if not a.dtype("self").startswith(("float", "bfloat")):
        return a.tensor(name == "isfinite", a.shape("self"), "bool")
    return op.make_call(name, a["self"])


def _selected(a: Arguments, condition: RelayExpr, first: RelayExpr, second: RelayExpr) -> RelayExpr:
    if first.struct_info.ndim or second.struct_info.ndim:
        return op.make_call("where", condition, first, second)
    # Two numbers have no type of their own once they are part of a kernel.
    first = a.tensor(first, (1,) * max(1, len(a.result_shape)), a.result_dtype)
    value = op.make_call("where", condition, first, second)
    return value if len(a.result_shape) else op.reshape(a.emit(value), ())


@converter("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(a: Arguments) -> RelayExpr:
    return _selected(a, a.operand("condition", "bool"), a.operand("self"), a.operand("other"))


@converter("where.default", namespace="prims")
def _where_of_prims(a: Arguments) -> RelayExpr:
    return _selected(a, a.operand("pred", "bool"), a.operand("a"), a.operand("b"))


@converter("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(a: Arguments) -> RelayExpr:
    return _selected(a, a["mask"], a.operand("value"), a.operand("self"))


@converter("clamp.default", "clamp.Tensor", "clamp_min.default", "clamp_min.Tensor",
           "clamp_max.default", "clamp_max.Tensor")  # fmt: skip
def _clamp(a: Arguments) -> RelayExpr:
    low, high = a.get("min"), a.get("max")
    return _limited(a, a.operand("self"), low, high)


def _limited(a: Arguments, data: RelayExpr, low: Any, high: Any) -> RelayExpr:
    is_float = a.result_dtype.startswith("float")
    if is_float and not isinstance(low, RelayExpr) and not isinstance(high, RelayExpr):
        return op.clip(data, -math.inf if low is None else low, math.inf if high is None else high)
    if low is not None:
        data = a.emit(op.maximum(data, a.cast(low, a.result_dtype)))
    return data if high is None else op.minimum(data, a.cast(high, a.result_dtype))


@converter("fmax.default", "fmin.default")
def _extreme_of_numbers(a: Arguments) -> RelayExpr:
    """The other operand where one is NaN."""
    x, y = a.operand("self"), a.operand("other")
    if a.result_dtype.startswith(("float", "bfloat")):
        is_nan = [a.emit(op.isnan(value)) for value in (x, y)]
        x, y = a.call("where", is_nan[0], y, x), a.call("where", is_nan[1], x, y)
    return (op.maximum if a.name == "fmax" else op.minimum)(x, y)


@converter("hardtanh.default")
def _hardtanh(a: Arguments) -> RelayExpr:
    return _limited(a, a["self"], a["min_val"], a["max_val"])


@converter("relu6.default")
def _relu6(a: Arguments) -> RelayExpr:
    return op.nn.relu6(a["self"])


@converter("gelu.default")
def _gelu(a: Arguments) -> RelayExpr:
    return op.nn.gelu_tanh(a["self"]) if a["approximate"] == "tanh" else op.nn.gelu(a["self"])


@converter("leaky_relu.default")
def _leaky_relu(a: Arguments) -> RelayExpr:
    return op.nn.leakyrelu(a["self"], float(a["negative_slope"]))


@converter("prelu.default", "_prelu_kernel.default")
def _prelu(a: Arguments) -> RelayExpr:
    data, slope = a["self"], a["weight"]
    if slope.struct_info.ndim == 1 and a.rank("self") > 1:
        trailing = [1] * (a.rank("self") - 2)
        slope = a.emit(op.reshape(slope, [*a.shape("weight"), *trailing]))
    positive = a.call("greater", data, const(0, a.result_dtype))
    return op.make_call("where", positive, data, a.emit(op.multiply(data, slope)))


@converter("elu.default")
def _elu(a: Arguments) -> RelayExpr:
    data, scale, steep = a["self"], a["scale"], a["input_scale"]
    dtype = a.result_dtype
    if steep == 1:
        result = op.make_call("nn.elu", data, alpha=float(a["alpha"]))
        return result if scale == 1 else op.multiply(a.emit(result), const(scale, dtype))
    scaled = a.emit(op.multiply(data, const(steep, dtype)))
    negative = a.emit(op.multiply(a.call("expm1", scaled), const(a["alpha"] * scale, dtype)))
    positive = a.call("greater", data, const(0, dtype))
    return op.make_call("where", positive, a.emit(op.multiply(data, const(scale, dtype))), negative)


@converter("softplus.default")
def _softplus(a: Arguments) -> RelayExpr:
    return op.make_call(
        "nn.softplus", a["self"], beta=float(a["beta"]), threshold=float(a["threshold"])
    )


@converter("glu.default")
def _glu(a: Arguments) -> RelayExpr:
    axis = a.axis()
    pieces = a.emit(op.split(a["self"], 2, axis))
    from_gate = op.sigmoid(a.emit(TupleGetItem(pieces, 1)))
    return op.multiply(a.emit(TupleGetItem(pieces, 0)), a.emit(from_gate))


@converter("lerp.Tensor", "lerp.Scalar")
def _lerp(a: Arguments) -> RelayExpr:
    start = a.operand("self")
    change = a.emit(op.subtract(a.operand("end"), start))
    return op.add(start, a.emit(op.multiply(change, a.operand("weight"))))


@converter("addcmul.default", "addcdiv.default")
def _add_combined(a: Arguments) -> RelayExpr:
    make = op.multiply if "addcmul" in a.name else op.divide
    term = a.emit(make(a.operand("tensor1"), a.operand("tensor2")))
    if a["value"] != 1:
        term = a.emit(op.multiply(term, const(a["value"], a.result_dtype)))
    return op.add(a.operand("self"), term)


@converter("_to_copy.default", "to.dtype", "to.dtype_layout", "to.device", "to.other",
           "type_as.default", "_to_cpu.default")  # fmt: skip
def _to(a: Arguments) -> RelayExpr:
    return a.operand("self")


# What PyTorch's own definitions end in: operators of its primitive layer, which promote nothing.
for _name in (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_not", "ceil"),
    *("conj_physical", "cos", "cosh", "erf", "exp", "exp2", "expm1", "floor", "fmax", "fmin"),
    *("hypot", "isfinite", "log", "log10", "log1p", "log2", "maximum", "minimum", "neg"),
    *("nextafter", "real", "reciprocal", "round", "rsqrt", "sign", "signbit", "sin", "sinh"),
    *("sqrt", "tan", "tanh", "trunc"),
):
    CONVERTERS[f"prims.{_name}.default"] = CONVERTERS[f"aten.{_name}.default"]
for _name in (
    *("add", "bitwise_and", "bitwise_or", "bitwise_xor", "div", "eq", "fmod", "ge", "gt", "le"),
    *("lt", "mul", "ne", "remainder", "sub"),
):
    CONVERTERS[f"prims.{_name}.default"] = CONVERTERS[f"aten.{_name}.Tensor"]


@converter("convert_element_type.default", namespace="prims")
def _convert_element_type(a: Arguments) -> RelayExpr:
    return a.operand("a")


@converter("pow.default", namespace="prims")
def _pow_of_prims(a: Arguments) -> RelayExpr:
    is_real = a.result_dtype.startswith(("float", "bfloat"))
    a.refuse_unless(is_real, "of integers to an exponent that is a tensor")
    return op.power(a.operand("self"), a.operand("other"))
