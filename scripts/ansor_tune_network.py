#!/usr/bin/env python3
"""Tune a network with any search policy under one task scheduler, and compare it with PyTorch."""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from tvm.felix.command import Help
from tvm.felix.console import end_process, run_command


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Command line of this program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Help)
    parser.add_argument("network", help="name of felix.nn, or module:function")
    parser.add_argument("batch_size", nargs="?", type=int, default=1, help="examples a run")
    parser.add_argument("--target", default="llvm", help="what to compile for")
    parser.add_argument(
        "--trials",
        type=int,
        default=300,
        help="programs to measure, beside those that --out has of earlier runs",
    )
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
    parser.add_argument(
        "--cost-model", help="cost model to start with, if there is one; kept up to date"
    )
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
    from tvm.felix import nn
    from tvm.felix.ansor_tune import ansor_tune
    from tvm.felix.timing import interleaved_seconds, torch_variants

    model, inputs = nn.load_network(options.network, batch=options.batch_size)
    result = ansor_tune(
        model,
        inputs,
        options.out,
        target=options.target,
        trials=options.trials,
        per_round=options.per_round,
        policy=options.policy,
        search_space=options.search_space,
        strategy=options.strategy,
        early_stopping=options.early_stopping,
        cost_model=options.cost_model,
    )
    compiled = result.compiled
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
        "trials": result.trials,
        "seconds": result.seconds,
        "estimated_seconds": result.estimated_seconds,
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
