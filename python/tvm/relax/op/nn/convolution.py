"""Convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import RelayExpr

from ...expr import Call
from ...struct_info import TensorStructInfo
from ..base import make_call
from ..registry import register_rule
from ..rules import (
    common_dtype,
    common_vdevice,
    differ,
    known_shape,
    number,
    opaque_tensor,
    setting,
    simplified,
    tensor,
    with_shape,
)
from .layout import NamedLayout, layout_of

__all__ = [
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "frame_windows",
    "int64s",
    "padding_of",
    "window_settings",
]

Size = int | Sequence[int]


def int64s(values: Sequence[int]) -> list[Any]:
    """Integers as literals of the type that extents have."""
    return [tir.const(int(v), "int64") for v in values]


def _listed(value: Size) -> list[int]:
    return [int(v) for v in value] if isinstance(value, Sequence) else [int(value)]


def padding_of(where: str, padding: Size, rank: int) -> list[int]:
    """Borders before each spatial dimension, then behind each, of one size, one each, or all.

    Raises
    ------
    ValueError : another number of sizes.
    """
    sizes = _listed(padding)
    if len(sizes) == 1:
        return sizes * (2 * rank)
    if len(sizes) == rank:
        return sizes * 2
    if len(sizes) == 2 * rank:
        return sizes
    raise error.ValueError(
        f"{where}: padding is 1, {rank} or {2 * rank} numbers, got {len(sizes)}: {sizes}"
    )


def window_settings(
    where: str, rank: int, strides: Size, padding: Size, dilation: Size
) -> dict[str, Any]:
    """Strides, padding and dilation of every spatial dimension.

    Raises
    ------
    ValueError : a wrong number of sizes.
    """
    result = {"padding": int64s(padding_of(where, padding, rank))}
    for name, value in (("strides", strides), ("dilation", dilation)):
        sizes = _listed(value)
        if len(sizes) not in (1, rank):
            raise error.ValueError(f"{where}: {name} is 1 or {rank} numbers, got {sizes}")
        result[name] = int64s(sizes * rank if len(sizes) == 1 else sizes)
    return result


def _conv(
    rank: int,
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size,
    padding: Size,
    dilation: Size,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str | None,
    out_dtype: Any,
) -> Call:
    where = f"relax.nn.conv{rank}d"
    _check_groups(where, groups)
    return make_call(
        f"nn.conv{rank}d",
        data,
        weight,
        **window_settings(where, rank, strides, padding, dilation),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout or data_layout,
        out_dtype=out_dtype or None,
    )


def _check_groups(where: str, groups: int) -> None:
    if groups <= 0:
        raise error.ValueError(f"{where}: groups must be positive, got {groups}")


def conv1d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> Call:
    """Convolution over one spatial dimension; arguments as in :func:`conv2d`."""
    return _conv(1, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout,
                 out_layout, out_dtype)  # fmt: skip


def conv2d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> Call:
    """Two-dimensional convolution.

    Parameters
    ----------
    padding : one size, (height, width) or (top, left, bottom, right).
    data_layout, kernel_layout : where the dimensions are, for instance NCHW with OIHW or NHWC with
        HWIO. HWOI with groups is depthwise convolution: (kernel height, kernel width, channels,
        filters of each channel).
    out_layout : that of the data by default.
    out_dtype : element type of the sums and the result; that of the operands by default.

    Raises
    ------
    ValueError : groups is not positive, a wrong number of sizes, a layout of other dimensions, or
        channels that do not fit.
    """
    return _conv(2, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout,
                 out_layout, out_dtype)  # fmt: skip


def conv3d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> Call:
    """Convolution over three spatial dimensions; arguments as in :func:`conv2d`."""
    return _conv(3, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout,
                 out_layout, out_dtype)  # fmt: skip


def frame_windows(
    data: RelayExpr,
    depth: int,
    out_depth: int,
    taps: int,
    stride: int = 1,
    dilation: int = 1,
    before: int = 0,
) -> Call:
    """What a filter over the depth reads of (N depth, H, W, C) frames, side by side.

    Returns
    -------
    (N out_depth, H, W, taps C): the channels of frame d are those of the frames
    d * stride + t * dilation - before, for all taps t in order; zeros where there is none.
    """
    return make_call(
        "nn.frame_windows",
        data,
        depth=depth,
        out_depth=out_depth,
        taps=taps,
        stride=stride,
        dilation=dilation,
        before=before,
    )


def _conv_transpose(
    rank: int,
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size,
    padding: Size,
    output_padding: Size,
    dilation: Size,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str | None,
    out_dtype: Any,
) -> Call:
    where = f"relax.nn.conv{rank}d_transpose"
    _check_groups(where, groups)
    settings = window_settings(where, rank, strides, padding, dilation)
    extra = _listed(output_padding)
    if len(extra) not in (1, rank):
        raise error.ValueError(f"{where}: output_padding is 1 or {rank} numbers, got {extra}")
    extra = extra * rank if len(extra) == 1 else extra
    for more, stride in zip(extra, settings["strides"]):
        if not 0 <= more < stride.value:
            raise error.ValueError(
                f"{where}: output_padding must be less than the stride, got {more} and {stride}"
            )
    return make_call(
        f"nn.conv{rank}d_transpose",
        data,
        weight,
        **settings,
        output_padding=int64s(extra),
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout or data_layout,
        out_dtype=out_dtype or None,
    )


def conv1d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "IOW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> Call:
    """The gradient of :func:`conv1d` for its data; arguments as in :func:`conv2d_transpose`."""
    return _conv_transpose(1, data, weight, strides, padding, output_padding, dilation, groups,
                           data_layout, kernel_layout, out_layout, out_dtype)  # fmt: skip


def conv2d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> Call:
    """The gradient of :func:`conv2d` for its data.

    Parameters
    ----------
    weight : (in, out / groups, height, width) in its layout.
    output_padding : rows and columns that the result has beyond the least; less than the stride.
    """
    return _conv_transpose(2, data, weight, strides, padding, output_padding, dilation, groups,
                           data_layout, kernel_layout, out_layout, out_dtype)  # fmt: skip


_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


class _Operands:
    """What the rules of convolutions read from a call first."""

    def __init__(self, call: Call, rank: int, kernel_letters: str) -> None:
        space = _SPATIAL[rank]
        self.data, self.weight = tensor(call, 0, "data"), tensor(call, 1, "weight")
        names = [setting(call, "data_layout", "NC" + space),
                 setting(call, "kernel_layout", kernel_letters + space)]  # fmt: skip
        self.layout = layout_of(call, "data_layout", names[0], "NC" + space)
        self.kernel = layout_of(call, "kernel_layout", names[1], "OI" + space)
        out = setting(call, "out_layout") or names[0]
        self.out: NamedLayout = layout_of(call, "out_layout", out, "NC" + space)
        self.layout.check_rank(call, self.data)
        self.kernel.check_rank(call, self.weight)
        pair = [self.data, self.weight]
        self.dtype = setting(call, "out_dtype") or common_dtype(call, pair)
        self.vdevice = common_vdevice(call, pair)
        shapes = known_shape(self.data), known_shape(self.weight)
        self.known = None not in shapes
        self.x = self.layout.forward(shapes[0]) if shapes[0] is not None else []
        self.w = self.kernel.forward(shapes[1]) if shapes[1] is not None else []
        self.groups = setting(call, "groups", 1)
        self.strides = _spread(setting(call, "strides", 1), rank)
        self.dilation = _spread(setting(call, "dilation", 1), rank)
        padding = padding_of(str(call.op.name), setting(call, "padding", 0), rank)
        self.borders = [padding[k] + padding[k + rank] for k in range(rank)]

    def result(self, plain: Sequence[Any] | None) -> TensorStructInfo:
        """The result of a plain shape, None if that is unknown."""
        if plain is None:
            return opaque_tensor(self.dtype, self.out.rank, self.vdevice)
        return with_shape(self.out.backward(plain), self.dtype, self.vdevice)


def _spread(value: Size, rank: int) -> list[int]:
    sizes = _listed(value)
    return sizes * rank if len(sizes) == 1 else sizes


def _conv_rule(rank: int) -> Any:
    def infer(call: Call) -> TensorStructInfo:
        given = _Operands(call, rank, "OI")
        if not given.known:
            return given.result(None)
        channels, (filters, per_group, *kernel) = given.x[1], given.w
        groups = given.groups
        if given.kernel.name == "HWOI":
            # Depthwise weights count filters by channel: (height, width, channels, multiplier).
            filters, per_group = simplified(filters * per_group), tir.const(1, "int64")
        if differ(channels, simplified(per_group * groups)):
            raise error.ValueError(
                f"{call.op.name}: the data has {channels} channels, the weight takes {per_group} "
                f"in each of {groups} groups"
            )
        _check_divides(call, filters, groups)
        space = []
        for size, k, stride, dilation, border in zip(
            given.x[2:], kernel, given.strides, given.dilation, given.borders
        ):
            reach = size + border - dilation * (k - 1) - 1
            space.append(simplified(tir.floordiv(simplified(reach), stride) + 1))
        return given.result([given.x[0], filters, *space])

    return infer


def _check_divides(call: Call, channels: Any, groups: int) -> None:
    rest = number(simplified(tir.floormod(channels, tir.const(groups, "int64"))))
    if rest not in (None, 0):
        raise error.ValueError(
            f"{call.op.name}: {channels} filters do not divide into {groups} groups"
        )


def _conv_transpose_rule(rank: int) -> Any:
    def infer(call: Call) -> TensorStructInfo:
        given = _Operands(call, rank, "IO")
        if not given.known:
            return given.result(None)
        channels, (filters, taken, *kernel) = given.x[1], given.w
        if differ(channels, taken):
            raise error.ValueError(
                f"{call.op.name}: the data has {channels} channels, the weight takes {taken}"
            )
        _check_divides(call, taken, given.groups)
        extra = _spread(setting(call, "output_padding", 0), rank)
        space = []
        for size, k, stride, dilation, border, more in zip(
            given.x[2:], kernel, given.strides, given.dilation, given.borders, extra
        ):
            full = (size - 1) * stride - border + dilation * (k - 1) + more + 1
            space.append(simplified(full))
        return given.result([given.x[0], simplified(filters * given.groups), *space])

    return infer


for _rank in (1, 2, 3):
    register_rule(f"nn.conv{_rank}d", _conv_rule(_rank))
for _rank in (1, 2):
    register_rule(f"nn.conv{_rank}d_transpose", _conv_transpose_rule(_rank))
