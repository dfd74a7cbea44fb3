"""Convolutions of data whose channels come in front."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, topi

from ..task import get_config, template
from .tiles import Tiling, scheduled, tiled

__all__: list[str] = []

_FILTERS = ("tile_f", (2, 8, 2))
_ROWS = ("tile_y", (1, 1, 4))
_COLUMNS = ("tile_x", (1, 16, 1))
_IMAGE = (None, _FILTERS, _ROWS, _COLUMNS)
_WINDOW = (("tile_rc", 4), ("tile_ry", 3), ("tile_rx", 3))


def _define(name: str, compute: Callable[..., te.Tensor], tiling: Tiling) -> None:
    """Enter a template whose arguments are data, kernel, the sizes that `compute` takes behind
    them, and the type of the result."""
    tiled(name, tiling)

    @template(name)
    def convolution(data: te.Tensor, kernel: te.Tensor, *settings: Any) -> Any:
        *sizes, out_dtype = settings
        return scheduled(
            get_config(),
            name,
            lambda dtype: compute(data, kernel, *sizes, dtype),
            [data, kernel],
            out_dtype,
        )


def _conv3d_of_one_group(data: te.Tensor, kernel: te.Tensor, *settings: Any) -> te.Tensor:
    groups = settings[3]
    if groups != 1:
        raise ValueError(f"conv3d_ncdhw.cuda: channels are in one group, got {groups}")
    return topi.nn.conv3d_ncdhw(data, kernel, *settings)


# Strides, padding and dilation are the sizes, and the number of groups where there is one.
_define("conv2d_nchw.cuda", topi.nn.conv2d_nchw, Tiling(_IMAGE, _WINDOW))
_define("group_conv2d_nchw.cuda", topi.nn.group_conv2d_nchw, Tiling(_IMAGE, _WINDOW))
# Each channel has a small window, so a block's operands are in shared memory all at once.
_define(
    "depthwise_conv2d_nchw.cuda",
    topi.nn.depthwise_conv2d_nchw,
    Tiling((None, ("tile_f", (1, 4, 1)), ("tile_y", (1, 4, 2)), ("tile_x", (1, 16, 1)))),
)
_define(
    "conv3d_ncdhw.cuda",
    _conv3d_of_one_group,
    Tiling(
        (None, _FILTERS, ("tile_d", (1, 1, 2)), _ROWS, _COLUMNS),
        (_WINDOW[0], ("tile_rd", 3), *_WINDOW[1:]),
    ),
)
