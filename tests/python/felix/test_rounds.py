"""Which of two kernels is faster inside of a network, on a machine that others use."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from tvm.felix.in_place import choose_in_place, keep_untuned
from tvm.felix.rounds import clearly_faster, kernel_rounds
from tvm.target import Target

TARGET = Target("llvm")


class BusyMachine:
    """Runs that take what they should, times what neighbours and the clock do to them.

    A neighbour comes and goes, and slows all runs of its stay by a third; one run in five is
    interrupted; the clock of one in ten jumps ahead, so that it seems to take four fifths.
    """

    def __init__(self, seed):
        self._random = np.random.default_rng(seed)
        self._is_busy = False

    def seconds(self, true):
        random = self._random
        if random.random() < 0.1:
            self._is_busy = not self._is_busy
        taken = true * (1.33 if self._is_busy else 1.0) * (1 + 0.004 * random.standard_normal())
        if random.random() < 0.2:
            taken *= 1 + random.random()
        elif random.random() < 0.1:
            taken *= 0.8
        return taken


def network(machine, true):
    """A stand-in for a compiled network of one kernel of so many seconds."""
    kernel = SimpleNamespace(workload_key="dense", schedule="records")
    return SimpleNamespace(
        kernels=[kernel], task_seconds=lambda repeats: {"dense": machine.seconds(true)}
    )


def chosen(folder, seed, found, near, library):
    machine = BusyMachine(seed)
    variants = ([network(machine, true)] for true in (found, near, library))
    kept = choose_in_place(folder, TARGET, *variants)
    document = json.loads((folder / "in_place.json").read_text())
    assert set(document["seconds"]) == set(kept.library)
    if kept.library:
        return "library"
    return "near" if kept.without_read_ahead else "found"


@pytest.mark.parametrize(
    ("found", "near", "library", "best"),
    [
        (1.0, 1.0, 1.08, "found"),
        (1.08, 1.08, 1.0, "library"),
        # Who is as fast as the library's schedule does not take its place.
        (1.0, 1.0, 1.0, "library"),
        (1.08, 1.0, 1.2, "near"),
    ],
)
def test_a_busy_neighbour_does_not_decide(tmp_path, found, near, library, best):
    right = sum(chosen(tmp_path, seed, found, near, library) == best for seed in range(200))
    assert right >= 180


def test_the_least_of_all_runs_would_let_it():
    """What the rule is for: one lucky run is enough to be the least."""

    def least_says(seed):
        machine = BusyMachine(seed)
        one, other = kernel_rounds(
            [network(machine, 1.08), network(machine, 1.0)], lambda n: n.task_seconds(repeats=1)
        )
        rule = clearly_faster(one["dense"], other["dense"], 0.99)
        return one["dense"].min() < other["dense"].min(), rule

    by_least, by_rule = np.sum([least_says(seed) for seed in range(200)], axis=0)
    assert by_least > 10 and by_rule <= 2


def test_networks_take_turns_in_being_first():
    order = []
    kernel_rounds(["a", "b", "c"], lambda name: order.append(name) or {"k": 1.0})
    firsts = order[::3]
    assert firsts[:4] == ["a", "b", "c", "a"]
    assert all(sorted(order[i : i + 3]) == ["a", "b", "c"] for i in range(0, len(order), 3))


def test_sums_of_kernels_are_compared_by_rounds():
    machine = BusyMachine(3)
    rewritten = np.array([machine.seconds(1.0) + machine.seconds(1.0) for _ in range(20)])
    same = np.array([machine.seconds(2.0) for _ in range(20)])
    assert not clearly_faster(same, rewritten, 0.98)
    assert clearly_faster(same * 0.9, rewritten, 0.98)


def test_what_is_there_twice_runs_once(tmp_path):
    runs = []

    def counted(name, seconds):
        kernel = SimpleNamespace(workload_key="dense", schedule="records")
        return SimpleNamespace(
            kernels=[kernel], task_seconds=lambda repeats: runs.append(name) or {"dense": seconds}
        )

    found = counted("found", 1.0)
    kept = choose_in_place(tmp_path, TARGET, [found], [found], [counted("library", 2.0)])
    assert not kept
    assert runs.count("found") == runs.count("library")


def whole(name, schedule, seconds):
    """A stand-in for a network of two kernels that takes `seconds` to run."""
    kernels = [SimpleNamespace(workload_key=f"{name}{k}", schedule=schedule) for k in range(2)]
    return SimpleNamespace(
        kernels=kernels, network=SimpleNamespace(name=name), run_seconds=lambda: seconds
    )


def test_a_network_that_lost_by_tuning_is_left_to_the_library(tmp_path):
    machine = BusyMachine(1)
    choose_in_place(
        tmp_path,
        TARGET,
        *([network(machine, true)] for true in (1.08, 1.08, 1.0)),
    )
    tuned = [whole("lost", "records", 1.1), whole("won", "records", 0.9)]
    untuned = [whole("lost", "hand", 1.0), whole("won", "hand", 1.0)]
    assert keep_untuned(tmp_path, TARGET, tuned, untuned, tuned) == ["lost"]
    document = json.loads((tmp_path / "in_place.json").read_text())
    # With what was chosen kernel by kernel before.
    assert set(document["seconds"]) == {"lost0", "lost1", "dense"}


def test_chance_does_not_give_a_tuned_network_up(tmp_path):
    for seed in range(50):
        machine = BusyMachine(seed)
        nets = [whole("net", "records", 0), whole("net", "hand", 0)]
        for net in nets:
            net.run_seconds = lambda machine=machine: machine.seconds(1.0)
        keep_untuned(tmp_path, TARGET, nets[:1], nets[1:], nets[:1])
    assert not (tmp_path / "in_place.json").exists()
