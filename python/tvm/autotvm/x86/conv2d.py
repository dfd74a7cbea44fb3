"""Convolutions of NCHW data, computed in blocks of channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, topi
from tvm.target import Target
from tvm.topi.nn.conv import conv_output_size
from tvm.topi.x86 import BlockedTile
from tvm.topi.x86.vectors import vector_lanes

from ..task import get_config, template

__all__ = [
    "blocked_placeholders",
    "define_blocks",
    "fall_back",
    "schedule_blocked_conv2d",
    "scheduled_convolution",
]

# Columns of a tile beyond which nothing is gained, as TVM's space has it.
_WIDEST = 64


def _output_size(
    data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, dilation: Any
) -> tuple[int, int]:
    _, _, height, width = topi.utils.const_shape(data.shape)
    window = topi.utils.const_shape(kernel.shape)[2:]
    return conv_output_size((height, width), window, strides, padding, dilation)


def define_blocks(
    cfg: Any, channels: int, filters: int, columns: int, widest: int = _WIDEST
) -> None:
    """The knobs that all templates have, in the order of TVM's spaces.

    Parameters
    ----------
    widest : columns that a tile has at most.
    """
    cfg.define_split("tile_ic", channels, num_outputs=2)
    cfg.define_split("tile_oc", filters, num_outputs=2)
    cfg.define_split(
        "tile_ow",
        columns,
        num_outputs=2,
        policy="verbose",
        filter=lambda sizes: sizes.size[-1] <= widest,
    )


def fall_back(cfg: Any, lanes: int, columns: int = 14) -> None:
    """A point for what was not tuned: blocks of one vector, and tiles of some columns."""
    cfg.fallback_split("tile_ic", [-1, lanes])
    cfg.fallback_split("tile_oc", [-1, lanes])
    cfg.fallback_split("tile_ow", [-1, columns])


def blocked_placeholders(
    data: te.Tensor, kernel: te.Tensor, channel_block: int, filter_block: int
) -> tuple[te.Tensor, te.Tensor]:
    """Data (N, C / c, ..., c) and kernel (O / o, I / i, ..., i, o) of the blocks of a point."""
    batch, channels, *image = topi.utils.const_shape(data.shape)
    filters, inputs, *window = topi.utils.const_shape(kernel.shape)
    input_block = min(channel_block, inputs)
    return (
        te.placeholder(
            (batch, channels // channel_block, *image, channel_block), data.dtype, "data"
        ),
        te.placeholder(
            (filters // filter_block, inputs // input_block, *window, input_block, filter_block),
            kernel.dtype,
            "kernel",
        ),
    )


Compute = Callable[..., te.Tensor]


def schedule_blocked_conv2d(
    cfg: Any, conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule:
    """A result of ``topi.nn.conv2d_NCHWc`` or of its kin by a point of their templates.

    Parameters
    ----------
    outputs : of the whole computation: one, which is `conv` or an elementwise function of it.
    """
    [output] = outputs
    rows = cfg["tile_oh"].val if "tile_oh" in cfg else 1
    unroll = bool(cfg["unroll_kw"].val) if "unroll_kw" in cfg else False
    tile = BlockedTile(int(cfg["tile_ow"].size[-1]), int(rows), unroll)
    schedule = {
        "conv2d_NCHWc": topi.x86.schedule_conv2d_NCHWc,
        "conv3d_NCDHWc": topi.x86.schedule_conv2d_NCHWc,
        "depthwise_conv2d_NCHWc": topi.x86.schedule_depthwise_conv2d_NCHWc,
    }[str(conv.op.tag)]
    return schedule(conv, tile, None if output.op.same_as(conv.op) else output, target)


def scheduled_convolution(
    cfg: Any, compute: Compute, data: Any, kernel: Any, sizes: Any, dtype: str
) -> Any:
    """The schedule and arguments of a convolution over blocks, by a point of its template.

    Parameters
    ----------
    compute : of ``topi.nn``.
    sizes : strides, padding and dilation.
    """
    conv = compute(data, kernel, *sizes, dtype)
    target = Target.current() or Target("llvm")
    return schedule_blocked_conv2d(cfg, conv, [conv], target), [data, kernel, conv]


@template("conv2d_NCHWc.x86")
def conv2d_NCHWc(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str,
) -> Any:
    """Convolution of data (N, C, H, W) with a kernel (O, I, h, w), both stored in blocks.

    What is timed is the computation between changes of layout, as a network has it.
    """
    cfg = get_config()
    _check_layouts("conv2d_NCHWc.x86", layout, out_layout)
    rows, columns = _output_size(data, kernel, strides, padding, dilation)
    filters, channels, *window = topi.utils.const_shape(kernel.shape)
    define_blocks(cfg, channels, filters, columns)
    if window == [1, 1]:
        cfg.define_knob("tile_oh", [1, 2] if rows > 1 else [1])
    else:
        cfg.define_knob("unroll_kw", [True, False])
    if cfg.is_fallback:
        fall_back(cfg, vector_lanes(Target.current() or Target("llvm"), data.dtype))
    blocks = int(cfg["tile_ic"].size[-1]), int(cfg["tile_oc"].size[-1])
    data, kernel = blocked_placeholders(data, kernel, *blocks)
    sizes = (strides, padding, dilation)
    return scheduled_convolution(cfg, topi.nn.conv2d_NCHWc, data, kernel, sizes, out_dtype)


@template("depthwise_conv2d_NCHWc.x86")
def depthwise_conv2d_NCHWc(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str,
) -> Any:
    """Convolution of each channel of data (N, C, H, W) with its filter of a kernel (C, 1, h, w)."""
    cfg = get_config()
    _check_layouts("depthwise_conv2d_NCHWc.x86", layout, out_layout)
    _, columns = _output_size(data, kernel, strides, padding, dilation)
    channels = topi.utils.const_shape(kernel.shape)[0]
    define_blocks(cfg, channels, channels, columns)
    cfg.define_knob("unroll_kw", [True, False])
    # Each channel gives one, so both are stored in the same blocks.
    cfg.multi_filter(lambda point: point["tile_ic"].size[-1] == point["tile_oc"].size[-1])
    if cfg.is_fallback:
        fall_back(cfg, vector_lanes(Target.current() or Target("llvm"), data.dtype))
    block = int(cfg["tile_oc"].size[-1])
    data, kernel = blocked_placeholders(data, kernel, block, block)
    sizes = (strides, padding, dilation)
    return scheduled_convolution(
        cfg, topi.nn.depthwise_conv2d_NCHWc, data, kernel, sizes, out_dtype
    )


def _check_layouts(where: str, *layouts: str) -> None:
    for layout in layouts:
        if layout != "NCHW":
            raise ValueError(f"{where}: tensors of a task are in layout NCHW, got {layout}")
