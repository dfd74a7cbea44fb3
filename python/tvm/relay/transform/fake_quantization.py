"""Real arithmetic between dequantize and quantize as arithmetic of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import error
from tvm.ir import Op, RelayExpr, TensorAffineType, TensorType, TupleAffineType
from tvm.ir.transform import Pass
from tvm.relax.op.quantization import integer_limits

from .. import op
from ..expr import Call, Constant, Tuple, TupleGetItem, const
from ..expr_functor import PostOrderMutator
from ..op.op import IntegerForm, integer_forms, register_fake_quantization_to_integer
from ..op.registry import make, settings_of
from .base import expression_pass

__all__ = ["FakeQuantizationToInteger"]


_OPTIONAL: dict[str, IntegerForm] = {}


class _NoIntegersError(Exception):
    """A part has no form with integers; the message says which."""


def _is_same(a: TensorAffineType, b: TensorAffineType) -> bool:
    """Whether integers stand for the same numbers in both, as far as that is known."""
    return (
        a.dtype == b.dtype
        and _same(a.scale, b.scale)
        and _same(a.zero_point, b.zero_point)
        and (_is_number(a.scale) or a.axis == b.axis)
    )


def _array(value: RelayExpr, what: str) -> np.ndarray:
    if not isinstance(value, Constant):
        raise _NoIntegersError(f"{what} is not constant")
    return value.data.numpy()


def _same(a: RelayExpr, b: RelayExpr) -> bool:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return np.array_equal(a.data.numpy().reshape(-1), b.data.numpy().reshape(-1))
    return a.same_as(b)


def _is_number(value: RelayExpr) -> bool:
    """Whether a scale or zero point is one for the whole tensor."""
    if isinstance(value, Constant):
        return int(np.prod(value.data.shape)) == 1
    type_ = value.checked_type_
    return isinstance(type_, TensorType) and not len(type_.shape)


def _of_tensor(call: Call, types: dict[RelayExpr, Any], place: int = 0) -> TensorAffineType:
    """The type of an operand whose scale and zero point are those of all its elements."""
    type_ = types[call.args[place]]
    if not isinstance(type_, TensorAffineType) or not _is_number(type_.scale):
        raise _NoIntegersError(f"{call.op.name} of a tensor with a scale for each channel")
    return type_


def _as(value: RelayExpr, have: TensorAffineType, want: TensorAffineType) -> RelayExpr:
    """Integers of one type as those of another."""
    if _is_same(have, want):
        return value
    axis = have.axis if not _is_number(have.scale) else want.axis
    operands = [value, have.scale, have.zero_point, want.scale, want.zero_point]
    return make("qnn.requantize", operands, axis=axis, out_dtype=want.dtype)


def _stored(value: RelayExpr, want: TensorAffineType) -> RelayExpr:
    """Real constants as integers of a type with one scale."""
    real = _array(value, "an operand")
    scale, zero = _array(want.scale, "a scale"), _array(want.zero_point, "a zero point")
    low, high = integer_limits(want.dtype)
    whole = np.round(real.astype("float64") / scale.reshape(())) + zero.reshape(())
    return const(np.clip(whole, low, high), want.dtype)


def _moved(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    """An operator that only picks or orders elements."""
    return call, _of_tensor(call, types)


def _split(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    sections = settings_of(call)["indices_or_sections"]
    count = sections if isinstance(sections, int) else len(sections) + 1
    return call, TupleAffineType([_of_tensor(call, types)] * count)


def _averaged(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    type_ = _of_tensor(call, types)
    zero = op.cast(type_.zero_point, "float32")
    steps = op.subtract(op.cast(call.args[0], "float32"), zero)
    mean = Call(call.op, [steps], call.attrs)
    return op.cast(op.add(op.round(mean), zero), type_.dtype), type_


def _relu(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    type_, value = _of_tensor(call, types), call.args[0]
    if isinstance(type_.zero_point, Constant):
        if int(type_.zero_point.data.numpy()) <= integer_limits(type_.dtype)[0]:
            return value, type_
        return op.maximum(value, const(type_.zero_point.data.numpy(), type_.dtype)), type_
    return op.maximum(value, op.cast(type_.zero_point, type_.dtype)), type_


def _clip(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    type_, how = _of_tensor(call, types), settings_of(call)
    low, high = (_stored(const(how[key]), type_) for key in ("a_min", "a_max"))
    return op.maximum(op.minimum(call.args[0], high), low), type_


def _pad(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    type_ = _of_tensor(call, types)
    return Call(call.op, [call.args[0], _stored(call.args[1], type_)], call.attrs), type_


def _product_type(left: TensorAffineType, right: TensorAffineType, axis: int) -> TensorAffineType:
    """The type of sums of products without zero points."""
    if isinstance(left.scale, Constant) and isinstance(right.scale, Constant):
        scale: RelayExpr = const(left.scale.data.numpy() * right.scale.data.numpy())
    else:
        scale = op.multiply(left.scale, right.scale)
    return TensorAffineType(scale, const(0, "int32"), "int32", axis)


def _product(name: str) -> IntegerForm:
    operator = f"qnn.{name}"

    def rule(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
        data, weight = _of_tensor(call, types), types[call.args[1]]
        how = settings_of(call)
        if name == "batch_matmul":
            weight = _of_tensor(call, types, 1)
            if how.get("transpose_a") or not how.get("transpose_b"):
                raise _NoIntegersError("nn.batch_matmul other than with the second one transposed")
            how = {}
        axis = 1
        if "data_layout" in how:
            axis = (how.get("out_layout") or how["data_layout"]).index("C")
        how["out_dtype"] = "int32"
        new = make(
            operator,
            [*call.args, data.zero_point, weight.zero_point, data.scale, weight.scale],
            **how,
        )
        return new, _product_type(data, weight, axis)

    return rule


def _bias_add(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    data, bias = call.args
    type_ = types[data]
    if type_.dtype != "int32":
        raise _NoIntegersError(f"nn.bias_add of {type_.dtype}")
    if bias in types:
        along = TensorAffineType(type_.scale, type_.zero_point, "int32", 0)
        whole = _as(bias, types[bias], along)
    else:
        real = _array(bias, "the operand of nn.bias_add") / _array(type_.scale, "a scale")
        whole = const(np.round(real).astype("int32"))
    return Call(call.op, [data, whole], call.attrs), type_


def _binary(name: str) -> IntegerForm:
    def rule(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
        want = types[call]
        values, found = list(call.args), []
        for place, value in enumerate(values):
            if value in types:
                type_ = _of_tensor(call, types, place)
                if type_.dtype != want.dtype:
                    values[place], type_ = _as(value, type_, want), want
            else:
                values[place], type_ = _stored(value, want), want
            found.append(type_)
        numbers = [v for t in found for v in (t.scale, t.zero_point)]
        return make(f"qnn.{name}", [*values, *numbers, want.scale, want.zero_point]), want

    return rule


def _extreme(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    """The larger or smaller of two, of integers that stand for numbers in the same way."""
    want = types[call]
    if not _is_number(want.scale):
        raise _NoIntegersError(f"{call.op.name} as a tensor with a scale for each channel")
    values = [
        _as(v, _of_tensor(call, types, place), want) if v in types else _stored(v, want)
        for place, v in enumerate(call.args)
    ]
    return Call(call.op, values, call.attrs), want


def _nearest(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    """Another size by picking pixels."""
    if settings_of(call)["method"] != "nearest_neighbor":
        raise _NoIntegersError(f"{call.op.name} that mixes pixels")
    return _moved(call, types)


def _largest(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    if settings_of(call)["ret_type"] != "values":
        raise _NoIntegersError("topk that gives indices")
    return _moved(call, types)


def _function(name: str) -> IntegerForm:
    def rule(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
        type_, want = _of_tensor(call, types), types[call]
        value = call.args[0]
        if type_.dtype != want.dtype:
            value, type_ = _as(value, type_, want), want
        operands = [value, type_.scale, type_.zero_point, want.scale, want.zero_point]
        return make(f"qnn.{name}", operands, **settings_of(call)), want

    return rule


def _concatenate(call: Call, types: dict[RelayExpr, Any]) -> Sequence[Any]:
    want, parts = types[call], types[call.args[0]]
    fields = call.args[0].fields
    if any(not _is_number(part.scale) for part in parts.types):
        raise _NoIntegersError("concatenate of tensors with a scale for each channel")
    same = [_as(field, part, want) for field, part in zip(fields, parts.types)]
    return op.concatenate(same, settings_of(call)["axis"]), want


for _name in (
    "reshape", "squeeze", "strided_slice", "transpose", "expand_dims", "nn.batch_flatten",
    "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.global_max_pool2d", "max", "min",
    "nn.depth_to_space", "nn.space_to_depth", "repeat", "tile", "broadcast_to", "reverse",
    "layout_transform", "take",
):  # fmt: skip
    register_fake_quantization_to_integer(_name, _moved)
for _name in ("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.global_avg_pool2d",
              "nn.adaptive_avg_pool2d", "mean"):  # fmt: skip
    register_fake_quantization_to_integer(_name, _averaged)
for _name in ("conv2d", "conv2d_transpose", "dense", "batch_matmul"):
    register_fake_quantization_to_integer(f"nn.{_name}", _product(_name))
for _name, _quantised in (("add", "add"), ("subtract", "subtract"), ("multiply", "mul")):
    register_fake_quantization_to_integer(_name, _binary(_quantised))
for _name in ("abs", "erf", "exp", "log", "rsqrt", "sigmoid", "sqrt", "tanh"):
    register_fake_quantization_to_integer(_name, _function(_name))
_OPTIONAL["nn.softmax"] = _function("softmax")
for _name, _form in {
    "clip": _clip,
    "maximum": _extreme,
    "minimum": _extreme,
    "image.resize2d": _nearest,
    "nn.upsampling": _nearest,
    "topk": _largest,
    "concatenate": _concatenate,
    "nn.bias_add": _bias_add,
    "nn.leaky_relu": _function("leaky_relu"),
    "nn.pad": _pad,
    "nn.relu": _relu,
    "split": _split,
}.items():
    register_fake_quantization_to_integer(_name, _form)


def _name_of(expr: RelayExpr) -> str:
    return str(expr.op.name) if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


class _ToIntegers(PostOrderMutator):
    def __init__(self, rules: dict[str, IntegerForm], hard_fail: bool) -> None:
        super().__init__()
        self._rules = rules
        self._hard_fail = hard_fail

    def visit_call(self, call: Call) -> RelayExpr:
        if _name_of(call) != "qnn.quantize":
            return super().visit_call(call)
        how = settings_of(call)
        want = TensorAffineType(call.args[1], call.args[2], how["out_dtype"], how["axis"])
        try:
            value, have = self._integers(call.args[0], want, {}, {})
            return _as(value, have, want)
        except _NoIntegersError as problem:
            if self._hard_fail:
                raise error.ValueError(
                    f"relay.FakeQuantizationToInteger: no integers for {problem}; say how with "
                    "register_fake_quantization_to_integer"
                ) from None
            return super().visit_call(call)

    def _integers(
        self,
        expr: RelayExpr,
        want: TensorAffineType,
        types: dict[RelayExpr, Any],
        done: dict[RelayExpr, Any],
    ) -> tuple[RelayExpr, Any]:
        """An expression of real numbers with integers, and what these stand for.

        Parameters
        ----------
        types : what new expressions stand for. done : what was written before.
        """
        if expr not in done:
            value, type_ = self._written(expr, want, types, done)
            types[value] = type_
            done[expr] = value, type_
        return done[expr]

    def _written(
        self,
        expr: RelayExpr,
        want: TensorAffineType,
        types: dict[RelayExpr, Any],
        done: dict[RelayExpr, Any],
    ) -> tuple[RelayExpr, Any]:
        if isinstance(expr, Tuple):
            fields = [self._integers(field, want, types, done) for field in expr.fields]
            return Tuple([value for value, _ in fields]), TupleAffineType([t for _, t in fields])
        if isinstance(expr, TupleGetItem):
            value, several = self._integers(expr.tuple_value, want, types, done)
            return TupleGetItem(value, expr.index), several.types[expr.index]
        name = _name_of(expr)
        if name == "qnn.dequantize":
            data, scale, zero = expr.args
            dtype, axis = str(data.checked_type.dtype), settings_of(expr)["axis"]
            return self.visit(data), TensorAffineType(scale, zero, dtype, axis)
        if name not in self._rules:
            raise _NoIntegersError(name or f"a {type(expr).__name__}")
        operands = [
            arg if isinstance(arg, Constant) else self._integers(arg, want, types, done)[0]
            for arg in expr.args
        ]
        call = Call(expr.op, operands, expr.attrs)
        types[call] = want
        try:
            value, type_ = self._rules[name](call, types)
        except KeyError:
            raise _NoIntegersError(f"{name} of a real constant") from None
        return value, type_


def FakeQuantizationToInteger(
    hard_fail: bool = False,
    use_qat: bool = False,
    optional_qnn_ops: Sequence[str] | None = None,
) -> Pass:
    """Compute with integers what programs compute of dequantised tensors and quantise again.

    Parts with operators that have no such form are left as they are.

    Parameters
    ----------
    hard_fail : raise ValueError where a part is left.
    use_qat : only False; quantised operators outside of such parts are left.
    optional_qnn_ops : operators written with integers if they are named: "nn.softmax".

    Raises
    ------
    ValueError : an operator is named that is not optional; `use_qat` is asked for.
    """
    if use_qat:
        raise error.ValueError(
            "relay.FakeQuantizationToInteger: use_qat is not there; write quantize behind the "
            "parts that are to be computed with integers"
        )
    for name in optional_qnn_ops or ():
        if name not in _OPTIONAL:
            raise error.ValueError(
                f"relay.FakeQuantizationToInteger: '{name}' is none of the optional operators, "
                f"{', '.join(_OPTIONAL)}"
            )
    optional = {name: _OPTIONAL[name] for name in optional_qnn_ops or ()}
    return expression_pass(
        lambda f, mod: _ToIntegers({**integer_forms(), **optional}, hard_fail).visit(f),
        0,
        "FakeQuantizationToInteger",
    )
