"""Time from a schedule to machine code, for convolutions as the search compiles them.

A candidate's cost is lowering (bound inference, passes, LLVM IR as text) plus LLVM's part. The
figures are medians of several compilations; `fma` counts the vector multiply-adds in the text, each
a sum that LLVM may contract with the product it adds.

    python benchmarks/compile_time.py --json compile_time.json
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from pathlib import Path
from typing import Any

import tvm
from tvm import te
from tvm.target import llvm_build
from tvm.topi import x86

# Rows, columns, vectors of the register tile of a 3x3 convolution of 64 channels on 56 x 56 pixels,
# and how many loops of the window are written out, the columns' first.
CANDIDATES = (
    (x86.RegisterTile(1, 4, 1), 0),
    (x86.RegisterTile(3, 2, 2), 0),
    (x86.RegisterTile(2, 3, 2), 0),
    (x86.RegisterTile(1, 6, 2), 0),
    (x86.RegisterTile(3, 2, 2), 1),
    (x86.RegisterTile(2, 2, 2), 2),
    (x86.RegisterTile(1, 5, 2), 2),
)


def candidate(
    tile: x86.RegisterTile, unrolled: int, target: tvm.target.Target
) -> tuple[te.Schedule, list[te.Tensor]]:
    """A schedule with padding, convolution and ReLU, and its arguments."""
    block = tile.vectors * target.vector_width // 32
    data = te.placeholder((1, 56, 56, 64), name="data")
    weight = te.placeholder((64 // block, 3, 3, 64, block), name="weight")
    conv = x86.conv2d_nhwc_packed(data, weight, 1, 1)
    relu = te.compute(conv.shape, lambda *i: te.max(conv(*i), 0.0), name="relu")
    schedule = x86.schedule_conv2d_nhwc_packed(conv, tile, relu, target)
    if unrolled:
        window = conv.op.reduce_axis[:2]
        stage = schedule[conv]
        loops = list(stage.leaf_iter_vars)
        (ci,) = conv.op.reduce_axis[2:]
        written_out = window[2 - unrolled :]
        order = [i for i in loops if i not in (*written_out, ci)]
        place = loops.index(window[0]) + 2 - unrolled
        stage.reorder(*order[:place], ci, *written_out, *order[place:])
        for loop in written_out:
            stage.unroll(loop)
    return schedule, [data, weight, relu]


def measure(tile: x86.RegisterTile, unrolled: int, repeat: int) -> dict[str, Any]:
    """One row of the table, in seconds."""
    target = tvm.target.Target("llvm")
    lowering, llvm = [], []
    text = ""
    for _ in range(repeat):
        schedule, arguments = candidate(tile, unrolled, target)
        start = time.perf_counter()
        text = tvm.build(schedule, arguments, target, name="conv").get_source("ll")
        whole = time.perf_counter() - start
        start = time.perf_counter()
        llvm_build.compile_ir(text, target)
        llvm.append(time.perf_counter() - start)
        lowering.append(whole - llvm[-1])
    return {
        "name": f"conv3x3_64_56 {tile.rows}x{tile.columns}x{tile.vectors}"
        + (f" unrolled {unrolled}" if unrolled else ""),
        "fma": len(re.findall("fadd contract <", text)),
        "lowering_seconds": statistics.median(lowering),
        "llvm_seconds": statistics.median(llvm),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    print(f"{'candidate':<32}{'fma':>5}{'lowering ms':>13}{'LLVM ms':>9}{'sum ms':>8}")
    rows = []
    for tile, unrolled in CANDIDATES:
        row = measure(tile, unrolled, options.repeat)
        rows.append(row)
        both = row["lowering_seconds"] + row["llvm_seconds"]
        print(
            f"{row['name']:<32}{row['fma']:>5}{row['lowering_seconds'] * 1e3:>13.1f}"
            f"{row['llvm_seconds'] * 1e3:>9.1f}{both * 1e3:>8.1f}"
        )
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
