"""Convolutions and pools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import Constant, TupleGetItem
from tvm.relax.struct_info import open_shape

from ..arguments import Arguments, converter, same_shape

__all__: list[str] = []


def _sizes(value: int | Sequence[int], rank: int) -> list[int]:
    values = [int(v) for v in ([value] if isinstance(value, int) else value)]
    return values * (rank // len(values))


def _batched(a: Arguments, data: RelayExpr, rank: int) -> RelayExpr:
    """Data with a batch dimension, which PyTorch lets one leave out."""
    shape = open_shape(data.struct_info)
    return data if len(shape) == rank + 2 else a.emit(op.reshape(data, (1, *shape)))


def _unbatched(a: Arguments, result: RelayExpr) -> RelayExpr:
    """The result in the shape that the node has."""
    shape = a.result_shape
    if same_shape(open_shape(result.struct_info), shape):
        return result
    return op.reshape(a.emit(result), shape)


def _padding(a: Arguments, rank: int) -> list[int]:
    """Cells in front of each dimension, then behind, from numbers or "same" and "valid"."""
    padding = a["padding"]
    if padding == "valid":
        return [0] * (2 * rank)
    if padding == "same":
        totals = [
            (extent - 1) * dilation
            for extent, dilation in zip(a.shape("weight")[2:], _sizes(a["dilation"], rank))
        ]
        # An odd total leaves the larger half behind.
        return [t // 2 for t in totals] + [t - t // 2 for t in totals]
    return _sizes(padding, rank) * 2


def _with_bias(a: Arguments, out: RelayExpr, rank: int) -> RelayExpr:
    bias = a["bias"]
    if bias is None:
        return out
    shape = (1, a.shape("bias")[0], *[1] * rank)
    if isinstance(bias, Constant):
        spread: RelayExpr = bias.rearranged(lambda array: array.reshape(shape))
    else:
        spread = a.emit(op.reshape(bias, shape))
    return op.add(a.emit(out), spread)


def _convolution(a: Arguments) -> RelayExpr:
    rank = a.rank("weight") - 2
    data = _batched(a, a["input"], rank)
    settings: dict[str, Any] = {
        "strides": _sizes(a["stride"], rank),
        "padding": _padding(a, rank),
        "dilation": _sizes(a["dilation"], rank),
        "groups": int(a["groups"]),
    }
    convolution = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}[rank]
    out = convolution(data, a["weight"], **settings)
    return _unbatched(a, _with_bias(a, out, rank))


for _rank in (1, 2, 3):
    converter(f"conv{_rank}d.default", f"conv{_rank}d.padding")(_convolution)


def _transposed(a: Arguments) -> RelayExpr:
    rank = a.rank("weight") - 2
    spatial = "DHW"[3 - rank :] if rank > 1 else "W"
    out = op.make_call(
        "nn.conv_transpose",
        _batched(a, a["input"], rank),
        a["weight"],
        strides=_sizes(a["stride"], rank),
        padding=_sizes(a["padding"], rank) * 2,
        output_padding=_sizes(a["output_padding"], rank),
        dilation=_sizes(a["dilation"], rank),
        groups=int(a["groups"]),
        data_layout=f"NC{spatial}",
        kernel_layout=f"IO{spatial}",
    )
    return _unbatched(a, _with_bias(a, out, rank))


converter("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")(
    _transposed
)


@converter("convolution.default", "_convolution.default")
def _any_convolution(a: Arguments) -> RelayExpr:
    return _transposed(a) if a["transposed"] else _convolution(a)


def _pool_settings(a: Arguments, rank: int) -> dict[str, Any]:
    kernel = _sizes(a["kernel_size"], rank)
    stride = _sizes(a["stride"], rank) if a["stride"] else kernel
    padding, dilation = _sizes(a["padding"], rank), _sizes(a.get("dilation", 1), rank)
    if a["ceil_mode"]:
        # A window that is larger than the data is of all of it.
        padded = [n + 2 * p for n, p in zip(a.shape("self")[-rank:], padding)]
        kernel = [min(k, (n - 1) // d + 1) for k, n, d in zip(kernel, padded, dilation)]
    return {
        "kernel": kernel,
        "stride": stride,
        "padding": padding * 2,
        "dilation": dilation,
        "ceil_mode": bool(a["ceil_mode"]),
    }


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings by the names that the operators on images have for them."""
    return {{"kernel": "pool_size", "stride": "strides"}.get(k, k): v for k, v in settings.items()}


