#!/usr/bin/env python3
"""Measure random programs, turn records into a data set, and train the cost model on it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tvm.felix.command import Help
from tvm.felix.console import end_process, run_command


def parse_arguments(arguments: list[str] | None, command: str | None) -> argparse.Namespace:
    """Command line of this program, or of a script that is for one command of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of every random choice")
    seed = argparse.ArgumentParser(add_help=False)
    seed.add_argument("--seed", type=int, default=argparse.SUPPRESS, help="of every random choice")
    commands = parser.add_subparsers(dest="command", required=True)

    def add_command(name: str, text: str) -> argparse.ArgumentParser:
        described = f"{text[0].upper()}{text[1:]}."
        return commands.add_parser(
            name, parents=[seed], help=text, description=described, formatter_class=Help
        )

    measure = add_command("measure", "measure schedules of networks' tasks")
    measure.add_argument("networks", nargs="*", help="names, or module:function")
    measure.add_argument(
        "--random", type=int, default=0, help="add this many random operators of no network"
    )
    measure.add_argument("--target", default="llvm", help="what to measure for")
    measure.add_argument(
        "--guided",
        type=float,
        default=0.5,
        help="share of the programs that a search chooses, instead of chance",
    )
    measure.add_argument("--per-task", type=int, default=32, help="programs of each task")
    measure.add_argument(
        "-o", "--out", type=Path, required=True, help="folder of tasks and records"
    )

    dataset = add_command("felix_dataset", "data set from folders with records")
    dataset.add_argument(
        "-l",
        "--logs",
        type=Path,
        nargs="+",
        required=True,
        help="folders that hold tasks.json and records.json",
    )
    dataset.add_argument("-o", "--out", type=Path, required=True, help="data set file (.npz)")

    train = add_command("train_mlp", "train the multi-layer perceptron")
    train.add_argument(
        "-d",
        "--dataset",
        type=Path,
        nargs="+",
        required=True,
        help="data sets, such as one of this machine and the replay of another's checkpoint",
    )
    train.add_argument("-o", "--out", type=Path, required=True, help="checkpoint to write")
    train.add_argument(
        "--start", type=Path, help="checkpoint to train further, such as one of another machine"
    )
    train.add_argument("--train-ratio", type=float, default=0.9, help="share of the tasks")
    train.add_argument(
        "--min-lat", type=float, default=0.0, help="seconds; faster ones are left out"
    )
    train.add_argument(
        "--max-lat", type=float, default=float("inf"), help="seconds; slower ones are left out"
    )
    train.add_argument("--loss-f", default="relative", help="relative, log_mse, mse or rank")
    train.add_argument("--epochs", type=int, default=200, help="passes over the data")
    train.add_argument(
        "--replay",
        type=int,
        default=0,
        help="programs to keep beside the checkpoint, for further training",
    )
    train.add_argument("--log-folder", type=Path, help="of the TensorBoard log")

    recreate = add_command(
        "recreate",
        "measure, collect and train at one go: the model that comes with the package, anew",
    )
    recreate.add_argument(
        "--seeds", type=int, nargs="+", default=list(range(101, 111)), help="of operators"
    )
    recreate.add_argument("--random", type=int, default=60, help="operators of each seed")
    recreate.add_argument("--per-task", type=int, default=40, help="programs of each operator")
    recreate.add_argument("--target", default="llvm", help="what to measure for")
    recreate.add_argument(
        "-d",
        "--dataset",
        type=Path,
        nargs="*",
        default=[],
        help="more data sets to train on, such as the replay of another machine's checkpoint",
    )
    recreate.add_argument("--train-ratio", type=float, default=0.92, help="share of the tasks")
    recreate.add_argument("--epochs", type=int, default=60, help="passes over the data")
    recreate.add_argument("--replay", type=int, default=900, help="programs to keep beside it")
    recreate.add_argument(
        "-o",
        "--out",
        type=Path,
        required=True,
        help="checkpoint to write; what is measured goes to folders beside it and is gone on with",
    )

    ansor = add_command("train_ansor", "train a model over per-store features")
    ansor.add_argument("-l", "--logs", type=Path, nargs="+", required=True, help="record files")
    ansor.add_argument(
        "-t", "--tasks", type=Path, nargs="*", default=[], help="tasks.json of the records"
    )
    ansor.add_argument(
        "-m", "--model", default="xgb", choices=("xgb", "mlp"), help="boosted trees or a perceptron"
    )
    ansor.add_argument("-o", "--out", type=Path, required=True, help="model file to write")
    ansor.add_argument(
        "--split",
        default="task",
        choices=("task", "within_task", "target"),
        help="test with other tasks, with other programs of the same tasks, or with other targets",
    )
    ansor.add_argument(
        "--train-ratio", type=float, default=0.9, help="share of what is split to train on"
    )
    ansor.add_argument(
        "--min-programs", type=int, default=48, help="tasks with fewer programs are left out"
    )
    ansor.add_argument("--epochs", type=int, default=50, help="passes of a perceptron")
    if command is None:
        options = parser.parse_args(arguments)
    else:
        commands.choices[command].prog = parser.prog
        given = sys.argv[1:] if arguments is None else arguments
        options = parser.parse_args([command, *given])
    for seed_given in (options.seed, *getattr(options, "seeds", ())):
        if seed_given < 0:
            commands.choices[options.command].error(f"a seed must be >= 0, got {seed_given}")
    return options


