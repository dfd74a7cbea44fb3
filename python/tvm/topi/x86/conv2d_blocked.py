"""Convolutions of data whose channels are stored in blocks."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te
from tvm.target import Target

from ..utils import const_shape
from .vectors import inline_producers, vector_lanes

__all__ = ["BlockedTile", "schedule_conv2d_NCHWc", "schedule_depthwise_conv2d_NCHWc"]

# Vectors of results beyond which a tile stays a loop: written out, it would spill registers and
# take the compiler seconds.
_UNROLLED_VECTORS = 64


@dataclass(frozen=True)
class BlockedTile:
    """Output pixels that are computed together, over one block of channels.

    Attributes
    ----------
    columns, rows : pixels of one plane; what they leave of it is a smaller tile.
    unroll_window : write out the columns of the window.
    """

    columns: int
    rows: int = 1
    unroll_window: bool = False


def schedule_conv2d_NCHWc(
    conv: te.Tensor,
    tile: BlockedTile,
    output: te.Tensor | None = None,
    target: Target | None = None,
) -> te.Schedule:
    """Blocks of output channels and rows in parallel, a tile of one row in registers.

    Parameters
    ----------
    conv : result of ``topi.nn.conv2d_NCHWc``, or of ``topi.nn.conv3d_NCDHWc``, whose planes are
        one more loop around the rows.
    output : elementwise function of `conv` to compute while results are in registers.
    target : by default the current one, else "llvm".
    """
    s, local = _tiled(conv, tile, output, target)
    *outer, y, x, c = s[local].op.axis
    rb, *window, rx, rc = s[local].op.reduce_axis
    inner = (rc, rx) if tile.unroll_window else (rx, rc)
    s[local].reorder(*outer, rb, *window, *inner, y, x, c)
    if tile.unroll_window:
        s[local].unroll(rx)
    _write_out(s, local, tile, target)
    return s


def schedule_depthwise_conv2d_NCHWc(
    conv: te.Tensor,
    tile: BlockedTile,
    output: te.Tensor | None = None,
    target: Target | None = None,
) -> te.Schedule:
    """:func:`schedule_conv2d_NCHWc` for results of ``topi.nn.depthwise_conv2d_NCHWc``."""
    s, local = _tiled(conv, tile, output, target)
    n, block, y, x, c = s[local].op.axis
    ry, rx = s[local].op.reduce_axis
    s[local].reorder(n, block, ry, rx, y, x, c)
    if tile.unroll_window:
        s[local].unroll(rx)
    _write_out(s, local, tile, target)
    return s


def _tiled(
    conv: te.Tensor, tile: BlockedTile, output: te.Tensor | None, target: Target | None
) -> tuple[te.Schedule, te.Tensor]:
    """The loops outside of a tile, and the stage that computes one."""
    target = target or Target.current() or Target("llvm")
    output = conv if output is None else output
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=conv)
    padded = conv.op.input_tensors[0]
    if isinstance(padded.op, te.ComputeOp):
        s[padded].parallel(s[padded].fuse(*padded.op.axis[:-2]))
        if const_shape(padded.shape)[-1] <= _UNROLLED_VECTORS * vector_lanes(target, conv.dtype):
            s[padded].vectorize(padded.op.axis[-1])
    local = s.cache_write(conv, "local") if output is conv else conv
    *outer, y, x, c = output.op.axis
    x, x_in = s[output].split(x, factor=tile.columns)
    y, y_in = s[output].split(y, factor=tile.rows)
    s[output].reorder(*outer, y, x, y_in, x_in, c)
    s[output].parallel(s[output].fuse(*outer, y))
    s[local].compute_at(s[output], x)
    if output is not conv:
        s[local].set_scope("local")
    if _is_small(conv, tile, target):
        s[output].unroll(y_in)
        s[output].unroll(x_in)
    s[output].vectorize(c)
    return s, local


def _write_out(s: te.Schedule, local: te.Tensor, tile: BlockedTile, target: Target | None) -> None:
    target = target or Target.current() or Target("llvm")
    *_, y, x, c = s[local].op.axis
    if _is_small(local, tile, target):
        s[local].unroll(y)
        s[local].unroll(x)
    s[local].vectorize(c)


def _is_small(conv: te.Tensor, tile: BlockedTile, target: Target) -> bool:
    vectors = -(-const_shape(conv.shape)[-1] // vector_lanes(target, conv.dtype))
    return tile.rows * tile.columns * vectors <= _UNROLLED_VECTORS
