"""Gradient search against evolution on MetaSchedule's own space.

python benchmarks/trace_search.py [--tasks NAME ...] [--trials 64] [--seeds 1] [--population 512]

Both strategies tune convolutions and products of `search_race.py` with as many measurements, which
also says how many a second each makes. The programs that they recommend are then timed alternately,
so that what else runs on the machine meets both, and the least times are compared.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from typing import Any

import numpy as np
from search_race import TASKS

import tvm
from tvm import meta_schedule as ms
from tvm import te
from tvm.target import Target

_NAMES = ("conv3x3_64_56", "conv3x3_256_14", "conv1x1_128_28", "batch_matmul_12_128_64")


def tuned(
    function: Any, target: Target, strategy: Any, trials: int, seed: int
) -> tuple[Any, float]:
    """The program that a strategy recommends, and the seconds that it took."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(
            function,
            target,
            folder,
            trials,
            num_trials_per_iter=16,
            strategy=strategy,
            seed=seed,
            runner=ms.runner.LocalRunner(
                evaluator_config=ms.runner.EvaluatorConfig(
                    number=1, repeat=5, min_repeat_ms=0, enable_cpu_cache_flush=False
                )
            ),
        )
        schedule = ms.compile_tir(database, function, target)
    return tvm.build(schedule.mod, target=target), time.perf_counter() - start


def least_seconds(built: list[Any], function: Any, rounds: int = 30) -> list[float]:
    """The least time of each program, all of them run in turn."""
    rng = np.random.default_rng(0)
    arrays = [
        tvm.nd.array(rng.random([int(n) for n in function.buffer_map[p].shape], dtype=np.float32))
        for p in function.params
    ]
    timers = [module.time_evaluator(module.entry_name, tvm.cpu(), number=3) for module in built]
    times = [[timer(*arrays).min for timer in timers] for _ in range(rounds)]
    return list(np.min(times, axis=0))


def main() -> None:
    """Race and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(_NAMES), choices=list(TASKS))
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--population", type=int, default=512, help="of evolution")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the programs")
    options = parser.parse_args()
    target = Target(f"llvm -num-cores={options.threads}").with_machine()
    ratios: list[float] = []
    for name in options.tasks:
        function = te.create_prim_func(TASKS[name][0]())
        for seed in range(1, options.seeds + 1):
            evolution = ms.search_strategy.EvolutionarySearch(
                population_size=options.population, init_min_unmeasured=16
            )
            strategies = {"evolutionary": evolution, "felix": "felix"}
            results = [
                tuned(function, target, s, options.trials, seed) for s in strategies.values()
            ]
            seconds = least_seconds([module for module, _ in results], function)
            ratios.append(seconds[0] / seconds[1])
            shown = ", ".join(
                f"{s} {1e3 * t:.3f} ms ({options.trials / spent:.2f} trials a second)"
                for s, t, (_, spent) in zip(strategies, seconds, results)
            )
            print(f"{name}, seed {seed}: {shown}, ratio {ratios[-1]:.2f}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geomean_felix_vs_evolutionary: {mean:.3f} after {options.trials} trials")


if __name__ == "__main__":
    main()
