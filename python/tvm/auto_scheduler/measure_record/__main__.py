"""``python -m tvm.auto_scheduler.measure_record --mode distill -i in.json -o out.json``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import distill_record_file

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool that the arguments name; the exit status of the process."""
    parser = argparse.ArgumentParser(description="Tools for record files.")
    parser.add_argument("--mode", choices=("distill",), default="distill")
    parser.add_argument("-i", "--input", required=True, help="record file to read")
    parser.add_argument("-o", "--output", help="file to write (default: <input>.best.json)")
    options = parser.parse_args(arguments)
    output = options.output or f"{options.input.removesuffix('.json')}.best.json"
    try:
        distill_record_file(options.input, output)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