def _measure(options: argparse.Namespace) -> None:
    from tvm.felix import nn
    from tvm.felix.pretrain import measure_programs
    from tvm.felix.settings import require_device
    from tvm.felix.sym_task import extract_tasks, make_task, merge_tasks, save_tasks
    from tvm.felix.workloads import random_workloads
    from tvm.target import Target

    require_device(Target(options.target))
    if not options.networks and options.random < 1:
        raise ValueError("measure: name a network, or ask for random operators by --random N")
    groups = []
    for name in options.networks:
        model, inputs = nn.load_network(name)
        groups.append(extract_tasks(model, inputs, target=options.target))
    for desc, build in random_workloads(options.random, options.seed).items():
        groups.append([make_task(build(), target=options.target, desc=desc)])
    tasks = merge_tasks(groups)
    options.out.mkdir(parents=True, exist_ok=True)
    save_tasks(tasks, options.out / "tasks.json")
    count = measure_programs(
        tasks,
        options.per_task,
        options.out / "records.json",
        guided=options.guided,
        seed=options.seed,
    )
    print(f"Measured {count} programs of {len(tasks)} tasks into {options.out}")


def _felix_dataset(options: argparse.Namespace) -> None:
    from tvm.auto_scheduler.cost_model.dataset import DatasetBuilder
    from tvm.felix.pretrain import dataset_from_records
    from tvm.felix.sym_task import load_tasks

    data = DatasetBuilder()
    for folder in options.logs:
        data.extend(
            dataset_from_records(load_tasks(folder / "tasks.json"), folder / "records.json")
        )
    if not len(data):
        raise ValueError(
            f"felix_dataset: no program in {', '.join(map(str, options.logs))} is a point of "
            "felix's sketches; programs of Ansor's space train models by train_ansor"
        )
    data.save(options.out)
    print(f"{len(data)} programs of {len({m.task for m in data.conf_meta})} tasks: {options.out}")


def _train_mlp(options: argparse.Namespace) -> None:
    from tvm.auto_scheduler.cost_model.dataset import DatasetBuilder
    from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
    from tvm.felix.pretrain import filter_latency, train_mlp

    data = DatasetBuilder.load(options.dataset[0])
    for path in options.dataset[1:]:
        data.extend(DatasetBuilder.load(path))
    data = filter_latency(data, options.min_lat, options.max_lat)
    model = MLPModelPLWrapper(loss_func=options.loss_f, seed=options.seed, pretrained=options.start)
    metrics = train_mlp(
        data,
        model,
        options.out,
        train_ratio=options.train_ratio,
        epochs=options.epochs,
        seed=options.seed,
        replay=options.replay,
        log_folder=options.log_folder,
    )
    for name, value in metrics.items():
        print(f"{name:>14}: {value:.4f}")


