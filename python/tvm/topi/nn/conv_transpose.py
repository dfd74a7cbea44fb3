"""Transposed convolution: the gradient of a convolution with respect to its input."""

from __future__ import annotations

from typing import Any

from tvm import te

from ..utils import (
    as_int,
    as_pads,
    as_sizes,
    extents_of,
    get_const_tuple,
    is_constant,
    largest,
    simplify,
)
from .conv import (
    Size,
    axis_names,
    check_channels,
    check_layouts,
    kernel_loops,
    pad_spatial,
    spatial_letters,
)
from .dilate import dilate

__all__ = ["conv_transpose"]


def conv_transpose(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    output_padding: Size = 0,
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
    dilation: Size = 1,
) -> te.Tensor:
    """Transposed convolution over the spatial dimensions of the layout: any of D, H and W.

    The data is spread out by the strides, padded, and convolved with the mirrored kernel.

    Parameters
    ----------
    data : N batches, C channels and the spatial extents, in the order of ``data_layout``.
    weight : I channels, O filters a group and the window, in the order of ``kernel_layout``, by
        default IOHW for channels in front and HWIO for channels last. Layout-free.
    padding : what the convolution it transposes was padded by: it is cut off the result.
    output_padding : cells added behind, each fewer than the stride or dilation of its dimension.
    groups : channels and filters in that many groups that do not mix.

    Raises
    ------
    ValueError : channels, groups and weight do not fit, an output padding is not smaller than
        stride or dilation, or the padding leaves nothing.
    """
    letters = spatial_letters(data_layout)
    rank = len(letters)
    in_front = data_layout.index("C") == 1
    kernel_layout = kernel_layout or (f"IO{letters}" if in_front else f"{letters}IO")
    name = f"conv{rank}d_transpose_{data_layout.lower()}"
    name = name if groups == 1 else f"group_{name}"
    check_layouts(name, data_layout, kernel_layout)
    extents = extents_of(data, data_layout, name)
    kernel = extents_of(weight, kernel_layout, name)
    steps, gaps = as_sizes(strides, rank), as_sizes(dilation, rank)
    pads, extra = as_pads(padding, rank), as_sizes(output_padding, rank)
    if any(as_int(e) >= max(as_int(s), as_int(g)) for e, s, g in zip(extra, steps, gaps)):
        raise ValueError(
            f"topi.nn.{name}: output_padding {extra} must be smaller than stride {steps} or "
            f"dilation {gaps}"
        )
    check_channels(name, extents["C"], simplify(kernel["I"] // groups), kernel["I"], groups)
    filters = simplify(kernel["O"] * groups)
    reach = [simplify((kernel[d] - 1) * gap) for d, gap in zip(letters, gaps)]
    spread = dilate(data, [dict(zip(letters, steps)).get(d, 1) for d in data_layout])
    spread_sizes = [dict(zip(data_layout, get_const_tuple(spread.shape)))[d] for d in letters]
    # More padding than the kernel reaches over cuts cells of the data itself.
    before = [reach[k] - pads[k] for k in range(rank)]
    after = [reach[k] - pads[k + rank] + extra[k] for k in range(rank)]
    cut = {d: simplify(largest(-before[k], 0)) for k, d in enumerate(letters)}
    padded = pad_spatial(
        spread, data_layout, [largest(b, 0) for b in before], [largest(a, 0) for a in after]
    )
    out = {"N": extents["N"], "C": filters}
    for k, d in enumerate(letters):
        out[d] = simplify(spread_sizes[k] + before[k] + after[k] - reach[k])
        if is_constant(out[d]) and as_int(out[d]) < 1:
            raise ValueError(
                f"topi.nn.{name}: padding {pads} leaves nothing of dimension {d}; use less"
            )
    loops = kernel_loops({**kernel, "I": simplify(kernel["I"] // groups)}, with_channels=True)
    gap_of = dict(zip(letters, gaps))
    dtype = out_dtype or data.dtype

    def body(*indices: Any) -> Any:
        index = dict(zip(data_layout, indices))
        channel, out_channel = loops["I"], index["C"]
        if groups != 1:
            channel = out_channel // kernel["O"] * simplify(kernel["I"] // groups) + loops["I"]
            out_channel = out_channel % kernel["O"]
        at = {"N": index["N"], "C": channel}
        where = {"I": channel, "O": out_channel}
        for d in letters:
            at[d] = index[d] + loops[d] * gap_of[d] + cut[d]
            where[d] = kernel[d] - 1 - loops[d]
        value = padded(*(at[d] for d in data_layout)).astype(dtype)
        factor = weight(*(where[d] for d in kernel_layout)).astype(dtype)
        return te.sum(value * factor, axis=list(loops.values()))

    return te.compute(
        [out[d] for d in data_layout],
        body,
        name=name,
        tag=name,
        attrs={"layout_free_placeholders": [weight]},
        varargs_names=axis_names(data_layout),
    )
