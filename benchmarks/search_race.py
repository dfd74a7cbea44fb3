#!/usr/bin/env python3
"""Search policies against each other: latency of the best program by measurements and by seconds.

Ten processor tasks; each policy runs on each search space named, with each seed, or --sides names
the pairs, each with the measurements it may take. PyTorch's time for the same computation is taken
in the same run. `geomean_felix_vs_evolutionary` compares the gradient search on felix's space after
--felix-trials measurements with evolution on Ansor's space after all; `geomean_same_space` compares
both on felix's space after --felix-trials.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler.cost_model import XGBModel
from tvm.auto_scheduler.cost_model.mlp_model import MLPModel
from tvm.auto_scheduler.task_scheduler import make_search_policies
from tvm.felix.timing import interleaved_seconds

Tensors = list[te.Tensor]


def conv2d(size: int, channels: int, filters: int, kernel: int, stride: int) -> Tensors:
    """NHWC convolution of a square image, with bias and ReLU."""
    data = te.placeholder((1, size, size, channels), name="data")
    weight = te.placeholder((kernel, kernel, channels, filters), name="weight")
    bias = te.placeholder((filters,), name="bias")
    out = topi.nn.conv2d_nhwc(data, weight, stride, kernel // 2, 1)
    return [data, weight, bias, topi.nn.relu(topi.add(out, bias))]


def depthwise(size: int, channels: int, stride: int) -> Tensors:
    """NHWC 3x3 depthwise convolution."""
    data = te.placeholder((1, size, size, channels), name="data")
    weight = te.placeholder((3, 3, channels, 1), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nhwc(data, weight, stride, 1, 1)]


def dense(rows: int, inputs: int, outputs: int) -> Tensors:
    """Matrix product with a weight of free layout."""
    data = te.placeholder((rows, inputs), name="data")
    weight = te.placeholder((outputs, inputs), name="weight")
    return [data, weight, topi.nn.dense(data, weight)]


def batch_matmul(batch: int, n: int, m: int, k: int) -> Tensors:
    """Products of pairs of matrices, the second one transposed."""
    a, b = te.placeholder((batch, n, k), name="a"), te.placeholder((batch, m, k), name="b")
    return [a, b, topi.nn.batch_matmul(a, b)]


def softmax(rows: int, columns: int) -> Tensors:
    """Softmax of each row."""
    a = te.placeholder((rows, columns), name="a")
    return [a, topi.nn.softmax(a, axis=1)]


def layer_norm(rows: int, columns: int) -> Tensors:
    """Each row less its mean, over its deviation."""
    a = te.placeholder((rows, columns), name="a")
    scale, shift = (
        te.placeholder((columns,), name="scale"),
        te.placeholder((columns,), name="shift"),
    )
    return [a, scale, shift, topi.nn.layer_norm(a, scale, shift, axis=[1], epsilon=1e-5)]


def attention_score(heads: int, length: int, width: int) -> Tensors:
    """Softmax of the scaled products of queries and keys."""
    query = te.placeholder((heads, length, width), name="query")
    key = te.placeholder((heads, length, width), name="key")
    scores = topi.nn.batch_matmul(query, key)
    scaled = te.compute(scores.shape, lambda b, i, j: scores[b, i, j] * width**-0.5, name="scaled")
    return [query, key, topi.nn.softmax(scaled, axis=2)]


def _torch_conv(
    size: int, channels: int, filters: int, kernel: int, stride: int, groups: int = 1
) -> Callable[[], Any]:
    layout = {"memory_format": torch.channels_last}
    data = torch.rand(1, channels, size, size).to(**layout)
    weight = torch.rand(filters, channels // groups, kernel, kernel).to(**layout)
    bias = torch.rand(filters)
    if groups > 1:
        return lambda: torch.conv2d(data, weight, None, stride, kernel // 2, 1, groups)
    return lambda: torch.relu(torch.conv2d(data, weight, bias, stride, kernel // 2))


def _torch_of(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], Any]:
    arrays = [torch.rand(shape) for shape in shapes]
    return lambda: function(*arrays)


def _attention(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    return torch.softmax(query @ key.transpose(1, 2) * query.shape[-1] ** -0.5, 2)


# Name -> (te tensors, the same in PyTorch).
TASKS: dict[str, tuple[Callable[[], Tensors], Callable[[], Callable[[], Any]]]] = {
    "conv3x3_64_56": (
        lambda: conv2d(56, 64, 64, 3, 1),
        lambda: _torch_conv(56, 64, 64, 3, 1),
    ),
    "conv3x3_256_14": (
        lambda: conv2d(14, 256, 256, 3, 1),
        lambda: _torch_conv(14, 256, 256, 3, 1),
    ),
    "conv1x1_128_28": (
        lambda: conv2d(28, 128, 128, 1, 1),
        lambda: _torch_conv(28, 128, 128, 1, 1),
    ),
    "depthwise_96_56": (
        lambda: depthwise(56, 96, 1),
        lambda: _torch_conv(56, 96, 96, 3, 1, 96),
    ),
    "depthwise_384_14": (
        lambda: depthwise(14, 384, 1),
        lambda: _torch_conv(14, 384, 384, 3, 1, 384),
    ),
    "dense_1024": (
        lambda: dense(1024, 1024, 1024),
        lambda: _torch_of(torch.nn.functional.linear, (1024, 1024), (1024, 1024)),
    ),
    "batch_matmul_12_128_64": (
        lambda: batch_matmul(12, 128, 128, 64),
        lambda: _torch_of(lambda a, b: a @ b.transpose(1, 2), (12, 128, 64), (12, 128, 64)),
    ),
    "softmax_1024_1024": (
        lambda: softmax(1024, 1024),
        lambda: _torch_of(lambda a: torch.softmax(a, 1), (1024, 1024)),
    ),
    "layer_norm_512_768": (
        lambda: layer_norm(512, 768),
        lambda: _torch_of(
            lambda a, s, t: torch.nn.functional.layer_norm(a, (768,), s, t),
            (512, 768),
            (768,),
            (768,),
        ),
    ),
    "attention_12_128_64": (
        lambda: attention_score(12, 128, 64),
        lambda: _torch_of(_attention, (12, 128, 64), (12, 128, 64)),
    ),
}

POLICIES = ("felix", "sketch.xgb", "sketch.mlp", "sketch.random")
SPACES = ("ansor", "felix")


def race(
    task: auto_scheduler.SearchTask,
    policy_name: str,
    space: str,
    seed: int,
    trials: int,
    per_round: int,
) -> list[tuple[int, float, float]]:
    """Measure with one policy; (measurements, seconds, best latency) after each round."""
    runner = auto_scheduler.LocalRunner(number=3, repeat=3, min_repeat_ms=50)
    start = time.monotonic()
    if policy_name == "felix":
        params = {"search_space": space, "seed": seed}
        [policy] = make_search_policies("felix", params, [task], per_round, verbose=0)
        # A gradient search learns from each batch, so its batches are small.
        per_round = min(per_round, 8)
    else:
        models: dict[str, Callable[[], Any]] = {
            "sketch.xgb": lambda: XGBModel(num_warmup_sample=per_round, seed=seed, verbose_eval=0),
            "sketch.mlp": lambda: MLPModel(num_warmup_sample=per_round, seed=seed),
            "sketch.random": lambda: auto_scheduler.RandomModel(seed),
        }
        policy = auto_scheduler.SketchPolicy(
            task, models[policy_name](), params={"search_space": space}, seed=seed, verbose=0
        )
    measurer = auto_scheduler.ProgramMeasurer(runner=runner)
    curve: list[tuple[int, float, float]] = []
    best, count = math.inf, 0
    while count < trials:
        inputs, results = policy.continue_search_one_round(min(per_round, trials - count), measurer)
        if not inputs:
            break
        count += len(inputs)
        best = min([best, *(r.mean_cost for r in results if int(r.error_no) == 0)])
        curve.append((count, time.monotonic() - start, best))
    measurer.close()
    return curve


def at(curve: list[tuple[int, float, float]], trials: int) -> float:
    """Best latency after at most `trials` measurements."""
    return min((best for count, _, best in curve if count <= trials), default=math.inf)


def sides_of(options: argparse.Namespace) -> list[tuple[str, str, int]]:
    """Policy, space and measurements of each side.

    Raises
    ------
    SystemExit : --sides names none, or what is unknown.
    """
    if not options.sides:
        return [(p, s, options.trials) for p in options.policies for s in options.spaces]
    sides = []
    for text in options.sides:
        policy, _, rest = text.partition("@")
        space, _, trials = rest.partition(":")
        if policy not in POLICIES or space not in SPACES or not (trials or "0").isdigit():
            raise SystemExit(
                f"--sides {text}: expected POLICY@SPACE or POLICY@SPACE:MEASUREMENTS, of the "
                f"policies {', '.join(POLICIES)} and the spaces {', '.join(SPACES)}"
            )
        sides.append((policy, space, int(trials or options.trials)))
    return sides


def geomean(values: list[float]) -> float:
    """Geometric mean; NaN without values."""
    finite = [value for value in values if 0 < value < math.inf]
    return math.exp(statistics.fmean(map(math.log, finite))) if finite else math.nan


def summary(tasks: dict[str, Any], felix_trials: int) -> dict[str, float]:
    """How many times faster felix's programs are: geometric means over tasks and seeds."""
    other, same = [], []
    for entry in tasks.values():
        curves = entry["curves"]
        for seed, felix in enumerate(curves.get("felix on felix", [])):
            best = at(felix, felix_trials)
            if "sketch.xgb on ansor" in curves:
                other.append(at(curves["sketch.xgb on ansor"][seed], 1 << 30) / best)
            if "sketch.xgb on felix" in curves:
                same.append(at(curves["sketch.xgb on felix"][seed], felix_trials) / best)
    means = {"geomean_felix_vs_evolutionary": other, "geomean_same_space": same}
    return {key: geomean(ratios) for key, ratios in means.items() if ratios}


