"""How constant weights are stored for the register tile that will read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm import te
from tvm.target import Target

from .. import tag
from ..dense import dense
from ..schedule_registry import Packing, register_packing
from ..utils import const_shape
from .dot_products import dot_instruction
from .tiles import convolution_tile, groups_of, product_tile
from .vectors import vector_lanes
from .whole_vectors import convolve_columns, convolve_groups, first_columns, whole_columns

__all__ = ["pack_dense_weight"]


def _depth(product: te.Tensor, weight: te.Tensor, lanes: int, target: Target) -> int:
    """Steps of the reduction that lie side by side in packed weights; 0 for weights left alone."""
    if weight.dtype == product.dtype:
        return 1
    dot = dot_instruction(product, lanes, target)
    return dot.depth if dot is not None else 0


def pack_dense_weight(
    weight: te.Tensor, block: int, depth: int = 1, columns: int | None = None
) -> Packing:
    """Weights (N, K) of a dense layer as panels (N / block, K / depth, block, depth).

    The last dimension is left out where `depth` is 1. `block` divides N, and `depth` K. With
    `columns`, zeros behind the weights make as many of N.
    """
    filters, length = const_shape(weight.shape)
    filters = columns or filters
    inner = (depth,) if depth > 1 else ()
    shape = (filters // block, length // depth, block, *inner)
    packed = te.placeholder(shape, weight.dtype, "packed_weight")

    def element(f: Any, k: Any) -> Any:
        return packed(f // block, k // depth, f % block, *(k % d for d in inner))

    return Packing(
        packed,
        te.compute((filters, length), element, name="weight", tag=tag.INJECTIVE),
        (0, 1, 0, *(1 for _ in inner)),
        (block, depth, 1, *(1 for _ in inner)),
        (filters, length),
    )


@register_packing(tag.DENSE, "cpu")
def _dense(product: te.Tensor, weight: te.Tensor, target: Target) -> Packing | None:
    plain = weight.dtype == product.dtype
    own = const_shape(weight.shape)[0]
    columns = whole_columns(target, product.dtype, own) if plain else own
    tile = product_tile(product, target, plain, columns)
    depth = 0 if tile is None else _depth(product, weight, tile.lanes, target)
    if tile is None or not depth:
        return None
    packing = pack_dense_weight(weight, tile.panel, depth, columns)
    if columns == own:
        return packing
    wide = dense(product.op.input_tensors[0], packing.weight)
    return replace(packing, result=first_columns(wide, own))


@register_packing("winograd_product", "cpu")
def _winograd_product(product: te.Tensor, weight: te.Tensor, target: Target) -> Packing | None:
    tile = product_tile(product, target)
    if tile is None or weight.dtype != product.dtype:
        return None
    points, channels, filters = const_shape(weight.shape)
    block = tile.block
    packed = te.placeholder(
        (points, filters // block, channels, block), weight.dtype, "packed_weight"
    )

    def element(e: Any, c: Any, f: Any) -> Any:
        return packed[e, f // block, c, f % block]

    return Packing(
        packed,
        te.compute(weight.shape, element, name="weight", tag=tag.INJECTIVE),
        (0, 2, 1, 2),
        (1, block, 1, 1),
    )


@register_packing(tag.RECURRENT_PANELS, "cpu")
def _recurrent(panels: te.Tensor, weight: te.Tensor, target: Target) -> Packing | None:
    """Weights of a recurrent layer, (state, gates * units), are stored as the panels themselves.

    Units behind the last one, whose values nobody reads, are those of the next gate.
    """
    state, columns = const_shape(weight.shape)
    count, groups, _, gates, width = const_shape(panels.shape)
    units = columns // (groups * gates)
    packed = te.placeholder(panels.shape, weight.dtype, "packed_weight")
    strides = (width, gates * units, 1, units, 1)
    filled = (state, columns + count * width - units)
    return Packing(packed, weight, (1, 1, 0, 1, 1), strides, filled, packed)


@register_packing(["conv2d_nhwc", "group_conv2d_nhwc"], "cpu")
def _conv2d(conv: te.Tensor, weight: te.Tensor, target: Target) -> Packing | None:
    height, width, channels, own = const_shape(weight.shape)
    plain = weight.dtype == conv.dtype == conv.op.input_tensors[0].dtype
    filters = own
    if plain and groups_of(conv) > 1:
        grouped = _whole_groups(conv, weight, target)
        if grouped is not None:
            return grouped
    elif plain:
        filters = whole_columns(target, conv.dtype, own)
    tile = convolution_tile(conv, target, weight.dtype == conv.dtype, filters)
    depth = 0 if tile is None else _depth(conv, weight, tile.lanes, target)
    if tile is None or not depth:
        return None
    block = tile.panel
    inner = (depth,) if depth > 1 else ()
    shape = (filters // block, height, width, channels // depth, block, *inner)
    packed = te.placeholder(shape, weight.dtype, "packed_weight")

    def element(y: Any, x: Any, c: Any, f: Any) -> Any:
        return packed(f // block, y, x, c // depth, f % block, *(c % d for d in inner))

    extents = (height, width, channels, filters)
    packing = Packing(
        packed,
        te.compute(extents, element, name="weight", tag=tag.INJECTIVE),
        (3, 0, 1, 2, 3, *(2 for _ in inner)),
        (block, 1, 1, depth, 1, *(1 for _ in inner)),
        extents,
    )
    if filters == own:
        return packing
    return replace(packing, result=first_columns(convolve_columns(conv, packing.weight), own))


def _whole_groups(conv: te.Tensor, weight: te.Tensor, target: Target) -> Packing | None:
    """Weights with zeros behind those of each group; None where groups fill vectors."""
    height, width, channels, filters = const_shape(weight.shape)
    groups = groups_of(conv)
    own = filters // groups
    wide = whole_columns(target, conv.dtype, own)
    if wide == own or wide > target.num_vector_registers // 4 * vector_lanes(target, conv.dtype):
        return None
    packed = te.placeholder((groups, height, width, channels, wide), weight.dtype, "packed_weight")
    return Packing(
        packed,
        weight,
        (3, 0, 1, 2, 3),
        (own, 1, 1, 1, 1),
        (height, width, channels, filters + wide - own),
        convolve_groups(conv, packed, vector_lanes(target, conv.dtype)),
    )