def _recreate(options: argparse.Namespace) -> None:
    folders = []
    for seed in options.seeds:
        folder = options.out.with_name(f"{options.out.stem}-{seed}")
        folders.append(folder)
        _measure(
            argparse.Namespace(
                networks=[],
                random=options.random,
                seed=seed,
                target=options.target,
                per_task=options.per_task,
                guided=0.5,
                out=folder,
            )
        )
    data = options.out.with_suffix(".npz")
    _felix_dataset(argparse.Namespace(logs=folders, out=data))
    _train_mlp(
        argparse.Namespace(
            dataset=[data, *options.dataset],
            out=options.out,
            start=None,
            train_ratio=options.train_ratio,
            min_lat=0.0,
            max_lat=float("inf"),
            loss_f="relative",
            epochs=options.epochs,
            seed=options.seed,
            replay=options.replay,
            log_folder=None,
        )
    )


def _train_ansor(options: argparse.Namespace) -> None:
    import numpy as np

    from tvm.auto_scheduler.cost_model import XGBModel
    from tvm.auto_scheduler.cost_model.dataset import DatasetBuilder
    from tvm.auto_scheduler.cost_model.metric import evaluate, random_baseline
    from tvm.auto_scheduler.cost_model.mlp_model import MLPModel
    from tvm.felix.sym_task import load_tasks

    for tasks in options.tasks:
        load_tasks(tasks)  # registers the workloads
    data = DatasetBuilder.from_logs(options.logs, min_programs=options.min_programs)
    split = {
        "task": data.split_by_task,
        "within_task": data.split_within_task,
        "target": data.split_by_target,
    }[options.split]
    train, test = split(options.train_ratio, np.random.default_rng(options.seed))
    measured, groups = test.normalized_throughputs(), test.groups()
    # Metrics compare programs of one task.
    if not len(train) or np.unique(groups, return_counts=True)[1].max(initial=0) < 2:
        raise ValueError(
            f"train_ansor: {len(data)} programs split by {options.split} into {len(train)} to "
            f"train and {len(test)} to test, where one to train and two of one task to test are "
            "needed; more records, fewer --min-programs or another --train-ratio would do"
        )
    if options.model == "xgb":
        trees = XGBModel(seed=options.seed)
        trees.fit(
            train.features,
            train.normalized_throughputs(),
            (test.features, measured),
        )
        trees.save(options.out)
        predicted = trees.score(test.features)
    else:
        network = MLPModel(seed=options.seed)
        network.fit(train, options.epochs)
        network.save(options.out)
        predicted = network.network.score(test.batch())
    random = random_baseline(measured, groups)
    print(f"{len(train)} programs to train, {len(test)} to test")
    # A perceptron is trained to order programs here.
    levels = options.model == "xgb"
    for name, value in evaluate(predicted, measured, groups, levels).items():
        print(f"{name:>14}: {value:8.4f}   (random {random[name]:.4f})")


def _check_files(options: argparse.Namespace) -> None:
    """Find out before hours are spent whether what is read is there, and what is written can be.

    Raises
    ------
    FileNotFoundError : a file that is read does not exist, or the folder of one that is written.
    """
    read = [*getattr(options, "dataset", []), *getattr(options, "tasks", [])]
    if getattr(options, "start", None) is not None:
        read.append(options.start)
    logs = getattr(options, "logs", [])
    if options.command == "felix_dataset":
        read += [folder / name for folder in logs for name in ("tasks.json", "records.json")]
    else:
        read += logs
    for path in read:
        if not path.exists():
            raise FileNotFoundError(f"there is no file {path}")
    if options.command != "measure" and not options.out.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"--out: there is no folder {options.out.parent} to write in; make it, or name another"
        )


def main(arguments: list[str] | None = None, command: str | None = None) -> int:
    """Run; returns the exit status. With `command` the arguments are those of that command."""
    options = parse_arguments(arguments, command)
    commands = {
        "measure": _measure,
        "felix_dataset": _felix_dataset,
        "train_mlp": _train_mlp,
        "recreate": _recreate,
        "train_ansor": _train_ansor,
    }

    def run() -> None:
        _check_files(options)
        commands[options.command](options)

    return run_command(run)


if __name__ == "__main__":
    end_process(main())
