"""What a tuning run shows and leaves: tables, the latency curve, and the summary file."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tvm.runtime.files import write_atomically

from .optim import TaskResult, TuneResult
from .sym_task import SymTaskAndInstances

__all__ = [
    "draw_curve",
    "print_network_table",
    "print_results",
    "print_tasks",
    "versions",
    "write_summary",
]

_console = Console(highlight=False)


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3f}"


def _count_sketches(group: SymTaskAndInstances) -> str:
    try:
        return str(len(group.task.sketches))
    except ValueError:  # it has none, and the optimizer says why it is left out
        return "-"


def print_tasks(tasks: Sequence[SymTaskAndInstances]) -> None:
    """The tuning tasks: operators, output shape, uses, work, number of symbolic sketches."""
    table = Table(title="Tuning tasks", title_justify="left")
    for name in ("ID", "Operators", "Shape", "Uses", "MFLOP", "Sketches"):
        table.add_column(name, justify="left" if name in ("Operators", "Shape") else "right")
    for group in tasks:
        for instance in group.instances:
            table.add_row(
                str(instance.idx),
                instance.desc,
                "x".join(map(str, instance.output_shape)),
                str(instance.weight),
                f"{instance.flop / 1e6:.2f}",
                _count_sketches(group),
            )
    _console.print(table)


def print_results(results: Sequence[TaskResult], untuned: Mapping[str, float]) -> None:
    """Per task: untuned and tuned latency, throughput, candidates measured."""
    table = Table(title="Tasks", title_justify="left")
    if any(row.keeps_library for row in results):
        table.caption = "* the operator library's schedule, which nothing found was faster than"
    for name in ("ID", "Operators", "Untuned ms", "Tuned ms", "GFLOP/s", "Measured", "Failed"):
        table.add_column(name, justify="left" if name == "Operators" else "right")
    for row in results:
        best = row.best_seconds
        table.add_row(
            str(row.idx),
            row.desc,
            _milliseconds(untuned.get(row.workload_key)),
            _milliseconds(best) + ("*" if row.keeps_library else ""),
            "-" if best is None else f"{row.flop / best / 1e9:.1f}",
            str(row.n_measured),
            str(sum(row.errors.values())),
        )
    _console.print(table)


def print_network_table(
    latency: Mapping[str, float], max_abs_diff: float, max_rel_diff: float
) -> None:
    """The whole network: medians of untuned, tuned and PyTorch, and how far outputs differ."""
    table = Table(title="Network", title_justify="left")
    for name in ("", "Median ms", "Tuned is"):
        table.add_column(name, justify="left" if not name else "right")
    for name, seconds in latency.items():
        ratio = "" if name == "tuned" else f"{seconds / latency['tuned']:.2f}x as fast"
        table.add_row(name, _milliseconds(seconds), ratio)
    _console.print(table)
    _console.print(
        f"Outputs against PyTorch: largest absolute difference {max_abs_diff:.2e}, "
        f"relative to the largest output {max_rel_diff:.2e}"
    )


def draw_curve(
    history: Sequence[tuple[float, int, float]],
    path: Path,
    title: str,
    pytorch: float | None = None,
) -> None:
    """Best estimated network latency against wall time and against measurements, as a PNG.

    history : (seconds, measurements, latency in seconds); points with infinite latency are left
        out, they only say that some task has no result yet.
    pytorch : seconds, drawn as a reference line.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    points = [entry for entry in history if entry[2] < float("inf")]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, column, label in zip(axes, (0, 1), ("search time (s)", "measured programs")):
        axis.step([p[column] for p in points], [p[2] * 1e3 for p in points], where="post")
        if pytorch is not None:
            axis.axhline(pytorch * 1e3, color="gray", linestyle="--", label="PyTorch eager")
            axis.legend()
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("sum of task latencies (ms)")
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def versions() -> dict[str, str]:
    """Versions of what the figures depend on."""
    import llvmlite
    import numpy
    import torch

    import tvm

    return {
        "python": platform.python_version(),
        "tvm": tvm.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "llvmlite": llvmlite.__version__,
    }


def write_summary(
    path: Path,
    settings: Mapping[str, Any],
    result: TuneResult,
    untuned: Mapping[str, float],
    latency: Mapping[str, float],
    differences: tuple[float, float],
    coverage: float,
) -> None:
    """Everything a program wants to know of a finished run, as JSON.

    settings : network, target, threads, seed and the like, copied to the top level.
    untuned : workload key to seconds before tuning.
    latency : medians in seconds of `untuned`, `tuned` and `pytorch`.
    coverage : share of the network's FLOP that has a tuned schedule, in [0, 1].
    """
    summary = {
        **settings,
        "measurements": result.n_measurements,
        "search_seconds": result.seconds,
        "interrupted": result.interrupted,
        "latency_seconds": dict(latency),
        "max_abs_diff": differences[0],
        "max_rel_diff": differences[1],
        "coverage": coverage,
        "tasks": [
            {
                "workload_key": row.workload_key,
                "operators": row.desc,
                "weight": row.weight,
                "flop": row.flop,
                "sketches": row.n_sketches,
                "untuned_seconds": untuned.get(row.workload_key),
                "best_seconds": row.best_seconds,
                "library_seconds": (
                    row.library_seconds if math.isfinite(row.library_seconds) else None
                ),
                "keeps_library": row.keeps_library,
                "measurements": row.n_measured,
                "errors": {str(code): count for code, count in sorted(row.errors.items())},
            }
            for row in result.tasks
        ],
        "history": [list(entry) for entry in result.history if entry[2] < float("inf")],
        "versions": versions(),
    }
    write_atomically(path, json.dumps(summary, indent=2) + "\n")
