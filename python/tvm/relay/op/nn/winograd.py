"""Convolutions of images whose weights are transformed beforehand: Winograd's, and blocked GEMM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error, te, tir, topi
from tvm.ir import RelayExpr, TensorType, Type

from ...expr import Call
from ..registry import REQUIRED, OpPattern, define, make
from ..shapes import extent_number, tensor
from .windows import Size, pads_of, sizes_of, window_extent

__all__ = [
    "contrib_conv2d_gemm_weight_transform",
    "contrib_conv2d_gemm_without_weight_transform",
    "contrib_conv2d_winograd_weight_transform",
    "contrib_conv2d_winograd_without_weight_transform",
]

_WINOGRAD = "nn.contrib_conv2d_winograd_without_weight_transform"
_GEMM = "nn.contrib_conv2d_gemm_without_weight_transform"
_SETTINGS = {
    "strides": (1, 1),
    "padding": (0, 0),
    "dilation": (1, 1),
    "groups": 1,
    "channels": None,
    "kernel_size": None,
}


def _places(where: str, image: Sequence[Any], s: Mapping[str, Any]) -> list[Any]:
    """Height and width of the result."""
    pads, window = pads_of(where, s["padding"], 2), sizes_of(s["kernel_size"], 2)
    strides, dilation = sizes_of(s["strides"], 2), sizes_of(s["dilation"], 2)
    return [
        window_extent(
            extent if (n := extent_number(extent)) is None else n,
            window[k], strides[k], pads[k] + pads[k + 2], dilation[k],
        )
        for k, extent in enumerate(image)
    ]  # fmt: skip


def _winograd_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = f"relay.{_WINOGRAD}"
    data, weight = tensor(where, types[0]), tensor(where, types[1], "weight")
    window = (extent_number(weight.shape[0]) or 0) - s["tile_size"] + 1
    nhwc = s["data_layout"] == "NHWC"
    image = data.shape[1:3] if nhwc else data.shape[2:]
    places = _places(where, list(image), {**s, "kernel_size": window})
    filters = weight.shape[2]
    shape = [data.shape[0], *places, filters] if nhwc else [data.shape[0], filters, *places]
    return TensorType(shape, s["out_dtype"] or str(data.dtype))


def _winograd_compute(x: te.Tensor, w: te.Tensor, **s: Any) -> te.Tensor:
    compute = (
        topi.nn.conv2d_winograd_nhwc_without_weight_transform
        if s["data_layout"] == "NHWC"
        else topi.nn.conv2d_winograd_nchw_without_weight_transform
    )
    pads = pads_of(f"relay.{_WINOGRAD}", s["padding"], 2)
    return compute(x, w, s["strides"], pads, s["dilation"], s["out_dtype"] or None, s["tile_size"])


define(
    "nn.contrib_conv2d_winograd_weight_transform",
    topi.nn.conv2d_winograd_weight_transform,
    OpPattern.OPAQUE,
    settings={"tile_size": REQUIRED},
    num_inputs=1,
)
define(
    _WINOGRAD,
    _winograd_compute,
    OpPattern.OPAQUE,
    settings={
        "tile_size": REQUIRED,
        **_SETTINGS,
        "data_layout": "NCHW",
        "kernel_layout": "OIHW",
        "out_layout": "",
        "out_dtype": "",
    },
    rule=_winograd_rule,
    num_inputs=2,
)


def contrib_conv2d_winograd_weight_transform(weight: RelayExpr, tile_size: int) -> Call:
    """Weights (O, I, k, k) in the form Winograd's algorithm multiplies by: (n, n, O, I) with
    n = tile_size + k - 1."""
    return make("nn.contrib_conv2d_winograd_weight_transform", [weight], tile_size=tile_size)


def contrib_conv2d_winograd_without_weight_transform(
    data: RelayExpr,
    weight: RelayExpr,
    tile_size: int,
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    dilation: Size = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolution by weights that :func:`contrib_conv2d_winograd_weight_transform` gave.

    Parameters
    ----------
    data_layout, out_layout : "NCHW" or "NHWC", the same for both.
    kernel_layout : what the weights were before; only noted.

    Raises
    ------
    ValueError : a stride, dilation or number of groups that is not 1, or another layout.
    """
    steps = sizes_of(strides, 2) + sizes_of(dilation, 2)
    if steps != [1] * 4 or groups != 1:
        raise error.ValueError(f"relay.{_WINOGRAD}: strides, dilation and groups are 1")
    _check_layout(_WINOGRAD, data_layout, out_layout, ("NCHW", "NHWC"))
    return make(
        _WINOGRAD, [data, weight], tile_size=tile_size, strides=tuple(sizes_of(strides, 2)),
        padding=tuple(pads_of(f"relay.{_WINOGRAD}", padding, 2)),
        dilation=tuple(sizes_of(dilation, 2)), groups=groups, channels=channels,
        kernel_size=None if kernel_size is None else tuple(sizes_of(kernel_size, 2)),
        data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout,
        out_dtype=out_dtype,
    )  # fmt: skip


