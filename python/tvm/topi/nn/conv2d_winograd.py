"""Two-dimensional convolution by Winograd's minimal filtering, after Lavin and Gray, CVPR 2016."""

from __future__ import annotations

from typing import Any

from tvm import te

from ..utils import (
    Extent,
    as_int,
    as_pads,
    as_sizes,
    ceil_div,
    extents_of,
    is_constant,
    same_extent,
    simplify,
)
from .conv import Size, conv_output_size, pad_spatial
from .winograd_util import winograd_transform_matrices

__all__ = [
    "conv2d_winograd_nchw",
    "conv2d_winograd_nchw_without_weight_transform",
    "conv2d_winograd_nhwc",
    "conv2d_winograd_nhwc_without_weight_transform",
    "conv2d_winograd_weight_transform",
]

# Loops over the transform matrices, to be unrolled with their numbers written in.
_UNROLLED = "auto_scheduler_simplify_const_tensor_indices"


def conv2d_winograd_weight_transform(
    kernel: te.Tensor, tile_size: int, kernel_layout: str = "OIHW"
) -> te.Tensor:
    """The kernel in the transformed domain: (n, n, filters, channels) for n = tile + kernel - 1."""
    at = extents_of(kernel, kernel_layout, "conv2d_winograd_weight_transform")
    size = as_int(at["H"])
    if size != as_int(at["W"]):
        raise ValueError(
            f"topi.nn.conv2d_winograd: the kernel must be square, got {at['H']} x {at['W']}"
        )
    n = tile_size + size - 1
    _, _, g = winograd_transform_matrices(tile_size, size, kernel.dtype)
    rh = te.reduce_axis((0, size), name="r_kh")
    rw = te.reduce_axis((0, size), name="r_kw")

    def body(eps: Any, nu: Any, co: Any, ci: Any) -> Any:
        where = {"O": co, "I": ci, "H": rh, "W": rw}
        weight = kernel(*(where[letter] for letter in kernel_layout))
        return te.sum(weight * g[eps, rh] * g[nu, rw], axis=[rh, rw])

    return te.compute(
        (n, n, at["O"], at["I"]),
        body,
        name="kernel_pack",
        tag="winograd_weight_transform",
        attrs={_UNROLLED: ["eps", "nu", "r_kh", "r_kw"]},
    )


