"""Record files of tuners: reading, writing, picking the best.

Usage: ``python -m tvm.autotvm.record --mode pick --i all.log --o best.log``; mode "read" says how
fast each record is, mode "split" writes a file a workload.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.runtime.files import write_atomically

from .measure_node import MeasureInput, MeasureResult
from .task.dispatcher import ApplyHistoryBest
from .task.records import (
    AUTOTVM_LOG_VERSION,
    decode,
    encode,
    load_from_buffer,
    load_from_file,
    measure_str_key,
    split_workload,
)

__all__ = [
    "AUTOTVM_LOG_VERSION",
    "ApplyHistoryBest",
    "MeasureInput",
    "MeasureResult",
    "decode",
    "encode",
    "load_from_buffer",
    "load_from_file",
    "measure_str_key",
    "pick_best",
    "split_workload",
]

logger = logging.getLogger("autotvm")


def pick_best(in_file: str | os.PathLike[str], out_file: str | os.PathLike[str]) -> int:
    """Keep the fastest record of each workload and target.

    Parameters
    ----------
    out_file : replaced as a whole; may be the file that is read.

    Returns
    -------
    Number of records kept.
    """
    best: dict[Any, tuple[MeasureInput, MeasureResult]] = {}
    for inp, result in load_from_file(in_file):
        if int(result.error_no) != 0:
            continue
        key = measure_str_key(inp, include_config=False)
        if key not in best or np.mean(result.costs) < np.mean(best[key][1].costs):
            best[key] = (inp, result)
    text = "".join(encode(inp, result) + "\n" for inp, result in best.values())
    write_atomically(out_file, text.encode())
    logger.info("kept the best of %d workloads in %s", len(best), os.fspath(out_file))
    return len(best)


def main(argv: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=["read", "pick", "split"], default="read")
    parser.add_argument("--i", required=True, help="record file")
    parser.add_argument("--o", help="for pick: where the best go; by default FILE.best.log")
    parser.add_argument(
        "--code", default=None, help="module to import, which defines the templates"
    )
    options = parser.parse_args(argv)
    if options.code:
        __import__(options.code)
    if options.mode == "pick":
        print(pick_best(options.i, options.o or f"{os.path.splitext(options.i)[0]}.best.log"))
    elif options.mode == "split":
        print("\n".join(split_workload(options.i)))
    else:
        for inp, result in load_from_file(options.i):
            print(inp.task.workload, inp.config, float(np.mean(result.costs)))


if __name__ == "__main__":
    main()
