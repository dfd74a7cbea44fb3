"""Activations, products, normalisations and borders."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm import error, relax, te, tir, topi
from tvm.ir import RelayExpr, TensorType, TupleType, Type
from tvm.relax.op.precision import accumulated_in_float32, computed_in_float32

from ...expr import Call, TupleWrapper, as_expr, const
from ...ty import Any as AnyExtent
from ..registry import REQUIRED, OpPattern, define, make, register_own, row_of
from ..reshaping import layout_transform, numbers_or_expr, unknown_shape
from ..shapes import broadcast, extent_number, normal_axis, number_of, product, sums_bytes, tensor

__all__ = [
    "batch_flatten",
    "batch_matmul",
    "batch_norm",
    "bias_add",
    "contrib_dense_pack",
    "cross_entropy",
    "cross_entropy_with_logits",
    "dense",
    "depth_to_space",
    "dropout",
    "dropout_raw",
    "fast_softmax",
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "matmul",
    "mirror_pad",
    "nll_loss",
    "pad",
    "prelu",
    "relu",
    "softmax",
    "space_to_depth",
    "upsampling",
    "upsampling3d",
]

_E, _B, _I = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE
_O, _HEAVY = OpPattern.OPAQUE, OpPattern.OUT_FUSABLE


def _same(name: str) -> Any:
    return lambda types, s, args: tensor(f"relay.nn.{name}", types[0])


def _axis_checked(name: str) -> Any:
    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        data = tensor(f"relay.nn.{name}", types[0])
        normal_axis(f"relay.nn.{name}", s["axis"], len(data.shape))
        return data

    return rule


define("nn.relu", relax_name="nn.relu", rule=_same("relu"), num_inputs=1)
define(
    "nn.leaky_relu",
    topi.nn.leaky_relu,
    _E,
    settings={"alpha": REQUIRED},
    rule=_same("leaky_relu"),
    num_inputs=1,
)
define(
    "nn.softmax",
    relax_name="nn.softmax",
    settings={"axis": -1},
    rule=_axis_checked("softmax"),
    num_inputs=1,
)
define(
    "nn.log_softmax",
    relax_name="nn.log_softmax",
    settings={"axis": -1},
    rule=_axis_checked("log_softmax"),
    num_inputs=1,
)
define(
    "nn.fast_softmax",
    computed_in_float32(topi.nn.fast_softmax),
    _O,
    settings={"axis": -1},
    rule=_axis_checked("fast_softmax"),
    num_inputs=1,
)
define(
    "nn.dropout",
    lambda x, rate: [topi.identity(x), topi.ones_like(x)],
    _O,
    settings={"rate": 0.5},
    num_inputs=1,
    rule=lambda t, s, a: TupleType([t[0], t[0]]),
)


def relu(data: RelayExpr) -> Call:
    """max(x, 0)."""
    return make("nn.relu", [data])


def leaky_relu(data: RelayExpr, alpha: float = 0.01) -> Call:
    """x where it is positive, else alpha * x."""
    return make("nn.leaky_relu", [data], alpha=float(alpha))


def softmax(data: RelayExpr, axis: int = -1) -> Call:
    """exp(x) over its sum along an axis."""
    return make("nn.softmax", [data], axis=axis)


def fast_softmax(data: RelayExpr, axis: int = -1) -> Call:
    """As `softmax`, with an exponential by a polynomial."""
    return make("nn.fast_softmax", [data], axis=axis)


def log_softmax(data: RelayExpr, axis: int = -1) -> Call:
    """Logarithm of the softmax."""
    return make("nn.log_softmax", [data], axis=axis)


def dropout(data: RelayExpr, rate: float = 0.5) -> RelayExpr:
    """Nothing in inference; in training, elements become zero with a probability."""
    return TupleWrapper(dropout_raw(data, rate), 2)[0]


def dropout_raw(data: RelayExpr, rate: float = 0.5) -> Call:
    """`dropout` with its mask, as a tuple."""
    return make("nn.dropout", [data], rate=float(rate))


def _vector_fill(count: int) -> Any:
    """Operands behind the first that are vectors over its channel axis."""

    def fill(types: Sequence[Type | None], s: Mapping[str, Any]) -> list[Type | None]:
        data = types[0]
        if not isinstance(data, TensorType):
            return list(types)
        axis = s.get("axis", 1)
        if not -len(data.shape) <= axis < len(data.shape):
            return list(types)
        vector = TensorType([data.shape[axis]], str(data.dtype))
        return [data, *(vector if t is None else t for t in types[1 : 1 + count])]

    return fill


def _bias_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = "relay.nn.bias_add"
    data, bias = tensor(where, types[0]), tensor(where, types[1], "bias")
    axis = normal_axis(where, s["axis"], len(data.shape))
    if len(bias.shape) != 1:
        raise error.TypeError(f"{where}: bias must have one axis, its type is {bias}")
    a, b = extent_number(data.shape[axis]), extent_number(bias.shape[0])
    if None not in (a, b) and a != b:
        raise error.ValueError(f"{where}: axis {axis} of the data has {a} elements, bias {b}")
    return data


def _bias_lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
    data, bias = args
    rank = data.struct_info.ndim
    behind = rank - 1 - s["axis"] % rank
    if behind:
        bias = relax.op.expand_dims(bias, list(range(1, behind + 1)))
    return relax.op.add(data, bias)


define(
    "nn.bias_add",
    topi.nn.bias_add,
    _B,
    settings={"axis": 1},
    rule=_bias_rule,
    fill=_vector_fill(1),
    lower=_bias_lower,
    num_inputs=2,
)


def bias_add(data: RelayExpr, bias: RelayExpr, axis: int = 1) -> Call:
    """The sum with a vector that lies along an axis."""
    return make("nn.bias_add", [data, bias], axis=axis)


def _check_inner(where: str, a: Any, b: Any) -> None:
    left, right = extent_number(a), extent_number(b)
    if left is not None and right is not None and left != right:
        raise error.ValueError(f"{where}: operands are summed over {left} and {right} elements")


def _matmul_types(where: str, types: Sequence[Type], s: Mapping[str, Any]) -> Type:
    a, b = tensor(where, types[0]), tensor(where, types[1], "the second operand")
    if len(b.shape) != 2 or len(a.shape) < 1:
        raise error.ValueError(f"{where}: the second operand must have two axes, its type is {b}")
    rows, inner = (
        (a.shape[-1], a.shape[-2])
        if s["transpose_a"]
        else (a.shape[-2] if len(a.shape) > 1 else None, a.shape[-1])
    )
    depth, columns = (b.shape[1], b.shape[0]) if s["transpose_b"] else (b.shape[0], b.shape[1])
    _check_inner(where, inner, depth)
    lead = [*a.shape[:-2], rows] if len(a.shape) > 1 else []
    return TensorType([*lead, columns], s["out_dtype"] or str(a.dtype))


def _matmul_compute(
    a: Any, b: Any, transpose_a: bool, transpose_b: bool, out_dtype: str, **_: Any
) -> Any:
    lead = list(a.shape[:-2])
    flat = a if len(a.shape) == 2 else topi.reshape(a, [-1, a.shape[-1]])
    if len(a.shape) > 2 and transpose_a:
        raise error.ValueError("relay.nn.matmul: transpose_a needs an operand of two axes")
    out = topi.nn.matmul(flat, b, None, out_dtype or None, transpose_a, transpose_b)
    return out if len(a.shape) == 2 else topi.reshape(out, [*lead, a.shape[-2], out.shape[-1]])


_MATMUL = accumulated_in_float32(_matmul_compute)


def _dense_lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
    if sums_bytes(args, s["out_dtype"]):
        args = [relax.op.astype(arg, "int32") for arg in args]
        return relax.op.make_call("nn.dense", *args)
    data, weight = args
    if data.struct_info.ndim == 2 and not s["out_dtype"]:
        return relax.op.make_call("nn.dense", data, weight)
    return relax.op.make_call("relay.nn.dense", data, weight, **s)


def _dense_fill(types: Sequence[Type | None], s: Mapping[str, Any]) -> list[Type | None]:
    data, weight = types
    if weight is None and isinstance(data, TensorType) and s["units"] is not None:
        weight = TensorType([s["units"], data.shape[-1]], str(data.dtype))
    return [data, weight]


def _dense_compute(x: Any, w: Any, units: Any, out_dtype: str) -> Any:
    return _MATMUL(x, w, transpose_a=False, transpose_b=True, out_dtype=out_dtype)


def _dense_types(where: str, types: Sequence[Type], s: Mapping[str, Any]) -> Type:
    settings = {"transpose_a": False, "transpose_b": True, "out_dtype": s["out_dtype"]}
    result = _matmul_types(where, types, settings)
    units = extent_number(types[1].shape[0])
    if s["units"] is not None and units not in (None, s["units"]):
        raise error.ValueError(f"{where}: units={s['units']}, the weights have {units}")
    return result


register_own("nn.dense", _dense_compute, _HEAVY, {"units": None})
define(
    "nn.dense",
    _dense_compute,
    _HEAVY,
    settings={"units": None, "out_dtype": ""},
    rule=lambda t, s, a: _dense_types("relay.nn.dense", t, s),
    fill=_dense_fill,
    lower=_dense_lower,
    num_inputs=2,
)


def _matmul_fill(types: Sequence[Type | None], s: Mapping[str, Any]) -> list[Type | None]:
    a, b = types
    if b is None and isinstance(a, TensorType) and s["units"] is not None:
        inner = a.shape[-2] if s["transpose_a"] else a.shape[-1]
        shape = [s["units"], inner] if s["transpose_b"] else [inner, s["units"]]
        b = TensorType(shape, str(a.dtype))
    return [a, b]


def _turned(value: RelayExpr) -> RelayExpr:
    """A value of relax with its last two axes exchanged."""
    axes = list(range(value.struct_info.ndim))
    return relax.op.permute_dims(value, [*axes[:-2], axes[-1], axes[-2]])


def _lower_turned(name: str) -> Any:
    """The own kernel, whose rows are summed where they lie, of a first operand that is turned."""

    def lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
        if s["transpose_a"] and args[0].struct_info.ndim > 1:
            args, s = [_turned(args[0]), *args[1:]], {**s, "transpose_a": False}
        return relax.op.make_call(f"relay.{name}", *args, **s)

    return lower


_MATMUL_SETTINGS = {"units": None, "out_dtype": "", "transpose_a": False, "transpose_b": False}
register_own("nn.matmul", _MATMUL, _HEAVY, _MATMUL_SETTINGS)
define(
    "nn.matmul",
    _MATMUL,
    _HEAVY,
    lower=_lower_turned("nn.matmul"),
    num_inputs=2,
    fill=_matmul_fill,
    settings=_MATMUL_SETTINGS,
    rule=lambda t, s, a: _matmul_types("relay.nn.matmul", t, s),
)


def dense(
    data: RelayExpr, weight: RelayExpr, units: int | None = None, out_dtype: str = ""
) -> Call:
    """data @ weight.T.

    Parameters
    ----------
    units : rows of the weight, which needs no type of its own then.
    """
    return make("nn.dense", [data, weight], units=units, out_dtype=out_dtype)


def _dense_pack_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = "relay.nn.contrib_dense_pack"
    weight = tensor(where, types[1], "the second operand")
    blocks = tir.bijective_layout("NC", s["weight_layout"])
    if blocks is None:
        raise error.ValueError(f"{where}: weight_layout {s['weight_layout']!r} is none of N and C")
    rows = TensorType(blocks.backward_shape(weight.shape), str(weight.dtype))
    return _dense_types(where, [types[0], rows], s)


def _unpacked_dense(call: Call) -> RelayExpr:
    data, weight = call.args
    rows = layout_transform(weight, str(call.attrs["weight_layout"]), "NC")
    return dense(data, rows, out_dtype=str(call.attrs["out_dtype"]))


define(
    "nn.contrib_dense_pack",
    None,
    _HEAVY,
    settings={"weight_layout": "NC", "units": None, "out_dtype": ""},
    rule=_dense_pack_rule,
    written=_unpacked_dense,
    num_inputs=2,
)


def contrib_dense_pack(
    data: RelayExpr,
    weight: RelayExpr,
    weight_layout: str = "NC",
    units: int | None = None,
    out_dtype: str = "",
) -> Call:
    """data @ weight.T of a weight in blocks of rows, such as "NC8n".

    Parameters
    ----------
    units : rows of the weight, which its type says as well.
    """
    return make(
        "nn.contrib_dense_pack", [data, weight], weight_layout=weight_layout, units=units,
        out_dtype=out_dtype,
    )  # fmt: skip


def matmul(
    tensor_a: RelayExpr,
    tensor_b: RelayExpr,
    units: int | None = None,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Call:
    """Product of matrices, each transposed if asked for."""
    return make(
        "nn.matmul",
        [tensor_a, tensor_b],
        units=units,
        out_dtype=out_dtype,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )


def _batch_matmul_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = "relay.nn.batch_matmul"
    a, b = tensor(where, types[0]), tensor(where, types[1])
    if len(a.shape) != 3 or len(b.shape) != 3:
        raise error.ValueError(f"{where}: operands must have three axes, got {a} and {b}")
    rows, inner = a.shape[1:] if not s["transpose_a"] else (a.shape[2], a.shape[1])
    columns, depth = b.shape[1:] if s["transpose_b"] else (b.shape[2], b.shape[1])
    _check_inner(where, inner, depth)
    batch = broadcast(where, [a.shape[0]], [b.shape[0]])
    return TensorType([*batch, rows, columns], s["out_dtype"] or str(a.dtype))


_BATCH_MATMUL = accumulated_in_float32(
    lambda a, b, out_dtype, transpose_a, transpose_b: topi.nn.batch_matmul(
        a, b, None, out_dtype or None, transpose_a, transpose_b
    )
)
_BATCH_MATMUL_SETTINGS = {"out_dtype": "", "transpose_a": False, "transpose_b": False}
register_own("nn.batch_matmul", _BATCH_MATMUL, _HEAVY, _BATCH_MATMUL_SETTINGS)
define(
    "nn.batch_matmul",
    _BATCH_MATMUL,
    _HEAVY,
    lower=_lower_turned("nn.batch_matmul"),
    settings=_BATCH_MATMUL_SETTINGS,
    rule=_batch_matmul_rule,
    num_inputs=2,
)


def batch_matmul(
    tensor_a: RelayExpr,
    tensor_b: RelayExpr,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Call:
    """Product of the matrices of two batches; the second is transposed by default."""
    return make(
        "nn.batch_matmul",
        [tensor_a, tensor_b],
        out_dtype=out_dtype,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )


def _flatten_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.nn.batch_flatten", types[0])
    return TensorType([data.shape[0], _times(data.shape[1:])], str(data.dtype))


def _times(extents: Sequence[Any]) -> Any:
    """The product of extents as it is written out, so that programs know the type by its form."""
    if any(isinstance(extent, AnyExtent) for extent in extents):
        return product(extents)
    numbers = [e if (n := extent_number(e)) is None else n for e in extents]
    return functools.reduce(operator.mul, numbers) if numbers else 1


define(
    "nn.batch_flatten",
    topi.nn.batch_flatten,
    _I,
    rule=_flatten_rule,
    num_inputs=1,
    lower=lambda args, s: relax.op.reshape(args[0], [int(args[0].struct_info.shape.values[0]), -1]),
)


def batch_flatten(data: RelayExpr) -> Call:
    """All axes but the first as one."""
    return make("nn.batch_flatten", [data])


_NORM = {"axis": 1, "epsilon": 1e-5, "center": True, "scale": True}


def _batch_norm_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.nn.batch_norm", types[0])
    axis = normal_axis("relay.nn.batch_norm", s["axis"], len(data.shape))
    for vector in types[1:]:
        _check_inner("relay.nn.batch_norm", data.shape[axis], tensor("", vector).shape[0])
    return TupleType([data, types[3], types[4]])


define(
    "nn.batch_norm",
    relax_name="nn.batch_norm",
    settings=_NORM,
    rule=_batch_norm_rule,
    fill=_vector_fill(4),
    num_inputs=5,
)
define(
    "nn.layer_norm",
    computed_in_float32(
        lambda x, gamma, beta, axis, epsilon, center, scale: topi.nn.layer_norm(
            x, gamma, beta, axis, epsilon
        )
    ),
    _O,
    settings={**_NORM, "axis": -1},
    rule=_same("layer_norm"),
    fill=_vector_fill(2),
    num_inputs=3,
)
define(
    "nn.instance_norm",
    computed_in_float32(
        lambda x, gamma, beta, axis, epsilon, center, scale: topi.nn.instance_norm(
            x,
            gamma,
            beta,
            axis,
            list(range(2, len(x.shape)))
            if axis == 1
            else [k for k in range(1, len(x.shape)) if k != axis % len(x.shape)],
            epsilon,
        )
    ),
    _O,
    settings=_NORM,
    rule=_same("instance_norm"),
    fill=_vector_fill(2),
    num_inputs=3,
)
define(
    "nn.group_norm",
    computed_in_float32(
        lambda x, gamma, beta, num_groups, axis, epsilon, center, scale: topi.nn.group_norm(
            x,
            gamma,
            beta,
            num_groups,
            axis,
            [k for k in range(1, len(x.shape)) if k != axis % len(x.shape)],
            epsilon,
        )
    ),
    _O,
    settings={"num_groups": 0, **_NORM},
    rule=_same("group_norm"),
    fill=_vector_fill(2),
    num_inputs=3,
)
define(
    "nn.l2_normalize",
    computed_in_float32(
        lambda x, eps, axis: topi.nn.l2_normalize(x, eps, list(axis) if axis else None)
    ),
    _O,
    settings={"eps": REQUIRED, "axis": None},
    rule=_same("l2_normalize"),
    num_inputs=1,
)
define(
    "nn.lrn",
    computed_in_float32(
        lambda x, size, axis, bias, alpha, beta: topi.nn.lrn(x, size, axis, alpha, beta, bias)
    ),
    _O,
    settings={"size": 5, "axis": 1, "bias": 2.0, "alpha": 1e-5, "beta": 0.75},
    rule=_same("lrn"),
    num_inputs=1,
)
define(
    "nn.prelu",
    lambda x, slope, axis: topi.nn.prelu(x, slope, axis),
    _B,
    settings={"axis": 1},
    rule=_same("prelu"),
    fill=_vector_fill(1),
    num_inputs=2,
)


def batch_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    moving_mean: RelayExpr,
    moving_var: RelayExpr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> TupleWrapper:
    """Normalisation by statistics of every channel, with mean and variance as second and third
    result.

    Parameters
    ----------
    axis : of the channels. epsilon : added to the variance.
    center, scale : whether beta is added and gamma multiplied.
    """
    call = make(
        "nn.batch_norm",
        [data, gamma, beta, moving_mean, moving_var],
        axis=axis,
        epsilon=float(epsilon),
        center=center,
        scale=scale,
    )
    return TupleWrapper(call, 3)


def layer_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    axis: int = -1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Normalisation by mean and variance along an axis; see :func:`batch_norm`."""
    return make(
        "nn.layer_norm",
        [data, gamma, beta],
        axis=axis,
        epsilon=float(epsilon),
        center=center,
        scale=scale,
    )