def _check_layout(name: str, data: str, out: str, known: Sequence[str]) -> None:
    if data not in known or out not in ("", data):
        raise error.ValueError(
            f"relay.{name}: data_layout is one of {', '.join(known)} and out_layout the same, got "
            f"'{data}' and '{out}'"
        )


# Weights of a convolution as the second factor of a matrix product, in tiles that are stored
# transposed, so that a step of the product reads a tile in order.


def _gemm_weight(weight: te.Tensor, tile_N: int, tile_K: int) -> te.Tensor:
    height, width, channels, filters = topi.utils.const_shape(weight.shape)
    depth = height * width * channels
    columns, rows = -(-filters // tile_N), -(-depth // tile_K)

    def element(x: Any, y: Any, z: Any, w: Any) -> Any:
        column, row = x * tile_N + z, y * tile_K + w
        pixel, channel = tir.floordiv(row, channels), tir.floormod(row, channels)
        value = weight(tir.floordiv(pixel, width), tir.floormod(pixel, width), channel, column)
        if filters % tile_N == 0 and depth % tile_K == 0:
            return value
        inside = tir.all(column < filters, row < depth)
        return tir.if_then_else(inside, value, tir.const(0, weight.dtype))

    return te.compute(
        (columns, rows, tile_N, tile_K), element, name="weight_tiles", tag=topi.tag.INJECTIVE
    )


def _gemm_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = f"relay.{_GEMM}"
    data = tensor(where, types[0])
    places = _places(where, list(data.shape[1:3]), s)
    return TensorType([data.shape[0], *places, s["channels"]], s["out_dtype"] or str(data.dtype))


def _gemm_compute(x: te.Tensor, w: te.Tensor, **s: Any) -> te.Tensor:
    _, _, tile_n, tile_k = topi.utils.const_shape(w.shape)
    height, width = sizes_of(s["kernel_size"], 2)
    channels, filters = topi.utils.const_shape(x.shape)[3], s["channels"]

    def element(kh: Any, kw: Any, ci: Any, co: Any) -> Any:
        row = (kh * width + kw) * channels + ci
        return w(
            tir.floordiv(co, tile_n), tir.floordiv(row, tile_k),
            tir.floormod(co, tile_n), tir.floormod(row, tile_k),
        )  # fmt: skip

    plain = te.compute(
        (height, width, channels, filters), element, name="weight", tag=topi.tag.INJECTIVE
    )
    pads = pads_of(f"relay.{_GEMM}", s["padding"], 2)
    return topi.nn.conv2d_nhwc(
        x, plain, sizes_of(s["strides"], 2), pads, sizes_of(s["dilation"], 2),
        out_dtype=s["out_dtype"] or None,
    )  # fmt: skip


define(
    "nn.contrib_conv2d_gemm_weight_transform",
    _gemm_weight,
    OpPattern.INJECTIVE,
    settings={"tile_N": REQUIRED, "tile_K": REQUIRED},
    num_inputs=1,
)
define(
    _GEMM,
    _gemm_compute,
    OpPattern.OPAQUE,
    settings={
        **_SETTINGS,
        "data_layout": "NHWC",
        "kernel_layout": "HWIO",
        "out_layout": "",
        "out_dtype": "",
    },
    rule=_gemm_rule,
    num_inputs=2,
)


def contrib_conv2d_gemm_weight_transform(weights: RelayExpr, tile_N: int, tile_K: int) -> Call:
    """Weights (h, w, I, O) as a matrix (h w I, O) in transposed tiles, padded with zeros:
    (O / tile_N, h w I / tile_K, tile_N, tile_K)."""
    return make("nn.contrib_conv2d_gemm_weight_transform", [weights], tile_N=tile_N, tile_K=tile_K)


def contrib_conv2d_gemm_without_weight_transform(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    dilation: Size = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NHWC",
    kernel_layout: str = "HWIO",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolution of NHWC data by weights that :func:`contrib_conv2d_gemm_weight_transform` gave.

    Raises
    ------
    ValueError : `channels` or `kernel_size`, which the tiles do not tell, is None; there are
        groups; or another layout.
    """
    if channels is None or kernel_size is None or groups != 1:
        raise error.ValueError(
            f"relay.{_GEMM}: channels and kernel_size are given, and groups is 1"
        )
    _check_layout(_GEMM, data_layout, out_layout, ("NHWC",))
    return make(
        _GEMM, [data, weight], strides=tuple(sizes_of(strides, 2)),
        padding=tuple(pads_of(f"relay.{_GEMM}", padding, 2)),
        dilation=tuple(sizes_of(dilation, 2)), groups=groups, channels=int(channels),
        kernel_size=tuple(sizes_of(kernel_size, 2)), data_layout=data_layout,
        kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype,
    )  # fmt: skip
