"""What a task learned, carried over to tasks of equal structure and other sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Protocol

from .canonical import split_groups
from .perf_func import Candidate, TaskPerfFunc
from .search import SingleTaskOptimizer
from .sketch import Sketch
from .sym_task import SymTask

__all__ = ["Relative", "carried_over", "connect", "suggestions"]

# Best programs of each relative that are tried.
_BEST = 3


class Relative(Protocol):
    """What is asked of a policy."""

    sym_task: SymTask
    function: TaskPerfFunc
    search_state: SingleTaskOptimizer


class _Policy(Relative, Protocol):
    relatives: list[Relative]


def carried_over(config: Mapping[str, int], source: Sketch, sketch: Sketch) -> dict[str, int]:
    """The knob values of one sketch's loops that come next to those of another's.

    From the innermost tile of each loop on, the divisor of what is left of the loop that is nearest
    by ratio; what took all that was left takes all here.

    Raises
    ------
    ValueError : the sketches split other loops.
    """
    theirs, ours = split_groups(source), split_groups(sketch)
    if [len(names) for _, names in theirs] != [len(names) for _, names in ours]:
        raise ValueError(f"{source} and {sketch} split other loops")
    found: dict[str, int] = {}
    for (their_extent, their_names), (extent, names) in zip(theirs, ours):
        their_rest, rest = their_extent, extent
        for their_name, name in zip(reversed(their_names), reversed(names)):
            wanted = config[their_name]
            whole = wanted >= their_rest
            found[name] = rest if whole else _nearest_divisor(rest, wanted)
            their_rest = max(their_rest // wanted, 1)
            rest //= found[name]
    return found


def _nearest_divisor(extent: int, wanted: int) -> int:
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    return min(divisors, key=lambda d: (abs(math.log(d / wanted)), d))


def connect(policies: Sequence[_Policy]) -> None:
    """Let policies of tasks with equal structure know each other, those of near sizes first."""
    for policy in policies:
        sizes = policy.sym_task.sizes

        def distance(other: Relative, sizes: Mapping[str, int] = sizes) -> float:
            theirs = other.sym_task.sizes
            return sum(abs(math.log(size / theirs[name])) for name, size in sizes.items())

        related: list[Relative] = [
            other
            for other in policies
            if other is not policy
            and sizes
            and other.sym_task.search_space == policy.sym_task.search_space
            and other.sym_task.sym_dag == policy.sym_task.sym_dag
        ]
        policy.relatives = sorted(related, key=distance)


def suggestions(policy: _Policy) -> list[Candidate]:
    """The best programs of a policy's relatives at its own sizes, those of the nearest first."""
    found: list[Candidate] = []
    for relative in policy.relatives:
        measured = [i for i in relative.search_state.measured.values() if i.seconds is not None]
        for info in islice(sorted(measured, key=lambda info: info.seconds or 0.0), _BEST):
            function = policy.function.sketch_funcs.get(info.sketch)
            theirs = relative.function.sketch_funcs.get(info.sketch)
            if function is None or theirs is None:
                continue
            if theirs.sketch.backbone != function.sketch.backbone:
                continue
            try:
                point = function.features.point(
                    carried_over(info.config, theirs.sketch, function.sketch)
                )
            except ValueError:  # other loops, or a size that the sketch does not allow
                continue
            if function.features.config_maker.valid(point[None]).all():
                found.append(Candidate(info.sketch, point, math.nan))
    return found
