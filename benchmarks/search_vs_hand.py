#!/usr/bin/env python3
"""The gradient search against the best hand schedule of each row of `core.py`.

Each row is searched with a few measurements and with all, and the programs are then timed in turns
with all hand-written candidates of the row in this process. A ratio above one means that the
searched program is faster. Where the arrays of a program happen to lie in memory makes up to a
tenth of its time, so every program, of either side, has three sets, and the least time counts.

    python benchmarks/search_vs_hand.py --threads 1 --json search_vs_hand.json
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import best_seconds
from core_cases import CASES, KINDS, Case

FEW = 8
PLACEMENTS = 3


def computation(case: Case) -> list[Any]:
    """The case as te tensors, weights in the layout that a program wants."""
    from search_race import conv2d, dense, depthwise

    from tvm import te, topi

    size = case.size
    if case.kind == "conv":
        return conv2d(*size)
    if case.kind == "depthwise":
        return depthwise(*size)
    if case.kind in ("matmul", "dense"):
        return dense(*size)
    left = te.placeholder(size, name="left")
    if case.kind == "add":
        right = te.placeholder(size, name="right")
        return [left, right, topi.add(left, right)]
    function = {
        "exp": topi.exp,
        "tanh": topi.tanh,
        "gelu": topi.nn.gelu,
        "softmax": topi.nn.softmax,
    }
    return [left, function[case.name](left)]


def search(case: Case, trials: int, seed: int, target: Any) -> dict[int, list[Callable[[], None]]]:
    """The best programs found with FEW and with all measurements, ready to be called, each with
    arrays of several placements."""
    import numpy as np

    import tvm
    from tvm import auto_scheduler
    from tvm.auto_scheduler.relax_integration import recorded_schedule
    from tvm.auto_scheduler.task_scheduler import make_search_policies

    task = auto_scheduler.SearchTask(
        compute_dag=computation(case),
        target=target,
        desc=case.name,
        layout_rewrite_option=auto_scheduler.LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
    )
    [policy] = make_search_policies("felix", {"seed": seed}, [task], FEW, verbose=0)
    found: dict[int, list[Callable[[], None]]] = {}
    with auto_scheduler.MeasureSession() as session:

        def best() -> list[Callable[[], None]]:
            """The best schedule so far, of which the first three are measured once more."""
            measured = [i for i in policy.search_state.measured.values() if i.seconds]
            first = sorted(measured, key=lambda info: info.seconds)[:3]
            candidates = [policy.get_measure_input(info) for info in first]
            seconds = session.measure_again(candidates)
            state = candidates[seconds.index(min(seconds))].state
            chosen = recorded_schedule(task.compute_dag, state, int(task.layout_rewrite_option))
            kernel = tvm.build(chosen.schedule, list(chosen.args), target, name="kernel")
            rng = np.random.default_rng(0)
            shapes = [[int(x) for x in arg.shape] for arg in chosen.args]
            return [
                _call(
                    kernel["kernel"],
                    [tvm.nd.array(rng.random(s).astype("float32")) for s in shapes],
                )
                for _ in range(PLACEMENTS)
            ]

        while session.n_measure < trials:
            if not session.round(policy, min(FEW, trials - session.n_measure)):
                break
            if session.n_measure == FEW:
                found[FEW] = best()
        found[max(session.n_measure, FEW + 1)] = best()
    return found


def _call(function: Any, arrays: list[Any]) -> Callable[[], None]:
    return lambda: function(*arrays)


def measure(case: Case, trials: int, seeds: list[int], rounds: int, target: Any) -> dict[str, Any]:
    """One row of the table; of several seeds the worst counts."""
    programs: dict[str, Callable[[], None]] = {}
    for placement in range(PLACEMENTS):
        ours, _ = KINDS[case.kind](case, target)
        programs.update({f"{placement} {name}": ours[name] for name in ours})
    searched: dict[str, str] = {}
    for seed in seeds:
        for count, functions in search(case, trials, seed, target).items():
            name = f"searched {count} {seed}"
            searched[name] = "few" if count == FEW else "all"
            programs.update({f"{i} {name}": function for i, function in enumerate(functions)})
    seconds: dict[str, float] = {}
    for placed, taken in best_seconds(programs, rounds).items():
        name = placed.split(" ", 1)[1]
        seconds[name] = min(taken, seconds.get(name, math.inf))
    hand = min(ours, key=seconds.__getitem__)

    def worst(which: str) -> float:
        found = [seconds[name] for name, kind in searched.items() if kind == which]
        return seconds[hand] / max(found) if found else math.nan

    return {
        "name": case.name,
        "size": case.size,
        "hand": hand,
        "hand_seconds": seconds[hand],
        "ratio_after_few": worst("few"),
        "ratio": worst("all"),
    }


def main() -> int:
    """Run and report; one process for each number of threads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--trials", type=int, default=64, help="measurements of each search")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rounds", type=int, default=20, help="bursts a program is timed in")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument(
        "--mcpu",
        default="",
        help="make code for this processor, as znver3 for registers of 256 bits",
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    if os.environ.get("TVM_NUM_THREADS") != str(options.threads):
        # The thread pool takes its size when it starts.
        environment = {**os.environ, "TVM_NUM_THREADS": str(options.threads)}
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
    import tvm

    processor = f" -mcpu={options.mcpu}" if options.mcpu else ""
    target = tvm.target.Target(f"llvm{processor} -num-cores={options.threads}")
    print(f"{'row':<24}{'hand us':>10}{f'after {FEW}':>10}{f'after {options.trials}':>10}  hand")
    rows = []
    for case in CASES:
        # Winograd's algorithm is another computation, which networks choose, not schedules.
        if options.only not in case.name or all(c.winograd for c in case.candidates):
            continue
        row = measure(case, options.trials, options.seeds, options.rounds, target)
        rows.append(row)
        print(
            f"{row['name']:<24}{row['hand_seconds'] * 1e6:>10.1f}{row['ratio_after_few']:>10.2f}"
            f"{row['ratio']:>10.2f}  {row['hand']}",
            flush=True,
        )
    for name in ("ratio_after_few", "ratio"):
        values = [row[name] for row in rows if row[name] > 0]
        if values:
            print(
                f"{name}: geometric mean {math.exp(sum(map(math.log, values)) / len(values)):.2f}, "
                f"least {min(values):.2f}"
            )
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
