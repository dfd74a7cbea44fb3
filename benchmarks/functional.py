"""Functions of torch that nobody tuned, against eager PyTorch, interleaved in one process.

Each call is compiled as a network of its own, with PyTorch's layouts outside, so its time has what
a call from Python costs. Figures are the least of many short bursts taken in turns; a ratio above
one means that ours is faster.

    python benchmarks/functional.py --threads 1 --below 0.8
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import best_seconds


def flat(value: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in flat(item)]
    return [value]


def difference(ours: Any, theirs: Any) -> float:
    """Largest difference of two results, of equal shapes."""
    import torch

    worst = 0.0
    for left, right in zip(flat(ours), flat(theirs), strict=True):
        if left.shape != right.shape:
            raise ValueError(f"shapes {list(left.shape)} and {list(right.shape)}")
        wide = torch.complex128 if right.is_complex() else torch.float64
        worst = max(worst, float((left.to(wide) - right.to(wide)).abs().max()))
    return worst


def measure(call: Any, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    import torch

    from tvm import felix

    class Module(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return call.function(*inputs)

    module = call.function if isinstance(call.function, torch.nn.Module) else Module().eval()
    with torch.inference_mode():
        network = felix.compile(module, tuple(call.inputs), cache=False)
        sides: dict[str, Callable[[], Any]] = {
            "ours": lambda: network(*call.inputs),
            "torch": lambda: module(*call.inputs),
        }
        apart = difference(sides["ours"](), sides["torch"]())
        seconds = best_seconds(sides, rounds)
    return {"name": call.name, "difference": apart, **seconds}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8, help="bursts per side")
    parser.add_argument("--only", default="", help="groups or calls whose name contains this")
    parser.add_argument("--below", type=float, default=0.8, help="list rows below this at the end")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    for variable in ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    import torch
    from functional_cases import GROUPS

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rows = []
    for group, calls in GROUPS.items():
        for call in calls():
            if options.only not in group and options.only not in call.name:
                continue
            row = {"group": group, **measure(call, options.rounds)}
            row["ratio"] = row["torch"] / row["ours"]
            rows.append(row)
            print(_line(row), flush=True)
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / max(len(rows), 1))
    slow = sorted((row for row in rows if row["ratio"] < options.below), key=lambda r: r["ratio"])
    print(f"\n{len(rows)} calls, geometric mean {mean:.2f}; below {options.below}: {len(slow)}")
    for row in slow:
        print(_line(row))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['group']:<15}{row['name']:<26}{row['ours'] * 1e6:>10.1f} us"
        f"{row['torch'] * 1e6:>10.1f} us{row['ratio']:>7.2f}  {row['difference']:.1e}"
    )


if __name__ == "__main__":
    main()
