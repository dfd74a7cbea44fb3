"""Seconds that the parts of an evolutionary search take on one convolution.

Sketches, random programs until there are 2048, and one generation of 2048 children, scored by a
RandomModel: what a round costs beside the cost model. The features that a cost model would ask for
are timed on their own. Processor seconds are those of all cores together, without other work on the
machine. `--space felix` uses the other search space.
"""

from __future__ import annotations

import argparse
import time

from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler.feature import get_per_store_features_from_states


@auto_scheduler.register_workload("benchmark_conv2d")
def conv2d(size: int, channels: int) -> list[te.Tensor]:
    """A 3x3 convolution with bias and ReLU, NHWC."""
    data = te.placeholder((1, size, size, channels), name="data")
    weight = te.placeholder((3, 3, channels, channels), name="weight")
    bias = te.placeholder((channels,), name="bias")
    return [data, weight, bias, topi.relu(topi.add(topi.nn.conv2d_nhwc(data, weight, 1, 1), bias))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--space", default="ansor", choices=["ansor", "felix"])
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--programs", type=int, default=2048)
    options = parser.parse_args()
    task = auto_scheduler.SearchTask(func="benchmark_conv2d", args=(56, 64), target=options.target)
    policy = auto_scheduler.SketchPolicy(
        task,
        params={
            "search_space": options.space,
            "sample_init_min_population": options.programs,
            "evolutionary_search_population": options.programs,
            "evolutionary_search_num_iters": 1,
        },
        seed=0,
        verbose=0,
    )
    total = 0.0

    def timed(what, function):
        nonlocal total
        start, start_busy = time.perf_counter(), time.process_time()
        states = function()
        seconds, busy = time.perf_counter() - start, time.process_time() - start_busy
        total += seconds
        print(f"{what:24s} {len(states):6d} states {seconds:8.2f} s, {busy:8.2f} s of processors")
        return states

    timed("sketches", policy.generate_sketches)
    population = timed("random programs", policy.sample_initial_population)
    timed("one generation", lambda: policy.evolutionary_search(population, 128))
    print(f"{'together':24s} {'':13s} {total:8.2f} s")
    timed(
        "features",
        lambda: get_per_store_features_from_states(population[: options.programs], task),
    )


if __name__ == "__main__":
    main()
