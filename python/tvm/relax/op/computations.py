"""One row for each graph operator: its te computation and its fusion pattern."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from tvm import te, topi

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
) -> list[te.Tensor]:
    """Inference form: normalised by the moving statistics, which come back unchanged."""
    rank = len(x.shape)
    axis = topi.utils.normalize_axis(axis, rank)

    def spread(v: te.Tensor) -> te.Tensor:
        trailing = rank - 1 - axis
        return topi.expand_dims(v, 1, trailing) if trailing else v

    scale = topi.multiply(gamma, topi.rsqrt(topi.add(var, epsilon)))
    shift = topi.subtract(beta, topi.multiply(mean, scale))
    out = topi.add(topi.multiply(x, spread(scale)), spread(shift))
    return [out, topi.identity(mean), topi.identity(var)]


def _matmul(a: te.Tensor, b: te.Tensor, out_dtype: str | None = None) -> te.Tensor:
    """NumPy's matmul for operands of rank two or more."""
    rank_a, rank_b = len(a.shape), len(b.shape)
    if min(rank_a, rank_b) < 2:
        raise ValueError(f"relax.matmul: operands need rank 2 or more, got {rank_a} and {rank_b}")
    if rank_a == rank_b == 2:
        return topi.nn.matmul(a, b, out_dtype=out_dtype)
    if rank_a < rank_b:
        a = topi.expand_dims(a, 0, rank_b - rank_a)
    elif rank_b < rank_a:
        b = topi.expand_dims(b, 0, rank_a - rank_b)
    return topi.nn.batch_matmul(a, b, out_dtype=out_dtype, transpose_b=False)


def _split(x: te.Tensor, sizes: Sequence[int], axis: int = 0) -> list[te.Tensor]:
    return topi.split(x, list(accumulate(sizes))[:-1], axis)


def _pad(
    x: te.Tensor, pad_before: Sequence[int], pad_after: Sequence[int], pad_value: float = 0.0
) -> te.Tensor:
    padded = topi.nn.pad(x, pad_before, pad_after, pad_value)
    return topi.identity(x) if padded.same_as(x) else padded


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
register("expand_dims", topi.expand_dims, _INJECTIVE, is_view=True)
register("squeeze", topi.squeeze, _INJECTIVE, is_view=True)
register("concat", topi.concatenate, _INJECTIVE)
register("strided_slice", topi.strided_slice, _INJECTIVE)
register("split", _split, _OPAQUE)
register("nn.pad", _pad, _INJECTIVE)

register("sum", computed_in_float32(topi.sum), _REDUCE)
register("mean", computed_in_float32(topi.mean), _REDUCE)
register("max", topi.max, _REDUCE)
register("min", topi.min, _REDUCE)

register("matmul", accumulated_in_float32(_matmul), _HEAVY)
register("nn.dense", accumulated_in_float32(topi.nn.dense), _HEAVY)
register("nn.conv2d", accumulated_in_float32(topi.nn.conv2d), _HEAVY)
register("nn.winograd_input_transform", topi.nn.winograd_input_transform, _OPAQUE, tunable=False)
register("nn.winograd_product", topi.nn.winograd_product, _OPAQUE)
register("nn.winograd_output_transform", topi.nn.winograd_output_transform, _HEAVY, tunable=False)
register("nn.max_pool2d", topi.nn.max_pool2d, _HEAVY)
register("nn.avg_pool2d", computed_in_float32(topi.nn.avg_pool2d), _HEAVY)
register("nn.adaptive_avg_pool2d", computed_in_float32(topi.nn.adaptive_avg_pool2d), _HEAVY)
register("nn.softmax", computed_in_float32(topi.nn.softmax), _OPAQUE)
register("nn.log_softmax", computed_in_float32(topi.nn.log_softmax), _OPAQUE)
register("nn.batch_norm", _batch_norm, _OPAQUE)
