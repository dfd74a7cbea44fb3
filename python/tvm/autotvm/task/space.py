"""Search spaces of templates: named knobs, their candidates, and single points of the space.

A template is run with a `ConfigSpace` to learn its knobs, and with a `ConfigEntity` to make the
program of one point. Both are used by the same lines of the template.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..env import GLOBAL_SCOPE
from .entities import (
    AnnotateEntity,
    Entity,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
    VirtualAxis,
)
from .transforms import (
    AnnotateSpace,
    Axis,
    OtherOptionSpace,
    ReorderSpace,
    SplitSpace,
    TransformSpace,
    get_factors,
    get_pow2s,
)

__all__ = [
    "AnnotateEntity",
    "AnnotateSpace",
    "Axis",
    "ConfigEntity",
    "ConfigSpace",
    "FallbackConfigEntity",
    "InstantiationError",
    "OtherOptionEntity",
    "OtherOptionSpace",
    "ReorderEntity",
    "ReorderSpace",
    "SplitEntity",
    "SplitSpace",
    "TransformSpace",
    "VirtualAxis",
    "get_factors",
    "get_pow2s",
]

_RECORD_TAGS = {
    SplitEntity: "sp",
    ReorderEntity: "re",
    AnnotateEntity: "an",
    OtherOptionEntity: "ot",
}


class InstantiationError(ValueError):
    """A template refuses a point of its own space, see `ConfigSpace.raise_error`."""


class ConfigSpace:
    """All points of a template's knobs; the first knob varies fastest from index to index.

    While a template runs with the space itself, ``cfg[name]`` is the first candidate of a knob.

    Attributes
    ----------
    space_map : knob name to its candidates, in the order of definition.
    code_hash : of the template's source, None if it has none.
    flop : floating point operations of the program as far as the template told, see `add_flop`.
    errors : why the template refused a point.
    """

    is_fallback = False

    def __init__(self) -> None:
        self.space_map: OrderedDict[str, TransformSpace] = OrderedDict()
        self._entity_map: OrderedDict[str, Entity] = OrderedDict()
        self._shared_filter: Callable[[ConfigEntity], bool] | None = None
        self._valid: dict[int, bool] = {}
        self._valid_count: int | None = None
        self.errors: list[str] = []
        self.code_hash: str | None = None
        self.flop = 0.0
        self.cost: Any = None
        self.collecting = True

    @staticmethod
    def axis(var: Any) -> VirtualAxis:
        """An axis to define knobs over: an IterVar, a length, or an axis of another knob."""
        return VirtualAxis(var)

    reduce_axis = axis

    def define_split(
        self, name: str, axis: Any, policy: str = "factors", **kwargs: Any
    ) -> list[Axis]:
        """A knob that splits an axis.

        Parameters
        ----------
        name : of the knob.
        axis : IterVar, length or axis.
        policy : "factors" (all divisors), "power2", "verbose" (both), or "candidate" with
            ``candidate=[[-1, 4], ...]``.
        kwargs : ``num_outputs`` loops, the outermost first; ``max_factor`` for all but the
            outermost; ``filter``, a predicate of a `SplitEntity`; ``no_tail``, only sizes whose
            product divides the length.

        Returns
        -------
        The axes it makes, for other knobs.

        Raises
        ------
        ValueError : an unknown policy, no candidate left, or an option nobody knows.
        """
        return self._define(SplitSpace, name, [axis], policy, kwargs)

    def define_reorder(
        self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any
    ) -> list[Axis]:
        """A knob that orders axes.

        Parameters
        ----------
        policy : "identity", "all", "interval_all" with ``interval=(begin, end)``, "interleave" with
            ``spatial`` and ``reduce`` chains of axes, or "candidate" with ``candidate`` orders.
        """
        return self._define(ReorderSpace, name, axes, policy, kwargs)

    def define_annotate(
        self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any
    ) -> list[Axis]:
        """A knob that marks axes.

        Parameters
        ----------
        policy : "none", "bind_gpu", "bind_gpu_virtual", "unroll", "unroll_vec", "try_unroll",
            "try_unroll_vec", "try_vec", "locate_cache" with ``num_anchor``, or "candidate" with
            ``candidate`` lists of marks.
        """
        return self._define(AnnotateSpace, name, axes, policy, kwargs)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        """A knob of any values, read as ``cfg[name].val``."""
        self._define(OtherOptionSpace, name, [], "candidate", {"candidate": candidate})

    def add_flop(self, flop: float) -> None:
        """Say how many floating point operations a part of the program takes."""
        self.flop += float(flop)

    def raise_error(self, msg: str) -> None:
        """Refuse the point at hand; its measurement becomes an instantiation error."""
        self.errors.append(msg)

    def valid(self) -> bool:
        """Whether the template refused nothing."""
        return not self.errors

    def multi_filter(self, filter: Callable[[ConfigEntity], bool]) -> None:
        """Restrict the space by a predicate of whole points."""
        self._shared_filter = filter
        self._valid.clear()
        self._valid_count = None

    @property
    def range_length(self) -> int:
        """Number of indices, those that a filter refuses included."""
        return math.prod(len(space) for space in self.space_map.values())

    @property
    def dims(self) -> list[int]:
        """Number of candidates of each knob."""
        return [len(space) for space in self.space_map.values()]

    def __len__(self) -> int:
        if self._shared_filter is None:
            return self.range_length
        if self._valid_count is None:
            self._valid_count = self.subrange_length(0, self.range_length)
        return self._valid_count

    def subrange_length(self, start: int, end: int) -> int:
        """Number of valid indices in [start, end).

        Raises
        ------
        IndexError : the interval leaves the space.
        """
        if not 0 <= start <= end <= self.range_length:
            raise IndexError(
                f"config space: [{start}, {end}) is no interval of its {self.range_length} indices"
            )
        if self._shared_filter is None:
            return end - start
        return sum(self.is_index_valid(index) for index in range(start, end))

    def is_index_valid(self, index: int) -> bool:
        """Whether there is such an index and no filter refuses it."""
        if not 0 <= index < self.range_length:
            return False
        if self._shared_filter is None:
            return True
        if index not in self._valid:
            self._valid[index] = bool(self._shared_filter(self._point(index)))
        return self._valid[index]

    def get(self, index: int) -> ConfigEntity:
        """The point of an index.

        Raises
        ------
        IndexError : there is no such index, or a filter refuses it.
        """
        if not 0 <= index < self.range_length:
            raise IndexError(f"config space: index {index} of {self.range_length}")
        if not self.is_index_valid(index):
            raise IndexError(f"config space: index {index} is refused by the filter of the space")
        return self._point(index)

    def _point(self, index: int) -> ConfigEntity:
        entities: OrderedDict[str, Entity] = OrderedDict()
        rest = index
        for name, space in self.space_map.items():
            rest, choice = divmod(rest, len(space))
            entities[name] = space[choice]
        return ConfigEntity(index, self.code_hash, entities)

    def point2knob(self, point: int) -> list[int]:
        """Number of the candidate of each knob."""
        knob = []
        for size in self.dims:
            point, choice = divmod(point, size)
            knob.append(choice)
        return knob

    def knob2point(self, knob: Sequence[int]) -> int:
        """Inverse of `point2knob`."""
        point, weight = 0, 1
        for choice, size in zip(knob, self.dims):
            point += int(choice) * weight
            weight *= size
        return point

    def get_next_index(
        self, index: int, n: int = 1, start: int = 0, end: int | None = None
    ) -> int | None:
        """The n-th valid index after one, None if there is none before `end`."""
        end = self.range_length if end is None else end
        at = max(index + 1, start)
        while at < end:
            if self.is_index_valid(at):
                n -= 1
                if n == 0:
                    return at
            at += 1
        return None

    def get_rand_index(
        self,
        start: int = 0,
        end: int | None = None,
        to_exclude: Collection[int] = (),
    ) -> int:
        """A random valid index in [start, end) that is not excluded.

        Raises
        ------
        IndexError : none is left.
        """
        end = self.range_length if end is None else end
        for _ in range(32):
            index = int(GLOBAL_SCOPE.rng.integers(start, end)) if end > start else start
            if index not in to_exclude and self.is_index_valid(index):
                return index
        # Few are left, so that trying goes on for long.
        left = [i for i in range(start, end) if i not in to_exclude and self.is_index_valid(i)]
        if not left:
            raise IndexError(f"config space: no valid index is left in [{start}, {end})")
        return int(GLOBAL_SCOPE.rng.choice(left))

    def sample_ints(self, m: int) -> np.ndarray:
        """Up to m distinct random valid indices."""
        if m >= len(self):
            chosen = [i for i in range(self.range_length) if self.is_index_valid(i)]
            return GLOBAL_SCOPE.rng.permutation(chosen)
        seen: set[int] = set()
        while len(seen) < m:
            seen.add(self.get_rand_index(to_exclude=seen))
        return np.fromiter(seen, dtype=np.int64)

    def random_walk(self, point: int) -> int:
        """A valid neighbour that differs in one knob; the point itself if there is no other."""
        knob = self.point2knob(point)
        movable = [i for i, size in enumerate(self.dims) if size > 1]
        for _ in range(32):
            if not movable:
                break
            changed = list(knob)
            axis = int(GLOBAL_SCOPE.rng.choice(movable))
            step = int(GLOBAL_SCOPE.rng.integers(1, self.dims[axis]))
            changed[axis] = (knob[axis] + step) % self.dims[axis]
            moved = self.knob2point(changed)
            if self.is_index_valid(moved):
                return moved
        return point

    def __iter__(self) -> Iterator[ConfigEntity]:
        return (self._point(i) for i in range(self.range_length) if self.is_index_valid(i))

    def __getitem__(self, name: str) -> Any:
        if name not in self._entity_map:
            raise KeyError(
                f"config space: no knob {name!r}; there are {list(self._entity_map) or 'none'}"
            )
        return self._entity_map[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entity_map

    def _define(
        self,
        kind: type[TransformSpace],
        name: str,
        axes: Sequence[Any],
        policy: str,
        options: dict[str, Any],
    ) -> list[Axis]:
        if name in self.space_map:
            # A template that is called for several stages means the same knob.
            return self.space_map[name].axes
        virtual = [
            axis if isinstance(axis, (VirtualAxis, Axis)) else VirtualAxis(axis) for axis in axes
        ]
        space = kind(virtual, policy, **options)
        if not len(space):
            raise ValueError(f"config space: knob {name!r} has no candidate")
        self.space_map[name] = space
        self._entity_map[name] = space[0]
        self._valid.clear()
        self._valid_count = None
        return space.axes

    def __repr__(self) -> str:
        knobs = "".join(
            f"  {name}: {space!r} of {len(space)}\n" for name, space in self.space_map.items()
        )
        return f"ConfigSpace ({len(self)} points\n{knobs})"


class ConfigEntity(ConfigSpace):
    """One point of a space.

    Parameters
    ----------
    index : of the point; -1 for one that comes from elsewhere.
    code_hash : of the template that it belongs to.
    entity_map : knob name to its choice.
    """

    def __init__(
        self,
        index: int,
        code_hash: str | None,
        entity_map: OrderedDict[str, Entity] | dict[str, Entity],
        constraints: Iterable[Any] = (),
    ) -> None:
        super().__init__()
        self.index = int(index)
        self.code_hash = code_hash
        self._entity_map = OrderedDict(entity_map)
        self._constraints = list(constraints)
        self.collecting = False

    def get_flatten_feature(self) -> np.ndarray:
        """Numbers that say the choices, the same for equal choices."""
        values: list[float] = []
        for entity in self._entity_map.values():
            values.extend(entity.feature())
        return np.array(values, dtype=np.float32)

    def get_other_option(self) -> dict[str, Any]:
        """The knobs of `define_knob` and their values."""
        return {
            name: entity.val
            for name, entity in self._entity_map.items()
            if isinstance(entity, OtherOptionEntity)
        }

    def to_json_dict(self) -> dict[str, Any]:
        """The field "config" of a record."""
        return {
            "index": self.index,
            "code_hash": self.code_hash,
            "entity": [
                [name, _RECORD_TAGS[type(entity)], entity.to_json()]
                for name, entity in self._entity_map.items()
            ],
        }

    @staticmethod
    def from_json_dict(json_dict: dict[str, Any]) -> ConfigEntity:
        """Inverse of `to_json_dict`.

        Raises
        ------
        ValueError : the value has another form; the message says where.
        """
        kinds = {tag: kind for kind, tag in _RECORD_TAGS.items()}
        try:
            entities: OrderedDict[str, Entity] = OrderedDict()
            for name, tag, value in json_dict["entity"]:
                if tag not in kinds:
                    raise ValueError(
                        f"config: knob {name!r} is of kind {tag!r}; known are {sorted(kinds)}"
                    )
                entities[str(name)] = kinds[tag].from_json(value)
            return ConfigEntity(int(json_dict["index"]), json_dict.get("code_hash"), entities)
        except (KeyError, TypeError) as error:
            raise ValueError(f"config: expected index and entity, got {json_dict!r}") from error

    def _define(
        self,
        kind: type[TransformSpace],
        name: str,
        axes: Sequence[Any],
        policy: str,
        options: dict[str, Any],
    ) -> list[Axis]:
        if name not in self._entity_map:
            raise InstantiationError(
                f"config: the template has a knob {name!r}, this point has only "
                f"{list(self._entity_map)}; it belongs to another template"
            )
        return kind.axes_of(self._entity_map[name], len(axes))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfigEntity):
            return NotImplemented
        return self.to_json_dict() == other.to_json_dict()

    def __hash__(self) -> int:
        return hash((self.index, self.code_hash, str(self.to_json_dict()["entity"])))

    def __repr__(self) -> str:
        knobs = ", ".join(f"{name} {entity}" for name, entity in self._entity_map.items())
        return f"[{knobs}],{self.code_hash},{self.index}"


class FallbackConfigEntity(ConfigSpace):
    """The point that a template gets where nobody recorded one: it fills itself as knobs come.

    A split leaves everything in the outermost loop unless the template asks for more with
    `fallback_split`; other knobs take their first candidate.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_fallback = True
        self.index = -1
        self.collecting = False

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Choose the sizes of a split.

        Parameters
        ----------
        name : of the knob.
        constraints : largest size of each loop, -1 for any; the innermost loops are filled first
            with the largest divisors that are left.

        Raises
        ------
        ValueError : the template has no such split, or of another number of loops.
        """
        space = self.space_map.get(name)
        if not isinstance(space, SplitSpace):
            raise ValueError(
                f"fallback_split: {name!r} is no split; knobs are {list(self.space_map)}"
            )
        if len(constraints) != space.num_output:
            raise ValueError(
                f"fallback_split: {name!r} has {space.num_output} loops, not {len(constraints)}"
            )
        left, sizes = space.product, [1] * space.num_output
        for place in reversed(range(space.num_output)):
            limit = constraints[place]
            fitting = [d for d in get_factors(left) if limit < 0 or d <= limit]
            sizes[place] = max(fitting) if fitting else 1
            left //= sizes[place]
        self._entity_map[name] = SplitEntity([-1, *sizes[1:]])

    def fallback_with_reference_log(self, ref_log: Iterable[tuple[Any, Any]]) -> None:
        """Take what was fastest for similar workloads.

        Parameters
        ----------
        ref_log : pairs of a measure input and its result; the choices of the fastest whose knobs
            are those of this template are taken over, sizes rounded down to divisors.
        """
        timed = [
            (float(np.mean(result.costs)), entry.config)
            for entry, result in ref_log
            if int(result.error_no) == 0
        ]
        for _, config in sorted(timed, key=lambda pair: pair[0]):
            if set(config._entity_map) >= set(self.space_map):
                break
        else:
            return
        for name, space in self.space_map.items():
            entity = config._entity_map[name]
            if isinstance(space, SplitSpace) and isinstance(entity, SplitEntity):
                self.fallback_split(name, [-1, *(int(size) for size in entity.size[1:])])
            else:
                self._entity_map[name] = entity

    def __setitem__(self, name: str, entity: Entity) -> None:
        """Choose a knob by hand."""
        self._entity_map[name] = entity

    def __repr__(self) -> str:
        knobs = ", ".join(f"{name} {entity}" for name, entity in self._entity_map.items())
        return f"fallback [{knobs}]"
