"""Choices of knobs: what one candidate is, how it is applied and written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import te
from tvm.tir import IterVar

__all__ = [
    "AnnotateEntity",
    "Entity",
    "OtherOptionEntity",
    "ReorderEntity",
    "SplitEntity",
    "VirtualAxis",
]


class VirtualAxis:
    """An axis that knobs are defined over before any schedule exists.

    Attributes
    ----------
    name : of the loop; length : iterations, None for a loop that a schedule made by splitting,
        which can be ordered and marked, but not be split by a knob.
    """

    length: int | None
    name: str

    def __init__(self, var: Any, name: str | None = None) -> None:
        if isinstance(var, VirtualAxis):
            self.length, self.name = var.length, name or var.name
        elif isinstance(var, IterVar):
            self.length = None if var.dom is None else _constant(var.dom.extent)
            self.name = name or str(var.var.name)
        else:
            self.length, self.name = _constant(var), name or "axis"

    def __repr__(self) -> str:
        return f"{self.name}[{self.length}]"


def _constant(value: Any) -> int:
    """A number of Python.

    Raises
    ------
    ValueError : the value is not constant.
    """
    number = getattr(value, "value", value)
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, np.integer)):
        raise ValueError(f"config space: knobs need constant extents, got {value}")
    return int(number)


class Entity:
    """One choice of a knob."""

    def feature(self) -> list[float]:
        """Numbers for cost models."""
        raise TypeError(f"{type(self).__name__} does not define feature")

    def to_json(self) -> Any:
        """What a record says."""
        raise TypeError(f"{type(self).__name__} does not define to_json")

    @classmethod
    def from_json(cls, value: Any) -> Entity:
        """Inverse of `to_json`; ValueError for anything else."""
        raise TypeError(f"{cls.__name__} does not define from_json")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_json() == other.to_json()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(str(self.to_json()))

    def __repr__(self) -> str:
        return str(self.to_json())


def _integers(value: Any, what: str) -> list[int]:
    if not isinstance(value, (list, tuple)) or not all(type(item) is int for item in value):
        raise ValueError(f"config: {what} is a list of integers, got {value!r}")
    return list(value)


class SplitEntity(Entity):
    """Sizes of the loops that an axis becomes, the outermost first; -1 is what is left.

    Attributes
    ----------
    size : one number a loop.
    """

    def __init__(self, size: Sequence[int]) -> None:
        self.size = [int(value) for value in size]

    def apply(self, sch: te.Schedule, op: Any, axis: IterVar) -> list[IterVar]:
        """Split an axis of a stage; returns the loops, the outermost first."""
        inner: list[IterVar] = []
        for factor in reversed(self.size[1:]):
            axis, loop = sch[op].split(axis, factor=factor)
            inner.append(loop)
        return [axis, *reversed(inner)]

    def feature(self) -> list[float]:
        return [float(value) for value in self.size]

    def to_json(self) -> list[int]:
        return list(self.size)

    @classmethod
    def from_json(cls, value: Any) -> SplitEntity:
        """Inverse of `to_json`; ValueError for anything else."""
        return cls(_integers(value, "a split"))


class ReorderEntity(Entity):
    """An order of axes.

    Attributes
    ----------
    perm : place of each axis in the list that the knob was defined over.
    """

    def __init__(self, perm: Sequence[int]) -> None:
        self.perm = [int(place) for place in perm]

    def apply(self, sch: te.Schedule, op: Any, axes: Sequence[IterVar]) -> list[IterVar]:
        """Reorder loops of a stage; returns them in their new order."""
        if len(axes) == len(self.perm):
            ordered = [axes[place] for place in self.perm]
        else:
            ordered = [axes[place] for place in self.perm if place < len(axes)]
        sch[op].reorder(*ordered)
        return ordered

    def feature(self) -> list[float]:
        return [float(place) for place in self.perm]

    def to_json(self) -> list[int]:
        return list(self.perm)

    @classmethod
    def from_json(cls, value: Any) -> ReorderEntity:
        """Inverse of `to_json`; ValueError for anything else."""
        return cls(_integers(value, "an order"))


class AnnotateEntity(Entity):
    """Marks of axes, or for caches the number of the axis that each is computed at.

    Attributes
    ----------
    anns : "none", "unroll", "vec", a thread, "vthread", or a number, one an axis.
    """

    _CODES = ("none", "unroll", "vec", "vthread", "blockIdx", "threadIdx")

    def __init__(self, anns: Sequence[str | int]) -> None:
        self.anns = list(anns)

    def apply(
        self,
        sch: te.Schedule,
        op: Any,
        axes: Sequence[IterVar],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
        cfg: Any = None,
        source: Sequence[Sequence[Any]] | None = None,
    ) -> list[IterVar]:
        """Mark loops of a stage.

        Parameters
        ----------
        axis_lens : iterations of each, for the two limits below.
        max_unroll : longer loops are refused through ``cfg.raise_error``.
        vec_size : lanes that the machine has; others are refused.
        source : caches, a list for each choice, that are computed at the chosen axes.
        """
        if source is not None:
            for stages, place in zip(source, self.anns):
                for stage in stages:
                    sch[stage].compute_at(sch[op], axes[int(place)])
            return list(axes)
        for number, mark in enumerate(self.anns):
            axis = axes[number]
            length = None if axis_lens is None else axis_lens[number]
            if mark == "unroll":
                if cfg is not None and max_unroll and length is not None and length > max_unroll:
                    cfg.raise_error(f"a loop of {length} iterations is too long to be unrolled")
                sch[op].unroll(axis)
            elif mark == "vec":
                if cfg is not None and vec_size and length is not None and length not in vec_size:
                    cfg.raise_error(f"vectors of {length} lanes are none of {list(vec_size)}")
                sch[op].vectorize(axis)
            elif mark != "none":
                sch[op].bind(axis, te.thread_axis(str(mark)))
        return list(axes)

    def feature(self) -> list[float]:
        codes = []
        for mark in self.anns:
            if isinstance(mark, int):
                codes.append(float(mark))
            else:
                kind = mark.split(".")[0]
                codes.append(float(self._CODES.index(kind)) if kind in self._CODES else -1.0)
        return codes

    def to_json(self) -> list[str | int]:
        return list(self.anns)

    @classmethod
    def from_json(cls, value: Any) -> AnnotateEntity:
        """Inverse of `to_json`; ValueError for anything else."""
        if not isinstance(value, (list, tuple)) or not all(type(v) in (int, str) for v in value):
            raise ValueError(f"config: marks are texts or numbers, got {value!r}")
        return cls(value)


class OtherOptionEntity(Entity):
    """A value of `ConfigSpace.define_knob`.

    Attributes
    ----------
    val : the value.
    """

    def __init__(self, val: Any) -> None:
        self.val = val

    def feature(self) -> list[float]:
        if isinstance(self.val, (bool, int, float)):
            return [float(self.val)]
        if isinstance(self.val, (list, tuple)) and all(
            isinstance(v, (int, float)) for v in self.val
        ):
            return [float(v) for v in self.val]
        # Any fixed code keeps choices apart; hash() of a text differs between processes.
        return [float(sum(str(self.val).encode()) % 251)]

    def to_json(self) -> Any:
        return list(self.val) if isinstance(self.val, tuple) else self.val

    @classmethod
    def from_json(cls, value: Any) -> OtherOptionEntity:
        """Inverse of `to_json`."""
        return cls(value)
