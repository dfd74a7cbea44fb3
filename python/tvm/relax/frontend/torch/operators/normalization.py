"""Normalisations, with the settings that their modules have in inference."""

from __future__ import annotations

import numpy as np

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import TupleGetItem, const

from ..arguments import Arguments, converter, refuse

__all__: list[str] = []


@converter("batch_norm.default", "cudnn_batch_norm.default")
def _batch_norm(a: Arguments) -> RelayExpr:
    if a["training"] and a["running_mean"] is None:
        # No step of training: a network that standardises its weights, for instance.
        return _with_statistics_of_the_data(a)
    a.refuse_unless(not a["training"], "in training mode; call model.eval() before the export")
    return TupleGetItem(a.emit(_batch_norm_call(a)), 0)


def _with_statistics_of_the_data(a: Arguments) -> RelayExpr:
    data, rank = a["input"], a.rank("input")
    others = [k for k in range(rank) if k != 1]
    centered = a.emit(op.subtract(data, a.emit(op.mean(data, others, True))))
    variance = a.emit(op.mean(a.emit(op.multiply(centered, centered)), others, True))
    epsilon = const(float(a["eps"]), a.result_dtype)
    out = op.multiply(centered, a.emit(op.rsqrt(a.emit(op.add(variance, epsilon)))))
    for name, join in (("weight", op.multiply), ("bias", op.add)):
        if a[name] is not None:
            along = a.emit(op.reshape(a[name], [-1 if k == 1 else 1 for k in range(rank)]))
            out = join(a.emit(out), along)
    return out


@converter("_native_batch_norm_legit_no_training.default")
def _batch_norm_no_training(a: Arguments) -> list[RelayExpr | None]:
    result = a.emit(_batch_norm_call(a))
    return [TupleGetItem(result, 0), None, None]


def _batch_norm_call(a: Arguments) -> RelayExpr:
    mean, var = a["running_mean"], a["running_var"]
    a.refuse_unless(mean is not None and var is not None, "without running statistics")
    gamma, beta = _factors(a, "weight", "bias", (a.shape("input")[1],))
    dtype = a.dtype("input")
    mean, var = a.cast(mean, dtype), a.cast(var, dtype)
    return op.nn.batch_norm(a["input"], gamma, beta, mean, var, axis=1, epsilon=float(a["eps"]))


refuse("updates the statistics that it is given", "_native_batch_norm_legit.default")


@converter("_native_batch_norm_legit.no_stats")
def _batch_norm_of_batch(a: Arguments) -> list[RelayExpr | None]:
    """Normalisation by the statistics of the data, as instance_norm decomposes to."""
    data, shape = a["input"], a.shape("input")
    axes = [k for k in range(len(shape)) if k != 1]
    mean = a.emit(op.mean(data, axes, True))
    apart = a.emit(op.subtract(data, mean))
    variance = a.emit(op.mean(a.emit(op.multiply(apart, apart)), axes, True))
    root = a.emit(op.rsqrt(a.emit(op.add(variance, const(a["eps"], a.result_dtype)))))
    out = a.emit(op.multiply(apart, root))
    spread = [1, shape[1], *[1] * (len(shape) - 2)]
    if a["weight"] is not None:
        out = a.emit(op.multiply(out, a.emit(op.reshape(a["weight"], spread))))
    if a["bias"] is not None:
        out = a.emit(op.add(out, a.emit(op.reshape(a["bias"], spread))))
    return [out, None, None]


def _factors(
    a: Arguments, weight: str, bias: str, shape: tuple[int, ...]
) -> tuple[RelayExpr, RelayExpr]:
    """Scale and shift in the data's type; ones and zeros where the module has none."""
    dtype = a.dtype("input")
    gamma = const(np.ones(shape), dtype) if a[weight] is None else a.cast(a[weight], dtype)
    beta = const(np.zeros(shape), dtype) if a[bias] is None else a.cast(a[bias], dtype)
    return gamma, beta


