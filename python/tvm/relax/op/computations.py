"""One row for each graph operator: its te computation and its fusion pattern."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tvm import error, te, tir, topi

from .precision import accumulated_in_float32, computed_in_float32
from .registry import OpPattern, register

__all__: list[str] = []

_ELEMWISE, _BROADCAST, _INJECTIVE = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE
_REDUCE, _HEAVY, _OPAQUE = OpPattern.COMM_REDUCE, OpPattern.OUT_FUSABLE, OpPattern.OPAQUE


def _batch_norm(
    x: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    mean: te.Tensor,
    var: te.Tensor,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    momentum: float = 0.1,
) -> list[te.Tensor]:
    """Inference form: normalised by the moving statistics, which come back unchanged."""
    rank = len(x.shape)
    axis = topi.utils.normalize_axis(axis, rank)

    def spread(v: te.Tensor) -> te.Tensor:
        trailing = rank - 1 - axis
        return topi.expand_dims(v, 1, trailing) if trailing else v

    factor = topi.rsqrt(topi.add(var, epsilon))
    if scale:
        factor = topi.multiply(gamma, factor)
    shift = topi.multiply(mean, factor)
    shift = topi.subtract(beta, shift) if center else topi.negative(shift)
    out = topi.add(topi.multiply(x, spread(factor)), spread(shift))
    return [out, topi.identity(mean), topi.identity(var)]


def _matmul(a: te.Tensor, b: te.Tensor, out_dtype: str | None = None) -> te.Tensor:
    """NumPy's matmul."""
    rank_a, rank_b = len(a.shape), len(b.shape)
    if not min(rank_a, rank_b):
        raise error.ValueError("relax.matmul: operands need dimensions, got a scalar")
    if min(rank_a, rank_b) == 1:
        # A vector stands for one row on the left, and for one column on the right.
        row = topi.expand_dims(a, 0) if rank_a == 1 else a
        column = topi.expand_dims(b, 1) if rank_b == 1 else b
        extra = [-2] * (rank_a == 1) + [-1] * (rank_b == 1)
        return topi.squeeze(_matmul(row, column, out_dtype), extra)
    if rank_a == rank_b == 2:
        return topi.nn.matmul(a, b, out_dtype=out_dtype)
    if rank_a < rank_b:
        a = topi.expand_dims(a, 0, rank_b - rank_a)
    elif rank_b < rank_a:
        b = topi.expand_dims(b, 0, rank_a - rank_b)
    return topi.nn.batch_matmul(a, b, out_dtype=out_dtype, transpose_b=False)


def _split(
    x: te.Tensor, indices_or_sections: int | Sequence[int], axis: int = 0
) -> list[te.Tensor]:
    cuts: Any = indices_or_sections
    if not isinstance(cuts, int):
        return topi.split(x, list(cuts), axis)
    extent = x.shape[axis]
    if isinstance(extent, tir.IntImm) and int(extent) % cuts == 0:
        return topi.split(x, cuts, axis)
    # The last piece is shorter where pieces cannot all be equal.
    size = tir.floordiv(extent + (cuts - 1), cuts)
    return topi.split(x, [size * k for k in range(1, cuts)], axis)


def _pad(
    x: te.Tensor, pad_width: Sequence[int], pad_mode: str = "constant", pad_value: float = 0.0
) -> te.Tensor:
    if pad_mode != "constant":
        raise error.ValueError(f"relax.nn.pad: a border that is {pad_mode} has no te computation")
    padded = topi.nn.pad(x, list(pad_width[::2]), list(pad_width[1::2]), pad_value)
    return topi.identity(x) if padded.same_as(x) else padded


def _expand_dims(x: te.Tensor, axis: Sequence[int]) -> te.Tensor:
    rank = len(x.shape) + len(axis)
    new = {a % rank for a in axis}
    extents = iter(x.shape)
    shape = [1 if k in new else next(extents) for k in range(rank)]
    return te.compute(
        shape,
        lambda *i: x(*(index for k, index in enumerate(i) if k not in new)),
        name="expand_dims",
        tag=topi.tag.INJECTIVE,
    )


def _strided_slice(
    x: te.Tensor,
    axes: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    assume_inbound: bool = False,
) -> te.Tensor:
    if assume_inbound and all(step > 0 for step in strides or ()):
        return _slice_inside(x, axes, begin, end, strides or [1] * len(axes))
    return topi.strided_slice(x, begin, end, strides, axes)


def _slice_inside(
    x: te.Tensor,
    axes: Sequence[int],
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[int],
) -> te.Tensor:
    """A slice whose limits lie in the tensor, so that its size is their distance."""
    rank = len(x.shape)
    shape: list[Any] = list(x.shape)
    places: list[tuple[Any, int]] = [(0, 1)] * rank
    for axis, first, last, step in zip(axes, begin, end, strides):
        extent = x.shape[axis % rank]
        first, last = (n + extent if isinstance(n, int) and n < 0 else n for n in (first, last))
        shape[axis % rank] = topi.utils.ceil_div(last - first, step)
        places[axis % rank] = (first, step)
    return te.compute(
        shape,
        lambda *i: x(*(index * step + first for index, (first, step) in zip(i, places))),
        name="T_strided_slice",
        tag=topi.tag.INJECTIVE,
    )


def relaid(out: te.Tensor, layout: str, wanted: str | None) -> te.Tensor:
    """The result of a windowed operator in another order of its dimensions."""
    if wanted is None or wanted == layout:
        return out
    return topi.layout_transform(out, layout, wanted)


