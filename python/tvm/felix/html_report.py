"""The report of a tuning run: one HTML file that needs nothing beside it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm import auto_scheduler
from tvm.auto_scheduler.measure_record import record_summaries
from tvm.runtime.files import read_json, write_atomically

from .report import times_as_fast, untuned_seconds
from .schedules import REMEMBERED
from .sym_task import load_tasks

__all__ = ["write_report"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
       color: #1a1a1a; background: #fff; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { padding: 0.15rem 0.7rem; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; }
.text { text-align: left; }
.bar { background: #4878a8; height: 0.8rem; }
pre { background: #f5f5f5; padding: 0.6rem; overflow-x: auto; font-size: 13px; }
summary { cursor: pointer; }
.note { color: #555; max-width: 50rem; }
svg text { font-size: 12px; fill: #333; }
"""


def write_report(folder: Path) -> Path:
    """Write ``report.html`` of a run from the files in its folder, and return its path.

    It shows the network against PyTorch, the course of the search, each task with its distance from
    what the machine does at most, the schedule of its best candidate, and what the network's time
    is made of.

    Raises
    ------
    FileNotFoundError : the folder has no ``summary.json``.
    ValueError : a file is damaged, or from before there were reports; the message names it.
    """
    path = folder / "summary.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} has no summary.json: it holds no finished run; go on with --resume {folder}"
        )
    facts = read_json(path)
    try:
        schedules = _best_schedules(folder, [str(t["workload_key"]) for t in facts["tasks"]])
        text = _page(facts, schedules)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}: not the summary of a run of this version ({error!r}); "
            f"write it again with --resume {folder}"
        ) from error
    report = folder / "report.html"
    write_atomically(report, text)
    return report


