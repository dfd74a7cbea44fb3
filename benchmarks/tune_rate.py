#!/usr/bin/env python3
"""Measurements a second of MetaSchedule's evolution, here and in a wheel of apache-tvm.

    python benchmarks/tune_rate.py --peer VENV/bin/python [--trials 64] [--tasks conv2d matmul]

`--peer` names a Python that has apache-tvm (0.26 was tried) and xgboost installed; without it only
our side runs. Both tune the same computations, a 3x3 convolution of 64 channels of 56x56 and a
product of 1024x1024 matrices, with as many trials in batches of 16, in turn, each in a process of
its own, and the time counts from the call of `tune_tir` to its return. Each side's own runner and
cost model are used as they come. Builders have as many workers as there are `--threads`, and ten
minutes for a program: those of apache-tvm 0.26 read all tensor intrinsics before their first one,
which takes so long on a busy machine that with its 30 seconds not one program was built. A side of
which no candidate ran is reported as that. apache-tvm 0.26 needs apache-tvm-ffi 0.1.13.post2 or
later of 0.1.13; with 0.1.13 itself it cannot write libraries.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

TASKS = ("conv2d", "matmul")


def computation(te: Any, task: str) -> Any:
    """The tensors of a task, written in what both sides' te have."""
    if task == "matmul":
        n = 1024
        a, b = (te.placeholder((n, n), name=name, dtype="float32") for name in "AB")
        k = te.reduce_axis((0, n), name="k")
        out = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        return [a, b, out]
    size, channels = 56, 64
    data = te.placeholder((1, size, size, channels), name="data", dtype="float32")
    weight = te.placeholder((3, 3, channels, channels), name="weight", dtype="float32")
    padded = te.compute(
        (1, size + 2, size + 2, channels),
        lambda n, h, w, c: te.if_then_else(
            te.all(h >= 1, h < size + 1, w >= 1, w < size + 1), data[n, h - 1, w - 1, c], 0.0
        ),
        name="padded",
    )
    axes = [te.reduce_axis((0, extent), name=name) for extent, name in zip((3, 3, channels), "hwc")]
    dh, dw, dc = axes
    out = te.compute(
        (1, size, size, channels),
        lambda n, h, w, c: te.sum(padded[n, h + dh, w + dw, dc] * weight[dh, dw, dc, c], axis=axes),
        name="conv",
    )
    return [data, weight, out]


def one_side(task: str, args: argparse.Namespace) -> dict[str, Any]:
    """Tune in this process, with whichever tvm it has."""
    import tvm
    from tvm import te

    try:
        from tvm import meta_schedule as ms
    except ImportError:
        from tvm.s_tir import meta_schedule as ms
    target = tvm.target.Target({"kind": "llvm", "mcpu": args.cpu, "num-cores": args.threads})
    function = te.create_prim_func(computation(te, task))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        database = ms.tune_tir(
            function,
            target,
            folder,
            args.trials,
            num_trials_per_iter=16,
            seed=args.seed,
            builder=ms.builder.LocalBuilder(max_workers=args.threads, timeout_sec=600.0),
        )
        seconds = time.perf_counter() - start
        records = list(database.get_all_tuning_records())
    means = [statistics.mean(map(float, r.run_secs)) for r in records if r.run_secs]
    # What failed is on record with a time that nothing takes.
    ran = [mean for mean in means if mean < 1e9]
    return {
        "version": tvm.__version__,
        "seconds": seconds,
        "measured": len(records),
        "ran": len(ran),
        "best_ms": min(ran, default=math.nan) * 1e3,
    }


def host_cpu() -> str:
    """LLVM's name of this machine's processor."""
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_name())


def run(python: str, args: argparse.Namespace, task: str, seed: int, cpu: str) -> dict[str, Any]:
    """One side in a process of its own."""
    command = [python, os.path.abspath(__file__), "--one-side", task, "--trials", str(args.trials)]
    command += ["--threads", str(args.threads), "--seed", str(seed), "--cpu", cpu]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{python}: tuning {task} failed\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Run the sides in turn and print the rates and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", help="a Python with apache-tvm")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--one-side", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--cpu", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one_side:
        print(json.dumps(one_side(args.one_side, args)))
        return
    sides = {"tvm (here)": sys.executable}
    if args.peer:
        sides["apache-tvm"] = args.peer
    cpu = host_cpu()
    for task in args.tasks:
        rates: dict[str, list[float]] = {side: [] for side in sides}
        for seed in args.seeds:
            for side, python in sides.items():
                found = run(python, args, task, seed, cpu)
                rates[side].append(found["measured"] / found["seconds"])
                print(
                    f"{task:8s} {side:12s} {found['version']:12s} seed {seed}: "
                    f"{found['measured']} tried, {found['ran']} timed, "
                    f"in {found['seconds']:.1f} s, "
                    f"{rates[side][-1]:.2f} a second; best {found['best_ms']:.3f} ms",
                    flush=True,
                )
        if args.peer:
            ours, theirs = (statistics.median(values) for values in rates.values())
            print(f"{task:8s} trials a second, ours / theirs: {ours / theirs:.1f}", flush=True)


if __name__ == "__main__":
    main()
