#!/usr/bin/env python3
"""Tune a network with any search policy under one task scheduler, and compare it with PyTorch."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from tvm.felix.command import Help
from tvm.felix.console import end_process, run_command


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Command line of this program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Help)
    parser.add_argument("network", help="name of felix.nn, or module:function")
    parser.add_argument("batch_size", nargs="?", type=int, default=1, help="examples a run")
    parser.add_argument("--target", default="llvm", help="what to compile for")
    parser.add_argument("--trials", type=int, default=300, help="programs to measure in total")
    parser.add_argument("--per-round", type=int, default=16, help="programs measured a round")
    parser.add_argument(
        "--policy",
        default="sketch.xgb",
        help="sketch.xgb, sketch.mlp, sketch.random or felix",
    )
    parser.add_argument("--search-space", help="ansor or felix (default: what the policy prefers)")
    parser.add_argument(
        "--strategy", default="gradient", help="gradient, expected-gain or round-robin"
    )
    parser.add_argument("--early-stopping", type=int, help="trials without improvement")
    parser.add_argument("--cost-model", help="saved cost model to start with; kept up to date")
    parser.add_argument("--out", type=Path, required=True, help="folder of tasks and records")
    options = parser.parse_args(arguments)
    for name in ("batch_size", "trials", "per_round"):
        if getattr(options, name) < 1:
            parser.error(f"{name} must be >= 1, got {getattr(options, name)}")
    if options.early_stopping is not None and options.early_stopping < 1:
        parser.error(f"early_stopping must be >= 1, got {options.early_stopping}")
    return options


def tune(options: argparse.Namespace) -> None:
    """Tune and print what came of it; a folder that holds records already is gone on with."""
    from tvm import auto_scheduler, felix
    from tvm.auto_scheduler import task_scheduler
    from tvm.felix import nn
    from tvm.felix.timing import interleaved_seconds, torch_variants
    from tvm.felix.tuning import compile_tuned
    from tvm.target import Target

    model, inputs = nn.load_network(options.network, batch=options.batch_size)
    tasks, weights = auto_scheduler.extract_tasks(model, inputs, options.target)
    if not tasks:
        raise ValueError(f"{options.network} has no kernel that is worth tuning")
    options.out.mkdir(parents=True, exist_ok=True)
    felix.save_tasks(
        [
            felix.make_task(task, desc=str(task.desc), weight=weight, idx=i)
            for i, (task, weight) in enumerate(zip(tasks, weights))
        ],
        options.out / "tasks.json",
    )
    records = options.out / "records.json"
    scheduler = auto_scheduler.TaskScheduler(
        tasks,
        weights,
        strategy=options.strategy,
        load_log_file=str(records) if records.exists() else None,
        load_model_file=options.cost_model,
        callbacks=[
            task_scheduler.PrintTableInfo(),
            task_scheduler.LogEstimatedLatency(options.out / "total_latency.tsv"),
        ],
    )
    params = {} if options.search_space is None else {"search_space": options.search_space}
    start = time.monotonic()
    scheduler.tune(
        auto_scheduler.TuningOptions(
            num_measure_trials=options.trials,
            early_stopping=options.early_stopping,
            num_measures_per_round=options.per_round,
            measure_callbacks=[auto_scheduler.RecordToFile(records)],
        ),
        search_policy=options.policy,
        search_policy_params=params,
    )
    # What was found is timed again beside the library's schedules, and then inside of the network;
    # each kernel gets the faster one.
    auto_scheduler.confirm_records(records, tasks)
    network = felix.compile(model, inputs, target=options.target, records=records).network
    [compiled] = compile_tuned([network], Target(options.target), options.out, None)
    functions = {
        "tuned": lambda: compiled(*inputs),
        **{f"pytorch {name}": run for name, run in torch_variants(model, inputs).items()},
    }
    latency = {
        name: statistics.median(samples) for name, samples in interleaved_seconds(functions).items()
    }
    summary = {
        "network": options.network,
        "policy": options.policy,
        "trials": scheduler.ct,
        "seconds": time.monotonic() - start,
        "estimated_seconds": scheduler.cur_score,
        "latency_seconds": latency,
        "schedules": {kernel.name: kernel.schedule for kernel in compiled.kernels},
    }
    (options.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(compiled.coverage)
    for name, seconds in latency.items():
        print(f"{name:>22}: {seconds * 1e3:.3f} ms")
    print(f"Results are in {options.out}: tasks.json, records.json, summary.json")


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    options = parse_arguments(arguments)
    return run_command(lambda: tune(options))


if __name__ == "__main__":
    end_process(main())
