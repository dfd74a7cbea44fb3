"""Convolution over any number of dimensions, in any layout: what all named ones are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ..utils import (
    Extent,
    as_int,
    as_pads,
    as_sizes,
    equal_const_int,
    extents_of,
    is_constant,
    same_extent,
    simplify,
)
from .pad import pad

__all__ = ["Size", "conv", "conv_output_size", "default_kernel_layout", "depthwise_conv"]

Size = int | Sequence[int]

_SPATIAL = "DHW"
_LOOP_NAMES = {"D": "rz", "H": "ry", "W": "rx", "I": "rc"}


def conv_output_size(
    size: Sequence[Extent],
    kernel: Sequence[Extent],
    stride: Sequence[Extent],
    padding: Sequence[Extent],
    dilation: Sequence[Extent],
) -> tuple[Extent, ...]:
    """Spatial extents of the result.

    Parameters
    ----------
    padding : all sizes in front, then all sizes behind.

    Raises
    ------
    ValueError : the kernel, dilated, is larger than the padded input.
    """
    rank = len(size)
    result = []
    for k in range(rank):
        room = size[k] + padding[k] + padding[k + rank] - (kernel[k] - 1) * dilation[k] - 1
        if is_constant(room) and as_int(room) < 0:
            raise ValueError(
                f"topi.nn.conv{rank}d: a kernel of {tuple(kernel)} with dilation {tuple(dilation)} "
                f"does not fit an input of {tuple(size)} padded by {tuple(padding)}"
            )
        result.append(simplify(room // stride[k] + 1))
    return tuple(result)


def default_kernel_layout(data_layout: str) -> str:
    """OIHW and its like where channels come in front, HWIO and its like where they come last."""
    spatial = spatial_letters(data_layout)
    return f"OI{spatial}" if data_layout.index("C") == 1 else f"{spatial}IO"


def spatial_letters(layout: str) -> str:
    """The spatial letters of a layout, in its order."""
    return "".join(letter for letter in layout if letter in _SPATIAL)


def check_layouts(where: str, data_layout: str, kernel_layout: str) -> None:
    """Refuse layouts that do not name each dimension once."""
    spatial = sorted(spatial_letters(data_layout))
    fits = sorted(data_layout) == sorted("NC" + "".join(spatial)) and sorted(
        kernel_layout
    ) == sorted("OI" + "".join(spatial))
    if not fits or not spatial:
        raise ValueError(
            f"topi.nn.{where}: no layout {data_layout} with {kernel_layout}; use N, C and a "
            "selection of D, H, W for data, O and I with the same selection for the kernel"
        )


def axis_names(data_layout: str) -> list[str]:
    """Names of the result's axes; its channels are filters."""
    return ["f" if letter == "C" else letter.lower() for letter in data_layout]


def kernel_loops(kernel: dict[str, Extent], with_channels: bool) -> dict[str, tir.IterVar]:
    """Reduction loops in the order of the kernel's layout."""
    return {
        letter: te.reduce_axis((0, extent), name=_LOOP_NAMES[letter])
        for letter, extent in kernel.items()
        if letter in _SPATIAL or (letter == "I" and with_channels)
    }


def pad_spatial(
    data: te.Tensor, layout: str, before: Sequence[Extent], after: Sequence[Extent]
) -> te.Tensor:
    """Zeros around the spatial dimensions."""
    letters = spatial_letters(layout)
    front, behind = dict(zip(letters, before)), dict(zip(letters, after))
    return pad(data, [front.get(d, 0) for d in layout], [behind.get(d, 0) for d in layout])


def check_channels(
    where: str, channels: Extent, per_group: Extent, filters: Extent, groups: int
) -> None:
    """Refuse a kernel whose channels do not fit the data."""
    known = is_constant(channels) and is_constant(per_group)
    if (known and not same_extent(channels, per_group * groups)) or (
        is_constant(filters) and as_int(filters) % groups
    ):
        raise ValueError(
            f"topi.nn.{where}: {groups} groups of {per_group} input channels and {filters} output "
            f"channels do not fit an input of {channels} channels"
        )


