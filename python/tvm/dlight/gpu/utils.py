"""What rules of programs' own ask of loops and targets."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tir
from tvm.ir import PrimExpr
from tvm.runtime import DataType
from tvm.target import Target
from tvm.tir.schedule import LoopRV, Schedule

from ..base import get_max_threads_per_block

__all__ = ["auto_vectorize", "get_bytes", "get_extent", "suggest_threads_per_block"]


def get_bytes(dtype: str | DataType) -> int:
    """Bytes of an element, all lanes of it; types of less than a byte take one."""
    return DataType(str(dtype)).itemsize


def get_extent(sch: Schedule, loop: LoopRV) -> int | PrimExpr:
    """How many iterations a loop has: a number, or an expression where sizes are open."""
    extent = sch.get(loop).extent
    return int(extent) if isinstance(extent, tir.IntImm) else extent


def auto_vectorize(sch: Schedule, loop: LoopRV, max_vec: int) -> None:
    """Make a loop's iterations lanes, `max_vec` at a time where there are more.

    A loop of an open number of iterations is left alone.

    Raises
    ------
    ScheduleError : its iterations are no lanes, since they depend on each other.
    """
    extent = get_extent(sch, loop)
    if not isinstance(extent, int):
        return
    if extent > max_vec:
        _, loop = sch.split(loop, factors=[None, max_vec])
    sch.vectorize(loop)


def suggest_threads_per_block(
    target: Target, loops: Sequence[tir.For], max_threads_for_dynamic_loop: int = 32
) -> list[int]:
    """How many threads to give each of some loops, all of which a block of threads runs.

    Parameters
    ----------
    loops : those of a fixed number of iterations get as many threads as they have, in their order;
        then those of an open number.
    max_threads_for_dynamic_loop : what loops of an open number get each. The first of them gets
        what is left in the end, too.

    Returns
    -------
    Powers of two, whose product is at most the target's `max_threads_per_block`.

    Raises
    ------
    ValueError : the target is for another kind of device than with the key ``gpu``.
    """
    left = _power_below(get_max_threads_per_block(target))
    counts = [1] * len(loops)
    fixed = [at for at, loop in enumerate(loops) if isinstance(loop.extent, tir.IntImm)]
    open_ones = [at for at in range(len(loops)) if at not in fixed]
    for at in (*fixed, *open_ones):
        wanted = max_threads_for_dynamic_loop if at in open_ones else int(loops[at].extent)
        counts[at] = _power_below(min(max(wanted, 1), left))
        left //= counts[at]
    if open_ones:
        counts[open_ones[0]] *= left
    return counts


def _power_below(number: int) -> int:
    """The greatest power of two that is not greater."""
    return 1 << (number.bit_length() - 1)
