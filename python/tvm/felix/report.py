"""What a tuning run shows and leaves: tables, the latency curve, and the summary file."""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tvm.runtime import DataType
from tvm.runtime.files import write_atomically

from .compiler import CompiledNetwork
from .coverage import SEARCHED
from .optim import TaskResult
from .sym_task import SymTaskAndInstances, TaskInstance
from .tuning import KernelSearch

__all__ = [
    "best_sketch",
    "draw_curve",
    "kernel_facts",
    "print_kernels",
    "print_network_table",
    "print_results",
    "print_simulated_network",
    "print_tasks",
    "search_facts",
    "task_bytes",
    "times_as_fast",
    "untuned_seconds",
    "versions",
    "write_summary",
]

_console = Console(highlight=False)


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3f}"


def print_tasks(tasks: Sequence[SymTaskAndInstances]) -> None:
    """The tuning tasks: operators, output shape, uses, work."""
    table = Table(title="Tuning tasks", title_justify="left")
    for name in ("ID", "Operators", "Shape", "Uses", "MFLOP"):
        table.add_column(name, justify="left" if name in ("Operators", "Shape") else "right")
    for group in tasks:
        for instance in group.instances:
            table.add_row(
                str(instance.idx),
                instance.desc,
                "x".join(map(str, instance.output_shape)),
                str(instance.weight),
                f"{instance.flop / 1e6:.2f}",
            )
    _console.print(table)


# What stands behind a task's latency, and what it means.
_MARKS = {
    "*": "the operator library's schedule, which nothing found was faster than",
    "†": "the operator library's schedule: no other program was measured",
}


def _mark(row: Mapping[str, Any]) -> str:
    if not row["keeps_library"]:
        return ""
    return "*" if row["measurements"] else "†"


def untuned_seconds(row: Mapping[str, Any]) -> float | None:
    """Seconds of a task of `search_facts` before tuning, comparable with its best ones.

    Measured alone like those, where it was; inside the network the same program finds colder
    caches.
    """
    alone = row.get("library_seconds")
    return row["untuned_seconds"] if alone is None else alone


def print_results(tasks: Sequence[Mapping[str, Any]], title: str = "Tasks") -> None:
    """Per task of `search_facts`: untuned and tuned latency, throughput, candidates measured."""
    table = Table(title=title, title_justify="left")
    if not tasks:
        _console.print("Nothing to tune: every kernel is one that the library writes whole")
        return
    captions = []
    marks = [_mark(row) for row in tasks]
    captions += [f"{mark} {text}" for mark, text in _MARKS.items() if mark in marks]
    # Summaries of earlier releases have no notes.
    captions += [f"{number}: {row['note']}" for number, row in enumerate(tasks) if row.get("note")]
    table.caption = "\n".join(captions) or None
    for name in ("ID", "Operators", "Untuned ms", "Tuned ms", "GFLOP/s", "Measured", "Failed"):
        table.add_column(name, justify="left" if name == "Operators" else "right")
    for number, (row, mark) in enumerate(zip(tasks, marks)):
        best = row["best_seconds"]
        table.add_row(
            str(number),
            row["operators"],
            _milliseconds(untuned_seconds(row)),
            _milliseconds(best) + mark,
            "-" if best is None else f"{row['flop'] / best / 1e9:.1f}",
            "known" if row["remembered"] else str(row["measurements"]),
            str(sum(row["errors"].values())),
        )
    _console.print(table)


def print_simulated_network(facts: Mapping[str, Any]) -> None:
    """The whole network as a model of its device sees it, and how far emulated outputs differ."""
    latency = facts["latency_seconds"]
    table = Table(title="Network, simulated", title_justify="left")
    for name in ("", "Modeled ms", "Tuned is"):
        table.add_column(name, justify="left" if not name else "right")
    for name, seconds in latency.items():
        ratio = "" if name == "tuned" else f"{seconds / latency['tuned']:.2f}x as fast"
        table.add_row(name, _milliseconds(seconds), ratio)
    _console.print(table)
    text = "No device was used: the seconds are those of an analytic model. "
    if facts["max_rel_diff"] is None:
        text += "The outputs were not looked at: the network is too large to be emulated."
    else:
        text += (
            f"Outputs of the emulated kernels against PyTorch: largest absolute difference "
            f"{facts['max_abs_diff']:.2e}, relative to the largest output "
            f"{facts['max_rel_diff']:.2e}"
        )
    _console.print(text)


