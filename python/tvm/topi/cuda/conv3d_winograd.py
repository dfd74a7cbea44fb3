"""Three-dimensional convolution by Winograd's algorithm on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, te

from ..nn.conv3d_winograd import (
    conv3d_winograd_tile_size,
    conv3d_winograd_weight_transform,
    conv3d_winograd_without_weight_transform,
)
from ..schedule_registry import operations_of
from .injective import schedule_injective_from_existing

__all__ = ["conv3d_ncdhw_winograd", "schedule_conv3d_ncdhw_winograd"]


def _infer_tile_size(data: Any, kernel: Any, layout: str = "NCDHW") -> int:
    """Outputs of a tile along each axis for tensors, or arrays, of these shapes."""
    if layout not in ("NCDHW", "NDHWC"):
        raise error.ValueError(f"topi.cuda: layout {layout} of a 3-d convolution by Winograd")
    space = data.shape[2:] if layout == "NCDHW" else data.shape[1:4]
    return conv3d_winograd_tile_size(*(int(extent) for extent in space))


def conv3d_ncdhw_winograd(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Sequence[int] | int,
    padding: Sequence[int] | int,
    dilation: Sequence[int] | int,
    groups: int = 1,
) -> te.Tensor:
    """Convolution of stride 1 with cubes as windows.

    Parameters
    ----------
    data, kernel : (batch, channels, depth, height, width), (filters, channels, r, r, r).
    padding : one border, one for each axis, or those before the axes and then those behind.

    Raises
    ------
    ValueError : a stride, dilation or groups other than 1, or a window that is no cube.
    """
    given = {"strides": strides, "dilation": dilation, "groups": groups}
    for name, value in given.items():
        sizes = [value] if isinstance(value, int) else list(value)
        if any(size != 1 for size in sizes):
            raise error.ValueError(f"topi.cuda.conv3d_ncdhw_winograd: {name} is 1, got {value}")
    pads = [padding] * 6 if isinstance(padding, int) else list(padding)
    pads = pads * 2 if len(pads) == 3 else pads
    tile = _infer_tile_size(data, kernel)
    packed = conv3d_winograd_weight_transform(kernel, tile)
    return conv3d_winograd_without_weight_transform(data, packed, pads, tile)


def schedule_conv3d_ncdhw_winograd(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """A kernel for each of the transforms and for the products, one element a thread."""
    outputs = [outs] if isinstance(outs, te.Tensor) else list(outs)
    s = te.create_schedule([out.op for out in outputs])
    roots = [out.op for out in outputs]
    for operation in operations_of(outputs):
        if operation in roots or len(operation.reduce_axis):
            schedule_injective_from_existing(s, operation.output(0))
        else:
            s[operation].compute_inline()
    return s
