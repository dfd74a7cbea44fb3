"""A tuning run for a GPU that is not there: seconds are those of a model of the device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import tvm
from tvm import auto_scheduler, relax, topi
from tvm.auto_scheduler.relax_integration import group_task
from tvm.relax.frontend.torch import in_eval_mode
from tvm.target import Target

from . import report
from .compiler import CompiledNetwork
from .html_report import write_report
from .network import Network
from .settings import SearchBudget
from .timing import output_difference
from .tuning import KernelSearch, search_kernels

__all__ = ["simulate_network"]

# Networks with more work than this are not emulated, which takes about a second for 1e7 operations.
_EMULATED_FLOP = 3e7


def simulate_network(
    model: torch.nn.Module,
    example_inputs: Sequence[torch.Tensor],
    name: str,
    target: str,
    folder: Path,
    budget: SearchBudget,
    progress: bool = True,
) -> dict[str, Any]:
    """The whole run without its stop-watch: search, compile every kernel, report.

    Seconds are from `auto_scheduler.SimulatedRunner`, and records, tables and summary say so. A
    small network also runs in the emulator and is compared with PyTorch.

    Parameters
    ----------
    target : a GPU that there is a model of, such as "cuda -arch=sm_80".
    folder : of the run; held by the caller.

    Returns
    -------
    The content of `summary.json`.

    Raises
    ------
    ValueError : there is no model of such a device.
    """
    gpu = auto_scheduler.simulated(target)
    network = Network(model, example_inputs)
    search = search_kernels(
        [network],
        gpu,
        folder,
        budget,
        None,
        progress=progress,
        on_tasks=report.print_tasks,
        runner=auto_scheduler.SimulatedRunner(),
    )
    # All kernels of the network are compiled, those without a record by the library's schedules.
    relax.build(network.mod, gpu, auto_scheduler.ApplyHistoryBest(folder / "records.json"))
    untuned = _library_seconds(network, gpu)
    tasks, latency = _tasks(search, untuned)
    differences = _emulated_differences(model, example_inputs, network, search, target, gpu, folder)
    facts: dict[str, Any] = {
        "network": name,
        "target": str(gpu),
        "simulated": True,
        "seed": budget.seed,
        "measurements": 0 if search.result is None else search.result.n_measurements,
        "latency_seconds": latency,
        "max_abs_diff": None if differences is None else differences[0],
        "max_rel_diff": None if differences is None else differences[1],
        "tasks": tasks,
        "history": [] if search.result is None else [list(row) for row in search.result.history],
        "versions": report.versions(),
    }
    report.write_summary(folder / "summary.json", facts)
    report.print_results(tasks, title="Tasks, simulated")
    report.print_simulated_network(facts)
    report.draw_curve(facts["history"], folder / "curve.png", f"{name} (simulated)")
    write_report(folder)
    print(
        f"Results are in {folder}: report.html, summary.json, records.json, curve.png, "
        "cost_model.ckpt"
    )
    return facts


def _library_seconds(network: Network, target: Target) -> dict[str, float]:
    """Workload key to what the model of the device says of each kernel's library schedule."""
    seconds = {}
    for group in relax.extract_tasks(network.mod):
        # Operators that are written as statements are written for the target.
        with target:
            schedule = topi.schedule_for(group.te.outputs, target)
        key = str(group_task(group, target).workload_key)
        seconds[key] = auto_scheduler.modeled_seconds(schedule, group.args, target)
    return seconds


def _tasks(
    search: KernelSearch, untuned: dict[str, float]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """A row for each kernel, and the sums of all kernels before and after."""
    results = {} if search.result is None else {r.workload_key: r for r in search.result.tasks}
    rows, before, after = [], 0.0, 0.0
    for group in search.tasks:
        (instance,) = group.instances
        key = str(instance.ansor_task.workload_key)
        row = results.get(key)
        best = None if row is None else row.best_seconds
        rows.append(
            {
                "workload_key": key,
                "operators": instance.desc,
                "weight": instance.weight,
                "output_shape": list(instance.output_shape),
                "flop": instance.flop,
                "bytes": report.task_bytes(instance),
                "best_sketch": report.best_sketch(row),
                "sketches": None if row is None else row.n_sketches,
                "search": None if row is None else row.search,
                "note": "" if row is None else row.note,
                "untuned_seconds": untuned[key],
                "best_seconds": best,
                "keeps_library": row is not None and row.keeps_library,
                "remembered": False,
                "measurements": 0 if row is None else row.n_measured,
                "errors": {} if row is None else {str(k): n for k, n in sorted(row.errors.items())},
            }
        )
        before += instance.weight * untuned[key]
        after += instance.weight * (untuned[key] if best is None else best)
    return rows, {"untuned": before, "tuned": after}


def _emulated_differences(
    model: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    network: Network,
    search: KernelSearch,
    target: str,
    gpu: Target,
    folder: Path,
) -> tuple[float, float] | None:
    """How far emulated results are from PyTorch's; None for a network that is too large."""
    if sum(i.weight * i.flop for group in search.tasks for i in group.instances) > _EMULATED_FLOP:
        return None
    schedules = auto_scheduler.ApplyHistoryBest(folder / "records.json")

    def schedule_of(group: relax.FusedGroup) -> relax.GroupSchedule | None:
        with gpu:  # whose records they are
            return schedules(group)

    emulator = tvm.target.emulated(target)
    emulated = CompiledNetwork(relax.build(network.mod, emulator, schedule_of), network, emulator)
    with torch.inference_mode():
        expected = in_eval_mode(model)(*inputs)
    return output_difference(emulated(*inputs), expected)
