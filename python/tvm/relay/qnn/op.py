"""Operators on quantised tensors, each written in relay's ordinary operators.

Formulas are those of Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference", CVPR 2018, section 2; scales are multiplied in float32
unless `requantize` is told otherwise.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error, relax
from tvm.ir import RelayExpr, TensorType, Type
from tvm.relax.op.quantization import integer_limits

from .. import op
from ..expr import Call, Constant, Tuple, TupleGetItem, const
from ..op.nn.windows import pads_of, sizes_of
from ..op.op import register_qnn_legalize
from ..op.registry import REQUIRED, OpPattern, define, make, row_of, settings_of
from ..op.shapes import broadcast, tensor
from .parameters import along, centred, is_zero, number, require_integers
from .requantize import (
    RequantizeConfig,
    current_requantize_config,
    requantize,
    requantize_config,
    write_requantize,
)
from .simulated import simulated_dequantize, simulated_quantize

__all__ = [
    "RequantizeConfig",
    "abs",
    "add",
    "avg_pool2d",
    "batch_matmul",
    "concatenate",
    "conv2d",
    "conv2d_transpose",
    "current_requantize_config",
    "dense",
    "dequantize",
    "erf",
    "exp",
    "hardswish",
    "leaky_relu",
    "log",
    "mul",
    "quantize",
    "register_qnn_legalize",
    "requantize",
    "requantize_config",
    "rsqrt",
    "sigmoid",
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
    "sqrt",
    "subtract",
    "tanh",
]

_Write = Callable[[Sequence[RelayExpr], Sequence[TensorType], Mapping[str, Any]], RelayExpr]


def _real(data: RelayExpr, scale: RelayExpr, zero: RelayExpr) -> RelayExpr:
    return op.multiply(op.cast(centred(data, zero), "float32"), number(scale, "float32"))


def _stored(steps: RelayExpr, zero: RelayExpr, dtype: str) -> RelayExpr:
    """Numbers of steps as integers of a type: rounded, moved by the zero point, limited."""
    require_integers(dtype)
    whole = op.round(steps)
    moved = whole if is_zero(zero) else op.add(whole, number(zero, "float32"))
    low, high = integer_limits(dtype)
    # The largest float32 that an int32 can hold.
    return op.cast(op.clip(moved, low, builtins.min(high, 2**31 - 128)), dtype)


def _quantize(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
    data, scale, zero = args[0], *(along(args[k], types[k], s["axis"], types[0]) for k in (1, 2))
    steps = op.divide(op.cast(data, "float32"), number(scale, "float32"))
    return _stored(steps, zero, s["out_dtype"])


def _dequantize(
    args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]
) -> RelayExpr:
    scale, zero = (along(args[k], types[k], s["axis"], types[0]) for k in (1, 2))
    real = _real(args[0], scale, zero)
    return real if s["out_dtype"] == "float32" else op.cast(real, s["out_dtype"])


def _conv2d(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
    # The border is zero after the zero point is taken off, as a border of real zeros is.
    kernel_zero = args[3]
    if len(types[3].shape) and int(types[3].shape[0]) > 1:
        out = s["kernel_layout"].index("O")
        kernel_zero = along(kernel_zero, types[3], out, types[1])
    data, kernel = centred(args[0], args[2]), centred(args[1], kernel_zero)
    return op.cast(op.nn.conv2d(data, kernel, **{**s, "out_dtype": ""}), s["out_dtype"])


def _dense(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
    kernel_zero = args[3]
    if len(types[3].shape) and int(types[3].shape[0]) > 1:
        kernel_zero = along(kernel_zero, types[3], 0, types[1])
    data, kernel = centred(args[0], args[2]), centred(args[1], kernel_zero)
    return op.cast(op.nn.dense(data, kernel, units=s["units"]), s["out_dtype"])


def _batch_matmul(
    args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]
) -> RelayExpr:
    left, right = centred(args[0], args[2]), centred(args[1], args[3])
    return op.cast(op.nn.batch_matmul(left, right), s["out_dtype"])


def _conv2d_transpose(
    args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]
) -> RelayExpr:
    data, kernel = centred(args[0], args[2]), centred(args[1], args[3])
    return op.cast(op.nn.conv2d_transpose(data, kernel, **{**s, "out_dtype": ""}), s["out_dtype"])


def _of_real(compute: Callable[..., RelayExpr]) -> _Write:
    """An operator on one tensor computed with the numbers that its integers stand for."""

    def write(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
        real = compute(_real(args[0], args[1], args[2]), **s)
        steps = op.divide(real, number(args[3], "float32"))
        return _stored(steps, args[4], str(types[0].dtype))

    return write


def _hardswish(x: RelayExpr) -> RelayExpr:
    part = op.clip(op.add(x, const(3.0, "float32")), 0.0, 6.0)
    return op.multiply(x, op.divide(part, const(6.0, "float32")))


def _fields(value: RelayExpr, count: int) -> list[RelayExpr]:
    if isinstance(value, Tuple):
        return list(value.fields)
    return [TupleGetItem(value, k) for k in range(count)]


def _concatenate(args: Sequence[Any], types: Sequence[Any], s: Mapping[str, Any]) -> RelayExpr:
    # Tensors whose scale and zero point are those of the result are left as they are.
    data, scales, zeros = (_fields(arg, len(types[0].fields)) for arg in args[:3])
    parts = [
        tensor_
        if _same_number(scale, args[3]) and _same_number(zero, args[4])
        else requantize(tensor_, scale, zero, args[3], args[4], out_dtype=str(type_.dtype))
        for tensor_, scale, zero, type_ in zip(data, scales, zeros, types[0].fields)
    ]
    return op.concatenate(parts, s["axis"])


def _same_number(a: RelayExpr, b: RelayExpr) -> bool:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return bool((a.data.numpy() == b.data.numpy()).all())
    return a.same_as(b)


def _combined(combine: Callable[[Any, Any], RelayExpr]) -> _Write:
    def write(args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]) -> RelayExpr:
        real = [
            _real(
                args[k],
                along(args[at], types[at], s[axis], types[k]),
                along(args[at + 1], types[at + 1], s[axis], types[k]),
            )
            for k, at, axis in ((0, 2, "lhs_axis"), (1, 4, "rhs_axis"))
        ]
        steps = op.divide(combine(*real), number(args[6], "float32"))
        return _stored(steps, args[7], str(types[0].dtype))

    return write


def _like_data(name: str) -> Any:
    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        return TensorType(tensor(f"relay.{name}", types[0]).shape, s["out_dtype"])

    return rule


def _like_both(name: str) -> Any:
    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        a, b = (tensor(f"relay.{name}", t) for t in types[:2])
        if a.dtype != b.dtype:
            raise error.TypeError(f"relay.{name}: data types {a.dtype} and {b.dtype} do not match")
        return TensorType(broadcast(f"relay.{name}", a.shape, b.shape), str(a.dtype))

    return rule


def _like_plain(name: str, **more: Any) -> Any:
    """The type of the operator on numbers that are not quantised; `more` are its settings."""

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        inner = row_of(name).rule
        assert inner is not None
        wide = [TensorType(tensor(f"relay.qnn.{name}", t).shape, "int32") for t in types[:2]]
        return inner(wide, {**row_of(name).settings, **more, **s}, args[:2])

    return rule


def _define(
    name: str, write: _Write, rule: Any, inputs: int, lower: Any = None, **settings: Any
) -> None:
    def written(call: Call) -> RelayExpr:
        return write(list(call.args), [arg.checked_type for arg in call.args], settings_of(call))

    define(
        f"qnn.{name}", pattern=OpPattern.OPAQUE, settings=settings, rule=rule, written=written,
        num_inputs=inputs, lower=lower,
    )  # fmt: skip


def _lowered(function: Any) -> Any:
    """The operator of relax, around which passes look for products of integers."""
    return lambda args, s: function(*args, axis=s["axis"], out_dtype=s["out_dtype"])


_define(
    "quantize", _quantize, _like_data("qnn.quantize"), 3, _lowered(relax.op.quantize),
    axis=-1, out_dtype="int8",
)  # fmt: skip
_define(
    "dequantize", _dequantize, _like_data("qnn.dequantize"), 3, _lowered(relax.op.dequantize),
    axis=-1, out_dtype="float32",
)  # fmt: skip
_define(
    "requantize", write_requantize, _like_data("qnn.requantize"), 5,
    axis=-1, rounding="None", compute_dtype="None", out_dtype="int8",
)  # fmt: skip
_define("dense", _dense, _like_plain("nn.dense"), 6, units=None, out_dtype="int32")
_define(
    "conv2d", _conv2d, _like_plain("nn.conv2d"), 6,
    **{**row_of("nn.conv2d").settings, "kernel_size": REQUIRED, "out_dtype": "int32"},
)  # fmt: skip
for _name, _combine in (("add", op.add), ("subtract", op.subtract), ("mul", op.multiply)):
    _define(_name, _combined(_combine), _like_both(f"qnn.{_name}"), 8, lhs_axis=-1, rhs_axis=-1)


def _unchanged_shape(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    return tensor("relay.qnn", types[0])


def _like_real(name: str) -> Any:
    """The type of the operator on float32 numbers, in the type of the integers."""

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        row, data = row_of(f"nn.{name}"), tensor(f"relay.qnn.{name}", types[0])
        assert row.rule is not None
        wide = TensorType(data.shape, "float32")
        found = tensor(f"relay.qnn.{name}", row.rule([wide], {**row.settings, **s}, args[:1]))
        return TensorType(found.shape, str(data.dtype))

    return rule


def _concatenate_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    rule = row_of("concatenate").rule
    assert rule is not None
    return rule(types[:1], s, args[:1])


_define(
    "batch_matmul", _batch_matmul, _like_plain("nn.batch_matmul", transpose_b=True), 6,
    out_dtype="int32",
)  # fmt: skip
_define(
    "conv2d_transpose", _conv2d_transpose, _like_plain("nn.conv2d_transpose"), 6,
    **{**row_of("nn.conv2d_transpose").settings, "out_dtype": "int32"},
)  # fmt: skip
_define("concatenate", _concatenate, _concatenate_rule, 5, axis=REQUIRED)
_define("leaky_relu", _of_real(op.nn.leaky_relu), _unchanged_shape, 5, alpha=REQUIRED)
_define("softmax", _of_real(op.nn.softmax), _unchanged_shape, 5, axis=-1)
_define(
    "avg_pool2d", _of_real(op.nn.avg_pool2d), _like_real("avg_pool2d"), 5,
    **row_of("nn.avg_pool2d").settings,
)  # fmt: skip
for _name, _compute in {
    "abs": op.abs, "erf": op.erf, "exp": op.exp, "hardswish": _hardswish, "log": op.log,
    "rsqrt": op.rsqrt, "sigmoid": op.sigmoid, "sqrt": op.sqrt, "tanh": op.tanh,
}.items():  # fmt: skip
    _define(_name, _of_real(_compute), _unchanged_shape, 5)


def quantize(
    data: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str = "int8",
) -> Call:
    """data / scale, rounded to even, plus the zero point, limited to what the type holds.

    Parameters
    ----------
    output_scale, output_zero_point : float32 and int32, of the tensor or of each index of `axis`.
    """
    operands = [data, output_scale, output_zero_point]
    return make("qnn.quantize", operands, axis=axis, out_dtype=out_dtype)


def dequantize(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    axis: int = -1,
    out_dtype: str = "float32",
) -> Call:
    """(data - zero point) * scale; operands as in :func:`quantize`."""
    operands = [data, input_scale, input_zero_point]
    return make("qnn.dequantize", operands, axis=axis, out_dtype=out_dtype)


def dense(
    data: RelayExpr,
    weight: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    units: int | None,
    out_dtype: str = "int32",
) -> Call:
    """Sums of products without zero points; its scale is the product of the two scales."""
    operands = [data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale]
    return make("qnn.dense", operands, units=units, out_dtype=out_dtype)


def conv2d(
    data: RelayExpr,
    kernel: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    kernel_size: Sequence[int],
    channels: int | None,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "int32",
) -> Call:
    """Convolution without zero points, see :func:`dense`; the border stands for real zeros."""
    operands = [data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale]
    return make(
        "qnn.conv2d",
        operands,
        kernel_size=sizes_of(kernel_size, 2),
        channels=channels,
        strides=sizes_of(strides, 2),
        padding=pads_of("relay.qnn.conv2d", padding, 2),
        dilation=sizes_of(dilation, 2),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def _binary(name: str, doc: str) -> Any:
    def call(
        lhs: RelayExpr,
        rhs: RelayExpr,
        lhs_scale: RelayExpr,
        lhs_zero_point: RelayExpr,
        rhs_scale: RelayExpr,
        rhs_zero_point: RelayExpr,
        output_scale: RelayExpr,
        output_zero_point: RelayExpr,
        lhs_axis: int = -1,
        rhs_axis: int = -1,
    ) -> Call:
        operands = [lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point,
                    output_scale, output_zero_point]  # fmt: skip
        return make(f"qnn.{name}", operands, lhs_axis=lhs_axis, rhs_axis=rhs_axis)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


add = _binary("add", "Sum of two quantised tensors as one of the type of the first.")
subtract = _binary("subtract", "Difference of two quantised tensors; see :func:`add`.")
mul = _binary("mul", "Product of two quantised tensors; see :func:`add`.")


def batch_matmul(
    x: RelayExpr,
    y: RelayExpr,
    x_zero_point: RelayExpr,
    y_zero_point: RelayExpr,
    x_scale: RelayExpr,
    y_scale: RelayExpr,
    out_dtype: str = "int32",
) -> Call:
    """Products of matrices without zero points, the second one transposed; see :func:`dense`."""
    operands = [x, y, x_zero_point, y_zero_point, x_scale, y_scale]
    return make("qnn.batch_matmul", operands, out_dtype=out_dtype)


def conv2d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Any = (0, 0),
    out_dtype: str = "int32",
) -> Call:
    """Transposed convolution without zero points; see :func:`dense`."""
    operands = [data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale]
    return make(
        "qnn.conv2d_transpose",
        operands,
        channels=channels,
        kernel_size=None if kernel_size is None else sizes_of(kernel_size, 2),
        strides=sizes_of(strides, 2),
        padding=pads_of("relay.qnn.conv2d_transpose", padding, 2),
        output_padding=sizes_of(output_padding, 2),
        dilation=sizes_of(dilation, 2),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def concatenate(
    data: Any,
    input_scales: Any,
    input_zero_points: Any,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int,
) -> Call:
    """Quantised tensors one behind the other, as integers of one scale and zero point.

    Parameters
    ----------
    data, input_scales, input_zero_points : a tuple each, or a sequence of expressions.

    Raises
    ------
    ValueError : their lengths differ.
    """
    parts = [
        value if isinstance(value, RelayExpr) else Tuple(list(value))
        for value in (data, input_scales, input_zero_points)
    ]
    lengths = {len(part.fields) for part in parts if isinstance(part, Tuple)}
    if len(lengths) > 1:
        raise error.ValueError(
            "relay.qnn.concatenate: give a scale and a zero point for each tensor"
        )
    return make("qnn.concatenate", [*parts, output_scale, output_zero_point], axis=axis)


def leaky_relu(
    x: RelayExpr,
    alpha: float,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
) -> Call:
    """Negative numbers times `alpha`, of a quantised tensor; others as they are."""
    operands = [x, input_scale, input_zero_point, output_scale, output_zero_point]
    return make("qnn.leaky_relu", operands, alpha=float(alpha))


def softmax(
    data: RelayExpr,
    scale: RelayExpr,
    zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
) -> Call:
    """Softmax of a quantised tensor along an axis."""
    operands = [data, scale, zero_point, output_scale, output_zero_point]
    return make("qnn.softmax", operands, axis=axis)


def avg_pool2d(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    pool_size: Any = (1, 1),
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NHWC",
    out_layout: str = "",
) -> Call:
    """Means of windows of a quantised tensor; settings as in :func:`tvm.relay.nn.avg_pool2d`."""
    operands = [data, input_scale, input_zero_point, output_scale, output_zero_point]
    return make(
        "qnn.avg_pool2d",
        operands,
        pool_size=sizes_of(pool_size, 2),
        strides=sizes_of(strides, 2),
        padding=pads_of("relay.qnn.avg_pool2d", padding, 2),
        dilation=sizes_of(dilation, 2),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
    )


def _unary(name: str, doc: str) -> Any:
    def call(
        x: RelayExpr,
        scale: RelayExpr,
        zero_point: RelayExpr,
        output_scale: RelayExpr,
        output_zero_point: RelayExpr,
    ) -> Call:
        operands = [x, scale, zero_point, output_scale, output_zero_point]
        return make(f"qnn.{name}", operands)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


abs = _unary("abs", "Absolute values of a quantised tensor, in another scale.")
erf = _unary("erf", "The error function of a quantised tensor, in another scale.")
exp = _unary("exp", "Exponentials of a quantised tensor, in another scale.")
hardswish = _unary("hardswish", "``x * min(max(x + 3, 0), 6) / 6`` of a quantised tensor.")
log = _unary("log", "Natural logarithms of a quantised tensor, in another scale.")
rsqrt = _unary("rsqrt", "Inverse square roots of a quantised tensor, in another scale.")
sigmoid = _unary("sigmoid", "``1 / (1 + exp(-x))`` of a quantised tensor, in another scale.")
sqrt = _unary("sqrt", "Square roots of a quantised tensor, in another scale.")
tanh = _unary("tanh", "Hyperbolic tangents of a quantised tensor, in another scale.")
