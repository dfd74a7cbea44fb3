"""Random choices of a schedule: tile sizes, categories, places."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from tvm.error import ScheduleError, TypeError, ValueError

from .access import access
from .compute_at import compute_at
from .dataflow import flow_of
from .inline import compute_inline
from .parallelism import check_parallelism
from .random_variables import INLINED, STAY, LoopRV
from .tree import BlockNode, FuncTree, Loop

__all__ = ["check_tile", "choose", "compute_locations", "perfect_tile"]


def _prime_factors(value: int) -> dict[int, int]:
    powers: dict[int, int] = {}
    prime = 2
    while value > 1:
        if prime * prime > value:
            prime = value
        while value % prime == 0:
            powers[prime] = powers.get(prime, 0) + 1
            value //= prime
        prime += 1
    return powers


def _ways(value: int, parts: int) -> int:
    """Number of ordered factorisations of `value` into `parts` factors."""
    if parts == 0:
        return int(value == 1)
    return math.prod(math.comb(e + parts - 1, parts - 1) for e in _prime_factors(value).values())


def _divisors(value: int) -> list[int]:
    found = [1]
    for prime, power in _prime_factors(value).items():
        found = [d * prime**k for d in found for k in range(power + 1)]
    return sorted(found)


def perfect_tile(rng: random.Random, extent: int, n: int, max_innermost: int) -> list[int]:
    """Factors of `extent`, each list as likely as any other whose last is small enough."""
    tile: list[int] = []
    rest = extent
    for left in range(n - 1, -1, -1):
        limit = max_innermost if left == n - 1 and max_innermost > 0 else rest
        sizes = [d for d in _divisors(rest) if d <= limit and (left or d == rest)]
        if not sizes:
            raise ScheduleError(
                f"sample_perfect_tile: extent {extent} has no {n} factors of which the innermost "
                f"is at most {max_innermost}"
            )
        size = rng.choices(sizes, weights=[_ways(rest // d, left) for d in sizes])[0]
        tile.insert(0, size)
        rest //= size
    return tile


def check_tile(decision: Sequence[int], extent: int, n: int, max_innermost: int) -> list[int]:
    """A decision as a list of numbers, if it fits the loop."""
    tile = [int(size) for size in decision]
    if len(tile) != n or math.prod(tile) != extent or any(size < 1 for size in tile):
        raise ScheduleError(
            f"sample_perfect_tile: the decision {tile} is not {n} factors of the extent {extent}"
        )
    if max_innermost > 0 and tile and tile[-1] > max_innermost:
        raise ScheduleError(
            f"sample_perfect_tile: the innermost factor of the decision {tile} is more than "
            f"max_innermost_factor={max_innermost}"
        )
    return tile


def choose(
    rng: random.Random, candidates: Sequence[int], probs: Sequence[float], decision: int | None
) -> int:
    """Index of one of the candidates."""
    if not candidates or len(candidates) != len(probs):
        raise ValueError(
            f"sample_categorical: {len(candidates)} candidates with {len(probs)} probabilities"
        )
    if any(not math.isfinite(p) or p < 0 for p in probs) or not sum(probs) > 0:
        raise ValueError(
            f"sample_categorical: probabilities are at least 0 and not all 0, got {list(probs)}"
        )
    if decision is None:
        return rng.choices(range(len(candidates)), weights=list(probs))[0]
    if isinstance(decision, bool) or not isinstance(decision, int):
        raise TypeError(f"sample_categorical: the decision is an index, got {decision!r}")
    if not 0 <= decision < len(candidates):
        raise ScheduleError(
            f"sample_categorical: decision {decision} for {len(candidates)} candidates"
        )
    return decision


def compute_locations(tree: FuncTree, block: BlockNode) -> dict[int, Loop | LoopRV]:
    """Places where a block may be computed, by the decision that stands for them."""
    places: dict[int, Loop | LoopRV] = {-1: LoopRV(STAY)}
    if _is_legal(tree, lambda: compute_inline(tree, block)):
        places[-2] = LoopRV(INLINED)
    flows = flow_of(tree)
    consumers = [user for buffer in access(block).written() for user in flows[buffer].readers]
    for depth, loop in enumerate(consumers[0].loops_above() if consumers else []):
        if _is_legal(tree, lambda to=loop: compute_at(tree, block, to, False, -1)):  # type: ignore[misc]
            places[depth] = loop
    return places


def _is_legal(tree: FuncTree, step: Callable[[], None]) -> bool:
    """Whether a step can be done; it is undone."""
    restore = tree.save()
    try:
        step()
        check_parallelism(tree)
    except ScheduleError:
        return False
    finally:
        restore()
    return True