def plot(report: dict[str, Any], path: Path) -> None:
    """Best latency over PyTorch's, against measurements (left) and seconds (right), all tasks."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = sorted(report["tasks"])
    figure, axes = plt.subplots(len(names), 2, figsize=(11, 2.6 * len(names)), squeeze=False)
    for row, name in zip(axes, names):
        entry = report["tasks"][name]
        for side, curves in entry["curves"].items():
            curve = curves[0]
            ratios = [entry["torch_seconds"] / best for _, _, best in curve]
            # With markers, as a curve of one round has no line.
            row[0].plot([c for c, _, _ in curve], ratios, ".-", label=side)
            row[1].plot([s for _, s, _ in curve], ratios, ".-", label=side)
        row[0].set_ylabel(f"{name}\nPyTorch / best")
        row[0].set_xlabel("measurements")
        row[1].set_xlabel("seconds")
        row[0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--spaces", nargs="+", default=list(SPACES), choices=list(SPACES))
    parser.add_argument(
        "--sides", nargs="+", help="POLICY@SPACE[:MEASUREMENTS] instead of --policies and --spaces"
    )
    parser.add_argument("--threads", type=int, help="of both sides; by default all cores")
    parser.add_argument("--trials", type=int, default=256, help="measurements of each run")
    parser.add_argument(
        "--felix-trials", type=int, default=64, help="measurements at which felix is compared"
    )
    parser.add_argument("--per-round", type=int, default=16)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, default=Path("search_race"), help="JSON and PNG files")
    options = parser.parse_args()

    sides = sides_of(options)
    threads = options.threads or os.cpu_count() or 1
    if os.environ.get("TVM_NUM_THREADS") != str(threads):
        # The thread pool reads it when it starts, in the workers, too.
        environment = {**os.environ, "TVM_NUM_THREADS": str(threads)}
        sys.exit(
            subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
        )
    torch.set_num_threads(threads)
    report: dict[str, Any] = {"trials": options.trials, "seeds": options.seeds, "tasks": {}}
    for name in options.tasks:
        tensors, reference = TASKS[name]
        task = auto_scheduler.SearchTask(
            compute_dag=tensors(),
            target=f"llvm -num-cores={threads}",
            desc=name,
            layout_rewrite_option=auto_scheduler.LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
        )
        with torch.inference_mode():
            samples = interleaved_seconds({"torch": reference()}, rounds=15)["torch"]
        seconds = statistics.median(samples)
        print(f"{name}: PyTorch {seconds * 1e3:.3f} ms")
        curves: dict[str, list[list[tuple[int, float, float]]]] = {}
        for policy, space, trials in sides:
            runs = [
                race(task, policy, space, seed, trials, options.per_round) for seed in options.seeds
            ]
            side = f"{policy} on {space}"
            curves[side] = runs
            texts = []
            for step in sorted({min(options.felix_trials, trials), trials}):
                best = geomean([at(curve, step) for curve in runs])
                texts.append(f"{best * 1e3:9.3f} ms ({seconds / best:5.2f}) at {step}")
            took = runs[0][-1][1] if runs[0] else 0
            print(f"  {side:>24}: {', '.join(texts)}, {took:.0f} s", flush=True)
        report["tasks"][name] = {"torch_seconds": seconds, "curves": curves}
        # A race takes an hour; what is known is on disk after each task.
        report.update(summary(report["tasks"], options.felix_trials))
        options.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    for key, value in summary(report["tasks"], options.felix_trials).items():
        print(f"{key}: {value:.3f}")
    plot(report, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
