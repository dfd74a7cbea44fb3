"""What is faster inside of the network, whatever it is alone.

A search measures a kernel again and again by itself, with its data in the nearest cache. In a
network its neighbours have used the caches in between, and of two schedules that are close the
other one may win. So they are timed where they will run, and the choice is kept beside the records:
the program that was found, the same without prefetches of weights, which only help where weights
come from far, or the library's schedule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tvm.runtime.files import read_json, write_atomically
from tvm.target import Target

from .compiler import CompiledNetwork
from .coverage import FOUND
from .rounds import clearly_faster, kernel_rounds, typical
from .schedules import IN_PLACE

__all__ = ["InPlace", "choose_in_place", "keep_untuned"]

# Which part of the library's seconds a program that was found may take at most: the schedule that
# was written by hand is the one that holds on other days, too.
_MARGIN = 0.99
# The same for a program without its prefetches against itself with them, so that chance takes none
# away that help where weights come from farther than on this day.
_MARGIN_NEAR = 0.98
# Which part of a tuned network's seconds the untuned one may take at least: what is closer is
# chance.
_MARGIN_WHOLE = 0.98


@dataclass(frozen=True)
class InPlace:
    """Workload keys of kernels for which not the program that was found is taken.

    Attributes
    ----------
    library : those that the library's schedule is faster for, or as fast.
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
        without prefetches (the same where no program has any), and without records.
    """
    by_hand: dict[str, dict[str, float]] = {}
    nearer: dict[str, dict[str, float]] = {}
    for key, (found, without, library) in _samples(tuned, near, untuned).items():
        entry = {
            "records": typical(found),
            "without_read_ahead": typical(without),
            "library": typical(library),
        }
        is_nearer = clearly_faster(without, found, _MARGIN_NEAR)
        if not clearly_faster(without if is_nearer else found, library, _MARGIN):
            by_hand[key] = entry
        elif is_nearer:
            nearer[key] = entry
    _write(folder, target, by_hand, nearer)
    return InPlace(list(by_hand), list(nearer))


def keep_untuned(
    folder: Path,
    target: Target,
    tuned: Sequence[CompiledNetwork],
    untuned: Sequence[CompiledNetwork],
    other_forms: Sequence[CompiledNetwork],
) -> list[str]:
    """Time networks as a whole; all kernels of those that lost by tuning are left to the library.

    Kernels are chosen one by one, each in few runs; where all of them together are slower after
    all, the network is what counts. The folder says so from now on.

    Parameters
    ----------
    folder : of the run.
    tuned, untuned : the same networks with what was chosen, and without records.
    other_forms : the same with records, in the form that is left where `tuned` is given up.

    Returns
    -------
    Names of the networks that are slower tuned, beyond chance.
    """
    slower = []
    given_up: dict[str, dict[str, float]] = {}
    for after, before, other in zip(tuned, untuned, other_forms):
        seconds, seconds_before = (
            samples["run"]
            for samples in kernel_rounds(
                [after, before], lambda network: {"run": network.run_seconds()}
            )
        )
        if clearly_faster(seconds_before, seconds, _MARGIN_WHOLE):
            slower.append(after.network.name)
            kernels = [*after.kernels, *other.kernels]
            given_up |= {k.workload_key: {} for k in kernels if k.schedule in FOUND}
    if slower:
        path = folder / IN_PLACE
        document = read_json(path) if path.exists() else {"seconds": {}, "without_read_ahead": {}}
        by_hand = given_up | document["seconds"]
        nearer = document["without_read_ahead"]
        _write(folder, target, by_hand, {k: v for k, v in nearer.items() if k not in by_hand})
    return slower


def _write(
    folder: Path,
    target: Target,
    by_hand: Mapping[str, Mapping[str, float]],
    nearer: Mapping[str, Mapping[str, float]],
) -> None:
    document = {"target": str(target), "seconds": by_hand, "without_read_ahead": nearer}
    write_atomically(folder / IN_PLACE, json.dumps(document, indent=1) + "\n")


def _samples(*variants: Sequence[CompiledNetwork]) -> dict[str, list[np.ndarray]]:
    """Seconds of each kernel with a record, one sample a round for each variant of the networks."""
    found: dict[str, list[np.ndarray]] = {}
    for networks in zip(*variants):
        # What is there twice runs once.
        distinct = {id(network): network for network in networks}
        searched = {k.workload_key for k in networks[0].kernels if k.schedule == "records"}
        rounds = kernel_rounds(
            list(distinct.values()), lambda network: network.task_seconds(repeats=1)
        )
        timed = dict(zip(distinct, rounds))
        for key in searched:
            samples = [timed[id(network)][key] for network in networks]
            # Kernels that several networks have count where each round was quickest.
            before = found.get(key, samples)
            found[key] = [np.minimum(a, b) for a, b in zip(before, samples)]
    return dict(sorted(found.items()))
