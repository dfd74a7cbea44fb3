#!/usr/bin/env python3
"""Tune a network for this machine by gradient descent, and compare it with PyTorch."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path


class Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows defaults, but not that there is none."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default is None else super()._get_help_string(action)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Command line of this program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Help)
    parser.add_argument(
        "network",
        nargs="?",
        help="mlp, resnet18, mobilenet_v2, or module:function returning (model, example_inputs)",
    )
    parser.add_argument("batch_size", nargs="?", type=int, default=1, help="examples a run")
    parser.add_argument("--target", default="llvm", help="what to compile for")
    parser.add_argument("--trials", type=int, default=300, help="programs to measure in total")
    parser.add_argument(
        "--config-seeds", type=int, default=32, help="start points per sketch and round"
    )
    parser.add_argument(
        "--grad-steps", type=int, default=64, help="gradient steps of a first round"
    )
    parser.add_argument("--per-round", type=int, default=8, help="programs measured a round")
    parser.add_argument("--seed", type=int, default=0, help="of every random choice")
    parser.add_argument("--threads", type=int, help="CPU threads (default: all cores)")
    parser.add_argument("--weights", help="state dict to load instead of random weights")
    parser.add_argument(
        "--cost-model",
        default="packaged",
        help='checkpoint of a trained model; "packaged" for the one that comes with the package, '
        '"none" to learn from this run alone',
    )
    parser.add_argument(
        "--winograd",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compute 3x3 convolutions by Winograd's minimal filtering where that is less work; "
        "results differ by rounding (processors only)",
    )
    parser.add_argument(
        "--timing-rounds", type=int, default=21, help="samples of the closing comparison"
    )
    parser.add_argument(
        "--out", type=Path, help="folder of the results (default: runs/<network>-<time>)"
    )
    parser.add_argument(
        "--resume", type=Path, help="go on with the run in this folder; its options apply"
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    options = parser.parse_args(arguments)
    if (options.network is None) == (options.resume is None):
        parser.error("name a network, or a folder with --resume (and not both)")
    for name in (
        "batch_size",
        "trials",
        "config_seeds",
        "grad_steps",
        "per_round",
        "timing_rounds",
    ):
        if getattr(options, name) < 1:
            parser.error(f"{name} must be >= 1, got {getattr(options, name)}")
    if options.threads is not None and options.threads < 1:
        parser.error(f"--threads must be >= 1, got {options.threads}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    options = parse_arguments(arguments)
    # Imported after parsing, so that --help and usage errors answer at once.
    from tvm.felix import nn
    from tvm.felix.logging import init_logging
    from tvm.felix.tune_network import TuneSettings, read_settings, tune_network

    try:
        if options.resume is not None:
            folder, settings = options.resume, read_settings(options.resume)
        else:
            name = options.network.replace(":", ".").replace("/", ".")
            folder = options.out or Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
            if (folder / "records.json").exists():
                raise ValueError(
                    f"{folder} already holds a run; continue it with --resume {folder}, "
                    "or choose another --out"
                )
            settings = TuneSettings(
                network=options.network,
                target=options.target,
                batch_size=options.batch_size,
                trials=options.trials,
                config_seeds=options.config_seeds,
                grad_steps=options.grad_steps,
                per_round=options.per_round,
                seed=options.seed,
                threads=options.threads,
                weights=options.weights,
                cost_model=options.cost_model,
                winograd=options.winograd,
                timing_rounds=options.timing_rounds,
            )
        model, inputs = nn.load_network(
            settings.network, weights=settings.weights, batch=settings.batch_size
        )
        folder.mkdir(parents=True, exist_ok=True)
        init_logging(folder / "tune.log", console=30)
        tune_network(model, inputs, settings, folder, progress=not options.no_progress)
    except (ValueError, TypeError, KeyError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
