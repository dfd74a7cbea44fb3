"""Blocks of space turned into channels or batches, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..indexing import strided_slice
from ..transform import flatten
from ..utils import as_int, extents_of, get_const_tuple, is_constant, simplify
from .pad import pad

__all__ = [
    "batch_flatten",
    "flatten",
    "batch_to_space_nd",
    "depth_to_space",
    "space_to_batch_nd",
    "space_to_depth",
]


def batch_flatten(data: te.Tensor) -> te.Tensor:
    """All dimensions but the batch merged into one."""
    return flatten(data)


def _check_layout(where: str, data: te.Tensor, layout: str) -> dict[str, Any]:
    if sorted(layout) != sorted("NCHW"):
        raise ValueError(f"topi.nn.{where}: layout has N, C, H and W, got {layout!r}")
    return extents_of(data, layout, where)


def _divide(where: str, extent: Any, block: int) -> Any:
    if is_constant(extent) and as_int(extent) % block:
        raise ValueError(f"topi.nn.{where}: {block} does not divide {extent}")
    return simplify(extent // block)


def space_to_depth(data: te.Tensor, block_size: int, layout: str = "NCHW") -> te.Tensor:
    """Blocks of height and width as channels: those of a block's first element come first."""
    at = _check_layout("space_to_depth", data, layout)
    height, width = (_divide("space_to_depth", at[d], block_size) for d in "HW")

    def read(*indices: Any) -> Any:
        i = dict(zip(layout, indices))
        cell = i["C"] // at["C"]
        where = {
            "N": i["N"],
            "C": i["C"] % at["C"],
            "H": i["H"] * block_size + cell // block_size,
            "W": i["W"] * block_size + cell % block_size,
        }
        return data(*(where[d] for d in layout))

    out = {"N": at["N"], "C": simplify(at["C"] * block_size**2), "H": height, "W": width}
    return te.compute([out[d] for d in layout], read, name="T_space_to_depth", tag=tag.INJECTIVE)


def depth_to_space(
    data: te.Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> te.Tensor:
    """Channels as blocks of height and width.

    Parameters
    ----------
    mode : "DCR" undoes :func:`space_to_depth`: the position in the block is the slow part of the
        channel; with "CRD" it is the fast part, as in PyTorch's pixel_shuffle.
    """
    if mode not in ("DCR", "CRD"):
        raise ValueError(f"topi.nn.depth_to_space: mode is 'DCR' or 'CRD', got {mode!r}")
    at = _check_layout("depth_to_space", data, layout)
    channels = _divide("depth_to_space", at["C"], block_size**2)

    def read(*indices: Any) -> Any:
        i = dict(zip(layout, indices))
        cell = i["H"] % block_size * block_size + i["W"] % block_size
        where = {
            "N": i["N"],
            "C": cell * channels + i["C"] if mode == "DCR" else i["C"] * block_size**2 + cell,
            "H": i["H"] // block_size,
            "W": i["W"] // block_size,
        }
        return data(*(where[d] for d in layout))

    out = {
        "N": at["N"],
        "C": channels,
        "H": simplify(at["H"] * block_size),
        "W": simplify(at["W"] * block_size),
    }
    return te.compute([out[d] for d in layout], read, name="T_depth_to_space", tag=tag.INJECTIVE)


def _block(block_shape: Sequence[int]) -> tuple[list[int], int]:
    """Extents of a block and their product."""
    block = [as_int(b) for b in block_shape]
    cells = 1
    for b in block:
        cells *= b
    return block, cells


def space_to_batch_nd(
    data: te.Tensor,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> te.Tensor:
    """Positions in blocks of the dimensions behind the first as batches, after padding.

    Parameters
    ----------
    block_shape, pad_before, pad_after : for the dimensions from the second on.
    """
    rank = len(data.shape)
    block, cells = _block(block_shape)
    rest = [0] * (rank - 1 - len(block))
    padded = pad(data, [0, *pad_before, *rest], [0, *pad_after, *rest], pad_value)
    shape = get_const_tuple(padded.shape)
    out = [
        simplify(shape[0] * cells),
        *(_divide("space_to_batch_nd", n, b) for n, b in zip(shape[1:], block)),
        *shape[1 + len(block) :],
    ]

    def read(*i: Any) -> Any:
        cell = i[0] // shape[0]
        position: list[Any] = []
        stride = cells
        for index, b in zip(i[1:], block):
            stride //= b
            position.append(index * b + cell // stride % b)
        return padded(i[0] % shape[0], *position, *i[1 + len(block) :])

    return te.compute(out, read, name="T_space_to_batch_nd", tag=tag.INJECTIVE)


def batch_to_space_nd(
    data: te.Tensor,
    block_shape: Sequence[int],
    crop_begin_list: Sequence[int],
    crop_end_list: Sequence[int],
) -> te.Tensor:
    """Inverse of :func:`space_to_batch_nd`: its padding is cut off again."""
    shape = get_const_tuple(data.shape)
    block, cells = _block(block_shape)
    batch = _divide("batch_to_space_nd", shape[0], cells)
    whole = [
        batch,
        *(simplify(n * b) for n, b in zip(shape[1:], block)),
        *shape[1 + len(block) :],
    ]

    def read(*i: Any) -> Any:
        cell: Any = tir.const(0, "int32")
        for index, b in zip(i[1:], block):
            cell = cell * b + index % b
        position = [index // b for index, b in zip(i[1:], block)]
        return data(cell * batch + i[0], *position, *i[1 + len(block) :])

    result = te.compute(whole, read, name="T_batch_to_space_nd", tag=tag.INJECTIVE)
    if not any(as_int(c) for c in (*crop_begin_list, *crop_end_list)):
        return result
    begin = [0, *crop_begin_list]
    end = [batch, *(simplify(n - c) for n, c in zip(whole[1:], crop_end_list))]
    return strided_slice(result, begin, end)