def _normalized_axes(a: Arguments) -> tuple[list[int], tuple[int, ...]]:
    shape = tuple(int(n) for n in a["normalized_shape"])
    rank = a.rank("input")
    return list(range(rank - len(shape), rank)), shape


def _layer_norm_call(a: Arguments) -> RelayExpr:
    axes, shape = _normalized_axes(a)
    gamma, beta = _factors(a, "weight", "bias", shape)
    return op.nn.layer_norm(a["input"], gamma, beta, axes, float(a["eps"]))


@converter("layer_norm.default")
def _layer_norm(a: Arguments) -> RelayExpr:
    return _layer_norm_call(a)


@converter("native_layer_norm.default")
def _native_layer_norm(a: Arguments) -> list[RelayExpr | None]:
    results: list[RelayExpr | None] = [_layer_norm_call(a), None, None]
    if a.reads_result(1) or a.reads_result(2):
        axes, _ = _normalized_axes(a)
        results[1] = a.emit(op.mean(a["input"], axes, True))
        variance = a.call("variance", a["input"], axis=axes, keepdims=True, correction=0.0)
        shifted = a.emit(op.add(variance, const(a["eps"], a.dtype("input"))))
        results[2] = a.emit(op.rsqrt(shifted))
    return results


@converter("rms_norm.default", "_fused_rms_norm.default")
def _rms_norm(a: Arguments) -> RelayExpr | list[RelayExpr | None]:
    axes, shape = _normalized_axes(a)
    dtype = a.dtype("input")
    epsilon = a["eps"]
    if epsilon is None:
        epsilon = {"float64": 2.0**-52}.get(dtype, 2.0**-23)
    weight = const(np.ones(shape), dtype) if a["weight"] is None else a.cast(a["weight"], dtype)
    out = op.nn.rms_norm(a["input"], weight, axes, float(epsilon))
    if "_fused" not in a.name:
        return out
    return [out, None]


def _group_norm_call(a: Arguments, groups: int) -> RelayExpr:
    shape = a.shape("input")
    gamma, beta = _factors(a, "weight", "bias", (shape[1],))
    return op.make_call(
        "nn.group_norm",
        a["input"],
        gamma,
        beta,
        num_groups=groups,
        channel_axis=1,
        axes=list(range(2, len(shape))),
        epsilon=float(a["eps"]),
    )


@converter("group_norm.default")
def _group_norm(a: Arguments) -> RelayExpr:
    return _group_norm_call(a, int(a["num_groups"]))


@converter("native_group_norm.default")
def _native_group_norm(a: Arguments) -> list[RelayExpr | None]:
    return [_group_norm_call(a, int(a["group"])), None, None]


@converter("instance_norm.default")
def _instance_norm(a: Arguments) -> RelayExpr:
    if not a["use_input_stats"]:
        return TupleGetItem(a.emit(_batch_norm_call(a)), 0)
    shape = a.shape("input")
    gamma, beta = _factors(a, "weight", "bias", (shape[1],))
    return op.make_call(
        "nn.instance_norm", a["input"], gamma, beta, channel_axis=1,
        axis=list(range(2, len(shape))), epsilon=float(a["eps"]),
    )  # fmt: skip


@converter("cosine_similarity.default")
def _cosine_similarity(a: Arguments) -> RelayExpr:
    one, two = a.operand("x1"), a.operand("x2")
    rank = max(a.rank("x1"), a.rank("x2"))
    axis = [int(a["dim"]) % rank]

    def length(x: RelayExpr) -> RelayExpr:
        squares = a.emit(op.sum(a.emit(op.multiply(x, x)), axis, False))
        least = const(float(a["eps"]) ** 2, a.result_dtype)
        return a.emit(op.maximum(squares, least))

    inner = a.emit(op.sum(a.emit(op.multiply(one, two)), axis, False))
    norms = a.emit(op.multiply(a.emit(op.sqrt(length(one))), a.emit(op.sqrt(length(two)))))
    return op.divide(inner, norms)
