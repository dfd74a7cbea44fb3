#!/usr/bin/env python3
"""Measure the programs of record files again, on this machine: all, or some of some tasks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm.felix.command import Help
from tvm.felix.console import end_process, run_command


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Help)
    parser.add_argument(
        "records", type=Path, nargs="+", help="record files with the programs, or folders of them"
    )
    parser.add_argument("--tasks", type=Path, required=True, help="tasks.json of the records")
    parser.add_argument("--target", default="llvm", help="what to measure for")
    parser.add_argument(
        "--operators",
        nargs="+",
        default=(),
        metavar="NAME",
        help="only tasks that have one of these, such as Conv Dense BatchMatmul DepthwiseConv2d",
    )
    parser.add_argument(
        "--n-tasks", type=int, help="at most this many tasks of each operator, drawn at random"
    )
    parser.add_argument(
        "--per-task", type=int, help="at most this many programs of each task, drawn at random"
    )
    parser.add_argument("--seed", type=int, default=0, help="of every random choice")
    parser.add_argument("--limit", type=int, help="measure at most this many programs in all")
    parser.add_argument("--timeout", type=float, default=15, help="seconds of a program's runs")
    parser.add_argument("--number", type=int, default=3, help="runs of a repeat")
    parser.add_argument("--repeat", type=int, default=1, help="repeats, of which each is recorded")
    parser.add_argument(
        "--min-repeat-ms", type=float, default=100, help="a repeat takes at least this long"
    )
    parser.add_argument("-o", "--out", type=Path, required=True, help="record file to append to")
    options = parser.parse_args(arguments)
    for name in ("n_tasks", "per_task", "limit"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} must be >= 1, got {value}")
    if options.seed < 0:
        parser.error(f"--seed must be >= 0, got {options.seed}")
    return run_command(lambda: measure(options))


def measure(options: argparse.Namespace) -> None:
    """Measure what is not in the output yet."""
    from tvm.auto_scheduler import LocalRunner, ProgramMeasurer
    from tvm.auto_scheduler.record_tools import remeasure_records
    from tvm.felix import load_tasks
    from tvm.felix.settings import require_device
    from tvm.felix.sym_task import choose_tasks
    from tvm.runtime.files import check_appendable
    from tvm.target import Target

    target = Target(options.target)
    require_device(target)
    files = record_files(options.records)
    check_appendable(options.out)
    tasks = choose_tasks(
        load_tasks(options.tasks), options.operators, options.n_tasks, options.seed
    )
    failed = 0

    def count(_: Any, __: Any, results: Sequence[Any]) -> None:
        nonlocal failed
        failed += sum(int(result.error_no) != 0 for result in results)

    runner = LocalRunner(
        timeout=options.timeout,
        number=options.number,
        repeat=options.repeat,
        min_repeat_ms=options.min_repeat_ms,
    )
    measured = remeasure_records(
        files,
        options.out,
        target,
        ProgramMeasurer(runner=runner, callbacks=[count]),
        options.limit,
        per_task=options.per_task,
        workloads={str(task.ansor_task.workload_key) for task in tasks},
        seed=options.seed,
    )
    ending = f", of which {failed} failed" if failed else ""
    print(f"Measured {measured} programs of {len(tasks)} tasks into {options.out}{ending}")


def record_files(paths: Sequence[Path]) -> list[Path]:
    """Files, and those in folders that end in .json.

    Raises
    ------
    FileNotFoundError : a path is neither, or a folder has none.
    """
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path] if path.exists() else []
        if not inside:
            raise FileNotFoundError(f"there is no record file {path}")
        found += inside
    return found


if __name__ == "__main__":
    end_process(main())
