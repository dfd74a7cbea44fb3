"""Convolution whose windows are bent by offsets, after Dai et al., ICCV 2017."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ..image.interpolation import clamp, interpolate, linear_taps
from ..utils import as_int, as_pads, as_sizes, extents_of, get_const_tuple, is_constant, simplify
from .conv import Size, check_channels, conv_output_size

__all__ = ["deformable_columns", "deformable_conv2d_nchw", "deformable_conv2d_nhwc"]


def _deformable(
    data: te.Tensor,
    offset: te.Tensor,
    kernel: te.Tensor,
    strides: Size,
    padding: Any,
    dilation: Size,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None,
    layout: str,
    kernel_layout: str,
) -> te.Tensor:
    name = f"deformable_conv2d_{layout.lower()}"
    at, window = extents_of(data, layout, name), extents_of(kernel, kernel_layout, name)
    bends = extents_of(offset, layout, name)
    check_channels(name, at["C"], window["I"], window["O"], groups)
    steps, gaps = as_sizes(strides, 2), as_sizes(dilation, 2)
    size = [window[d] for d in "HW"]
    pads = as_pads(padding, 2, [simplify((k - 1) * g + 1) for k, g in zip(size, gaps)])
    rows, columns = conv_output_size([at[d] for d in "HW"], size, steps, pads, gaps)
    expected = 2 * deformable_groups * as_int(size[0]) * as_int(size[1])
    if is_constant(bends["C"]) and as_int(bends["C"]) != expected:
        raise ValueError(
            f"topi.nn.{name}: needs {expected} offset channels, a row and a column for each cell "
            f"of the window in {deformable_groups} groups; got {bends['C']}"
        )
    per_bend = simplify(at["C"] // deformable_groups)

    def sample(n: Any, c: Any, y: Any, x: Any, ky: Any, kx: Any) -> Any:
        """The cell of the bent window at result (y, x), zero outside of the image."""
        cell = (c // per_bend * size[0] + ky) * size[1] + kx
        where = []
        for k, (index, tap) in enumerate(((y, ky), (x, kx))):
            place = {"N": n, "C": cell * 2 + k, "H": y, "W": x}
            straight = index * steps[k] + tap * gaps[k] - pads[k]
            bend = offset(*(place[d] for d in layout))
            where.append(straight.astype(bend.dtype) + bend)

        def read(spatial: Sequence[Any]) -> Any:
            inside = [t for i, d in zip(spatial, "HW") for t in (i >= 0, i < at[d])]
            row, column = (clamp(i, at[d]) for i, d in zip(spatial, "HW"))
            place = {"N": n, "C": c, "H": row, "W": column}
            value = data(*(place[d] for d in layout))
            return tir.if_then_else(tir.all(*inside), value, tir.const(0, data.dtype))

        return interpolate([linear_taps(p) for p in where], read, data.dtype)

    samples = te.compute(
        (at["N"], at["C"], rows, columns, *size), sample, name="deformable_samples"
    )
    dtype = out_dtype or data.dtype
    rc = te.reduce_axis((0, window["I"]), name="rc")
    ry, rx = (te.reduce_axis((0, k), name=label) for k, label in zip(size, ("ry", "rx")))
    filters = simplify(window["O"] // groups)

    def body(*indices: Any) -> Any:
        i = dict(zip(layout, indices))
        channel = rc if groups == 1 else i["C"] // filters * window["I"] + rc
        where = {"O": i["C"], "I": rc, "H": ry, "W": rx}
        value = samples(i["N"], channel, i["H"], i["W"], ry, rx).astype(dtype)
        factor = kernel(*(where[d] for d in kernel_layout)).astype(dtype)
        return te.sum(value * factor, axis=[rc, ry, rx])

    out = {"N": get_const_tuple(data.shape)[0], "C": window["O"], "H": rows, "W": columns}
    return te.compute(
        [out[d] for d in layout],
        body,
        name=name,
        tag=name,
        attrs={"layout_free_placeholders": [kernel]},
    )


def deformable_conv2d_nchw(
    data: te.Tensor,
    offset: te.Tensor,
    kernel: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    deformable_groups: int = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NCHW data with OIHW weights, each cell of the window moved by an offset.

    Parameters
    ----------
    offset : (batch, deformable_groups * window height * window width * 2, out height, out width):
        for each cell of the window how far down, then how far right, it is moved. Between cells,
        and at the border where the image continues with zeros, elements are interpolated.
    deformable_groups : channels in that many groups with offsets of their own.
    """
    return _deformable(
        data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype,
        "NCHW", "OIHW",
    )  # fmt: skip


def deformable_conv2d_nhwc(
    data: te.Tensor,
    offset: te.Tensor,
    kernel: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    deformable_groups: int = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """:func:`deformable_conv2d_nchw` of NHWC data and offsets with HWIO weights."""
    return _deformable(
        data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype,
        "NHWC", "HWIO",
    )  # fmt: skip


def deformable_columns(
    data: te.Tensor,
    offset: te.Tensor,
    mask: te.Tensor | None = None,
    kernel_size: Size = 3,
    strides: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    deformable_groups: int = 1,
) -> te.Tensor:
    """What bent windows read of NHWC data: a matrix whose product with weights is the convolution.

    After Zhu et al., "Deformable ConvNets v2", CVPR 2019.

    Parameters
    ----------
    offset : NCHW, as that of :func:`deformable_conv2d_nchw`.
    mask : (batch, deformable_groups * window height * window width, out height, out width): what
        each cell of the window is multiplied with; None for 1.
    kernel_size : height and width of the window.
    padding : zeros above and below, left and right.

    Returns
    -------
    (batch, out height, out width, window height, window width, channels).

    Raises
    ------
    ValueError : the offsets or the mask have other channels than the window needs.
    """
    size, steps, gaps, pads = (
        [as_int(v) for v in as_sizes(value, 2)]
        for value in (kernel_size, strides, dilation, padding)
    )
    batch, height, width, channels = (as_int(e) for e in get_const_tuple(data.shape))
    cells = deformable_groups * size[0] * size[1]
    for name, tensor, count in (("offset", offset, 2 * cells), ("mask", mask, cells)):
        if tensor is not None and as_int(tensor.shape[1]) != count:
            raise ValueError(
                f"topi.nn.deformable_columns: {name} needs {count} channels for "
                f"{deformable_groups} groups of {size[0]} x {size[1]} cells, got {tensor.shape[1]}"
            )
    rows, columns = (as_int(e) for e in offset.shape[2:])
    per_bend = channels // deformable_groups
    dtype = str(data.dtype)

    def sample(n: Any, y: Any, x: Any, ky: Any, kx: Any, c: Any) -> Any:
        cell = (tir.floordiv(c, per_bend) * size[0] + ky) * size[1] + kx
        taps = []
        for k, (index, tap) in enumerate(((y, ky), (x, kx))):
            straight = index * steps[k] + tap * gaps[k] - pads[k]
            taps.append(linear_taps(straight.astype(dtype) + offset(n, cell * 2 + k, y, x)))

        def read(spatial: Sequence[Any]) -> Any:
            limits = zip(spatial, (height, width))
            inside = [t for i, limit in limits for t in (i >= 0, i < limit)]
            row, column = clamp(spatial[0], height), clamp(spatial[1], width)
            return tir.Select(tir.all(*inside), data(n, row, column, c), tir.const(0, dtype))

        value = interpolate(taps, read, dtype)
        return value if mask is None else value * mask(n, cell, y, x)

    return te.compute((batch, rows, columns, *size, channels), sample, name="deformable_columns")
