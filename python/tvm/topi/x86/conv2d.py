"""Convolutions of NHWC data with weights laid out in the order the inner loop reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm import te, tir
from tvm.target import Target

from ..nn.conv import Size, conv_output_size
from ..nn.pad import pad
from ..utils import as_padding, as_pair, const_shape
from .dot_products import DotInstruction
from .vectors import (
    copy_panel,
    inline_packing,
    inline_producers,
    prefetch_weight,
    vector_lanes,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "RegisterTile",
    "conv2d_nhwc_packed",
    "depthwise_conv2d_nhwc_packed",
    "pack_conv2d_weight",
    "schedule_conv2d_nhwc_packed",
    "schedule_depthwise_conv2d_nhwc_packed",
]


@dataclass(frozen=True)
class RegisterTile:
    """Results kept in vector registers while a reduction runs.

    Attributes
    ----------
    rows, columns : output pixels. vectors : vector registers of output channels per pixel.
    prefetch : trips of the innermost reduction loop by which weights are read ahead; 0 for never.
    """

    rows: int
    columns: int
    vectors: int
    prefetch: int = 0

    def registers(self) -> int:
        """Vector registers the inner loop needs: results, one vector of weights each, an input."""
        return self.rows * self.columns * self.vectors + self.vectors + 1

    def check(self, target: Target) -> None:
        """Refuse a tile that would spill.

        Raises
        ------
        ValueError : the target has fewer vector registers than the tile needs.
        """
        if self.registers() > target.num_vector_registers:
            raise ValueError(
                f"RegisterTile: {self.rows} x {self.columns} pixels of {self.vectors} vectors need "
                f"{self.registers()} vector registers, the target has "
                f"{target.num_vector_registers}; use a smaller tile"
            )


def schedule_copy(s: te.Schedule, tensor: te.Tensor, target: Target) -> None:
    """A copy of NHWC data: rows in parallel, channels in vectors where they fill some."""
    s[tensor].parallel(s[tensor].fuse(*tensor.op.axis[:2]))
    vectorize_channels(s, tensor, vector_lanes(target, tensor.dtype))


def vectorize_channels(s: te.Schedule, tensor: te.Tensor, lanes: int) -> None:
    """Vectors along the channels of NHWC data."""
    _, channels = s[tensor].split(tensor.op.axis[3], factor=lanes)
    s[tensor].vectorize(channels)


def pack_conv2d_weight(weight: np.ndarray, block: int) -> np.ndarray:
    """HWIO weights as (panel, kernel height, kernel width, in_channels, block).

    The last panel is filled up with zeros when `block` does not divide the output channels.
    """
    import numpy as np

    kernel_h, kernel_w, channels, filters = weight.shape
    panels = -(-filters // block)
    padded = np.zeros((kernel_h, kernel_w, channels, panels * block), weight.dtype)
    padded[..., :filters] = weight
    split = padded.reshape(kernel_h, kernel_w, channels, panels, block)
    return np.ascontiguousarray(split.transpose(3, 0, 1, 2, 4))


def conv2d_nhwc_packed(
    data: te.Tensor, weight: te.Tensor, stride: Size = 1, padding: Size = 0
) -> te.Tensor:
    """Convolution of NHWC data with packed weights.

    Parameters
    ----------
    data : (batch, height, width, in_channels).
    weight : (panels, kernel height, kernel width, in_channels, block), from
        :func:`pack_conv2d_weight`; panels * block is the number of output channels.
    padding : one size, (height, width) or (top, left, bottom, right).
    """
    batch, height, width, channels = const_shape(data.shape)
    panels, kernel_h, kernel_w, _, block = const_shape(weight.shape)
    stride_h, stride_w = as_pair(stride)
    top, left, bottom, right = as_padding(padding)
    out_h, out_w = conv_output_size(
        (height, width),
        (kernel_h, kernel_w),
        (stride_h, stride_w),
        (top, left, bottom, right),
        (1, 1),
    )
    padded = pad(data, (0, top, left, 0), (0, bottom, right, 0))
    dy = te.reduce_axis((0, kernel_h), name="dy")
    dx = te.reduce_axis((0, kernel_w), name="dx")
    ci = te.reduce_axis((0, channels), name="ci")
    return te.compute(
        (batch, out_h, out_w, panels * block),
        lambda n, y, x, c: te.sum(
            padded[n, y * stride_h + dy, x * stride_w + dx, ci]
            * weight[tir.floordiv(c, block), dy, dx, ci, tir.floormod(c, block)],
            axis=[dy, dx, ci],
        ),
        name="conv2d_packed",
    )


def tile_pixels(
    s: te.Schedule,
    output: te.Tensor,
    padded: te.Tensor,
    tile: RegisterTile,
    filters: int,
    lanes: int,
    target: Target,
    rows_outside: bool,
    whole_panels: bool = False,
) -> tuple[tir.IterVar, tir.IterVar]:
    """Cut the results of a convolution into blocks of filters and tiles of pixels.

    Parameters
    ----------
    padded : the data, copied whole if it is computed, or row by row if these are outside.
    filters : of a block. whole_panels : one thread computes all pixels of a block.

    Returns
    -------
    The loop inside of which is one tile, and the parallel one.
    """
    n, y, x, c = output.op.axis
    panel, c = s[output].split(c, factor=filters)
    y, y_in = s[output].split(y, factor=tile.rows)
    x, x_in = s[output].split(x, factor=tile.columns)
    vector, lane = s[output].split(c, factor=lanes)
    outside = (n, y, panel) if rows_outside else (n, panel, y)
    s[output].reorder(*outside, x, y_in, x_in, vector, lane)
    chunk = s[output].fuse(*(outside[:2] if rows_outside or whole_panels else outside))
    s[output].parallel(chunk)
    if isinstance(padded.op, te.ComputeOp):
        if rows_outside:
            s[padded].compute_at(s[output], chunk)
            vectorize_channels(s, padded, vector_lanes(target, padded.dtype))
        else:
            schedule_copy(s, padded, target)
    for loop in (y_in, x_in, vector):
        s[output].unroll(loop)
    s[output].vectorize(lane)
    return x, chunk


def schedule_conv2d_nhwc_packed(
    conv: te.Tensor,
    tile: RegisterTile,
    output: te.Tensor | None = None,
    target: Target | None = None,
    rows_outside: bool = False,
    lanes: int | None = None,
    copy_panels: bool = False,
    dot: DotInstruction | None = None,
) -> te.Schedule:
    """Panels of output channels outside, then tiles of pixels, the reduction innermost.

    Parameters
    ----------
    conv : result of :func:`conv2d_nhwc_packed`, or of ``topi.nn.conv2d_nhwc``, whose weights are
        read where they are.
    output : elementwise function of `conv`, or of its first filters, to compute while results are
        in registers.
    target : by default the current one, else "llvm".
    rows_outside : tiles of rows outside the panels instead, each padding the rows it reads. Good
        where all weights fit into a second-level cache and the image does not.
    lanes : elements of a vector; by default what a register of the target holds.
    copy_panels : copy the weights of a panel to one place before its pixels are computed, for
        weights that are not packed and whose rows lie far apart. One thread computes a panel.
    dot : the instruction that sums up products, for weights packed as it reads them.
    """
    target = target or Target.current() or Target("llvm")
    tile.check(target)
    lanes = lanes or vector_lanes(target, conv.dtype)
    output = conv if output is None else output
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=conv)
    padded, weight = conv.op.input_tensors
    inline_packing(s, weight)
    local = s.cache_write(conv, "local") if output is conv else conv
    x, chunk = tile_pixels(
        s, output, padded, tile, lanes * tile.vectors, lanes, target, rows_outside, copy_panels
    )
    if copy_panels:
        copy_panel(s, weight, local, output, chunk, lanes)
    s[local].compute_at(s[output], x)
    if output is not conv:
        s[local].set_scope("local")
    n, y, x, c = s[local].op.axis
    dy, dx, ci = s[local].op.reduce_axis
    vector, lane = s[local].split(c, factor=lanes)
    if dot is not None:
        ci, inner = s[local].split(ci, factor=dot.depth)
        s[local].reorder(n, dy, dx, ci, y, x, vector, lane, inner)
        s[local].tensorize(lane, dot.intrinsic)
    # A few channels only, as in a stem: a row of the window is contiguous, so it is one loop.
    elif const_shape(padded.shape)[3] < 16:
        dx = ci = s[local].fuse(dx, ci)
        s[local].reorder(n, dy, ci, y, x, vector, lane)
    else:
        s[local].reorder(n, dy, dx, ci, y, x, vector, lane)
    for loop in (y, x, vector):
        s[local].unroll(loop)
    if dot is None:
        s[local].vectorize(lane)
    if tile.prefetch:
        prefetch_weight(s, local, weight, ci, tile.prefetch)
    return s


def depthwise_conv2d_nhwc_packed(
    data: te.Tensor, weight: te.Tensor, stride: Size = 1, padding: Size = 0
) -> te.Tensor:
    """Depthwise convolution that reads the borders as zeros instead of copying the data.

    Parameters
    ----------
    data : (batch, height, width, channels).
    weight : (kernel height, kernel width, channels).
    padding : one size, (height, width) or (top, left, bottom, right).
    """
    batch, height, width, channels = const_shape(data.shape)
    kernel_h, kernel_w, _ = const_shape(weight.shape)
    stride_h, stride_w = as_pair(stride)
    top, left, bottom, right = as_padding(padding)
    out_h, out_w = conv_output_size(
        (height, width),
        (kernel_h, kernel_w),
        (stride_h, stride_w),
        (top, left, bottom, right),
        (1, 1),
    )
    dy = te.reduce_axis((0, kernel_h), name="dy")
    dx = te.reduce_axis((0, kernel_w), name="dx")

    def element(n: tir.Var, y: tir.Var, x: tir.Var, c: tir.Var) -> tir.PrimExpr:
        row = y * stride_h + dy - top
        column = x * stride_w + dx - left
        inside = tir.all(
            tir.likely(row >= 0),
            tir.likely(row < height),
            tir.likely(column >= 0),
            tir.likely(column < width),
        )
        value = tir.if_then_else(inside, data[n, row, column, c], tir.const(0, data.dtype))
        return te.sum(value * weight[dy, dx, c], axis=[dy, dx])

    return te.compute((batch, out_h, out_w, channels), element, name="depthwise_packed")


def schedule_depthwise_conv2d_nhwc_packed(
    conv: te.Tensor,
    tile: RegisterTile,
    output: te.Tensor | None = None,
    target: Target | None = None,
    lanes: int | None = None,
    roll_rows: bool = False,
) -> te.Schedule:
    """Rows outside, then columns, then channels; the whole window is written out.

    The border is read as zeros where the data stands: tiles at the edge are loops of their own.

    Parameters
    ----------
    conv : result of :func:`depthwise_conv2d_nhwc_packed` or of ``topi.nn.depthwise_conv2d_nhwc``.
    output, lanes : as in :func:`schedule_conv2d_nhwc_packed`.
    roll_rows : keep a loop over the rows of the window, and write out a row of it. Data is then
        copied with its border: which rows of a large window are inside varies too much from tile
        to tile.
    """
    target = target or Target.current() or Target("llvm")
    lanes = lanes or vector_lanes(target, conv.dtype)
    output = conv if output is None else output
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=conv)
    data = conv.op.input_tensors[0]
    if isinstance(data.op, te.ComputeOp):
        if roll_rows:
            schedule_copy(s, data, target)
        else:
            s[data].compute_inline()
    local = s.cache_write(conv, "local") if output is conv else conv
    n, y, x, c = output.op.axis
    c, c_in = s[output].split(c, factor=lanes * tile.vectors)
    y, y_in = s[output].split(y, factor=tile.rows)
    x, x_in = s[output].split(x, factor=tile.columns)
    vector, lane = s[output].split(c_in, factor=lanes)
    s[output].reorder(n, y, x, c, y_in, x_in, vector, lane)
    s[output].parallel(s[output].fuse(n, y))
    for loop in (y_in, x_in, vector):
        s[output].unroll(loop)
    s[output].vectorize(lane)
    s[local].compute_at(s[output], c)
    if output is not conv:
        s[local].set_scope("local")
    n, y, x, c = s[local].op.axis
    dy, dx = s[local].op.reduce_axis
    vector, lane = s[local].split(c, factor=lanes)
    s[local].reorder(n, dy, dx, y, x, vector, lane)
    for loop in (dx, y, x, vector) if roll_rows else (dy, dx, y, x, vector):
        s[local].unroll(loop)
    s[local].vectorize(lane)
    return s
