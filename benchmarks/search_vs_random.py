#!/usr/bin/env python3
"""Gradient search against uniform random sampling of the same sketches, equal measurements.

For each task and seed both searches measure the same number of programs, batch by batch in turn.
The best program of each side is then timed again, interleaved, so that the ratio does not depend
on when a batch happened to run. The random programs were never shown to the cost model, so they
serve as the held-out set for the rank correlation between predicted and measured score.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from tvm import te, topi
from tvm.auto_scheduler import LocalRunner
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.auto_scheduler.cost_model.metric import spearman
from tvm.felix.checkpoint import packaged_checkpoint
from tvm.felix.optim import Optimizer
from tvm.felix.search import ConfigInfo, SearchSettings
from tvm.felix.sym_task import SymTaskAndInstances, make_task


def conv2d(size: int, channels: int, filters: int, kernel: int, stride: int) -> list[te.Tensor]:
    """NHWC convolution of a square image, with bias and ReLU."""
    data = te.placeholder((1, size, size, channels), name="data")
    weight = te.placeholder((kernel, kernel, channels, filters), name="weight")
    bias = te.placeholder((filters,), name="bias")
    out = topi.nn.conv2d_nhwc(data, weight, stride, kernel // 2, 1)
    return [data, weight, bias, topi.nn.relu(topi.add(out, bias))]


def dense(rows: int, inputs: int, outputs: int) -> list[te.Tensor]:
    """Fully connected layer with bias."""
    data = te.placeholder((rows, inputs), name="data")
    weight = te.placeholder((outputs, inputs), name="weight")
    bias = te.placeholder((outputs,), name="bias")
    return [data, weight, bias, topi.add(topi.nn.dense(data, weight), bias)]


WORKLOADS: dict[str, Callable[[], list[te.Tensor]]] = {
    "conv3x3_64_56": lambda: conv2d(56, 64, 64, 3, 1),
    "conv3x3_256_14": lambda: conv2d(14, 256, 256, 3, 1),
    "conv1x1_128_28": lambda: conv2d(28, 128, 128, 1, 1),
    "dense_128_768_768": lambda: dense(128, 768, 768),
    "dense_16_512_1000": lambda: dense(16, 512, 1000),
}


def best_seconds(infos: list[ConfigInfo]) -> ConfigInfo:
    """The fastest valid measurement."""
    valid = [info for info in infos if info.seconds is not None]
    if not valid:
        raise RuntimeError("no candidate of a search could be measured")
    return min(valid, key=lambda info: info.seconds or 0.0)


def compare(
    group: SymTaskAndInstances, seed: int, n_measure: int, per_round: int, pretrained: str | None
) -> dict[str, float]:
    """One row: best latencies of both searches on one task with one seed."""
    runner = LocalRunner(number=3, repeat=3, min_repeat_ms=50)
    sides = {}
    for name, settings in (("gradient", None), ("random", SearchSettings(random_share=1.0))):
        model = MLPModelPLWrapper(pretrained=pretrained, seed=seed)
        sides[name] = Optimizer(
            [group], model, runner=runner, seed=seed, settings=settings, against_library=False
        )
    gradient, random = sides["gradient"], sides["random"]
    while gradient.n_measure < n_measure:
        before = gradient.n_measure
        gradient.tune(
            min(n_measure, before + per_round), measure_per_round=per_round, progress=False
        )
        random.session.round(random.tasks[0].policy, gradient.n_measure - before)
        if gradient.n_measure == before:
            break

    best = {
        name: best_seconds(list(s.tasks[0].search.measured.values())) for name, s in sides.items()
    }
    again = {name: [] for name in best}
    for _ in range(3):
        for name, side in sides.items():
            inputs = [side.tasks[0].policy.get_measure_input(best[name])]
            again[name] += [r.mean_cost for r in side.session.measurer.measure(inputs)]
    seconds = {name: float(np.median(values)) for name, values in again.items()}

    gradient.perf_model.train_self(gradient.data_builder)
    function = gradient.tasks[0].policy.function
    held = [i for i in random.tasks[0].search.measured.values() if i.seconds is not None]
    predicted = np.array(
        [
            function.sketch_funcs[i.sketch].scores(
                function.sketch_funcs[i.sketch].features.point(i.config)[None]
            )[0]
            for i in held
        ]
    )
    throughput = np.array([1.0 / (i.seconds or 1.0) for i in held])
    return {
        "gradient_seconds": seconds["gradient"],
        "random_seconds": seconds["random"],
        "ratio": seconds["random"] / seconds["gradient"],
        "spearman": spearman(predicted, throughput),
        "measurements": gradient.n_measure,
    }


def main() -> int:
    """Run all rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--measurements", type=int, default=32, help="programs a side and row")
    parser.add_argument("--per-round", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument(
        "--cost-model",
        default=str(packaged_checkpoint()),
        help='checkpoint to start from, or "none"; its training data has none of these tasks',
    )
    options = parser.parse_args()

    checkpoint = None if options.cost_model == "none" else options.cost_model
    rows = []
    table = Table(title="Best latency after equal measurements")
    for column in ("task", "seed", "gradient ms", "random ms", "random/gradient", "Spearman"):
        table.add_column(column, justify="left" if column == "task" else "right")
    for name in tqdm(options.tasks, unit="task"):
        group = make_task(WORKLOADS[name](), target="llvm", desc=name)
        for seed in range(options.seeds):
            row = compare(group, seed, options.measurements, options.per_round, checkpoint)
            rows.append({"task": name, "seed": seed, **row})
            table.add_row(
                name,
                str(seed),
                f"{row['gradient_seconds'] * 1e3:.4f}",
                f"{row['random_seconds'] * 1e3:.4f}",
                f"{row['ratio']:.3f}",
                f"{row['spearman']:.3f}",
            )
    geomean = float(np.exp(np.mean([np.log(row["ratio"]) for row in rows])))
    per_task = [
        np.mean([row["spearman"] for row in rows if row["task"] == name]) for name in options.tasks
    ]
    console = Console()
    console.print(table)
    console.print(
        f"geometric mean of random/gradient: {geomean:.3f}; "
        f"Spearman of the median task: {np.median(per_task):.3f}"
    )
    if options.json:
        options.json.write_text(
            json.dumps(
                {"geomean": geomean, "spearman_median": float(np.median(per_task)), "rows": rows},
                indent=2,
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
