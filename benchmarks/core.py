"""Speed of hand-scheduled kernels against PyTorch, interleaved in one process.

Each row compares our fastest schedule of a kernel with the fastest way PyTorch offers (contiguous
or channels-last for convolutions). The figures are best of many short bursts taken in turns, so
that a change of the machine's clock or load meets both alike. A ratio above one means that ours is
faster.

    python benchmarks/core.py --threads 1 --json core.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core_cases import CASES, KINDS, Case

BURST_SECONDS = 0.02


def best_seconds(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Shortest time of each function over `rounds` bursts, the functions taking turns."""
    best: dict[str, float] = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            function()
            until = time.perf_counter() + BURST_SECONDS
            while True:
                start = time.perf_counter()
                function()
                end = time.perf_counter()
                best[name] = min(best[name], end - start)
                if end > until:
                    break
    return best


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    import torch

    import tvm

    ours, theirs = KINDS[case.kind](case, tvm.target.Target("llvm"))
    with torch.no_grad():
        seconds = best_seconds({**ours, **theirs}, rounds)
    our_name = min(ours, key=seconds.__getitem__)
    their_name = min(theirs, key=seconds.__getitem__)
    return {
        "name": case.name,
        "ours_seconds": seconds[our_name],
        "theirs_seconds": seconds[their_name],
        "ratio": seconds[their_name] / seconds[our_name],
        "threads": torch.get_num_threads(),
        "size": case.size,
        "tile": our_name,
        "torch_path": their_name,
    }


def run(threads: int, rounds: int, only: str) -> list[dict[str, Any]]:
    """All cases whose name contains `only`, on one thread count."""
    import torch

    torch.set_num_threads(threads)
    rows = []
    for case in CASES:
        if only not in case.name:
            continue
        row = measure(case, rounds)
        rows.append(row)
        size = "x".join(map(str, case.size))
        print(
            f"{row['name']:<22}{size:<18}{threads:>3}{row['ours_seconds'] * 1e6:>10.1f}"
            f"{row['theirs_seconds'] * 1e6:>10.1f}{row['ratio']:>7.2f}  {row['tile']:<28}"
            f"{row['torch_path']}",
            flush=True,
        )
    return rows


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=32, help="bursts per kernel")
    parser.add_argument("--only", default="", help="run cases whose name contains this")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        rows = run(options.threads[0], options.rounds, options.only)
        options.json.write_text(json.dumps(rows))
        return
    print(f"{'case':<22}{'size':<18}{'thr':>3}{'ours us':>10}{'torch us':>10}{'ratio':>7}  tile")
    rows = []
    for threads in options.threads:
        # The size of the thread pool is fixed when a process starts, so each count has its own.
        part = (options.json or Path("core.json")).with_suffix(f".{threads}.json")
        command = [sys.executable, __file__, "--worker", "--threads", str(threads)]
        command += ["--rounds", str(options.rounds), "--only", options.only, "--json", str(part)]
        subprocess.run(command, check=True, env={**os.environ, "TVM_NUM_THREADS": str(threads)})
        rows += json.loads(part.read_text())
        part.unlink()
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
