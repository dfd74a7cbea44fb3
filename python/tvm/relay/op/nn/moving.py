"""Windows that move with the data, and elements moved apart or along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error, relax, topi
from tvm.ir import RelayExpr, TensorType, Type
from tvm.relax.struct_info import static_shape

from ...expr import Call
from ..registry import REQUIRED, OpPattern, define, make, register_own
from ..shapes import extent_number, tensor
from .convolution import permuted
from .windows import pads_of, sizes_of

__all__ = ["correlation", "deformable_conv2d", "dilate", "fifo_buffer"]

_DEFORMABLE = {
    ("NCHW", "OIHW"): topi.nn.deformable_conv2d_nchw,
    ("NHWC", "HWIO"): topi.nn.deformable_conv2d_nhwc,
}


def _deformable(data: Any, offset: Any, weight: Any, **s: Any) -> Any:
    layouts = s["data_layout"], s["kernel_layout"]
    if layouts not in _DEFORMABLE or s["out_layout"] not in ("", layouts[0]):
        raise error.ValueError(
            "relay.nn.deformable_conv2d: layouts are NCHW with OIHW, or NHWC with HWIO, the "
            f"result's that of the data; got {layouts[0]} with {layouts[1]}"
        )
    steps, pads, gaps = (list(s[name]) for name in ("strides", "padding", "dilation"))
    return _DEFORMABLE[layouts](
        data, offset, weight, steps, pads, gaps, s["deformable_groups"], s["groups"],
        s["out_dtype"] or None,
    )  # fmt: skip


def _fill_weight(types: Sequence[Type | None], s: Mapping[str, Any]) -> Sequence[Type | None]:
    data = types[0]
    if types[2] is not None or data is None or not s["channels"] or not s["kernel_size"]:
        return types
    data = tensor("relay.nn.deformable_conv2d", data)
    channels = extent_number(data.shape[s["data_layout"].index("C")])
    if channels is None:
        return types
    sizes = {"O": s["channels"], "I": channels // s["groups"]}
    sizes.update(zip("HW", sizes_of(s["kernel_size"], 2)))
    shape = [sizes[axis] for axis in s["kernel_layout"]]
    return [*types[:2], TensorType(shape, str(data.dtype))]


def _deformable_in_relax(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
    """What the bent windows read as a matrix, times the weights."""
    data, offset, weight = args
    layout = s["data_layout"]
    pads = pads_of("relay.nn.deformable_conv2d", s["padding"], 2)
    dtypes = {str(arg.struct_info.dtype) for arg in args}
    plain = (layout, s["kernel_layout"]) in _DEFORMABLE and s["out_layout"] in ("", layout)
    same = tuple(pads[:2]) == tuple(pads[2:]) and dtypes == {"float32"} and not s["out_dtype"]
    if not plain or not same or s["groups"] != 1:
        return relax.op.make_call("relay.nn.deformable_conv2d", *args, **s)
    weight = permuted(weight, s["kernel_layout"], "HWIO")
    *window, channels, filters = static_shape(weight.struct_info)
    columns = relax.op.make_call(
        "image.deformable_columns",
        permuted(data, layout, "NHWC"),
        permuted(offset, layout, "NCHW"),
        kernel_size=window,
        strides=list(sizes_of(s["strides"], 2)),
        padding=list(pads[:2]),
        dilation=list(sizes_of(s["dilation"], 2)),
        deformable_groups=s["deformable_groups"],
    )
    batch, height, width = static_shape(columns.struct_info)[:3]
    depth = window[0] * window[1] * channels
    rows = relax.op.reshape(columns, (batch * height * width, depth))
    product = relax.op.matmul(rows, relax.op.reshape(weight, (depth, filters)))
    result = relax.op.reshape(product, (batch, height, width, filters))
    return permuted(result, "NHWC", layout)


_DEFORMABLE_SETTINGS = {
    "strides": (1, 1),
    "padding": (0, 0),
    "dilation": (1, 1),
    "deformable_groups": 1,
    "groups": 1,
    "channels": None,
    "kernel_size": None,
    "data_layout": "NCHW",
    "kernel_layout": "OIHW",
    "out_layout": "",
    "out_dtype": "",
}
register_own("nn.deformable_conv2d", _deformable, OpPattern.OUT_FUSABLE, _DEFORMABLE_SETTINGS)
define(
    "nn.deformable_conv2d",
    _deformable,
    OpPattern.OUT_FUSABLE,
    settings=_DEFORMABLE_SETTINGS,
    lower=_deformable_in_relax,
    fill=_fill_weight,
    num_inputs=3,
)


def deformable_conv2d(
    data: RelayExpr,
    offset: RelayExpr,
    weight: RelayExpr,
    strides: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    deformable_groups: int = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolution with each cell of the window moved by an offset, after Dai et al., ICCV 2017.

    Parameters
    ----------
    offset : laid out as the data, with ``2 * deformable_groups * height * width`` of the window
        as channels: a row and a column for each cell.
    data_layout, kernel_layout : "NCHW" and "OIHW", or "NHWC" and "HWIO".
    """
    return make(
        "nn.deformable_conv2d",
        [data, offset, weight],
        strides=sizes_of(strides, 2),
        padding=pads_of("relay.nn.deformable_conv2d", padding, 2),
        dilation=sizes_of(dilation, 2),
        deformable_groups=deformable_groups,
        groups=groups,
        channels=channels,
        kernel_size=None if kernel_size is None else sizes_of(kernel_size, 2),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def _correlation(first: Any, second: Any, layout: str, **s: Any) -> Any:
    if layout != "NCHW":
        raise error.ValueError(f"relay.nn.correlation: layout is 'NCHW', got '{layout}'")
    return topi.nn.correlation_nchw(first, second, **s)


define(
    "nn.correlation",
    _correlation,
    settings={
        "kernel_size": REQUIRED,
        "max_displacement": REQUIRED,
        "stride1": REQUIRED,
        "stride2": REQUIRED,
        "padding": REQUIRED,
        "is_multiply": True,
        "layout": "NCHW",
    },
    num_inputs=2,
)
define(
    "nn.dilate",
    lambda x, strides, dilation_value: topi.nn.dilate(x, list(strides), dilation_value),
    OpPattern.INJECTIVE,
    settings={"strides": REQUIRED, "dilation_value": 0.0},
    num_inputs=1,
)
define("nn.fifo_buffer", topi.nn.fifo_buffer, settings={"axis": REQUIRED}, num_inputs=2)


def correlation(
    data1: RelayExpr,
    data2: RelayExpr,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool = True,
    layout: str = "NCHW",
) -> Call:
    """How much patches of two images are alike; :func:`tvm.topi.nn.correlation_nchw`."""
    return make(
        "nn.correlation",
        [data1, data2],
        kernel_size=kernel_size,
        max_displacement=max_displacement,
        stride1=stride1,
        stride2=stride2,
        padding=pads_of("relay.nn.correlation", padding, 2),
        is_multiply=bool(is_multiply),
        layout=layout,
    )


def dilate(data: RelayExpr, strides: Sequence[int], dilation_value: float = 0.0) -> Call:
    """The data with ``stride - 1`` cells of a value between neighbours of each axis."""
    return make(
        "nn.dilate",
        [data],
        strides=[int(s) for s in strides],
        dilation_value=float(dilation_value),
    )


def fifo_buffer(data: RelayExpr, buffer: RelayExpr, axis: int) -> Call:
    """The buffer with its oldest elements gone and the data behind the rest, along an axis."""
    return make("nn.fifo_buffer", [data, buffer], axis=int(axis))
