"""Tuning a network with the other search policies, under one task scheduler: the baseline."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tvm import auto_scheduler
from tvm._older_names import hints_for
from tvm.auto_scheduler import task_scheduler
from tvm.target import Target

from .compiler import CompiledNetwork
from .settings import require_device
from .sym_task import make_task, save_tasks
from .tuning import compile_in_place

__all__ = ["AnsorResult", "ansor_tune"]

if not TYPE_CHECKING:
    __getattr__ = hints_for(__name__)


@dataclass(frozen=True)
class AnsorResult:
    """Outcome of `ansor_tune`."""

    compiled: CompiledNetwork
    trials: int
    """Programs measured."""
    seconds: float
    """Of tuning and compiling."""
    estimated_seconds: float
    """Sum of the kernels' latencies as the scheduler knows them."""


def ansor_tune(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    out: str | Path,
    *,
    target: Target | str = "llvm",
    trials: int = 300,
    per_round: int = 16,
    policy: str = "sketch.xgb",
    search_space: str | None = None,
    strategy: str = "gradient",
    early_stopping: int | None = None,
    cost_model: str | Path | None = None,
) -> AnsorResult:
    """Tune a network with a policy of `auto_scheduler` (Ansor, OSDI 2020), and compile it.

    Each kernel gets the faster one of what was found and the library's schedule, timed with care.

    Parameters
    ----------
    out : folder of tasks.json, records.json and total_latency.tsv; records in it are gone on with.
    trials, per_round : programs to measure over all tasks, beside those in the records, and in a
        round of one task.
    policy : "sketch.xgb", "sketch.mlp", "sketch.random" or "felix".
    search_space : "ansor" or "felix"; by default what the policy prefers.
    strategy : of the task scheduler, "gradient", "expected-gain" or "round-robin".
    early_stopping : measurements of a task without improvement after which it rests.
    cost_model : file of a cost model to start with, where it exists; it is kept up to date.

    Raises
    ------
    ValueError : the network has no kernel that is worth tuning, or an option is unknown.
    ValueError, RuntimeError : programs for the target cannot run here, as of
        `settings.require_device`; nothing is begun then.
    """
    target = target if isinstance(target, Target) else Target(target)
    require_device(target)
    out = Path(out)
    tasks, weights = auto_scheduler.extract_tasks(model, example_inputs, target)
    if not tasks:
        raise ValueError("ansor_tune: the network has no kernel that is worth tuning")
    out.mkdir(parents=True, exist_ok=True)
    save_tasks(
        [
            make_task(task, desc=str(task.desc), weight=weight, idx=i)
            for i, (task, weight) in enumerate(zip(tasks, weights))
        ],
        out / "tasks.json",
    )
    records = out / "records.json"
    scheduler = auto_scheduler.TaskScheduler(
        tasks,
        weights,
        strategy=strategy,
        load_log_file=str(records) if records.exists() else None,
        load_model_file=None if cost_model is None else str(cost_model),
        callbacks=[
            task_scheduler.PrintTableInfo(),
            task_scheduler.LogEstimatedLatency(out / "total_latency.tsv"),
        ],
    )
    start = time.monotonic()
    scheduler.tune(
        auto_scheduler.TuningOptions(
            num_measure_trials=trials,
            early_stopping=early_stopping,
            num_measures_per_round=per_round,
            measure_callbacks=[auto_scheduler.RecordToFile(records)],
        ),
        search_policy=policy,
        search_policy_params={} if search_space is None else {"search_space": search_space},
    )
    # What was found is timed again beside the library's schedules, and then inside of the network.
    auto_scheduler.confirm_records(records, tasks)
    compiled = compile_in_place(model, example_inputs, target, records=out, cache=False)
    return AnsorResult(compiled, scheduler.ct, time.monotonic() - start, float(scheduler.cur_score))
