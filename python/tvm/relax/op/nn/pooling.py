"""Windows that slide over images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import RelayExpr

from ...expr import Call
from ...struct_info import TensorStructInfo
from ..base import make_call
from ..registry import register_rule
from ..rules import known_shape, opaque_tensor, setting, simplified, tensor, with_shape
from .convolution import int64s, padding_of, window_settings
from .layout import layout_of

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "pool_settings",
]

Size = int | Sequence[int]
_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _spread(value: Size, rank: int) -> list[int]:
    sizes = [int(v) for v in value] if isinstance(value, Sequence) else [int(value)]
    return sizes * rank if len(sizes) == 1 else sizes


def pool_settings(
    rank: int,
    pool_size: Size,
    strides: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    count_include_pad: bool,
    layout: str,
    out_layout: str | None,
) -> dict[str, Any]:
    """The settings of a pooling operator; the stride defaults to the window.

    Raises
    ------
    ValueError : a wrong number of sizes.
    """
    where = f"relax.nn.pool{rank}d"
    sizes = _spread(pool_size, rank)
    if len(sizes) != rank:
        raise error.ValueError(f"{where}: pool_size is 1 or {rank} numbers, got {sizes}")
    window = window_settings(where, rank, sizes if strides is None else strides, padding, dilation)
    return {
        "pool_size": int64s(sizes),
        **window,
        "ceil_mode": bool(ceil_mode),
        "count_include_pad": bool(count_include_pad),
        "layout": layout,
        "out_layout": out_layout or layout,
    }


def _pool(kind: str, rank: int, default_layout: str) -> Any:
    name = f"nn.{kind}_pool{rank}d"

    def pool(
        data: RelayExpr,
        pool_size: Size = 1,
        strides: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str = default_layout,
        out_layout: str | None = None,
    ) -> Call:
        return make_call(
            name,
            data,
            **pool_settings(rank, pool_size, strides, padding, dilation, ceil_mode,
                            count_include_pad, layout, out_layout),
        )  # fmt: skip

    what = {"max": "Largest element", "avg": "Mean"}[kind]
    pool.__name__ = pool.__qualname__ = name[len("nn.") :]
    pool.__doc__ = f"""{what} of each window over {rank} spatial dimensions.

    Parameters
    ----------
    strides : how far windows are apart; their size by default.
    padding : borders: one size, one for each dimension, or all before and then all behind.
    ceil_mode : whether a last window may reach beyond the border.
    count_include_pad : whether the border counts in means.
    """
    return pool


max_pool1d, max_pool2d, max_pool3d = (_pool("max", k, "NC" + _SPATIAL[k]) for k in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pool("avg", k, "NC" + _SPATIAL[k]) for k in (1, 2, 3))


def _pool_rule(rank: int) -> Any:
    def infer(call: Call) -> TensorStructInfo:
        info = tensor(call, 0)
        plain = "NC" + _SPATIAL[rank]
        layout = layout_of(call, "layout", setting(call, "layout", plain), plain)
        name = setting(call, "out_layout") or layout.name
        out = layout_of(call, "out_layout", name, plain)
        layout.check_rank(call, info)
        shape = known_shape(info)
        if shape is None:
            return opaque_tensor(info.dtype, out.rank, info.vdevice)
        batch, channels, *space = layout.forward(shape)
        padding = padding_of(str(call.op.name), setting(call, "padding", 0), rank)
        window = _spread(setting(call, "pool_size", 1), rank)
        strides = _spread(setting(call, "strides", 1), rank)
        dilation = _spread(setting(call, "dilation", 1), rank)
        ceil = setting(call, "ceil_mode", False)
        sizes = []
        for k, size in enumerate(space):
            reach = size + padding[k] + padding[k + rank] - dilation[k] * (window[k] - 1) - 1
            if ceil:
                reach = reach + strides[k] - 1
            sizes.append(simplified(tir.floordiv(simplified(reach), strides[k]) + 1))
        return with_shape(out.backward([batch, channels, *sizes]), info.dtype, info.vdevice)

    return infer


def _adaptive(rank: int, default_layout: str) -> Any:
    name = f"nn.adaptive_avg_pool{rank}d"

    def pool(
        data: RelayExpr,
        output_size: Size | None = None,
        layout: str = default_layout,
        out_layout: str | None = None,
    ) -> Call:
        sizes = None if output_size is None else int64s(_spread(output_size, rank))
        if sizes is not None and len(sizes) != rank:
            raise error.ValueError(f"relax.{name}: output_size is 1 or {rank} numbers, got {sizes}")
        return make_call(
            name, data, output_size=sizes, layout=layout, out_layout=out_layout or layout
        )

    pool.__name__ = pool.__qualname__ = name[len("nn.") :]
    pool.__doc__ = f"""Means over windows that divide {rank} dimensions into output_size pieces.

    Without a size, the size of the data stays.
    """
    return pool


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _adaptive(k, "NC" + _SPATIAL[k]) for k in (1, 2, 3)
)


def _adaptive_rule(rank: int) -> Any:
    def infer(call: Call) -> TensorStructInfo:
        info = tensor(call, 0)
        plain = "NC" + _SPATIAL[rank]
        layout = layout_of(call, "layout", setting(call, "layout", plain), plain)
        name = setting(call, "out_layout") or layout.name
        out = layout_of(call, "out_layout", name, plain)
        layout.check_rank(call, info)
        shape = known_shape(info)
        if shape is None:
            return opaque_tensor(info.dtype, out.rank, info.vdevice)
        batch, channels, *space = layout.forward(shape)
        sizes = setting(call, "output_size")
        space = space if sizes is None else int64s(_spread(sizes, rank))
        return with_shape(out.backward([batch, channels, *space]), info.dtype, info.vdevice)

    return infer


for _rank in (1, 2, 3):
    for _kind in ("max", "avg"):
        register_rule(f"nn.{_kind}_pool{_rank}d", _pool_rule(_rank))
    register_rule(f"nn.adaptive_avg_pool{_rank}d", _adaptive_rule(_rank))
