#!/usr/bin/env python3
"""Look records up by workload and target, the fastest first, as a table or as JSON lines."""

from __future__ import annotations

import argparse
import json
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="+", help="record files")
    parser.add_argument("--workload", help="text in the workload key")
    parser.add_argument("--target", help="text in the target")
    parser.add_argument("--valid", action="store_true", help="leave out failed measurements")
    parser.add_argument("-n", type=int, default=20, help="show at most this many")
    parser.add_argument("--json", action="store_true", help="print the records themselves")
    options = parser.parse_args(arguments)
    from tvm.auto_scheduler.record_tools import query_records

    try:
        found = query_records(
            options.records, options.workload, options.target, only_valid=options.valid
        )
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for file, number, record in found[: options.n]:
        if options.json:
            print(json.dumps(record))
            continue
        (key, target, *_), _ = record["i"]
        costs, error_no, *_ = record["r"]
        seconds = f"{sum(costs) / len(costs) * 1e3:12.4f} ms" if error_no == 0 else "      failed"
        print(f"{seconds}  {file}:{number}  {target}  {key}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
