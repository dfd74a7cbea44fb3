"""How constant weights are stored for the register tile that will read them."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.target import Target

from .. import tag
from ..schedule_registry import Packing, register_packing
from ..utils import const_shape
from .tiles import convolution_tile, product_tile

__all__: list[str] = []


@register_packing(tag.DENSE, "cpu")
def _dense(product: te.Tensor, weight: te.Tensor, target: Target) -> Packing | None:
    tile = product_tile(product, target)
    if tile is None or weight.dtype != product.dtype:
        return None
    filters, depth = const_shape(weight.shape)
    block = tile.block
    packed = te.placeholder((filters // block, depth, block), weight.dtype, "packed_weight")

    def element(f: Any, k: Any) -> Any:
        return packed[f // block, k, f % block]

    return Packing(
        packed,
        te.compute(weight.shape, element, name="weight", tag=tag.INJECTIVE),
        (0, 1, 0),
        (block, 1, 1),
    )


@register_packing(["conv2d_nhwc", "group_conv2d_nhwc"], "cpu")
def _conv2d(conv: te.Tensor, weight: te.Tensor, target: Target) -> Packing | None:
    tile = convolution_tile(conv, target)
    if tile is None or weight.dtype != conv.dtype:
        return None
    height, width, channels, filters = const_shape(weight.shape)
    block = tile.block
    packed = te.placeholder(
        (filters // block, height, width, channels, block), weight.dtype, "packed_weight"
    )

    def element(y: Any, x: Any, c: Any, f: Any) -> Any:
        return packed[f // block, y, x, c, f % block]

    return Packing(
        packed,
        te.compute(weight.shape, element, name="weight", tag=tag.INJECTIVE),
        (3, 0, 1, 2, 3),
        (block, 1, 1, 1, 1),
    )
