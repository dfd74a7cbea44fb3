"""Layouts of tensors by the letters of their axes, and maps from one to another."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from tvm.ir import PrimExpr, Range
from tvm.runtime import DataType

from .expr import IntImm, IterVar, Var, const, convert

__all__ = ["BijectiveLayout", "Layout", "bijective_layout", "layout"]

_UNDEFINED = "__undef__"
_AXIS = re.compile(r"([A-Z])|(\d+)([a-z])")


class Layout:
    """The order of a tensor's axes: ``NCHW16c`` has the channels in blocks of 16, innermost.

    A capital letter is an axis; a small one, after its length, a part split off that axis. An axis
    may be split several times, the first part being the coarse one: in ``OIHW4i16o4i`` four
    neighbours along I are innermost, and four such groups make one step of I.

    Parameters
    ----------
    name : the letters; "" or "__undef__" for a layout that nobody knows.
    dtype : of indices.

    Raises
    ------
    ValueError : the name does not read as a layout.
    TypeError : the dtype is not that of indices.
    """

    def __init__(self, name: str, dtype: str = "int32") -> None:
        if not isinstance(dtype, str) or DataType(dtype).kind != "int":
            raise TypeError(f"layout: indices are integers, got dtype {dtype!r}")
        self.name = name
        self.dtype = dtype
        self._letters: list[str] = []
        # Length of each letter that is a part, None for axes.
        self._lengths: list[int | None] = []
        if name not in ("", _UNDEFINED):
            self._read(name)

    def _read(self, name: str) -> None:
        position = 0
        while position < len(name):
            found = _AXIS.match(name, position)
            if found is None:
                raise ValueError(
                    f"layout: cannot read {name!r} from {name[position:]!r} on; axes are capital "
                    "letters, and parts small ones after their length, such as NCHW16c"
                )
            letter = found[1] or found[3]
            if found[1] and letter in self._letters:
                raise ValueError(f"layout: {name!r} has {letter!r} twice")
            self._letters.append(letter)
            self._lengths.append(int(found[2]) if found[2] is not None else None)
            if self._lengths[-1] == 0:
                raise ValueError(f"layout: {name!r} has a part of no elements")
            position = found.end()
        for letter in self._letters:
            if letter.upper() not in self._letters:
                raise ValueError(f"layout: {name!r} has {letter!r}, a part of no axis")

    @property
    def is_defined(self) -> bool:
        """Whether the layout is known."""
        return bool(self._letters)

    @property
    def axes(self) -> list[IterVar]:
        """An axis for each letter, with a variable as length where it is not known."""
        found = []
        for letter, length in zip(self._letters, self._lengths):
            extent: Any = Var(letter, self.dtype)
            if length is not None:
                extent = const(length, self.dtype)
            elif self.factor_of(letter) != -1:
                extent = extent // self.factor_of(letter)
            domain = Range(const(0, self.dtype), extent)
            found.append(IterVar(domain, Var(letter, self.dtype), IterVar.DataPar))
        return found

    def __len__(self) -> int:
        return len(self._letters)

    def __contains__(self, axis: str) -> bool:
        return axis in self._letters

    def __getitem__(self, index: int) -> str:
        return self._letters[index]

    def index_of(self, axis: str) -> int:
        """Position of an axis, -1 if there is none."""
        return self._letters.index(axis) if axis in self._letters else -1

    def factor_of(self, axis: str) -> int:
        """Length of all parts split off an axis, by the letter of either; -1 if there are none."""
        parts = self._parts(axis.upper())
        return math.prod(parts) if parts else -1

    def _parts(self, axis: str) -> list[int]:
        pairs = zip(self._letters, self._lengths)
        return [n for letter, n in pairs if n is not None and letter.upper() == axis]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.name == other
        return isinstance(other, Layout) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Layout({self.name})"


class BijectiveLayout:
    """The map between two layouts of the same axes; make one with `bijective_layout`."""

    def __init__(self, src_layout: Layout, dst_layout: Layout) -> None:
        self.src_layout = src_layout
        self.dst_layout = dst_layout

    def forward_index(self, index: Sequence[Any]) -> list[PrimExpr]:
        """Where the element at an index of the source is in the destination."""
        return _map_index(self.src_layout, self.dst_layout, index)

    def backward_index(self, index: Sequence[Any]) -> list[PrimExpr]:
        """Where the element at an index of the destination is in the source."""
        return _map_index(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape: Sequence[Any]) -> list[PrimExpr]:
        """Extents in the destination; a last block that is not full counts."""
        return _map_shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape: Sequence[Any]) -> list[PrimExpr]:
        """Extents in the source."""
        return _map_shape(self.dst_layout, self.src_layout, shape)

    def __repr__(self) -> str:
        return f"BijectiveLayout({self.src_layout.name}->{self.dst_layout.name})"


def _checked(source: Layout, values: Sequence[Any]) -> list[PrimExpr]:
    items = [convert(value) for value in values]
    if len(items) != len(source):
        raise ValueError(
            f"layout {source.name} has {len(source)} axes, here are {len(items)} values"
        )
    return items


def _map_index(source: Layout, target: Layout, index: Sequence[Any]) -> list[PrimExpr]:
    whole: dict[str, Any] = {}
    given = _checked(source, index)
    for letter, value in zip(source._letters, given):
        if letter.isupper():
            whole[letter] = value
    for letter, length, value in zip(source._letters, source._lengths, given):
        if length is not None:
            whole[letter.upper()] = whole[letter.upper()] * length + value
    result: list[PrimExpr] = []
    seen: dict[str, int] = {}
    for letter, length in zip(target._letters, target._lengths):
        axis, parts = letter.upper(), target._parts(letter.upper())
        if length is not None:
            seen[axis] = seen.get(axis, 0) + 1
            parts = parts[seen[axis] :]
        at = whole[axis] // math.prod(parts) if parts else whole[axis]
        result.append(at if length is None else at % length)
    return result


def _map_shape(source: Layout, target: Layout, shape: Sequence[Any]) -> list[PrimExpr]:
    given = dict(zip(source._letters, _checked(source, shape)))
    result: list[PrimExpr] = []
    for letter, length in zip(target._letters, target._lengths):
        if length is not None:
            result.append(IntImm(target.dtype, length))
            continue
        extent: Any = given[letter]
        part = source.factor_of(letter)
        if part != -1:
            extent = extent * part
        split = target.factor_of(letter)
        result.append(extent if split == -1 else (extent + (split - 1)) // split)
    return result


def layout(layout_str: str, dtype: str = "int32") -> Layout:
    """A layout by its letters."""
    return Layout(layout_str, dtype)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout | None:
    """The map between two layouts, or None if they have not the same axes or one is not known."""
    source, target = (
        given if isinstance(given, Layout) else Layout(given) for given in (src_layout, dst_layout)
    )
    axes = [{letter for letter in side._letters if letter.isupper()} for side in (source, target)]
    if not source.is_defined or not target.is_defined or axes[0] != axes[1]:
        return None
    return BijectiveLayout(source, target)
