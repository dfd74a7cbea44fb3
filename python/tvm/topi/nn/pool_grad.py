"""Gradients of pools."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from .. import tag
from ..reduction import argmax
from ..utils import get_const_tuple, ravel_index
from .conv import Size
from .pooling import Windows, check_pool_type, replace_at, spatial_axes

__all__ = ["pool_grad"]


def pool_grad(
    grads: te.Tensor,
    data: te.Tensor,
    kernel: Size,
    stride: Size | None,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
) -> te.Tensor:
    """Gradient of :func:`topi.nn.pool2d` with respect to its data.

    Parameters
    ----------
    grads : gradient with respect to the pool's result, in its shape.
    data : what was pooled. Of equal largest elements of a window, the first one gets the gradient.
    """
    check_pool_type(pool_type)
    axes = spatial_axes(layout, 2)
    is_max = pool_type == "max"
    border = tir.min_value(data.dtype).value if is_max else 0.0
    w = Windows(data, axes, kernel, stride, 1, padding, ceil_mode, border)
    zero = tir.const(0, grads.dtype)
    out = [w.out_shape[axis] for axis in axes]
    if is_max:
        cells = te.compute(
            (*w.out_shape, *w.kernel),
            lambda *i: w.padded(
                *replace_at(i[:-2], axes, [i[a] * s + c for a, s, c in zip(axes, w.stride, i[-2:])])
            ),
            name="pool_cells",
            tag=tag.INJECTIVE,
        )
        winners = argmax(cells, (-2, -1))

    def body(*i: Any) -> Any:
        """Sum over the cells of a window: that where the element is, if there is one."""
        offsets = [i[a] + p - loop for a, p, loop in zip(axes, w.pads, w.loops)]
        position = [tir.floordiv(o, s) for o, s in zip(offsets, w.stride)]
        window = replace_at(i, axes, position)
        inside = [
            condition
            for o, p, s, n in zip(offsets, position, w.stride, out)
            for condition in (tir.floormod(o, s).equal(0), p >= 0, p < n)
        ]
        if is_max:
            cell = ravel_index([loop.var for loop in w.loops], w.kernel)
            value = tir.if_then_else(winners(*window).equal(cell), grads(*window), zero)
        else:
            count: Any = 1
            for k, p in enumerate(position):
                count = count * w.counted(p, k, count_include_pad)
            value = grads(*window) / tir.convert(count).astype(grads.dtype)
        return te.sum(tir.if_then_else(tir.all(*inside), value, zero), axis=w.loops)

    return te.compute(
        get_const_tuple(data.shape), body, name="pool_grad", tag=f"pool_grad_{pool_type}"
    )