def instance_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Normalisation of every channel of every image; see :func:`batch_norm`."""
    return make(
        "nn.instance_norm",
        [data, gamma, beta],
        axis=axis,
        epsilon=float(epsilon),
        center=center,
        scale=scale,
    )


def group_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    num_groups: int,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """Normalisation of groups of channels; see :func:`batch_norm`."""
    return make(
        "nn.group_norm",
        [data, gamma, beta],
        num_groups=num_groups,
        axis=axis,
        epsilon=float(epsilon),
        center=center,
        scale=scale,
    )


def l2_normalize(data: RelayExpr, eps: float, axis: Sequence[int] | None = None) -> Call:
    """x over the root of the sum of squares along axes."""
    axes = None if axis is None else numbers_or_expr(axis)
    return make("nn.l2_normalize", [data], eps=float(eps), axis=axes)


def lrn(
    data: RelayExpr,
    size: int = 5,
    axis: int = 1,
    bias: float = 2,
    alpha: float = 0.00001,
    beta: float = 0.75,
) -> Call:
    """Local response normalisation."""
    return make(
        "nn.lrn",
        [data],
        size=size,
        axis=axis,
        bias=float(bias),
        alpha=float(alpha),
        beta=float(beta),
    )


def prelu(data: RelayExpr, alpha: RelayExpr, axis: int = 1) -> Call:
    """x where it is positive, else x times the slope of its channel."""
    return make("nn.prelu", [data, alpha], axis=axis)


def _pad_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.nn.pad", types[0])
    if len(s["pad_width"]) != len(data.shape):
        raise error.ValueError(
            f"relay.nn.pad: {len(s['pad_width'])} borders for {len(data.shape)} axes"
        )
    shape = []
    for extent, (before, behind) in zip(data.shape, s["pad_width"]):
        number = extent_number(extent)
        if isinstance(extent, AnyExtent) and before + behind:
            shape.append(AnyExtent())
        elif number is None:
            shape.append(extent if not before + behind else extent + (before + behind))
        else:
            shape.append(number + before + behind)
    return TensorType(shape, str(data.dtype))


def _pad_compute(x: Any, value: Any, pad_width: Any, pad_mode: str) -> Any:
    if any(width < 0 for widths in pad_width for width in widths):
        # A negative border takes from the tensor.
        first = [max(-a, 0) for a, _ in pad_width]
        last = [extent - max(-b, 0) for extent, (_, b) in zip(x.shape, pad_width)]
        x = topi.strided_slice(x, first, last)
        pad_width = [(max(a, 0), max(b, 0)) for a, b in pad_width]
    before, behind = [a for a, _ in pad_width], [b for _, b in pad_width]
    if pad_mode == "constant":
        fill = value(*[0] * len(value.shape)) if hasattr(value, "op") else value
        out = topi.nn.pad(x, before, behind, fill)
    elif pad_mode == "edge":
        out = _edge_pad(x, before, behind)
    else:
        out = topi.nn.mirror_pad(x, before, behind, "REFLECT")
    return topi.identity(x) if out.same_as(x) else out


def _edge_pad(x: Any, before: Sequence[int], behind: Sequence[int]) -> Any:
    shape = [e + a + b for e, a, b in zip(x.shape, before, behind)]

    def element(*place: Any) -> Any:
        inside = [tir.max(0, tir.min(i - a, e - 1)) for i, a, e in zip(place, before, x.shape)]
        return x(*inside)

    return te.compute(shape, element, name="edge_pad", tag=topi.tag.INJECTIVE)


define(
    "nn.pad",
    _pad_compute,
    _I,
    settings={"pad_width": REQUIRED, "pad_mode": "constant"},
    rule=_pad_rule,
    num_inputs=2,
)
define(
    "dyn.nn.pad",
    None,
    _O,
    settings={"pad_mode": "constant"},
    num_inputs=3,
    rule=lambda t, s, a: unknown_shape(len(t[0].shape), t[0].dtype),
    host=lambda arrays, s: _numpy_pad(arrays, s["pad_mode"]),
)
define(
    "nn.mirror_pad",
    lambda x, mode, pad_width: topi.nn.mirror_pad(
        x, [a for a, _ in pad_width], [b for _, b in pad_width], mode
    ),
    _I,
    settings={"mode": "SYMMETRIC", "pad_width": REQUIRED},
    rule=_pad_rule,
    num_inputs=1,
)


def _numpy_pad(arrays: Sequence[Any], mode: Any) -> Any:
    data, widths, value = arrays
    more: dict[str, Any] = {"constant_values": value} if mode == "constant" else {}
    return np.pad(data, widths.tolist(), mode=mode, **more)


def pad(data: RelayExpr, pad_width: Any, pad_value: Any = 0, pad_mode: str = "constant") -> Call:
    """The tensor with a border.

    Parameters
    ----------
    pad_width : (before, behind) for every axis, or a tensor of them; negative ones take away.
    pad_mode : "constant" for `pad_value`, "edge" or "reflect".
    """
    value = as_expr(pad_value) if isinstance(pad_value, RelayExpr) else const(float(pad_value))
    if isinstance(pad_width, RelayExpr):
        known = getattr(pad_width, "data", None)
        if known is None:
            return make("dyn.nn.pad", [data, pad_width, value], pad_mode=pad_mode)
        pad_width = known.numpy().tolist()
    widths = [[int(a), int(b)] for a, b in pad_width]
    return make("nn.pad", [data, value], pad_width=widths, pad_mode=pad_mode)


def mirror_pad(data: RelayExpr, pad_width: Any, mode: str = "SYMMETRIC") -> Call:
    """The tensor with a border that mirrors it."""
    widths = [[int(a), int(b)] for a, b in pad_width]
    return make("nn.mirror_pad", [data], mode=mode, pad_width=widths)


define(
    "nn.depth_to_space",
    topi.nn.depth_to_space,
    _I,
    num_inputs=1,
    settings={"block_size": REQUIRED, "layout": "NCHW", "mode": "DCR"},
)
define(
    "nn.space_to_depth",
    lambda x, block_size, layout, mode: topi.nn.space_to_depth(x, block_size, layout),
    _I,
    num_inputs=1,
    settings={"block_size": REQUIRED, "layout": "NCHW", "mode": ""},
)


def depth_to_space(
    data: RelayExpr, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> Call:
    """Channels rearranged into blocks of places."""
    return make("nn.depth_to_space", [data], block_size=block_size, layout=layout, mode=mode)


def space_to_depth(data: RelayExpr, block_size: int, layout: str = "NCHW") -> Call:
    """Blocks of places rearranged into channels."""
    return make("nn.space_to_depth", [data], block_size=block_size, layout=layout)


def _scaled(rank: int) -> Any:
    letters = "DHW"[3 - rank :]

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        data = tensor("relay.nn.upsampling", types[0])
        shape = list(data.shape)
        for letter in letters:
            k = s["layout"].index(letter)
            scale, number = s[f"scale_{letter.lower()}"], extent_number(shape[k])
            if number is not None:
                shape[k] = int(round(number * scale))
            elif isinstance(shape[k], AnyExtent):
                shape[k] = AnyExtent()
            else:
                shape[k] = te.round(tir.Cast("float64", shape[k]) * scale).astype("int32")
        return TensorType(shape, str(data.dtype))

    return rule


define(
    "nn.upsampling",
    lambda x, scale_h, scale_w, layout, method, align_corners: topi.nn.upsampling(
        x, scale_h, scale_w, layout, method, align_corners
    ),
    _I,
    num_inputs=1,
    settings={
        "scale_h": REQUIRED,
        "scale_w": REQUIRED,
        "layout": "NCHW",
        "method": "nearest_neighbor",
        "align_corners": False,
    },
    rule=_scaled(2),
)
define(
    "nn.upsampling3d",
    topi.nn.upsampling3d,
    _I,
    num_inputs=1,
    rule=_scaled(3),
    settings={
        "scale_d": REQUIRED,
        "scale_h": REQUIRED,
        "scale_w": REQUIRED,
        "layout": "NCDHW",
        "method": "nearest_neighbor",
        "coordinate_transformation_mode": "half_pixel",
    },
)


def _factor(value: Any) -> float | RelayExpr:
    """A factor as a number, unless it is known only when the program runs."""
    number = number_of(value)
    if number is None and isinstance(value, RelayExpr):
        return value
    return float(value if number is None else number)


def _enlarged(name: str, data: RelayExpr, factors: Sequence[Any], settings: Any) -> Call:
    """Upsampling by factors, one for each spatial axis."""
    found = [_factor(f) for f in factors]
    if any(isinstance(f, RelayExpr) for f in found):
        scales = [f if isinstance(f, RelayExpr) else const(f, "float32") for f in found]
        return make(f"dyn.{name}", [data, *scales], **settings)
    return make(name, [data], **dict(zip(_SCALES[-len(found) :], found)), **settings)


_SCALES = ("scale_d", "scale_h", "scale_w")


def _unknown_places(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.nn.upsampling", types[0])
    shape = [e if axis in "NC" else AnyExtent() for axis, e in zip(s["layout"], data.shape)]
    return TensorType(shape, str(data.dtype))


def _fixed_factors(name: str) -> Callable[[Sequence[RelayExpr], Mapping[str, Any]], RelayExpr]:
    return lambda args, settings: _enlarged(name, args[0], args[1:], settings)


for _name, _count in (("upsampling", 2), ("upsampling3d", 3)):
    define(
        f"dyn.nn.{_name}",
        num_inputs=_count + 1,
        rule=_unknown_places,
        settings={k: v for k, v in row_of(f"nn.{_name}").settings.items() if k not in _SCALES},
        settled=_fixed_factors(f"nn.{_name}"),
    )


def upsampling(
    data: RelayExpr,
    scale_h: float | RelayExpr = 1,
    scale_w: float | RelayExpr = 1,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Call:
    """Images enlarged by factors, which are numbers or tensors without axes."""
    settings = {"layout": layout, "method": method, "align_corners": align_corners}
    return _enlarged("nn.upsampling", data, [scale_h, scale_w], settings)


def upsampling3d(
    data: RelayExpr,
    scale_d: float | RelayExpr = 1,
    scale_h: float | RelayExpr = 1,
    scale_w: float | RelayExpr = 1,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Call:
    """Volumes enlarged by factors, which are numbers or tensors without axes."""
    settings = {
        "layout": layout,
        "method": method,
        "coordinate_transformation_mode": coordinate_transformation_mode,
    }
    return _enlarged("nn.upsampling3d", data, [scale_d, scale_h, scale_w], settings)


define(
    "nn.cross_entropy",
    topi.nn.cross_entropy,
    _O,
    num_inputs=2,
    rule=lambda t, s, a: TensorType([], str(t[0].dtype)),
)
define(
    "nn.cross_entropy_with_logits",
    topi.nn.cross_entropy_with_logits,
    _O,
    num_inputs=2,
    rule=lambda t, s, a: TensorType([], str(t[0].dtype)),
)


def _nll_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data, targets = tensor("relay.nn.nll_loss", types[0]), tensor("relay.nn.nll_loss", types[1])
    return TensorType(targets.shape if s["reduction"] == "none" else [], str(data.dtype))


define(
    "nn.nll_loss",
    topi.nn.nll_loss,
    _O,
    settings={"reduction": "mean", "ignore_index": -100},
    rule=_nll_rule,
    num_inputs=3,
)


def cross_entropy(predictions: RelayExpr, targets: RelayExpr) -> Call:
    """Mean of minus the sum of targets times logarithms of predictions."""
    return make("nn.cross_entropy", [predictions, targets])


def cross_entropy_with_logits(predictions: RelayExpr, targets: RelayExpr) -> Call:
    """Mean of minus the sum of targets times predictions, which are logarithms."""
    return make("nn.cross_entropy_with_logits", [predictions, targets])


def nll_loss(
    predictions: RelayExpr,
    targets: RelayExpr,
    weights: RelayExpr,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Call:
    """Negative log likelihood of the classes that are targets."""
    return make(
        "nn.nll_loss",
        [predictions, targets, weights],
        reduction=reduction,
        ignore_index=ignore_index,
    )
