#!/usr/bin/env python3
"""Seconds from a network to the feature tapes of all its tasks, simplification apart.

    python benchmarks/extraction.py --network resnet50 --json extraction.json

For each task: loop structures with their lowered code, features and constraints as smoothing leaves
them, and what simplification adds for all sketches of the task, which a search pays for tapes that
it then evaluates some ten thousand times. Times are processor time of this process, which other
work on the machine does not count into. Importing the network is a line of its own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tvm.felix import nn
from tvm.felix.ffi import get_feature_pack
from tvm.felix.sym_task import extract_tasks
from tvm.felix.tape import ITERATIONS

Result = TypeVar("Result")


def timed(function: Callable[[], Result]) -> tuple[Result, float]:
    """The result of a call and its processor seconds."""
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    model, inputs = nn.load_network(options.network)
    tasks, importing = timed(lambda: extract_tasks(model, inputs, options.target))
    count = sum(len(group.instances) for group in tasks)
    print(f"import of {options.network}, {count} tasks: {importing:.2f} s")
    rows = []
    for task, instance in [pair for group in tasks for pair in group.pairs]:
        sketches, structures = timed(lambda task=task: task.sketches)
        packs = {}
        for iterations in (0, ITERATIONS):
            packs[iterations] = timed(
                lambda n=iterations, task=task, sketches=sketches: [
                    get_feature_pack(
                        task.ansor_task, s.code, s.context, task.search_space, iterations=n
                    )
                    for s in sketches
                ]
            )[1]
        simplification = max(packs[ITERATIONS] - packs[0], 0.0)
        rows.append(
            {
                "task": instance.desc,
                "sketches": len(sketches),
                "structures": structures,
                "features": packs[0],
                "simplification": simplification,
            }
        )
        print(
            f"{rows[-1]['task'][:40]:40s} {len(sketches):2d} sketches {structures:6.2f} s, "
            f"features {packs[0]:6.2f} s, simplification {simplification:6.2f} s",
            flush=True,
        )
    totals = {
        what: sum(row[what] for row in rows)
        for what in ("structures", "features", "simplification")
    }
    most = max(row["simplification"] for row in rows)
    extraction = totals["structures"] + totals["features"]
    print(
        f"all: structures {totals['structures']:.2f} s, features {totals['features']:.2f} s, "
        f"extraction {extraction:.2f} s, simplification {totals['simplification']:.2f} s, at most "
        f"{most:.2f} s a task"
    )
    if options.json:
        options.json.write_text(
            json.dumps({"import": importing, "rows": rows, "extraction": extraction}, indent=2)
            + "\n"
        )


if __name__ == "__main__":
    main()
