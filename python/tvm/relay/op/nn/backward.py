"""Gradients of convolutions and pools as operators."""

from __future__ import annotations

from typing import Any

from tvm import error, te, topi
from tvm.ir import RelayExpr
from tvm.topi.utils import as_int, get_const_tuple

from ...expr import Call
from ..registry import REQUIRED, OpPattern, define, make
from .windows import Size, pads_of, sizes_of

__all__ = ["avg_pool2d_grad", "conv2d_backward_weight", "max_pool2d_grad"]


def _pool(kind: str) -> Any:
    def run(
        grad: Any,
        data: Any,
        pool_size: Any,
        strides: Any,
        padding: Any,
        layout: str,
        out_layout: str,
        ceil_mode: bool,
        count_include_pad: bool = True,
    ) -> Any:
        pads = pads_of(f"relay.nn.{kind}_pool2d_grad", padding, 2)
        if out_layout and out_layout != layout:
            grad = topi.layout_transform(grad, out_layout, layout)
        return topi.nn.pool_grad(
            grad, data, list(pool_size), list(strides), pads, kind, ceil_mode, count_include_pad,
            layout,
        )  # fmt: skip

    return run


_POOL = {
    "pool_size": REQUIRED,
    "strides": (1, 1),
    "padding": (0, 0),
    "layout": "NCHW",
    "out_layout": "",
    "ceil_mode": False,
}
define("nn.max_pool2d_grad", _pool("max"), settings=_POOL, num_inputs=2)
define(
    "nn.avg_pool2d_grad",
    _pool("avg"),
    settings={**_POOL, "count_include_pad": False},
    num_inputs=2,
)


def _pool_grad(
    name: str,
    operands: list[RelayExpr],
    windows: tuple[Size, Size, Size],
    layout: str,
    out_layout: str,
    **options: bool,
) -> Call:
    size, strides, padding = windows
    return make(
        name,
        operands,
        pool_size=sizes_of(size, 2),
        strides=sizes_of(strides, 2),
        padding=tuple(pads_of(f"relay.{name}", padding, 2)),
        layout=layout,
        out_layout=out_layout,
        **options,
    )


def max_pool2d_grad(
    out_grad: RelayExpr,
    data: RelayExpr,
    pool_size: Size = (1, 1),
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    """The gradient of :func:`max_pool2d` for its data; see :func:`tvm.topi.nn.pool_grad`.

    `out_layout` is that of `out_grad`, `layout` if it is empty.
    """
    where, windows = "nn.max_pool2d_grad", (pool_size, strides, padding)
    return _pool_grad(where, [out_grad, data], windows, layout, out_layout, ceil_mode=ceil_mode)


def avg_pool2d_grad(
    out_grad: RelayExpr,
    data: RelayExpr,
    pool_size: Size = (1, 1),
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    """The gradient of :func:`avg_pool2d` for its data; see :func:`tvm.topi.nn.pool_grad`.

    `out_layout` is that of `out_grad`, `layout` if it is empty.
    """
    return _pool_grad(
        "nn.avg_pool2d_grad",
        [out_grad, data],
        (pool_size, strides, padding),
        layout,
        out_layout,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )


def _weight(
    grad: Any,
    data: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    channels: int | None,
    kernel_size: Any,
    grad_layout: str,
    data_layout: str,
    kernel_layout: str,
    out_dtype: str,
) -> Any:
    where = "relay.nn.conv2d_backward_weight"
    if kernel_size is None:
        raise error.ValueError(f"{where}: kernel_size is needed")
    if grad_layout != "NCHW":
        grad = topi.layout_transform(grad, grad_layout, "NCHW")
    if data_layout != "NCHW":
        data = topi.layout_transform(data, data_layout, "NCHW")
    top, left, bottom, right = pads_of(where, padding, 2)
    padded = topi.nn.pad(data, [0, 0, top, left], [0, 0, bottom, right])
    batch, out_channels, rows, columns = (as_int(e) for e in get_const_tuple(grad.shape))
    in_channels = as_int(data.shape[1])
    if channels is not None and as_int(channels) != out_channels:
        raise error.ValueError(f"{where}: channels is {channels}, grad has {out_channels}")
    if in_channels % groups or out_channels % groups:
        raise error.ValueError(
            f"{where}: {groups} groups do not divide the {in_channels} channels of data and the "
            f"{out_channels} of grad"
        )
    if batch != as_int(data.shape[0]):
        raise error.ValueError(f"{where}: grad has {batch} images, data {data.shape[0]}")
    for axis, given in enumerate((rows, columns)):
        reach = (as_int(kernel_size[axis]) - 1) * dilation[axis] + 1
        made = (as_int(padded.shape[2 + axis]) - reach) // strides[axis] + 1
        if given != made:
            raise error.ValueError(
                f"{where}: a kernel_size of {list(kernel_size)} makes {made} "
                f"{('rows', 'columns')[axis]} of data {list(data.shape)} with these strides, "
                f"padding and dilation; grad has {given}"
            )
    inner, outer = in_channels // groups, out_channels // groups
    n = te.reduce_axis((0, batch), "n")
    h, w = te.reduce_axis((0, rows), "h"), te.reduce_axis((0, columns), "w")
    dtype = out_dtype or str(data.dtype)

    def element(o: Any, i: Any, dh: Any, dw: Any) -> Any:
        channel = (o // outer) * inner + i
        x = padded[n, channel, h * strides[0] + dh * dilation[0], w * strides[1] + dw * dilation[1]]
        return te.sum(x.astype(dtype) * grad[n, o, h, w].astype(dtype), axis=[n, h, w])

    out = te.compute((out_channels, inner, *kernel_size), element, name="conv2d_backward_weight")
    return out if kernel_layout == "OIHW" else topi.layout_transform(out, "OIHW", kernel_layout)


define(
    "nn.conv2d_backward_weight",
    _weight,
    OpPattern.OUT_FUSABLE,
    settings={
        "strides": (1, 1),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "channels": None,
        "kernel_size": None,
        "grad_layout": "NCHW",
        "data_layout": "NCHW",
        "kernel_layout": "OIHW",
        "out_dtype": "",
    },
    num_inputs=2,
)


def conv2d_backward_weight(
    grad: RelayExpr,
    data: RelayExpr,
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    dilation: Size = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    grad_layout: str = "NCHW",
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_dtype: str = "",
) -> Call:
    """The gradient of :func:`conv2d` for its weight.

    Parameters
    ----------
    grad : the gradient for the convolution's result. data : what was convolved.
    channels : those of `grad`, if they are left out.
    kernel_size : of the weight, which does not follow from the rest.

    Raises
    ------
    ValueError : `kernel_size`, `channels` or `groups` does not fit `grad` and `data`, told when it
        is built.
    """
    return make(
        "nn.conv2d_backward_weight",
        [grad, data],
        strides=sizes_of(strides, 2),
        padding=tuple(pads_of("relay.nn.conv2d_backward_weight", padding, 2)),
        dilation=sizes_of(dilation, 2),
        groups=groups,
        channels=channels,
        kernel_size=None if kernel_size is None else sizes_of(kernel_size, 2),
        grad_layout=grad_layout,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_dtype=out_dtype,
    )
