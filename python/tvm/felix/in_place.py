"""Kernels for which the library's schedule is faster inside the network, whatever it is alone.

A search measures a kernel again and again by itself, with its data in the nearest cache. In a
network its neighbours have used the caches in between, and of two schedules that are close the
other one may win. So both are timed where they will run, and the choice is kept beside the records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from tvm.runtime.files import write_atomically
from tvm.target import Target

from .compiler import CompiledNetwork
from .schedules import IN_PLACE

__all__ = ["keep_library_in_place"]

# By how much the library's schedule must win, of the least of so many runs of each network.
_MARGIN = 0.98
_RUNS = 12


def keep_library_in_place(
    folder: Path,
    target: Target,
    tuned: Sequence[CompiledNetwork],
    untuned: Sequence[CompiledNetwork],
) -> list[str]:
    """Time the kernels of networks in place, with what a search found and without.

    Where the library's schedule wins, the folder says so from now on, and
    `schedules.RecordedSchedules` of it leaves those kernels to the library.

    Parameters
    ----------
    folder : of the run.
    tuned, untuned : the same networks, compiled with the folder's records and without.

    Returns
    -------
    Workload keys of the kernels that are left to the library.
    """
    seconds: tuple[dict[str, float], dict[str, float]] = ({}, {})
    searched: set[str] = set()
    for networks in zip(tuned, untuned):
        searched |= {k.workload_key for k in networks[0].kernels if k.schedule == "records"}
        for _ in range(_RUNS):
            for least, network in zip(seconds, networks):
                for key, taken in network.task_seconds(repeats=1).items():
                    least[key] = min(least.get(key, math.inf), taken)
    found, library = seconds
    kept = sorted(key for key in searched if library[key] < _MARGIN * found[key])
    entries = {key: {"library": library[key], "records": found[key]} for key in kept}
    document = {"target": str(target), "seconds": entries}
    write_atomically(folder / IN_PLACE, json.dumps(document, indent=1) + "\n")
    return kept
