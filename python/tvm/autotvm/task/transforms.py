"""Candidates of each kind of knob."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .entities import (
    AnnotateEntity,
    Entity,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
    VirtualAxis,
)

__all__ = [
    "AnnotateSpace",
    "Axis",
    "OtherOptionSpace",
    "ReorderSpace",
    "SplitSpace",
    "TransformSpace",
    "get_factors",
    "get_pow2s",
]


@dataclass(frozen=True)
class Axis:
    """A loop that a knob makes: `index` of the loops of `space`, None in a fixed point."""

    space: TransformSpace | None
    index: int


class TransformSpace:
    """The candidates of one knob, numbered from 0.

    Parameters
    ----------
    axes : what the knob is defined over.
    policy : which candidates there are.
    options : of the policy; unknown ones raise a TypeError.
    """

    policies: tuple[str, ...] = ()

    def __init__(self, axes: Sequence[VirtualAxis | Axis], policy: str) -> None:
        if policy not in self.policies:
            raise ValueError(
                f"{type(self).__name__}: unknown policy {policy!r}; there are {list(self.policies)}"
            )
        self.policy = policy
        self.inputs = list(axes)
        self.entities: list[Any] = []
        self.num_output = 0

    @property
    def axes(self) -> list[Axis]:
        """The loops that the knob makes."""
        return [Axis(self, number) for number in range(self.num_output)]

    @staticmethod
    def axes_of(entity: Entity, inputs: int) -> list[Axis]:
        """The loops that a choice makes of so many."""
        size = len(entity.size) if isinstance(entity, SplitEntity) else inputs
        return [Axis(None, number) for number in range(size)]

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int) -> Any:
        return self.entities[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.entities)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.policy})"


def get_factors(n: int) -> list[int]:
    """All divisors of a number, ascending."""
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


def get_pow2s(n: int) -> list[int]:
    """The powers of two up to a number, ascending."""
    return [1 << k for k in range(n.bit_length())]


class SplitSpace(TransformSpace):
    """Ways to split one axis into `num_outputs` loops; the outermost takes what is left.

    Attributes
    ----------
    product : iterations of the axis.
    """

    policies = ("factors", "power2", "verbose", "candidate")

    def __init__(
        self,
        axes: Sequence[VirtualAxis | Axis],
        policy: str,
        num_outputs: int = 0,
        num_output: int = 0,
        max_factor: int | None = None,
        filter: Callable[[SplitEntity], bool] | None = None,
        no_tail: bool = False,
        candidate: Iterable[Sequence[int]] | None = None,
    ) -> None:
        super().__init__(axes, policy)
        [axis] = axes
        if isinstance(axis, Axis):
            raise ValueError("config space: a split is defined over an axis of an operation")
        if axis.length is None:
            raise ValueError(
                f"config space: the loop {axis.name} has no length yet; define a split over an "
                "axis of the operation, or over a length"
            )
        self.product: int = axis.length
        if policy == "candidate":
            self.entities = [SplitEntity(sizes) for sizes in candidate or ()]
            self.num_output = len(self.entities[0].size) if self.entities else 0
        else:
            self.num_output = num_outputs or num_output or 2
            self.entities = list(self._enumerate(policy, max_factor, no_tail))
        if filter is not None:
            self.entities = [entity for entity in self.entities if filter(entity)]

    def _enumerate(
        self, policy: str, max_factor: int | None, no_tail: bool
    ) -> Iterator[SplitEntity]:
        powers = get_pow2s(self.product)
        factors: Iterable[int] = get_factors(self.product)
        if policy == "power2":
            factors = powers
        elif policy == "verbose":
            factors = sorted({*get_factors(self.product), *powers})
        limit = max_factor or self.product
        fitting = [f for f in factors if f <= min(limit, self.product)]
        for inner in itertools.product(fitting, repeat=self.num_output - 1):
            tile = math.prod(inner)
            if self.product % tile == 0 or (not no_tail and tile < self.product):
                yield SplitEntity([-1, *reversed(inner)])


class ReorderSpace(TransformSpace):
    """Orders of several axes."""

    policies = ("identity", "all", "interval_all", "interleave", "candidate")

    def __init__(
        self,
        axes: Sequence[VirtualAxis | Axis],
        policy: str,
        interval: tuple[int, int] | None = None,
        candidate: Iterable[Sequence[Any]] | None = None,
        spatial: Sequence[Sequence[Any]] | None = None,
        reduce: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        super().__init__(axes, policy)
        self.num_output = len(axes)
        places = list(range(len(axes)))
        orders: Iterable[Sequence[int]]
        if policy == "identity":
            orders = [places]
        elif policy == "all":
            orders = itertools.permutations(places)
        elif policy == "interval_all":
            if interval is None:
                raise ValueError("ReorderSpace: policy 'interval_all' needs interval=(begin, end)")
            begin, end = interval
            orders = (
                [*places[:begin], *middle, *places[end:]]
                for middle in itertools.permutations(places[begin:end])
            )
        elif policy == "interleave":
            if spatial is None or reduce is None:
                raise ValueError(
                    "ReorderSpace: policy 'interleave' needs spatial and reduce chains"
                )
            orders = self._interleaved(spatial, reduce)
        else:
            orders = [[self._place(axis) for axis in order] for order in candidate or ()]
        self.entities = [ReorderEntity(order) for order in orders]

    def _place(self, axis: Any) -> int:
        if isinstance(axis, int):
            return axis
        for place, known in enumerate(self.inputs):
            if known is axis or known == axis:
                return place
        raise ValueError(f"ReorderSpace: {axis!r} is none of the axes of the knob")

    def _interleaved(
        self, spatial: Sequence[Sequence[Any]], reduce: Sequence[Sequence[Any]]
    ) -> Iterator[list[int]]:
        """Levels of tiles in every order that keeps each chain, the outermost spatial one first."""

        def levels(chains: Sequence[Sequence[Any]]) -> list[list[int]]:
            depth = max((len(chain) for chain in chains), default=0)
            return [
                [self._place(chain[level]) for chain in chains if level < len(chain)]
                for level in range(depth)
            ]

        outer, *inner = levels(spatial) or [[]]
        sums = levels(reduce)
        for chosen in itertools.combinations(range(len(inner) + len(sums)), len(sums)):
            spatials, sums_left = iter(inner), iter(sums)
            order = list(outer)
            for place in range(len(inner) + len(sums)):
                order.extend(next(sums_left if place in chosen else spatials))
            yield order


class AnnotateSpace(TransformSpace):
    """Marks of several axes."""

    policies = (
        "none",
        "bind_gpu",
        "bind_gpu_virtual",
        "unroll",
        "unroll_vec",
        "try_unroll",
        "try_unroll_vec",
        "try_vec",
        "locate_cache",
        "candidate",
    )

    def __init__(
        self,
        axes: Sequence[VirtualAxis | Axis],
        policy: str,
        candidate: Iterable[Sequence[str]] | None = None,
        num_anchor: int | None = None,
    ) -> None:
        super().__init__(axes, policy)
        self.num_output = count = len(axes)
        if policy == "candidate":
            marks: Iterable[Sequence[str | int]] = list(candidate or ())
        elif policy == "locate_cache":
            if num_anchor is None:
                raise ValueError("AnnotateSpace: policy 'locate_cache' needs num_anchor")
            marks = itertools.product(range(count), repeat=num_anchor)
        elif policy in ("bind_gpu", "bind_gpu_virtual"):
            marks = [self._threads(count, policy == "bind_gpu_virtual")]
        else:
            marks = self._optional(policy, count)
        self.entities = [AnnotateEntity(choice) for choice in marks]

    @staticmethod
    def _threads(count: int, virtual: bool) -> list[str]:
        kinds = ("blockIdx", "vthread", "threadIdx") if virtual else ("blockIdx", "threadIdx")
        dims, rest = divmod(count, len(kinds))
        if rest or not 1 <= dims <= 3:
            raise ValueError(
                f"AnnotateSpace: binding needs {len(kinds)} to {3 * len(kinds)} axes in steps of "
                f"{len(kinds)}, got {count}"
            )
        order = ("x", "y", "z")[:dims][::-1]
        return [kind if kind == "vthread" else f"{kind}.{dim}" for kind in kinds for dim in order]

    @staticmethod
    def _optional(policy: str, count: int) -> Iterator[tuple[str, ...]]:
        body = {"none": ["none"], "unroll": ["unroll"], "unroll_vec": ["unroll"]}
        others = body.get(policy, ["none", "unroll"] if "unroll" in policy else ["none"])
        last = list(others)
        if policy == "unroll_vec":
            last = ["vec"]
        elif policy in ("try_vec", "try_unroll_vec"):
            last.append("vec")
        if count == 0:
            return
        yield from itertools.product(*([others] * (count - 1)), last)


class OtherOptionSpace(TransformSpace):
    """Values of any kind."""

    policies = ("candidate",)

    def __init__(
        self, axes: Sequence[VirtualAxis | Axis], policy: str, candidate: Sequence[Any] = ()
    ) -> None:
        super().__init__(axes, policy)
        self.entities = [OtherOptionEntity(value) for value in candidate]
