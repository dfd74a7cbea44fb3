#!/usr/bin/env python3
"""Measure the programs of a record file again, on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from tvm.felix.console import end_process, run_command


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, help="record file with the programs")
    parser.add_argument("--tasks", type=Path, required=True, help="tasks.json of the records")
    parser.add_argument("--target", default="llvm", help="what to measure for")
    parser.add_argument("--limit", type=int, help="measure at most this many programs")
    parser.add_argument("-o", "--out", type=Path, required=True, help="record file to append to")
    options = parser.parse_args(arguments)
    return run_command(lambda: measure(options))


def measure(options: argparse.Namespace) -> None:
    """Measure what is not in the output yet."""
    from tvm.auto_scheduler import ProgramMeasurer
    from tvm.auto_scheduler.record_tools import remeasure_records
    from tvm.felix import load_tasks
    from tvm.felix.settings import require_device
    from tvm.target import Target

    target = Target(options.target)
    require_device(target)
    load_tasks(options.tasks)  # registers the workloads
    measurer = ProgramMeasurer()
    count = remeasure_records(options.records, options.out, target, measurer, options.limit)
    failed = f", of which {measurer.error_ct} failed" if measurer.error_ct else ""
    print(f"Measured {count} programs into {options.out}{failed}")


if __name__ == "__main__":
    end_process(main())
