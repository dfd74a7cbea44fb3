"""Settings of windows: sizes for every spatial axis, borders, layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import arith, error, tir

from ..shapes import extent_number, simplified

__all__ = ["Blocked", "pads_of", "sizes_of", "window_extent"]

Size = int | Sequence[int]


def sizes_of(value: Any, rank: int) -> list[Any]:
    """One size for each of `rank` axes."""
    if isinstance(value, (int, tir.IntImm)):
        return [int(value)] * rank
    sizes = [v if (n := extent_number(v)) is None else n for v in value]
    return sizes * rank if len(sizes) == 1 else sizes


def pads_of(where: str, padding: Any, rank: int) -> list[Any]:
    """Borders before every axis, then behind every axis.

    Raises
    ------
    ValueError : neither one size, nor one for each axis, nor two for each.
    """
    sizes = [padding] if isinstance(padding, (int, tir.IntImm)) else list(padding)
    sizes = [v if (n := extent_number(v)) is None else n for v in sizes]
    if len(sizes) == 1:
        return sizes * (2 * rank)
    if len(sizes) == rank:
        return sizes * 2
    if len(sizes) != 2 * rank:
        raise error.ValueError(f"{where}: padding of {len(sizes)} sizes over {rank} axes")
    return sizes


def window_extent(
    size: Any, window: Any, stride: int, border: Any, dilation: int, ceil_mode: bool = False
) -> Any:
    """Number of places of a window along an axis."""
    room = size + border - (window - 1) * dilation - 1
    if ceil_mode:
        room = room + stride - 1
    number = extent_number(room)
    if number is not None:
        return number // stride + 1
    if stride == 1:
        return simplified(room + 1)
    return simplified(tir.floordiv(room, stride) + 1)


class Blocked:
    """A layout whose axes may be blocked, such as NCHW16c, and the plain order it comes from.

    Parameters
    ----------
    name : the layout.
    plain : the order of the same axes without blocks.

    Raises
    ------
    ValueError : other axes than those of the plain order.
    """

    def __init__(self, where: str, name: str, plain: str) -> None:
        self.parts: list[tuple[str, int | None]] = []
        digits = ""
        for letter in name:
            if letter.isdigit():
                digits += letter
            else:
                self.parts.append((letter, int(digits) if digits else None))
                digits = ""
        if sorted(axis for axis, block in self.parts if block is None) != sorted(plain):
            raise error.ValueError(f"{where}: layout {name} has other axes than {plain}")
        self.name, self.plain = name, plain

    def forward(self, shape: Sequence[Any], where: str = "relay") -> list[Any]:
        """The plain shape of a tensor in this layout."""
        if len(shape) != len(self.parts):
            raise error.ValueError(
                f"{where}: layout {self.name} is of {len(self.parts)} axes, the shape is "
                f"{list(shape)}"
            )
        sizes: dict[str, Any] = {}
        for (axis, _), extent in zip(self.parts, shape):
            key, number = axis.upper(), extent_number(extent)
            sizes[key] = sizes.get(key, 1) * (extent if number is None else number)
        return [simplified(sizes[axis]) for axis in self.plain]

    def backward(self, shape: Sequence[Any]) -> list[Any]:
        """The shape in this layout of a tensor of a plain shape."""
        sizes = dict(zip(self.plain, shape))
        blocks: dict[str, int] = {}
        for axis, block in self.parts:
            if block is not None:
                blocks[axis.upper()] = blocks.get(axis.upper(), 1) * block
        result = []
        for axis, block in self.parts:
            if block is not None:
                result.append(block)
                continue
            size, inner = sizes[axis], blocks.get(axis, 1)
            number = extent_number(size)
            if inner == 1:
                result.append(size)
            elif number is not None:
                result.append(number // inner)
            else:
                result.append(arith.Analyzer().simplify(tir.floordiv(size, inner)))
        return result
