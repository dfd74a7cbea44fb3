#!/usr/bin/env python3
"""Measure the programs of a record file again, on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, help="record file with the programs")
    parser.add_argument("--tasks", type=Path, required=True, help="tasks.json of the records")
    parser.add_argument("--target", default="llvm", help="what to measure for")
    parser.add_argument("--limit", type=int, help="measure at most this many programs")
    parser.add_argument("-o", "--out", type=Path, required=True, help="record file to append to")
    options = parser.parse_args(arguments)
    from tvm.auto_scheduler.record_tools import remeasure_records
    from tvm.felix import load_tasks

    try:
        load_tasks(options.tasks)  # registers the workloads
        count = remeasure_records(options.records, options.out, options.target, limit=options.limit)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"Measured {count} programs into {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