def _conv2d(
    x: te.Tensor,
    weight: te.Tensor,
    data_layout: str = "NCHW",
    out_layout: str | None = None,
    **settings: Any,
) -> te.Tensor:
    out = topi.nn.conv2d(x, weight, data_layout=data_layout, **settings)
    return relaid(out, data_layout, out_layout)


def _max_pool2d(
    x: te.Tensor,
    pool_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> te.Tensor:
    out = topi.nn.max_pool2d(x, pool_size, strides, padding, dilation, ceil_mode, layout)
    return relaid(out, layout, out_layout)


def _avg_pool2d(
    x: te.Tensor,
    pool_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> te.Tensor:
    out = topi.nn.pool2d(
        x, pool_size, strides, dilation, padding, "avg", ceil_mode, layout, count_include_pad
    )
    return relaid(out, layout, out_layout)


def _adaptive_avg_pool2d(
    x: te.Tensor,
    output_size: Sequence[int] | None = None,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> te.Tensor:
    if output_size is None:
        return topi.identity(x)
    return relaid(topi.nn.adaptive_avg_pool2d(x, output_size, layout), layout, out_layout)


def _flatten(x: te.Tensor) -> te.Tensor:
    return topi.reshape(x, (-1,))


def _gelu_tanh(x: te.Tensor) -> te.Tensor:
    return topi.nn.gelu(x, approximate="tanh")


register("exp", computed_in_float32(topi.exp), _ELEMWISE)
register("log", computed_in_float32(topi.log), _ELEMWISE)
register("sqrt", topi.sqrt, _ELEMWISE)
register("rsqrt", computed_in_float32(topi.rsqrt), _ELEMWISE)
register("tanh", computed_in_float32(topi.tanh), _ELEMWISE)
register("sigmoid", computed_in_float32(topi.sigmoid), _ELEMWISE)
register("erf", computed_in_float32(topi.erf), _ELEMWISE)
register("negative", topi.negative, _ELEMWISE)
register("clip", topi.clip, _ELEMWISE)
register("astype", topi.cast, _ELEMWISE)
register("nn.relu", topi.nn.relu, _ELEMWISE)
register("nn.leakyrelu", topi.nn.leaky_relu, _ELEMWISE)
register("nn.gelu", computed_in_float32(topi.nn.gelu), _ELEMWISE)
register("nn.gelu_tanh", computed_in_float32(_gelu_tanh), _ELEMWISE)
register("nn.silu", computed_in_float32(topi.nn.silu), _ELEMWISE)
register("nn.hardsigmoid", computed_in_float32(topi.nn.hardsigmoid), _ELEMWISE)
register("nn.hardswish", computed_in_float32(topi.nn.hardswish), _ELEMWISE)

register("add", topi.add, _BROADCAST)
register("subtract", topi.subtract, _BROADCAST)
register("multiply", topi.multiply, _BROADCAST)
register("divide", topi.divide, _BROADCAST)
register("maximum", topi.maximum, _BROADCAST)
register("minimum", topi.minimum, _BROADCAST)
register("power", topi.power, _BROADCAST)
register("broadcast_to", topi.broadcast_to, _BROADCAST)

register("permute_dims", topi.transpose, _INJECTIVE)
register("reshape", topi.reshape, _INJECTIVE, is_view=True)
register("flatten", _flatten, _INJECTIVE, is_view=True)
register("expand_dims", _expand_dims, _INJECTIVE, is_view=True)
register("squeeze", topi.squeeze, _INJECTIVE, is_view=True)
register("concat", topi.concatenate, _INJECTIVE)
register("strided_slice", _strided_slice, _INJECTIVE)
register("split", _split, _OPAQUE)
register("nn.pad", _pad, _INJECTIVE)

register("sum", computed_in_float32(topi.sum), _REDUCE)
register("mean", computed_in_float32(topi.mean), _REDUCE)
register("max", partial(topi.max, from_infinity=True), _REDUCE)
register("min", partial(topi.min, from_infinity=True), _REDUCE)

register("matmul", accumulated_in_float32(_matmul), _HEAVY)
register("nn.dense", accumulated_in_float32(topi.nn.dense), _HEAVY)
register("nn.strassen_product", topi.nn.strassen_product, _HEAVY, tunable=False)
register("nn.conv2d", accumulated_in_float32(_conv2d), _HEAVY)
register("nn.winograd_input_transform", topi.nn.winograd_input_transform, _OPAQUE, tunable=False)
register("nn.winograd_product", topi.nn.winograd_product, _OPAQUE)
register("nn.winograd_output_transform", topi.nn.winograd_output_transform, _HEAVY, tunable=False)
register("nn.max_pool2d", _max_pool2d, _HEAVY)
register("nn.avg_pool2d", computed_in_float32(_avg_pool2d), _HEAVY)
register("nn.adaptive_avg_pool2d", computed_in_float32(_adaptive_avg_pool2d), _HEAVY)
register("nn.softmax", computed_in_float32(topi.nn.softmax), _OPAQUE)
register("nn.log_softmax", computed_in_float32(topi.nn.log_softmax), _OPAQUE)
register("nn.batch_norm", _batch_norm, _OPAQUE)


def _conv(kernel: Any, layout: str) -> Any:
    """A convolution of topi whose result may have another order of dimensions."""

    def compute(
        x: te.Tensor,
        weight: te.Tensor,
        data_layout: str = layout,
        out_layout: str | None = None,
        **settings: Any,
    ) -> te.Tensor:
        out = kernel(x, weight, data_layout=data_layout, **settings)
        return relaid(out, data_layout, out_layout)

    return accumulated_in_float32(compute)


register("nn.conv1d", _conv(topi.nn.conv1d, "NCW"), _HEAVY)
register("nn.conv3d", _conv(topi.nn.conv3d, "NCDHW"), _HEAVY)