def _winograd(
    data: te.Tensor,
    kernel_pack: te.Tensor,
    kernel_size: int,
    strides: Size,
    padding: Any,
    dilation: Size,
    out_dtype: str | None,
    layout: str,
    pre_computed: bool,
) -> te.Tensor:
    name = f"conv2d_winograd_{layout.lower()}"
    if any(as_int(s) != 1 for s in (*as_sizes(strides, 2), *as_sizes(dilation, 2))):
        raise ValueError(
            f"topi.nn.{name}: needs stride 1 and dilation 1, got {strides} and {dilation}; use "
            "topi.nn.conv2d"
        )
    at = extents_of(data, layout, name)
    n, other, filters, channels = kernel_pack.shape
    n = as_int(n)
    tile = n - kernel_size + 1
    if n != as_int(other) or tile < 1:
        raise ValueError(
            f"topi.nn.{name}: a transformed kernel of {n} x {other} does not fit kernel size "
            f"{kernel_size}"
        )
    if is_constant(at["C"]) and is_constant(channels) and not same_extent(at["C"], channels):
        raise ValueError(
            f"topi.nn.{name}: the kernel has {channels} input channels, the data {at['C']}"
        )
    pads = as_pads(padding, 2, (kernel_size, kernel_size))
    window = (kernel_size, kernel_size)
    height, width = conv_output_size((at["H"], at["W"]), window, (1, 1), pads, (1, 1))
    rows, columns = ceil_div(height, tile), ceil_div(width, tile)
    # The last tiles may reach past the result: pad for them too.
    behind = [
        simplify(pads[2] + rows * tile - height),
        simplify(pads[3] + columns * tile - width),
    ]
    padded = pad_spatial(data, layout, pads[:2], behind)
    tiles: Extent = simplify(at["N"] * rows * columns)
    a, b, _ = winograd_transform_matrices(tile, kernel_size, data.dtype)
    dtype = out_dtype or data.dtype

    def read_tile(eps: Any, nu: Any, p: Any, c: Any) -> Any:
        where = {
            "N": p // (rows * columns),
            "H": p // columns % rows * tile + eps,
            "W": p % columns * tile + nu,
            "C": c,
        }
        return padded(*(where[letter] for letter in layout))

    input_tile = te.compute((n, n, tiles, at["C"]), read_tile, name="input_tile")
    r_a, r_b = te.reduce_axis((0, n), name="r_a"), te.reduce_axis((0, n), name="r_b")
    data_pack = te.compute(
        (n, n, tiles, at["C"]),
        lambda eps, nu, p, ci: te.sum(
            input_tile[r_a, r_b, p, ci] * b[r_a, eps] * b[r_b, nu], axis=[r_a, r_b]
        ),
        name="data_pack",
        attrs={_UNROLLED: ["eps", "nu", "r_a", "r_b"]},
    )
    ci = te.reduce_axis((0, at["C"]), name="ci")
    product = te.compute(
        (n, n, tiles, filters),
        lambda eps, nu, p, co: te.sum(
            data_pack[eps, nu, p, ci].astype(dtype) * kernel_pack[eps, nu, co, ci].astype(dtype),
            axis=[ci],
        ),
        name="bgemm",
        attrs={"layout_free_placeholders": [kernel_pack]} if pre_computed else None,
    )
    o_a, o_b = te.reduce_axis((0, n), name="r_a"), te.reduce_axis((0, n), name="r_b")
    inverse = te.compute(
        (tile, tile, tiles, filters),
        lambda vh, vw, p, co: te.sum(
            product[o_a, o_b, p, co] * a[o_a, vh].astype(dtype) * a[o_b, vw].astype(dtype),
            axis=[o_a, o_b],
        ),
        name="inverse",
        attrs={_UNROLLED: ["vh", "vw", "r_a", "r_b"]},
    )

    def read_result(*indices: Any) -> Any:
        i = dict(zip(layout, indices))
        p = (i["N"] * rows + i["H"] // tile) * columns + i["W"] // tile
        return inverse[i["H"] % tile, i["W"] % tile, p, i["C"]]

    out = {"N": at["N"], "C": filters, "H": height, "W": width}
    return te.compute(
        [out[letter] for letter in layout],
        read_result,
        name=name,
        tag=name,
        varargs_names=[letter.lower() for letter in layout],
    )


def _from_weight(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size,
    padding: Any,
    dilation: Size,
    out_dtype: str | None,
    pre_computed: bool,
    layout: str,
    kernel_layout: str,
    tile_size: int,
) -> te.Tensor:
    if pre_computed:
        kernel_size = as_int(weight.shape[0]) - tile_size + 1
        pack = weight
    else:
        pack = conv2d_winograd_weight_transform(weight, tile_size, kernel_layout)
        kernel_size = as_int(pack.shape[0]) - tile_size + 1
    return _winograd(
        data, pack, kernel_size, strides, padding, dilation, out_dtype, layout, pre_computed
    )


def conv2d_winograd_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
    pre_computed: bool = False,
    tile_size: int = 4,
) -> te.Tensor:
    """Convolution of NHWC data with square HWIO weights, with fewer products than their count.

    A tile of ``tile_size`` squared results takes (tile + kernel - 1) squared products a channel
    instead of (tile * kernel) squared; rounding errors grow with the tile.

    Parameters
    ----------
    weight : (kernel, kernel, channels, filters), or with pre_computed what
        :func:`conv2d_winograd_weight_transform` gives, then layout-free.
    strides, dilation : 1.

    Raises
    ------
    ValueError : another stride or dilation, a kernel that is not square, or channels that differ.
    """
    return _from_weight(
        data, weight, strides, padding, dilation, out_dtype, pre_computed, "NHWC", "HWIO", tile_size
    )


def conv2d_winograd_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
    pre_computed: bool = False,
    tile_size: int = 4,
) -> te.Tensor:
    """:func:`conv2d_winograd_nhwc` of NCHW data with OIHW weights."""
    return _from_weight(
        data, weight, strides, padding, dilation, out_dtype, pre_computed, "NCHW", "OIHW", tile_size
    )


def conv2d_winograd_nhwc_without_weight_transform(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
    tile_size: int = 4,
) -> te.Tensor:
    """:func:`conv2d_winograd_nhwc` with weights that are transformed already."""
    return conv2d_winograd_nhwc(
        data, weight, strides, padding, dilation, out_dtype, True, tile_size
    )


def conv2d_winograd_nchw_without_weight_transform(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    out_dtype: str | None = None,
    tile_size: int = 4,
) -> te.Tensor:
    """:func:`conv2d_winograd_nchw` with weights that are transformed already."""
    return conv2d_winograd_nchw(
        data, weight, strides, padding, dilation, out_dtype, True, tile_size
    )
