"""The whole job: a network in; a faster one, and a folder with records and figures, out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tvm
from tvm.auto_scheduler.cost_model.mlp_model import MLPModelPLWrapper
from tvm.runtime.files import FolderLock, read_json, write_atomically

from . import report
from .checkpoint import packaged_checkpoint
from .compiler import CompiledNetwork, compile_network, recorded_schedules
from .network import GraphOptions, Network
from .optim import Optimizer, TuneResult
from .sym_task import SymTaskAndInstances, save_tasks, tasks_of_network
from .timing import interleaved_seconds, output_difference, torch_variants

__all__ = ["TuneSettings", "read_settings", "tune_network"]


@dataclass(frozen=True)
class TuneSettings:
    """Options of a tuning run; written to its folder, so that resuming needs only the folder."""

    network: str
    target: str = "llvm"
    batch_size: int = 1
    trials: int = 300
    """Programs to measure over all tasks."""
    config_seeds: int = 32
    """Start points of the descent, per sketch and round."""
    grad_steps: int = 64
    per_round: int = 8
    seed: int = 0
    threads: int | None = None
    """CPU threads of everything that is timed; None for all cores."""
    weights: str | None = None
    """State dict to load instead of random weights."""
    cost_model: str = "packaged"
    """"packaged" for the checkpoint in this package, "none" for an untrained model, or a path."""
    winograd: bool = True
    """Whether 3x3 convolutions may be computed by Winograd's minimal filtering, on processors."""
    timing_rounds: int = 21
    """Samples of the closing comparison."""


def read_settings(folder: Path) -> TuneSettings:
    """Settings of an earlier run.

    Raises
    ------
    FileNotFoundError : the folder has no `run.json`, so no run was started there.
    ValueError : it is damaged; the message names file and line, or the option.
    """
    path = folder / "run.json"
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} has no run.json, so there is nothing to resume; start with --out {folder}"
        )
    # Runs from before there was a choice did without.
    options = {"winograd": False, **_mapping(path)}
    kinds = {field.name: field.type for field in fields(TuneSettings)}
    for name, value in options.items():
        if name not in kinds:
            raise ValueError(f"{path}: there is no option {name!r}; known are {', '.join(kinds)}")
        if not isinstance(value, _TYPES[str(kinds[name])]):
            raise ValueError(f"{path}: {name} is a {kinds[name]}, got {value!r}")
    if "network" not in options:
        raise ValueError(f"{path}: it names no network")
    return TuneSettings(**options)


# Types of the options in run.json.
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "str | None": (str, type(None)),
}


def _mapping(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected an object with options, got {type(content).__name__}")
    return content


def tune_network(
    model: torch.nn.Module,
    example_inputs: Sequence[torch.Tensor],
    settings: TuneSettings,
    folder: Path,
    *,
    progress: bool = True,
) -> dict[str, Any]:
    """Tune a network, compare it with PyTorch, and leave everything in `folder`.

    A folder that holds an earlier run is continued: its records count as measurements and are not
    measured again.

    Returns
    -------
    The content of `summary.json`.

    Raises
    ------
    BlockingIOError : another process has a run in this folder.
    OSError : the folder cannot be written, or the disk is full; what was measured is kept.
    ValueError : a file of the earlier run is damaged; the message names it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FolderLock(folder):
        write_atomically(folder / "run.json", json.dumps(asdict(settings), indent=2) + "\n")
        return _tune(model, example_inputs, settings, folder, progress)


def _tune(
    model: torch.nn.Module,
    example_inputs: Sequence[torch.Tensor],
    settings: TuneSettings,
    folder: Path,
    progress: bool,
) -> dict[str, Any]:
    threads = settings.threads or os.cpu_count() or 1
    # Measuring workers and the compiled network read this when their thread pool starts.
    os.environ["TVM_NUM_THREADS"] = str(threads)
    tvm.runtime.config_threadpool(threads)
    torch.set_num_threads(threads)

    target = tvm.target.Target(settings.target)
    # The transforms have schedules for processors only.
    options = GraphOptions(winograd=settings.winograd and "cpu" in target.keys)
    network = Network(model, example_inputs, options=options)
    tasks = tasks_of_network(network, target)
    save_tasks(tasks, folder / "tasks.json", options)
    report.print_tasks(tasks)

    untuned_network = compile_network(network, target)
    untuned = untuned_network.task_seconds()

    records = folder / "records.json"
    optimizer = Optimizer(
        tasks,
        _cost_model(settings),
        seed=settings.seed,
    )
    if records.exists():
        restored = optimizer.restore(records)
        optimizer.load_state(folder)
        print(f"Resumed with {restored} measurements from {records}")
    result = optimizer.tune(
        settings.trials,
        settings.config_seeds,
        settings.grad_steps,
        settings.per_round,
        records,
        progress=progress,
        on_round=lambda optimizer: optimizer.save_state(folder),
    )
    optimizer.save_state(folder)
    if result.interrupted:
        print("Interrupted: what was measured is kept; continue with --resume")

    optimizer.session.close()

    tuned_network = compile_network(network, target, recorded_schedules(folder))
    latency = _compare(
        model, example_inputs, untuned_network, tuned_network, settings.timing_rounds
    )
    with torch.inference_mode():
        expected = model.eval()(*example_inputs)
    differences = output_difference(tuned_network(*example_inputs), expected)

    report.print_results(result.tasks, untuned)
    report.print_network_table(latency, *differences)
    report.draw_curve(result.history, folder / "curve.png", settings.network, latency["pytorch"])
    report.write_summary(
        folder / "summary.json",
        {
            "network": settings.network,
            "batch_size": settings.batch_size,
            "target": str(target),
            "threads": threads,
            "seed": settings.seed,
        },
        result,
        untuned,
        latency,
        differences,
        _coverage(tasks, result),
    )
    print(f"Results are in {folder}: records.json, summary.json, curve.png, cost_model.ckpt")
    return json.loads((folder / "summary.json").read_text())


def _cost_model(settings: TuneSettings) -> MLPModelPLWrapper:
    choices = {"packaged": packaged_checkpoint(), "none": None}
    checkpoint = choices.get(settings.cost_model, settings.cost_model)
    return MLPModelPLWrapper(pretrained=checkpoint, seed=settings.seed)


def _compare(
    model: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    untuned: CompiledNetwork,
    tuned: CompiledNetwork,
    rounds: int,
) -> dict[str, float]:
    """Medians in seconds of untuned, tuned and the faster eager PyTorch, interleaved."""
    functions: dict[str, Callable[[], Any]] = {
        "untuned": lambda: untuned(*inputs),
        "tuned": lambda: tuned(*inputs),
        **torch_variants(model, inputs),
    }
    samples = interleaved_seconds(functions, rounds)
    medians = {name: float(np.median(seconds)) for name, seconds in samples.items()}
    eager = {name: medians.pop(name) for name in list(medians) if name not in ("untuned", "tuned")}
    return {**medians, "pytorch": min(eager.values())}


def _coverage(tasks: Sequence[SymTaskAndInstances], result: TuneResult) -> float:
    """Share of the FLOP of all tasks that has a measured schedule."""
    tuned = {row.workload_key for row in result.tasks if row.best is not None}
    total = covered = 0.0
    for group in tasks:
        for instance in group.instances:
            work = instance.weight * instance.flop
            total += work
            covered += work if instance.ansor_task.workload_key in tuned else 0.0
    return covered / total if total else 0.0
