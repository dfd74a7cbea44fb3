"""How much sooner candidates are built by more nodes of a Ray cluster.

    python benchmarks/fleet.py --nodes 4

Each node is a raylet of its own with one processor. Where the machine has a core for each node,
candidates are compiled on the nodes. Where it has fewer, the nodes' cores are simulated: each
candidate is compiled here first, one at a time, and its least seconds of some rounds are kept; a
worker of a node then waits for these seconds, and answers with the object file that was compiled.
What Ray and this process do is real in both cases: tasks are made, sent, scheduled, handed to
worker processes and answered, with as many bytes, on the cores that there are. A simulation leaves
out what builders would take from each other and from Ray (memory bandwidth, caches, turns on a core
that they share), so real cores may give less, and its ratio is printed as one of simulated cores.
"Lost" is what a build takes of a node above its own seconds.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
import simulated_build
from measure_overhead import conv_task, tiles
from ray.cluster_utils import Cluster

from tvm.auto_scheduler.measure_local import BuildJobs
from tvm.auto_scheduler.measure_node import MeasureInput
from tvm.felix.fleet import BuildPool, Fleet
from tvm.runtime.workers import Job, Outcome, WorkerPool, child_environment

_NODE_SECONDS = 120
_BUILD_SECONDS = 120.0
# Builds of each node before those that are timed: they start its workers.
_WARM_UP = 3


class SimulatedCores:
    """Jobs that take on a node what they took here; see the top of the file."""

    def __init__(self, folder: str, rounds: int) -> None:
        self._folder, self._rounds = Path(folder), rounds
        self._known: dict[str, Job] = {}
        self.pool: Any = None

    def run(
        self, jobs: Sequence[Job], on_outcome: Callable[[int, Outcome], None] | None = None
    ) -> list[Outcome]:
        simulated = [self._known[str(job.arguments)] for job in jobs]
        outcomes: list[Outcome] = self.pool.run(simulated, on_outcome)
        return outcomes

    def learn(self, jobs: Sequence[Job]) -> None:
        """Compile here, one after the other."""
        worker = WorkerPool(1, _BUILD_SECONDS, 0, [jobs[0].function.partition(":")[0]])
        worker.run(jobs[:_WARM_UP])
        for number, job in enumerate(jobs):
            outcomes = [worker.run([job])[0] for _ in range(self._rounds)]
            seconds = min(outcome.seconds for outcome in outcomes)
            path = self._folder / str(number)
            simulated_build.save(path, outcomes[0])
            more = {"path": str(path), "seconds": seconds}
            self._known[str(job.arguments)] = replace(
                job, function="simulated_build:build", arguments=job.arguments | more
            )

    def seconds(self, jobs: Sequence[Job]) -> float:
        """What these take on one core that does nothing else."""
        return sum(float(self._known[str(job.arguments)].arguments["seconds"]) for job in jobs)


def seconds_to_build(
    fleet: Fleet, cores: SimulatedCores | None, candidates: list[MeasureInput], rounds: int
) -> float:
    """Of all candidates on the cluster as it is; the least of some rounds."""
    pool = BuildPool(_BUILD_SECONDS, 0)
    if cores is not None:
        cores.pool = pool
    build = BuildJobs(cores or pool)
    build(candidates[: _WARM_UP * fleet.amount("CPU")], False)
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        results = build(candidates, False)
        best = min(best, time.perf_counter() - begin)
        failed = [str(result.error_msg) for result in results if result.error_no]
        if failed:
            raise RuntimeError(f"{len(failed)} builds failed: {failed[0]}")
    return best


def jobs_of(candidates: list[MeasureInput]) -> list[Job]:
    """What builders do for candidates, without doing it."""
    found: list[Job] = []

    class Collecting:
        def run(self, jobs: Sequence[Job], _: Any = None) -> list[Outcome]:
            found.extend(jobs)
            return []

    BuildJobs(Collecting())(candidates, False)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    enough = len(os.sched_getaffinity(0)) >= options.nodes
    tried = list(tiles(conv_task()))
    candidates = list(itertools.islice(itertools.cycle(tried), options.candidates))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    seconds: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        cores = None
        if not enough:
            cores = SimulatedCores(folder, options.rounds)
            cores.learn(jobs_of(tried))
            alone = cores.seconds(jobs_of(candidates)) / len(candidates)
            print(f"a build takes {alone * 1e3:.0f} ms on a core of its own", flush=True)
        try:
            here = str(Path(__file__).resolve().parent)
            paths = {"PYTHONPATH": os.pathsep.join([child_environment()["PYTHONPATH"], here])}
            ray.init(
                address=cluster.address,
                runtime_env={"env_vars": paths},
                log_to_driver=False,
                logging_level="error",
            )
            nodes = 0
            for count in (1, options.nodes):
                while nodes < count:
                    cluster.add_node(wait=False, num_cpus=1)
                    nodes += 1
                cluster.wait_for_nodes(_NODE_SECONDS)
                with Fleet() as fleet:
                    seconds[count] = seconds_to_build(fleet, cores, candidates, options.rounds)
                line = f"{count} nodes: {seconds[count]:.2f} s for {len(candidates)} builds"
                if cores is not None:
                    lost = seconds[count] * count / len(candidates) - alone
                    line += f", {lost * 1e3:.1f} ms lost per build"
                print(line, flush=True)
        finally:
            ray.shutdown()
            cluster.shutdown()
    kind = "cores" if enough else "simulated cores"
    print(f"{seconds[1] / seconds[options.nodes]:.2f}x with {options.nodes} nodes on {kind}")


if __name__ == "__main__":
    main()
