"""Products with constant weights: as they are, after Strassen, and the steps of Winograd's."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import RelayExpr

from ...expr import Call
from ..base import make_call

__all__ = [
    "dense",
    "strassen_product",
    "winograd_input_transform",
    "winograd_output_transform",
    "winograd_product",
]

Size = int | Sequence[int]


def _sizes(value: Size) -> list[int]:
    return [value] if isinstance(value, int) else [int(v) for v in value]


def dense(data: RelayExpr, weight: RelayExpr) -> Call:
    """data @ weight.T over the last dimension of data; weight is (out, in)."""
    return make_call("nn.dense", data, weight)


def strassen_product(data: RelayExpr, weight: RelayExpr) -> Call:
    """(M, K) data times weights from ``topi.nn.strassen_weight``: (M, N)."""
    return make_call("nn.strassen_product", data, weight)


def winograd_input_transform(
    data: RelayExpr, tile_size: int, kernel_size: int = 3, padding: Size = 0
) -> Call:
    """Tiles of NHWC data in the domain of Winograd's filtering: (n * n, tiles, channels).

    n is tile_size + kernel_size - 1; see ``topi.nn.winograd_input_transform``.
    """
    return make_call(
        "nn.winograd_input_transform",
        data,
        tile_size=tile_size,
        kernel_size=kernel_size,
        padding=_sizes(padding),
    )


def winograd_product(data: RelayExpr, weight: RelayExpr) -> Call:
    """Transformed data times (n * n, channels, filters) weights: (n * n, tiles, filters)."""
    return make_call("nn.winograd_product", data, weight)


def winograd_output_transform(
    product: RelayExpr, out_size: Size, tile_size: int, kernel_size: int = 3
) -> Call:
    """The NHWC image, of height and width `out_size`, that transformed products stand for."""
    return make_call(
        "nn.winograd_output_transform",
        product,
        out_size=_sizes(out_size),
        tile_size=tile_size,
        kernel_size=kernel_size,
    )
