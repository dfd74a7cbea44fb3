"""Convolutions of NCDHW data, computed in blocks of channels."""

from __future__ import annotations

from typing import Any

from tvm import te, topi
from tvm.target import Target
from tvm.topi.nn.conv import conv_output_size
from tvm.topi.x86.vectors import vector_lanes

from ..task import get_config, template
from .conv2d import blocked_placeholders, define_blocks, fall_back, scheduled_convolution

__all__: list[str] = []

# Columns of a tile beyond which nothing is gained, as TVM's space has it.
_WIDEST = 8


@template("conv3d_ncdhw.x86")
def conv3d_ncdhw(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str,
) -> Any:
    """Convolution of data (N, C, D, H, W) with a kernel (O, I, d, h, w), both stored in blocks.

    What is timed is the computation between changes of layout, as a network has it.
    """
    if groups != 1:
        raise ValueError(f"conv3d_ncdhw.x86: channels are in one group, got {groups}")
    cfg = get_config()
    _, channels, *volume = topi.utils.const_shape(data.shape)
    filters, _, *window = topi.utils.const_shape(kernel.shape)
    columns = conv_output_size(volume, window, strides, padding, dilation)[-1]
    define_blocks(cfg, channels, filters, columns, _WIDEST)
    cfg.define_knob("unroll_kw", [True, False])
    if cfg.is_fallback:
        fall_back(cfg, vector_lanes(Target.current() or Target("llvm"), data.dtype), _WIDEST)
    blocks = int(cfg["tile_ic"].size[-1]), int(cfg["tile_oc"].size[-1])
    data, kernel = blocked_placeholders(data, kernel, *blocks)
    sizes = (strides, padding, dilation)
    return scheduled_convolution(cfg, topi.nn.conv3d_NCDHWc, data, kernel, sizes, out_dtype)
