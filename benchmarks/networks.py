#!/usr/bin/env python3
"""Whole networks: task extraction, tuned against untuned, and tuned against eager PyTorch.

Each network is tuned from nothing; the three programs are then timed interleaved in this process
with the same number of threads. PyTorch is the faster of contiguous and channels_last.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tvm.felix import nn
from tvm.felix.sym_task import extract_tasks
from tvm.felix.tune_network import TuneSettings, tune_network


def main() -> int:
    """Run all networks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--networks", nargs="*", default=["resnet18", "mobilenet_v2"])
    parser.add_argument("--trials", type=int, default=300, help="programs measured a network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("--out", type=Path, help="keep each run's folder under this one")
    options = parser.parse_args()

    rows = []
    table = Table(title=f"Networks, at most {options.trials} measurements")
    columns = ("network", "extract s", "search s", "untuned ms", "tuned ms", "PyTorch ms")
    for column in (*columns, "untuned/tuned", "PyTorch/tuned"):
        table.add_column(column, justify="left" if column == "network" else "right")
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.networks:
            model, inputs = nn.load_network(name)
            start = time.perf_counter()
            extract_tasks(model, inputs)
            extract_seconds = time.perf_counter() - start
            summary = tune_network(
                model,
                inputs,
                TuneSettings(
                    network=name, trials=options.trials, seed=options.seed, threads=options.threads
                ),
                (options.out or Path(scratch)) / name,
            )
            latency = summary["latency_seconds"]
            row = {
                "network": name,
                "extract_seconds": extract_seconds,
                "search_seconds": summary["search_seconds"],
                "measurements": summary["measurements"],
                "threads": summary["threads"],
                **{f"{key}_seconds": value for key, value in latency.items()},
                "untuned_over_tuned": latency["untuned"] / latency["tuned"],
                "pytorch_over_tuned": latency["pytorch"] / latency["tuned"],
                "max_abs_diff": summary["max_abs_diff"],
                "max_rel_diff": summary["max_rel_diff"],
            }
            rows.append(row)
            table.add_row(
                name,
                f"{extract_seconds:.1f}",
                f"{row['search_seconds']:.0f}",
                *(f"{latency[key] * 1e3:.2f}" for key in ("untuned", "tuned", "pytorch")),
                f"{row['untuned_over_tuned']:.1f}",
                f"{row['pytorch_over_tuned']:.2f}",
            )
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