def times_as_fast(facts: Mapping[str, Any], name: str) -> float:
    """How many times as fast the tuned network is as "untuned" or "pytorch".

    Of summaries of earlier releases, and of simulated runs, by the seconds alone.
    """
    latency = facts["latency_seconds"]
    in_turns = facts.get("times_as_fast", {}).get(name)
    return float(latency[name] / latency["tuned"] if in_turns is None else in_turns)


def print_network_table(facts: Mapping[str, Any], title: str = "Network") -> None:
    """The whole network: medians of untuned, tuned and PyTorch, how much faster the tuned one is
    in runs that take turns, what the time is made of, and how far outputs differ."""
    latency = facts["latency_seconds"]
    table = Table(title=title, title_justify="left")
    for name in ("", "Median ms", "Tuned is"):
        table.add_column(name, justify="left" if not name else "right")
    for name, seconds in latency.items():
        ratio = "" if name == "tuned" else f"{times_as_fast(facts, name):.2f}x as fast"
        table.add_row(name, _milliseconds(seconds), ratio)
    _console.print(table)
    inside = sum(kernel["calls"] * kernel["seconds"] for kernel in facts["kernels"])
    text = (
        f"All kernels take {_milliseconds(inside)} ms of the {_milliseconds(latency['tuned'])} ms"
        if inside <= latency["tuned"]
        else f"All kernels take {_milliseconds(inside)} ms where each is timed, which is more than "
        f"the {_milliseconds(latency['tuned'])} ms of a run that times none of them"
    )
    if facts.get("sum_of_tasks_seconds") is not None:
        text += (
            f"; the sum that the search improves, of tuned kernels measured alone, is "
            f"{_milliseconds(facts['sum_of_tasks_seconds'])} ms"
        )
    if inside <= latency["tuned"]:
        text += ". What is left is the way in from Python and between kernels"
    _console.print(f"{text}.")
    _console.print(_searched_text(facts["kernels"]))
    _console.print(
        f"Outputs against PyTorch: largest absolute difference {facts['max_abs_diff']:.2e}, "
        f"relative to the largest output {facts['max_rel_diff']:.2e}"
    )


def _searched_text(kernels: Sequence[Mapping[str, Any]]) -> str:
    """How much of a network was searched, in kernels, work and time."""
    searched = [kernel for kernel in kernels if kernel["schedule"] in SEARCHED]

    def share(of: str) -> float:
        total = sum(kernel["calls"] * (kernel[of] or 0) for kernel in kernels)
        return sum(kernel["calls"] * (kernel[of] or 0) for kernel in searched) / (total or 1)

    return (
        f"A search decided on {len(searched)} of {len(kernels)} kernels, "
        f"{share('flop'):.1%} of the work and {share('seconds'):.1%} of the kernels' time"
    )


def print_kernels(kernels: Sequence[Mapping[str, Any]]) -> None:
    """The kernels of `kernel_facts` in the order given."""
    total = sum(kernel["calls"] * kernel["seconds"] for kernel in kernels) or 1.0
    table = Table(title="Kernels", title_justify="left")
    for name in ("Operators", "Shape", "Calls", "ms a call", "ms", "Share", "GFLOP/s", "Schedule"):
        left = name in ("Operators", "Shape", "Schedule")
        table.add_column(name, justify="left" if left else "right")
    for kernel in kernels:
        seconds = kernel["seconds"]
        table.add_row(
            kernel["operators"] or kernel["name"],
            "x".join(map(str, kernel["output_shape"])),
            str(kernel["calls"]),
            _milliseconds(seconds),
            _milliseconds(kernel["calls"] * seconds),
            f"{kernel['calls'] * seconds / total:.1%}",
            f"{kernel['flop'] / seconds / 1e9:.1f}" if kernel["flop"] and seconds else "-",
            kernel["schedule"],
        )
    _console.print(table)