def _convolve(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size,
    padding: Any,
    dilation: Size,
    groups: int | None,
    data_layout: str,
    kernel_layout: str,
    out_dtype: str | None,
    name: str,
) -> te.Tensor:
    """Sum of products over windows; with ``groups`` None, each channel has filters of its own."""
    check_layouts(name, data_layout, kernel_layout)
    extents = extents_of(data, data_layout, name)
    kernel = extents_of(weight, kernel_layout, name)
    letters = spatial_letters(data_layout)
    rank = len(letters)
    sizes = [extents[d] for d in letters]
    kernel_sizes = [kernel[d] for d in letters]
    strides, dilations = as_sizes(stride, rank), as_sizes(dilation, rank)
    reach = [simplify((k - 1) * d + 1) for k, d in zip(kernel_sizes, dilations)]
    pads = as_pads(padding, rank, reach)
    out_sizes = conv_output_size(sizes, kernel_sizes, strides, pads, dilations)
    if groups is None:
        if is_constant(kernel["O"]):
            check_channels(name, extents["C"], 1, kernel["O"], as_int(kernel["O"]))
        filters = simplify(kernel["O"] * kernel["I"])
    else:
        check_channels(name, extents["C"], kernel["I"], kernel["O"], groups)
        filters = kernel["O"]
    padded = pad_spatial(data, data_layout, pads[:rank], pads[rank:])
    # Sums run over the dimensions in the order in which the data has them.
    order = ["I" if letter == "C" else letter for letter in data_layout if letter != "N"]
    loops = kernel_loops({d: kernel[d] for d in order}, with_channels=groups is not None)
    scale = {d: (strides[k], dilations[k]) for k, d in enumerate(letters)}
    dtype = out_dtype or data.dtype

    def channels(f: Any) -> tuple[Any, Any, Any]:
        """Channel of the data, and the kernel's O and I, for a filter."""
        if groups is None:
            multiplier = kernel["I"]
            if equal_const_int(multiplier, 1):
                return f, f, 0
            return f // multiplier, f // multiplier, f % multiplier
        if groups == 1:
            return loops["I"], f, loops["I"]
        group = f // simplify(filters // groups)
        return group * kernel["I"] + loops["I"], f, loops["I"]

    def body(*indices: Any) -> Any:
        index = dict(zip(data_layout, indices))
        channel, out_channel, in_channel = channels(index["C"])
        at = {"N": index["N"], "C": channel}
        for d, (step, gap) in scale.items():
            at[d] = index[d] * step + loops[d] * gap
        where = {**loops, "O": out_channel, "I": in_channel}
        value = padded(*(at[d] for d in data_layout)).astype(dtype)
        factor = weight(*(where[d] for d in kernel_layout)).astype(dtype)
        return te.sum(value * factor, axis=list(loops.values()))

    out = {"N": extents["N"], "C": filters, **dict(zip(letters, out_sizes))}
    return te.compute(
        [out[d] for d in data_layout],
        body,
        name=name,
        tag=name,
        attrs={"layout_free_placeholders": [weight]},
        varargs_names=axis_names(data_layout),
    )


def conv(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution over the spatial dimensions of the layout: any of D, H and W.

    Parameters
    ----------
    data : N batches, C channels and the spatial extents, in the order of ``data_layout``.
    weight : O filters, I channels a group and the window, in the order of ``kernel_layout``, which
        defaults to OIHW for channels in front and HWIO for channels last. A schedule may change
        its layout, so it is named in the stage's ``layout_free_placeholders``.
    stride, dilation : one number, or one for each spatial dimension.
    padding : one size, one for each dimension, all in front and then all behind, "SAME" or
        "VALID"; without any there is no pad stage.
    groups : channels and filters in that many groups that do not mix.
    out_dtype : type to multiply and add in; the data's by default.

    Raises
    ------
    ValueError : channels, groups and weight do not fit, the kernel is larger than the input, or a
        layout does not name each dimension once.
    """
    kernel_layout = kernel_layout or default_kernel_layout(data_layout)
    rank = len(data_layout) - 2
    name = f"conv{rank}d_{data_layout.lower()}"
    if groups != 1:
        name = f"group_{name}"
    return _convolve(
        data, weight, stride, padding, dilation, groups, data_layout, kernel_layout, out_dtype, name
    )


def depthwise_conv(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of each channel with filters of its own; arguments as in :func:`conv`.

    Parameters
    ----------
    weight : O channels, I filters a channel and the window, layout-free. Filter m of channel c
        gives channel ``c * I + m`` of the result.
    """
    name = f"depthwise_conv{len(data_layout) - 2}d_{data_layout.lower()}"
    return _convolve(
        data, weight, stride, padding, dilation, None, data_layout, kernel_layout, out_dtype, name
    )
