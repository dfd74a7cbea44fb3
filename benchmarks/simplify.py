"""Time and soundness of the simplifier on random index expressions.

    python benchmarks/simplify.py --json simplify.json

Each family is simplified on one core by analyzers that know the variables' ranges, a fresh one for
every hundred expressions, as a pass makes one for every function. Only simplification is timed, as
processor time, which other work on the machine does not count into. Afterwards every result is
computed at sample points and compared with the original's value there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tvm.testing.index_exprs import ExprSampler, Sampled, evaluate

PER_ANALYZER = 100
FAMILIES: dict[str, Callable[[ExprSampler], Sampled]] = {
    "affine": lambda sampler: sampler.affine(),
    "split and fuse": lambda sampler: sampler.layout(),
    "any operators, depth 2": lambda sampler: sampler.integer(2),
    "any operators, depth 3": lambda sampler: sampler.integer(3),
    "conditions": lambda sampler: sampler.condition(2),
}


def measure(make: Callable[[ExprSampler], Sampled], count: int, seed: int) -> tuple[float, int]:
    """Seconds of simplification, and how many results have another value somewhere."""
    rng = np.random.default_rng(seed)
    seconds, unsound = 0.0, 0
    for begin in range(0, count, PER_ANALYZER):
        sampler = ExprSampler(rng)
        samples = [make(sampler) for _ in range(min(PER_ANALYZER, count - begin))]
        analyzer = sampler.analyzer()
        start = time.process_time()
        results = [analyzer.simplify(sample.expr) for sample in samples]
        seconds += time.process_time() - start
        for sample, result in zip(samples, results):
            if np.any(evaluate(result, sampler.values) != sample.values):
                unsound += 1
                print(f"unsound: {sample.expr}\n  became {result}")
    return seconds, unsound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="expressions in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    args = parser.parse_args()
    rows = []
    for name, make in FAMILIES.items():
        count = args.count // len(FAMILIES)
        seconds, unsound = measure(make, count, args.seed)
        rows.append({"name": name, "count": count, "seconds": seconds, "unsound": unsound})
        print(f"{name:24} {count:7} expressions {seconds:7.3f} s {unsound:3} unsound", flush=True)
    total = {
        "name": "all",
        "count": sum(row["count"] for row in rows),
        "seconds": sum(row["seconds"] for row in rows),
        "unsound": sum(row["unsound"] for row in rows),
    }
    rows.append(total)
    print(f"{'all':24} {total['count']:7} expressions {total['seconds']:7.3f} s")
    if args.json:
        args.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
