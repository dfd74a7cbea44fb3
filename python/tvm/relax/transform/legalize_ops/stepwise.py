"""Operators as steps of one operation each, as TVM writes them.

Passes over kernels know these steps, and schedules inline them where they only pass values on.
Kernels that nobody schedules are made of fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir, topi
from tvm.topi.utils import as_int, as_pads, as_sizes, get_const_tuple, is_constant

from ...op.precision import computed_in_float32
from . import moves
from .neural import conv_transpose

__all__ = ["STEPWISE_FUNCTIONS"]


def _gelu(x: te.Tensor) -> te.Tensor:
    half, slope = (tir.const(value, str(x.dtype)) for value in (0.5, math.sqrt(0.5)))
    bent = topi.erf(topi.multiply(x, slope))
    return topi.multiply(x, topi.add(half, topi.multiply(bent, half)))


def _gelu_tanh(x: te.Tensor) -> te.Tensor:
    half, one, cubic, slope = (
        tir.const(value, str(x.dtype)) for value in (0.5, 1.0, 0.044715, math.sqrt(2 / math.pi))
    )
    left = topi.multiply(half, x)
    inner = topi.multiply(slope, x)
    square = topi.multiply(topi.multiply(cubic, x), x)
    bent = topi.tanh(topi.multiply(inner, topi.add(one, square)))
    return topi.multiply(left, topi.add(one, bent))


def _silu(x: te.Tensor) -> te.Tensor:
    return topi.multiply(x, topi.sigmoid(x))


def _intrinsic(name: str) -> Callable[[te.Tensor], te.Tensor]:
    """An elementary function by its name, which lowering writes out."""
    function = getattr(tir, name)

    def compute(x: te.Tensor) -> te.Tensor:
        return te.compute(
            x.shape, lambda *i: function(x(*i)), name="compute", tag=topi.tag.ELEMWISE
        )

    return compute


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
    at = topi.utils.normalize_axis(axis, rank)
    shape = [x.shape[k] if k == at else 1 for k in range(rank)]
    distance = topi.subtract(x, moves.reshape(mean, shape))
    out = topi.divide(distance, topi.sqrt(topi.add(moves.reshape(var, shape), epsilon)))
    if scale:
        out = topi.multiply(out, moves.reshape(gamma, shape))
    if center:
        out = topi.add(out, moves.reshape(beta, shape))
    return [out, topi.identity(mean), topi.identity(var)]


def _rms_norm(
    x: te.Tensor, weight: te.Tensor, axes: Sequence[int], epsilon: float = 1e-5
) -> te.Tensor:
    """x over the root of the mean of its squares, times the weight, all in float32."""
    rank = len(x.shape)
    reduced = topi.utils.normalize_axes(axes, rank)
    data, factor = _cast(x, "float32"), _cast(weight, "float32")
    total = topi.sum(topi.multiply(data, data), reduced)
    count = topi.utils.prod([x.shape[k] for k in reduced])
    samples = count.astype("float32") if isinstance(count, tir.PrimExpr) else count
    scale = te.compute(
        total.shape,
        lambda *i: tir.rsqrt(total(*i) / samples + tir.const(epsilon, "float32")),
        name="rsqrt",
        tag=topi.tag.INJECTIVE,
    )

    def normalized(*i: Any) -> Any:
        kept = [index for k, index in enumerate(i) if k not in reduced]
        return scale(*kept) * data(*i) * factor(*(i[k] for k in reduced))

    result = te.compute(x.shape, normalized, name="T_rms_norm", tag=topi.tag.INJECTIVE)
    return _cast(result, str(x.dtype))


def _cast(x: te.Tensor, dtype: str) -> te.Tensor:
    return x if str(x.dtype) == dtype else topi.cast(x, dtype)


def _nll_loss(
    predictions: te.Tensor,
    targets: te.Tensor,
    weights: te.Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> te.Tensor:
    """Weighted negative predictions of the targets' classes, as they are, summed or averaged.

    Predictions are (batch, classes, ...), or (classes,) of a target without dimensions.
    """
    dtype = str(predictions.dtype)
    zero = tir.const(0, dtype)
    batched = len(predictions.shape) > 1
    if weights is None:
        weights = topi.full((predictions.shape[1 if batched else 0],), dtype, 1.0)

    def counted(value: Callable[..., Any], name: str) -> te.Tensor:
        def compute(*i: Any) -> Any:
            target = targets(*i)
            ignored = tir.const(ignore_index, str(target.dtype))
            return tir.Select(target != ignored, value(target, *i), zero)

        return te.compute(targets.shape, compute, name=name, tag=topi.tag.INJECTIVE)

    def loss(target: Any, *i: Any) -> Any:
        place = (i[0], target, *i[1:]) if batched else (target,)
        return (zero - predictions(*place)) * weights(target)

    losses = counted(loss, "nll_loss")
    if reduction == "none":
        return losses
    total = topi.sum(losses) if len(targets.shape) else losses
    if reduction == "sum":
        return total
    used = counted(lambda target, *i: weights(target), "nll_loss_weights")
    return topi.divide(total, topi.sum(used) if len(targets.shape) else used)


def _take(x: te.Tensor, indices: Any, axis: int | None = None) -> te.Tensor:
    """Elements along an axis; indices are promised to be in range, as of `relax.take`."""
    if not isinstance(indices, te.Tensor) or axis is None:
        return moves.take(x, indices, axis)
    at = topi.utils.normalize_axis(axis, len(x.shape))
    count = len(indices.shape)
    shape = [*x.shape[:at], *indices.shape, *x.shape[at + 1 :]]

    def read(*i: Any) -> Any:
        return x(*i[:at], indices(*i[at : at + count]), *i[at + count :])

    return te.compute(shape, read, name="T_take", tag=topi.tag.INJECTIVE)


def _conv_transpose(
    x: te.Tensor,
    weight: te.Tensor,
    strides: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> te.Tensor:
    """A convolution of the spread and padded data with the weight turned around."""
    rank = len(x.shape) - 2
    axes = "HW"[-rank:]
    layouts = (data_layout, kernel_layout, out_layout or data_layout)
    pads, steps = as_pads(padding, rank), as_sizes(strides, rank)
    window = get_const_tuple(weight.shape)[2:]
    before = [n - 1 - p for n, p in zip(window, pads[:rank])]
    after = [n - 1 - p + e for n, p, e in zip(window, pads[rank:], as_sizes(output_padding, rank))]
    is_plain = (
        layouts == (f"NC{axes}", f"IO{axes}", f"NC{axes}")
        and all(int(gap) == 1 for gap in as_sizes(dilation, rank))
        and all(is_constant(n) and as_int(n) >= 0 for n in (*before, *after))
    )
    if not is_plain:
        return conv_transpose(
            x, weight, strides, padding, output_padding, dilation, groups, *layouts, out_dtype
        )
    channels, filters = get_const_tuple(weight.shape)[:2]
    dtype = out_dtype or x.dtype
    padded = topi.nn.pad(topi.nn.dilate(x, [1, 1, *steps]), [0, 0, *before], [0, 0, *after])
    turned = te.compute(
        (filters, channels, *window),
        lambda o, i, *at: weight(i, o, *(n - 1 - k for n, k in zip(window, at))),
        name="kernel_transform",
        tag=topi.tag.INJECTIVE,
    )
    own = channels if groups == 1 else channels // groups
    loops = [te.reduce_axis((0, n), name=f"k{k}") for k, n in enumerate((own, *window))]

    def product(n: Any, c: Any, *at: Any) -> Any:
        channel, out_channel = loops[0], c
        if groups != 1:
            channel = c // filters * own + loops[0]
            out_channel = c % filters
        value = padded(n, channel, *(i + k for i, k in zip(at, loops[1:])))
        factor = turned(out_channel, channel, *loops[1:])
        return te.sum(value.astype(dtype) * factor.astype(dtype), axis=loops)

    spread = get_const_tuple(padded.shape)
    sizes = [topi.utils.simplify(n - w + 1) for n, w in zip(spread[2:], window)]
    shape = (spread[0], topi.utils.simplify(filters * groups), *sizes)
    return te.compute(shape, product, name="compute", tag="conv_transpose")


STEPWISE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relax.acosh": computed_in_float32(_intrinsic("acosh")),
    "relax.asinh": computed_in_float32(_intrinsic("asinh")),
    "relax.atanh": computed_in_float32(_intrinsic("atanh")),
    "relax.rsqrt": computed_in_float32(_intrinsic("rsqrt")),
    "relax.take": _take,
    "relax.nn.batch_norm": _batch_norm,
    "relax.nn.conv1d_transpose": _conv_transpose,
    "relax.nn.conv2d_transpose": _conv_transpose,
    "relax.nn.gelu": computed_in_float32(_gelu),
    "relax.nn.gelu_tanh": computed_in_float32(_gelu_tanh),
    "relax.nn.silu": computed_in_float32(_silu),
    "relax.nn.rms_norm": _rms_norm,
    "relax.nn.nll_loss": _nll_loss,
}
"""From te tensors and settings to the result, by the operator's full name."""
