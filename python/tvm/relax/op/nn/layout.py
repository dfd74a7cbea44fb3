"""Layouts by name: ``NCHW``, ``NHWC``, and packed ones such as ``NCHW16c``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import error, tir

from ...expr import Call
from ...struct_info import TensorStructInfo
from ..rules import number, simplified

__all__ = ["NamedLayout", "layout_of"]


@dataclass(frozen=True)
class NamedLayout:
    """The dimensions of a tensor by letter, related to a plain order of the same letters.

    Attributes
    ----------
    name : as written. A capital letter is a dimension, or its outer part where a number and the
        small letter follow, which are the length of its inner part.
    parts : letters with lengths, None for capitals.
    plain : the capital letters in the order that rules compute in.
    """

    name: str
    parts: tuple[tuple[str, int | None], ...]
    plain: str

    @property
    def rank(self) -> int:
        """The number of dimensions of a tensor in this layout."""
        return len(self.parts)

    def check_rank(self, call: Call, info: TensorStructInfo) -> None:
        """Refuse a tensor that cannot be in this layout.

        Raises
        ------
        ValueError : it has another number of dimensions.
        """
        if info.ndim not in (-1, self.rank):
            raise error.ValueError(
                f"{call.op.name}: layout {self.name} is of {self.rank} dimensions, the tensor has "
                f"{info.ndim}"
            )

    def forward(self, shape: Sequence[Any]) -> list[Any]:
        """The extents in plain order, inner parts multiplied in."""
        result = []
        for letter in self.plain:
            place = next(k for k, (c, _) in enumerate(self.parts) if c == letter)
            inner = next((n for c, n in self.parts if c == letter.lower() and n), None)
            extent = shape[place]
            result.append(extent if inner is None else simplified(extent * inner))
        return result

    def backward(self, plain: Sequence[Any]) -> list[Any]:
        """The extents in this layout of a tensor whose plain ones are given."""
        by_letter = dict(zip(self.plain, plain))
        result: list[Any] = []
        for letter, inner in self.parts:
            if inner is not None:
                result.append(tir.const(inner, "int64"))
                continue
            split = next((n for c, n in self.parts if c == letter.lower() and n), None)
            extent = by_letter[letter]
            if split is not None:
                extent = simplified(tir.floordiv(_extent(extent), tir.const(split, "int64")))
            result.append(extent)
        return result


def _extent(value: Any) -> Any:
    literal = number(value)
    return value if literal is None else tir.const(literal, "int64")


def layout_of(call: Call, what: str, name: str, plain: str) -> NamedLayout:
    """The layout of a name, which must have the letters of ``plain``.

    Raises
    ------
    ValueError : it is not a layout, or has other dimensions.
    """
    found = re.findall(r"([A-Z])|(\d+)([a-z])", name)
    parts = tuple((upper, None) if upper else (lower, int(n)) for upper, n, lower in found)
    text = "".join(upper or n + lower for upper, n, lower in found)
    capitals = sorted(c for c, n in parts if n is None)
    smalls = [c.upper() for c, n in parts if n is not None]
    if text != name or capitals != sorted(plain) or not set(smalls) <= set(capitals) or len(
        set(smalls)
    ) != len(smalls):  # fmt: skip
        raise error.ValueError(
            f"{call.op.name}: {what} '{name}' is not a layout of the dimensions {', '.join(plain)}"
        )
    return NamedLayout(name, parts, plain)
