"""How much sooner candidates are built by more nodes of a Ray cluster.

    python benchmarks/fleet.py --nodes 4

Each node is a raylet of its own with one processor. Where the machine has fewer cores than there
are nodes, cores are simulated: the workers of the nodes run in turns on one core, and the one node
that they are compared with has its turns too, and no more. The ratio is then one of simulated
cores, and printed as such.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import ray
from measure_overhead import conv_task, tiles
from ray.cluster_utils import Cluster

from tvm.auto_scheduler import MeasureInput
from tvm.felix.fleet import Fleet

_TURN_SECONDS = 0.025
_NODE_SECONDS = 120
# Builds of each node before those that are timed: they start its workers.
_WARM_UP = 3


def workers_of(node: Any) -> set[int]:
    """Processes that a node started: Ray's workers and theirs."""
    waiting = [info.process.pid for info in node.all_processes["raylet"]]
    found: set[int] = set()
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                new = set(map(int, task.read_text().split())) - found
                found |= new
                waiting += new
    return found


class Turns:
    """Simulated cores: nodes run one after the other, each for its turn of `count`, on one core.
    Turns of nodes that are not there pass with nobody running."""

    def __init__(self, nodes: list[Any], count: int) -> None:
        self._nodes, self._count = nodes, count
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        begin = time.monotonic()
        for turn in itertools.count():
            for number, node in enumerate(self._nodes):
                # Looked for each time: some live for one build.
                runs = number == turn % self._count
                self._signal(workers_of(node), signal.SIGCONT if runs else signal.SIGSTOP)
            if self._over.wait(max(0.0, begin + (turn + 1) * _TURN_SECONDS - time.monotonic())):
                break
        for node in self._nodes:
            self._signal(workers_of(node), signal.SIGCONT)

    @staticmethod
    def _signal(processes: set[int], number: int) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def __enter__(self) -> Turns:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def seconds_to_build(candidates: list[MeasureInput], rounds: int) -> float:
    """Of all candidates on the cluster as it is; the least of some rounds."""
    best = float("inf")
    with Fleet() as fleet:
        builder = fleet.builder(timeout=120)
        builder.build(candidates[: _WARM_UP * fleet.amount("CPU")])
        for _ in range(rounds):
            begin = time.perf_counter()
            results = builder.build(candidates)
            best = min(best, time.perf_counter() - begin)
            failed = [str(result.error_msg) for result in results if result.error_no]
            if failed:
                raise RuntimeError(f"{len(failed)} builds failed: {failed[0]}")
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    enough = cores >= options.nodes
    kind = "cores" if enough else f"simulated cores, each of 1/{options.nodes} of a real one"
    candidates = list(itertools.islice(itertools.cycle(tiles(conv_task())), options.candidates))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    seconds: dict[int, float] = {}
    nodes: list[Any] = []
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        for count in (1, options.nodes):
            while len(nodes) < count:
                nodes.append(cluster.add_node(wait=False, num_cpus=1))
            cluster.wait_for_nodes(_NODE_SECONDS)
            with contextlib.nullcontext() if enough else Turns(nodes, options.nodes):
                seconds[count] = seconds_to_build(candidates, options.rounds)
            print(f"{count} nodes: {seconds[count]:.2f} s for {len(candidates)} builds", flush=True)
    finally:
        ray.shutdown()
        cluster.shutdown()
    print(f"{seconds[1] / seconds[options.nodes]:.2f}x with {options.nodes} nodes on {kind}")


if __name__ == "__main__":
    main()