def _rank_of(a: Arguments) -> int:
    """Number of pooled dimensions, from the operator's name."""
    name = a.name
    return int(name[name.index("d", name.index("pool")) - 1])


def _max_pool(a: Arguments) -> RelayExpr:
    rank = _rank_of(a)
    data = _batched(a, a["self"], rank)
    settings = _pool_settings(a, rank)
    if rank == 2:
        out = op.nn.max_pool2d(data, **_named(settings))
    else:
        layout = "NCW" if rank == 1 else "NCDHW"
        out = op.make_call(f"nn.pool{rank}d", data, **settings, pool_type="max", layout=layout)
    return _unbatched(a, out)


for _rank in (1, 2, 3):
    converter(f"max_pool{_rank}d.default")(_max_pool)


@converter(
    "max_pool1d_with_indices.default",
    "max_pool2d_with_indices.default",
    "max_pool3d_with_indices.default",
)
def _max_pool_with_indices(a: Arguments) -> list[Any]:
    if not a.reads_result(1):
        return [_max_pool(a), None]
    rank = _rank_of(a)
    both = a.call("nn.max_pool_with_indices", a["self"], **_pool_settings(a, rank))
    return [TupleGetItem(both, 0), TupleGetItem(both, 1)]


@converter("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def _avg_pool(a: Arguments) -> RelayExpr:
    rank = _rank_of(a)
    data = _batched(a, a["self"], rank)
    settings = _pool_settings(a, rank)
    divisor = a.get("divisor_override")
    count_include_pad = bool(a["count_include_pad"]) or divisor is not None
    if rank == 2:
        out = op.nn.avg_pool2d(data, **_named(settings), count_include_pad=count_include_pad)
    else:
        out = op.make_call(
            f"nn.pool{rank}d", data, **settings, pool_type="avg",
            count_include_pad=count_include_pad, layout="NCW" if rank == 1 else "NCDHW",
        )  # fmt: skip
    if divisor is not None:
        a.refuse_unless(not settings["ceil_mode"], "with divisor_override and ceil_mode")
        window = 1
        for extent in settings["kernel"]:
            window *= extent
        out = op.multiply(a.emit(out), a.cast(window / divisor, a.result_dtype))
    return _unbatched(a, out)


@converter(
    "adaptive_avg_pool1d.default",
    "adaptive_avg_pool2d.default",
    "adaptive_avg_pool3d.default",
    "_adaptive_avg_pool2d.default",
    "_adaptive_avg_pool3d.default",
)
def _adaptive_avg_pool(a: Arguments) -> RelayExpr:
    return _adaptive(a, "avg")


@converter(
    "adaptive_max_pool1d.default", "adaptive_max_pool2d.default", "adaptive_max_pool3d.default"
)
def _adaptive_max_pool(a: Arguments) -> list[Any]:
    return [_adaptive(a, "max"), None]


def _adaptive(a: Arguments, kind: str) -> RelayExpr:
    rank = _rank_of(a)
    data = _batched(a, a["self"], rank)
    sizes = list(a.result_shape[-rank:])
    if rank == 2 and kind == "avg":
        return _unbatched(a, op.nn.adaptive_avg_pool2d(data, sizes))
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank]
    return _unbatched(
        a,
        op.make_call(
            f"nn.adaptive_pool{rank}d", data, output_size=sizes, pool_type=kind, layout=layout
        ),
    )


@converter("col2im.default")
def _col2im(a: Arguments) -> RelayExpr:
    data = a["self"]
    if a.rank("self") == 2:
        data = a.emit(op.reshape(data, (1, *a.shape("self"))))
    size, kernel, dilation, padding, stride = (
        _sizes(a[name], 2)
        for name in ("output_size", "kernel_size", "dilation", "padding", "stride")
    )
    whole = all(n % k == 0 for n, k in zip(size, kernel))
    if whole and kernel == stride and set(padding) == {0} and set(dilation) == {1}:
        # Patches side by side: nothing is added up.
        batch, rows, _ = open_shape(data.struct_info)
        channels = rows // math.prod(kernel)
        high, wide = (n // k for n, k in zip(size, kernel))
        data = a.emit(op.reshape(data, (batch, channels, *kernel, high, wide)))
        data = a.emit(op.permute_dims(data, [0, 1, 4, 2, 5, 3]))
        return _unbatched(a, op.reshape(data, (batch, channels, *size)))
    return _unbatched(
        a,
        op.make_call(
            "nn.col2im",
            data,
            output_size=size,
            kernel=kernel,
            dilation=dilation,
            padding=padding,
            stride=stride,
        ),
    )