def _page(facts: Mapping[str, Any], schedules: Mapping[str, str]) -> str:
    title = f"Tuning of {facts['network']}" + (", simulated" if facts.get("simulated") else "")
    parts = [
        f"<h1>{_escape(title)}</h1>",
        f"<p>{_escape(_setting(facts))}</p>",
        _network_table(facts),
        "<h2>Course of the search</h2>",
        _curve(facts),
        "<h2>Tasks</h2>",
        _task_table(facts, schedules),
        "<h2>What the network's time is made of</h2>",
        _composition(facts),
        "<h2>Versions</h2>",
        _table(["", "version"], [[k, v] for k, v in facts["versions"].items()]),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{_escape(title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _setting(facts: Mapping[str, Any]) -> str:
    if facts.get("simulated"):
        return (
            f"{facts['target']}; {facts['measurements']} programs. No device was used: all seconds "
            "are those of an analytic model."
        )
    text = (
        f"{facts['target']}, {facts['threads']} threads, batch {facts['batch_size']}; "
        f"{facts['measurements']} programs measured in {facts['search_seconds']:.0f} s"
    )
    return text + (", interrupted" if facts["interrupted"] else "")


def _network_table(facts: Mapping[str, Any]) -> str:
    if "latency_seconds" not in facts:
        reason = facts.get("comparison_error", "the run ended before it")
        return f"<p>Not compared with PyTorch: {_escape(reason)}</p>"
    latency = facts["latency_seconds"]
    rows = [
        [name, _ms(seconds), f"{1 if name == 'tuned' else times_as_fast(facts, name):.2f}"]
        for name, seconds in latency.items()
    ]
    simulated = bool(facts.get("simulated"))
    if facts["max_rel_diff"] is None:
        note = "Outputs were not looked at: the network is too large to be emulated."
    else:
        note = (
            f"Outputs{' of the emulated kernels' if simulated else ''} differ from PyTorch by "
            f"{facts['max_abs_diff']:.2e} at most, {facts['max_rel_diff']:.2e} of the largest "
            "output."
        )
    if not simulated:
        note += f" {facts['coverage']:.1%} of the work runs by measured schedules."
    column = "modeled ms" if simulated else "median ms"
    return _table(["", column, "times the tuned network"], rows) + f'<p class="note">{note}</p>'


def _curve(facts: Mapping[str, Any]) -> str:
    """Sum of the tasks' best latencies against search time, as SVG."""
    points = [(float(seconds), float(best) * 1e3) for seconds, _, best in facts["history"]]
    if not points:
        return '<p class="note">No round of the search had results for every task.</p>'
    width, height, left, bottom = 640, 260, 60, 36
    last = max(points[-1][0], 1e-9)
    top = max(best for _, best in points) * 1.05

    def place(seconds: float, best: float) -> tuple[float, float]:
        return left + seconds / last * (width - left - 10), (1 - best / top) * (height - bottom)

    path: list[str] = []
    for (x, y), (next_x, _) in zip(
        [place(*p) for p in points], [*(place(*p) for p in points[1:]), place(last, 0.0)]
    ):
        path.append(f"{'L' if path else 'M'}{x:.1f},{y:.1f} H{next_x:.1f}")
    ticks = []
    for i in range(5):
        y = place(0, top * i / 4)[1]
        x = place(last * i / 4, 0)[0]
        ticks.append(
            f'<line x1="{left}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{left - 6}" y="{y + 10:.1f}" text-anchor="end">{top * i / 4:.3g}</text>'
            f'<text x="{x:.1f}" y="{height - 18}" text-anchor="middle">{last * i / 4:.0f}</text>'
        )
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="latency against time">'
        f'{"".join(ticks)}<path d="{" ".join(path)}" fill="none" stroke="#4878a8" '
        f'stroke-width="2"/><text x="{width / 2}" y="{height - 3}" text-anchor="middle">'
        f"search time (s)</text></svg>"
        '<p class="note">Sum over tasks of uses times best latency, in ms, each kernel measured '
        "alone. The network takes longer: its kernels find colder caches, and calls take time.</p>"
    )


def _task_table(facts: Mapping[str, Any], schedules: Mapping[str, str]) -> str:
    ceilings = facts.get("ceilings")
    head = ["", "operators", "output", "uses", "MFLOP", "untuned ms", "tuned ms", "GFLOP/s"]
    measured = "simulated" if facts.get("simulated") else "measured"
    head += ["FLOP/byte", "of the roofline", measured, "failed"]
    rows, details = [], []
    for number, task in enumerate(facts["tasks"]):
        best = task["best_seconds"]
        intensity = task["flop"] / max(task["bytes"], 1)
        share = "-"
        if best and ceilings:
            least = max(
                task["flop"] / ceilings["flops"], task["bytes"] / ceilings["bytes_per_second"]
            )
            limit = "compute" if least > task["bytes"] / ceilings["bytes_per_second"] else "memory"
            share = f"{least / best:.0%} ({limit})"
        shape = "x".join(map(str, task["output_shape"]))
        rows.append(
            [
                str(number),
                task["operators"],
                shape,
                str(task["weight"]),
                f"{task['flop'] / 1e6:.2f}",
                _ms(untuned_seconds(task)),
                _ms(best),
                f"{task['flop'] / best / 1e9:.1f}" if best else "-",
                f"{intensity:.1f}",
                share,
                "known before" if task["remembered"] else str(task["measurements"]),
                str(sum(task["errors"].values())),
            ]
        )
        schedule = schedules.get(str(task["workload_key"]))
        if schedule is not None:
            sketch = task.get("best_sketch")
            of = f" (sketch {sketch} of {task['sketches']})" if sketch is not None else ""
            if task.get("note"):
                of += f" ({_escape(task['note'])})"
            details.append(
                f"<details><summary>{number}: {_escape(task['operators'])} {shape}{of}</summary>"
                f"<pre>{_escape(schedule)}</pre></details>"
            )
    note = (
        '<p class="note">The roofline is what the machine does at most with this computation: its '
        "operations at the speed of PyTorch's product of two 1024x1024 matrices, or its inputs and "
        "outputs once through memory, whichever takes longer"
        + (
            f" ({ceilings['flops'] / 1e9:.0f} GFLOP/s, "
            f"{ceilings['bytes_per_second'] / 1e9:.1f} GB/s, measured in this run)"
            if ceilings
            else ""
        )
        + ". Data that stays in the caches lets small kernels come out above it.</p>"
    )
    return (
        _table(head, rows, text={1, 2})
        + note
        + "<h3>Schedules of the best candidates</h3>"
        + "".join(details)
    )


def _composition(facts: Mapping[str, Any]) -> str:
    kernels = facts.get("kernels")
    if not kernels:
        return '<p class="note">The network was not profiled.</p>'
    total = facts["latency_seconds"]["tuned"]
    shares = [(k, k["calls"] * k["seconds"]) for k in kernels]
    shares.sort(key=lambda item: -item[1])
    inside = sum(seconds for _, seconds in shares)
    most = max(shares[0][1], 1e-12)
    rows = [
        [
            kernel["operators"] or kernel["name"],
            "x".join(map(str, kernel["output_shape"])),
            str(kernel["calls"]),
            _ms(kernel["seconds"]),
            _ms(seconds),
            f"{seconds / total:.1%}",
            kernel["schedule"],
            seconds / most,
        ]
        for kernel, seconds in shares
    ]
    rest = total - inside
    rows.append(["between kernels", "", "", "", _ms(rest), f"{rest / total:.1%}", "", 0.0])
    head = ["kernel", "output", "calls", "ms a call", "ms", "of the network", "schedule", ""]
    return _table(head, rows, text={0, 1, 6}) + (
        '<p class="note">Kernels are timed inside of the running network, one by one; the timers '
        "take time too, so the parts can come to a little more than the whole.</p>"
    )


def _best_schedules(folder: Path, keys: Sequence[str]) -> dict[str, str]:
    """For each workload the schedule of its fastest record as Python code."""
    tasks = folder / "tasks.json"
    if tasks.exists():
        # Another process than that of the run does not know the workloads that records name.
        load_tasks(tasks)
    best: dict[str, tuple[float, str]] = {}
    for name in ("records.json", REMEMBERED):
        path = folder / name
        if not path.exists():
            continue
        for _, line, summary in record_summaries(path):
            if summary.seconds < best.get(summary.workload_key, (float("inf"), ""))[0]:
                best[summary.workload_key] = (summary.seconds, line)
    schedules = {}
    for key in keys:
        if key in best:
            program, _ = auto_scheduler.load_record_from_string(best[key][1])
            dag = program.task.compute_dag
            schedules[key] = str(dag.print_python_code_from_state(program.state))
    return schedules


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], text: set[int] | None = None) -> str:
    """Cells of columns in `text`, by default the first, are aligned left; a number is a bar."""
    left = {0} if text is None else text

    def cell(tag: str, column: int, value: Any) -> str:
        if isinstance(value, float):
            width = max(0.0, min(value, 1.0)) * 10
            return f'<td class="text"><div class="bar" style="width:{width:.2f}rem"></div></td>'
        kind = ' class="text"' if column in left else ""
        return f"<{tag}{kind}>{_escape(str(value))}</{tag}>"

    lines = ["<tr>" + "".join(cell("th", i, name) for i, name in enumerate(head)) + "</tr>"]
    lines += [
        "<tr>" + "".join(cell("td", i, v) for i, v in enumerate(row)) + "</tr>" for row in rows
    ]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.4f}"


def _escape(text: str) -> str:
    return html.escape(str(text))
