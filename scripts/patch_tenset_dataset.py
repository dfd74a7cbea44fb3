#!/usr/bin/env python3
"""Bring records of TenSet, or of another version of TVM, into the form of this package."""

from __future__ import annotations

import argparse
from pathlib import Path

from tenset_measure_programs import record_files

from tvm.felix.console import end_process, run_command


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "records", type=Path, nargs="+", help="record files to read, or folders of them"
    )
    parser.add_argument(
        "--tasks", type=Path, required=True, help="tasks.json with what the records may be of"
    )
    parser.add_argument("--target", help="target to write instead of the records' own")
    parser.add_argument("-o", "--out", type=Path, required=True, help="record file to write")
    options = parser.parse_args(arguments)
    return run_command(lambda: patch(options))


def patch(options: argparse.Namespace) -> None:
    """Rewrite the records, and say how many of which kind there were."""
    from tvm.auto_scheduler.record_tools import patch_records
    from tvm.felix import load_tasks

    files = record_files(options.records)
    tasks = [i.ansor_task for group in load_tasks(options.tasks) for i in group.instances]
    counts = patch_records(files, options.out, tasks, options.target)
    for what, count in sorted(counts.items()):
        print(f"{what:>18}: {count}")


if __name__ == "__main__":
    end_process(main())
