"""What is faster inside of the network, whatever it is alone.

A search measures a kernel again and again by itself, with its data in the nearest cache. In a
network its neighbours have used the caches in between, and of two schedules that are close the
other one may win. So they are timed where they will run, and the choice is kept beside the records:
the program that was found, the same without prefetches of weights, which only help where weights
come from far, or the library's schedule.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tvm.runtime.files import write_atomically
from tvm.target import Target

from .compiler import CompiledNetwork
from .schedules import IN_PLACE

__all__ = ["InPlace", "choose_in_place"]

# By how much a program must win without prefetches, so that chance takes none away that help where
# weights come from farther than on this day.
_MARGIN = 0.98
# The least of so many runs of each network counts.
_RUNS = 12


@dataclass(frozen=True)
class InPlace:
    """Workload keys of kernels for which not the program that was found is taken.

    Attributes
    ----------
    library : those that the library's schedule is faster for.
    without_read_ahead : those whose program is faster without its prefetches.
    """

    library: list[str]
    without_read_ahead: list[str]

    def __bool__(self) -> bool:
        return bool(self.library or self.without_read_ahead)


def choose_in_place(
    folder: Path,
    target: Target,
    tuned: Sequence[CompiledNetwork],
    near: Sequence[CompiledNetwork],
    untuned: Sequence[CompiledNetwork],
) -> InPlace:
    """Time the kernels of networks in place, and keep which of their programs is fastest there.

    The folder says so from now on, and `schedules.RecordedSchedules` of it follows.

    Parameters
    ----------
    folder : of the run.
    tuned, near, untuned : the same networks, compiled with the folder's records, with these
        without prefetches, and without records.
    """
    variants = (tuned, near, untuned)
    seconds: tuple[dict[str, float], ...] = tuple({} for _ in variants)
    searched: set[str] = set()
    for networks in zip(*variants):
        searched |= {k.workload_key for k in networks[0].kernels if k.schedule == "records"}
        for _ in range(_RUNS):
            for least, network in zip(seconds, networks):
                for key, taken in network.task_seconds(repeats=1).items():
                    least[key] = min(least.get(key, math.inf), taken)
    found, without, library = seconds
    by_hand, nearer = {}, {}
    for key in sorted(searched):
        entry = {"records": found[key], "without_read_ahead": without[key], "library": library[key]}
        if library[key] < min(found[key], without[key]):
            by_hand[key] = entry
        elif without[key] < _MARGIN * found[key]:
            nearer[key] = entry
    document = {"target": str(target), "seconds": by_hand, "without_read_ahead": nearer}
    write_atomically(folder / IN_PLACE, json.dumps(document, indent=1) + "\n")
    return InPlace(list(by_hand), list(nearer))
