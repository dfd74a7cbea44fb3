#!/usr/bin/env python3
"""Measure random programs, turn records into a data set, and train the cost model on it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Command line of this program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of every random choice")
    commands = parser.add_subparsers(dest="command", required=True)

    measure = commands.add_parser("measure", help="measure random schedules of networks' tasks")
    measure.add_argument("networks", nargs="*", help="names, or module:function")
    measure.add_argument(
        "--random", type=int, default=0, help="add this many random operators of no network"
    )
    measure.add_argument("--target", default="llvm")
    measure.add_argument("--per-task", type=int, default=32, help="programs of each task")
    measure.add_argument(
        "-o", "--out", type=Path, required=True, help="folder of tasks and records"
    )

    dataset = commands.add_parser("felix_dataset", help="data set from folders with records")
    dataset.add_argument(
        "-l",
        "--logs",
        type=Path,
        nargs="+",
        required=True,
        help="folders that hold tasks.json and records.json",
    )
    dataset.add_argument("-o", "--out", type=Path, required=True, help="data set file (.npz)")

    train = commands.add_parser("train_mlp", help="train the multi-layer perceptron")
    train.add_argument("-d", "--dataset", type=Path, required=True)
    train.add_argument("-o", "--out", type=Path, required=True, help="checkpoint to write")
    train.add_argument("--train-ratio", type=float, default=0.9, help="share of the tasks")
    train.add_argument(
        "--min-lat", type=float, default=0.0, help="seconds; faster ones are left out"
    )
    train.add_argument("--max-lat", type=float, default=float("inf"), help="seconds")
    train.add_argument("--loss-f", default="relative", help="relative, log_mse, mse or rank")
    train.add_argument("--epochs", type=int, default=200)
    train.add_argument("--log-folder", type=Path, help="of the TensorBoard log")
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace) -> None:
    from tvm.felix import nn
    from tvm.felix.pretrain import measure_random_programs
    from tvm.felix.sym_task import extract_tasks, make_task, merge_tasks, save_tasks
    from tvm.felix.workloads import random_workloads

    groups = []
    for name in options.networks:
        model, inputs = nn.load_network(name)
        groups.append(extract_tasks(model, inputs, target=options.target))
    for desc, build in random_workloads(options.random, options.seed).items():
        groups.append([make_task(build(), target=options.target, desc=desc)])
    tasks = merge_tasks(groups)
    options.out.mkdir(parents=True, exist_ok=True)
    save_tasks(tasks, options.out / "tasks.json")
    count = measure_random_programs(
        tasks, options.per_task, options.out / "records.json", seed=options.seed
    )
    print(f"Measured {count} programs of {len(tasks)} tasks into {options.out}")


def _felix_dataset(options: argparse.Namespace) -> None:
    from tvm.felix.dataset import DatasetBuilder
    from tvm.felix.pretrain import dataset_from_records
    from tvm.felix.sym_task import load_tasks

    data = DatasetBuilder()
    for folder in options.logs:
        data.extend(
            dataset_from_records(load_tasks(folder / "tasks.json"), folder / "records.json")
        )
    data.save(options.out)
    print(f"{len(data)} programs of {len({m.task for m in data.conf_meta})} tasks: {options.out}")


def _train_mlp(options: argparse.Namespace) -> None:
    from tvm.felix.cost_model import MLPModelPLWrapper
    from tvm.felix.dataset import DatasetBuilder
    from tvm.felix.pretrain import filter_latency, train_mlp

    data = filter_latency(DatasetBuilder.load(options.dataset), options.min_lat, options.max_lat)
    model = MLPModelPLWrapper(loss_func=options.loss_f, seed=options.seed)
    metrics = train_mlp(
        data,
        model,
        options.out,
        train_ratio=options.train_ratio,
        epochs=options.epochs,
        seed=options.seed,
        log_folder=options.log_folder,
    )
    for name, value in metrics.items():
        print(f"{name:>14}: {value:.4f}")


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    options = parse_arguments(arguments)
    commands = {"measure": _measure, "felix_dataset": _felix_dataset, "train_mlp": _train_mlp}
    try:
        commands[options.command](options)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