def draw_curve(
    history: Sequence[Sequence[float]],
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


def search_facts(
    search: KernelSearch, untuned: Mapping[str, float], tuned: CompiledNetwork | None
) -> dict[str, Any]:
    """What a program wants to know of a search, JSON-compatible; times in seconds.

    Parameters
    ----------
    untuned : workload key to seconds before tuning.
    tuned : the network with what was found; None where it was not compiled.
    """
    result = search.result
    rows = {} if result is None else {str(row.workload_key): row for row in result.tasks}
    tasks = []
    for group in search.tasks:
        (instance,) = group.instances
        key = str(instance.ansor_task.workload_key)
        row = rows.get(key)
        tasks.append(
            {
                "workload_key": key,
                "operators": instance.desc,
                "output_shape": list(instance.output_shape),
                "weight": instance.weight,
                "is_rival": instance.is_rival,
                "flop": instance.flop,
                "bytes": task_bytes(instance),
                "sketches": None if row is None else row.n_sketches,
                "best_sketch": best_sketch(row),
                "search": None if row is None else row.search,
                "note": "" if row is None else row.note,
                "untuned_seconds": untuned.get(key),
                "library_seconds": None
                if row is None or math.isinf(row.library_seconds)
                else row.library_seconds,
                "keeps_library": row is not None and row.keeps_library,
                "best_seconds": search.remembered.get(key) if row is None else row.best_seconds,
                "remembered": key in search.remembered,
                "measurements": 0 if row is None else row.n_measured,
                "errors": {}
                if row is None
                else {str(code): count for code, count in sorted(row.errors.items())},
            }
        )
    best: list[tuple[Any, Any]] = [
        (task["weight"], task["best_seconds"]) for task in tasks if not task["is_rival"]
    ]
    known = [weight * seconds for weight, seconds in best if seconds is not None]
    return {
        "measurements": 0 if result is None else result.n_measurements,
        "search_seconds": 0.0 if result is None else result.seconds,
        "interrupted": search.interrupted,
        "coverage": None if tuned is None else tuned.coverage.tuned_share,
        "sum_of_tasks_seconds": sum(known) if len(known) == len(best) else None,
        "tasks": tasks,
        "history": []
        if result is None
        else [list(entry) for entry in result.history if entry[2] < float("inf")],
    }


def best_sketch(row: TaskResult | None) -> int | None:
    """The symbolic sketch that a task's best program is of; None if it is of none."""
    if row is None or row.best is None or row.search != "gradient":
        return None
    return row.best.sketch


def task_bytes(instance: TaskInstance) -> int:
    """Bytes of a task's inputs and outputs: what it has to move at least."""
    total = 0
    for tensor in instance.ansor_task.compute_dag.tensors:
        total += math.prod(int(x) for x in tensor.shape) * DataType(str(tensor.dtype)).itemsize
    return total


def kernel_facts(network: CompiledNetwork, runs: int = 5) -> list[dict[str, Any]]:
    """Every kernel of a compiled network with the median seconds of one call inside of it."""
    samples: dict[str, list[float]] = {}
    for _ in range(runs):
        for call in network.profile().calls:
            seconds = call["Duration (us)"].microseconds * 1e-6
            samples.setdefault(str(call["Name"]), []).append(seconds)
    return [
        {
            "name": kernel.name,
            "operators": " ".join(kernel.operators),
            "output_shape": list(kernel.output_shape),
            "calls": kernel.weight,
            "flop": kernel.flop,
            "schedule": kernel.schedule,
            "seconds": statistics.median(samples[kernel.name]),
        }
        for kernel in network.kernels
        if kernel.name in samples
    ]


def write_summary(path: Path, facts: Mapping[str, Any]) -> None:
    """Everything a program wants to know of a run, as JSON."""
    write_atomically(path, json.dumps(facts, indent=2) + "\n")
