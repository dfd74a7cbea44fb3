"""The whole job: a network in; a faster one, and a folder with records and figures, out."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tvm
from tvm.auto_scheduler.measure_local import DeviceLostError
from tvm.relax.frontend.torch import in_eval_mode
from tvm.runtime.files import write_atomically
from tvm.runtime.threading import usable_cores

from . import report
from .cache import KernelCache
from .compiler import CompiledNetwork, compile_network
from .html_report import write_report
from .network import GraphOptions, Network
from .optim import Optimizer
from .progress import phase
from .settings import TuneSettings, check_settings
from .simulation import simulate_network
from .timing import (
    interleaved_seconds,
    machine_ceilings,
    output_difference,
    times_as_fast,
    torch_variants,
)
from .tuning import (
    compile_rivals,
    compile_tuned,
    measuring_on,
    run_folder,
    search_kernels,
)

__all__ = ["tune_network"]

logger = logging.getLogger(__name__)

# What samples of a function in the closing comparison take at least, for each of its rounds.
_SECONDS_OF_A_ROUND = 0.05

# A model and its example inputs.
LoadedNetwork = tuple[torch.nn.Module, Sequence[torch.Tensor]]


def tune_network(
    model: torch.nn.Module,
    example_inputs: Sequence[torch.Tensor],
    settings: TuneSettings,
    folder: Path,
    *,
    together: Mapping[str, LoadedNetwork] | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """Tune a network, compare it with PyTorch, and leave everything in `folder`.

    A folder that holds an earlier run is continued: its records count as measurements and are not
    measured again.

    Parameters
    ----------
    together : models and example inputs of the networks named by `settings.together`, which are
        tuned in the same search and compared too.

    Returns
    -------
    The content of `summary.json`.

    Raises
    ------
    BlockingIOError : another process has a run in this folder.
    OSError : the folder cannot be written, or the disk is full; what was measured is kept.
    ValueError : a file of the earlier run is damaged; the message names it. Or the target is a GPU
        and this machine has none; or there is no model of the GPU to simulate.
    DeviceLostError : the device that programs are timed on does not answer any more. What was
        measured is kept, and `summary.json` has what was found.
    """
    check_settings(settings)
    with run_folder(folder):
        write_atomically(folder / "run.json", json.dumps(asdict(settings), indent=2) + "\n")
        if settings.simulate:
            return simulate_network(
                model,
                example_inputs,
                settings.network,
                settings.target,
                folder,
                settings.budget(),
                progress,
            )
        return _tune(
            {settings.network: (model, example_inputs), **(together or {})},
            settings,
            folder,
            progress,
        )


def _tune(
    networks: Mapping[str, LoadedNetwork],
    settings: TuneSettings,
    folder: Path,
    progress: bool,
) -> dict[str, Any]:
    threads = settings.threads or usable_cores()
    # Measuring workers and the compiled network read this when their thread pool starts.
    os.environ["TVM_NUM_THREADS"] = str(threads)
    tvm.runtime.config_threadpool(threads)
    torch.set_num_threads(threads)

    target = tvm.target.Target(settings.target)
    options = GraphOptions.for_target(target, settings.winograd)
    imported = []
    for name, (model, inputs) in networks.items():
        phase("Importing %s", name)
        imported.append(Network(model, inputs, options=options))
    cache = KernelCache.of_machine() if settings.cache else None
    made, rivals = compile_rivals(
        imported, target, folder, settings.winograd is None and settings.fleet is None
    )
    if made is None:
        phase("Compiling without a search")
        made = [compile_network(network, target) for network in imported]
    untuned_networks = made
    untuned = {
        key: seconds
        for network in untuned_networks
        for key, seconds in network.task_seconds().items()
    }
    with (
        _event_writer(folder, settings) as on_round,
        measuring_on(settings.fleet, target) as machines,
    ):
        search = search_kernels(
            imported,
            target,
            folder,
            settings.budget(),
            cache,
            progress=progress,
            rivals=rivals,
            on_round=on_round,
            on_tasks=report.print_tasks,
            **machines,
        )
    if search.resumed:
        print(f"Resumed with {search.resumed} measurements from {folder / 'records.json'}")
    if search.remembered:
        print(f"{len(search.remembered)} kernels were tuned on this machine before: not again")
    if search.lost is not None:
        facts = _facts(settings, target, threads, report.search_facts(search, untuned, None))
        _report_lost(facts | {"device_lost": str(search.lost)}, folder)
        raise DeviceLostError(
            f"{search.lost} and are kept; go on with --resume {folder} when the device is back"
        )
    if search.interrupted:
        print("Interrupted: what was measured is kept; continue with --resume")

    tuned_networks = compile_tuned(
        imported,
        target,
        folder,
        cache,
        untuned_networks,
        rivals,
        in_place=settings.fleet is None and not search.interrupted,
    )
    facts = _facts(
        settings, target, threads, report.search_facts(search, untuned, tuned_networks[0])
    )
    # Before the comparison, so that whatever happens in it costs nothing that was found.
    report.write_summary(folder / "summary.json", facts)
    report.print_results(facts["tasks"])
    several = len(networks) > 1
    for name, untuned_network, tuned_network in zip(networks, untuned_networks, tuned_networks):
        own = facts if name == settings.network else facts.setdefault("together", {})
        if own is not facts:
            own = own.setdefault(name, {"coverage": tuned_network.coverage.tuned_share})
        phase("Comparing %s with PyTorch", name)
        try:
            own |= _compare(*networks[name], untuned_network, tuned_network, settings)
        except Exception as error:
            logger.exception("the comparison of %s with PyTorch failed", name)
            own["comparison_error"] = f"{type(error).__name__}: {error}"
            print(f"The comparison with PyTorch failed: {own['comparison_error']}")
        else:
            report.print_network_table(own, f"Network {name}" if several else "Network")
    report.write_summary(folder / "summary.json", facts)
    report.draw_curve(
        facts["history"],
        folder / "curve.png",
        settings.network,
        facts.get("latency_seconds", {}).get("pytorch"),
    )
    write_report(folder)
    print(
        f"Results are in {folder}: report.html, summary.json, records.json, curve.png, "
        "cost_model.ckpt, tune.log"
    )
    return facts


def _facts(
    settings: TuneSettings, target: tvm.target.Target, threads: int, search: dict[str, Any]
) -> dict[str, Any]:
    """What `summary.json` begins with.

    search : of `report.search_facts`.
    """
    return {
        "network": settings.network,
        "batch_size": settings.batch_size,
        "target": str(target),
        "threads": threads,
        "seed": settings.seed,
        **search,
        "versions": report.versions(),
    }


def _report_lost(facts: dict[str, Any], folder: Path) -> None:
    """Say what was found before the device was lost; nothing can be compared without it."""
    report.write_summary(folder / "summary.json", facts)
    report.print_results(facts["tasks"])
    report.draw_curve(facts["history"], folder / "curve.png", f"{facts['network']} (unfinished)")
    write_report(folder)


def _compare(
    model: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    untuned: CompiledNetwork,
    tuned: CompiledNetwork,
    settings: TuneSettings,
) -> dict[str, Any]:
    """Medians in seconds of untuned, tuned and the faster eager PyTorch, interleaved; how many
    times the tuned network's the others are, round by round; the outputs' differences; what each
    kernel takes."""
    functions: dict[str, Callable[[], Any]] = {
        "untuned": lambda: untuned(*inputs),
        "tuned": lambda: tuned(*inputs),
        **torch_variants(model, inputs),
    }
    rounds = settings.timing_rounds
    samples = interleaved_seconds(functions, rounds, at_least=_SECONDS_OF_A_ROUND * rounds)
    medians = {name: float(np.median(seconds)) for name, seconds in samples.items()}
    eager = {name: medians.pop(name) for name in list(medians) if name not in ("untuned", "tuned")}
    faster_eager = min(eager, key=lambda name: eager[name])
    with torch.inference_mode():
        expected = in_eval_mode(model)(*inputs)
    absolute, relative = output_difference(tuned(*inputs), expected)
    return {
        "latency_seconds": {**medians, "pytorch": eager[faster_eager]},
        "times_as_fast": {
            "untuned": times_as_fast(samples["tuned"], samples["untuned"]),
            "pytorch": times_as_fast(samples["tuned"], samples[faster_eager]),
        },
        "max_abs_diff": absolute,
        "max_rel_diff": relative,
        "kernels": report.kernel_facts(tuned),
        "ceilings": machine_ceilings(),
    }


@contextmanager
def _event_writer(
    folder: Path, settings: TuneSettings
) -> Iterator[Callable[[Optimizer], None] | None]:
    """What writes TensorBoard events after each round, if that is wanted.

    Raises
    ------
    ModuleNotFoundError : tensorboard is not installed.
    """
    if not settings.tensorboard:
        yield None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "tensorboard")) as writer:

        def write(optimizer: Optimizer) -> None:
            measured = optimizer.n_measure
            seconds = optimizer.network_seconds()
            if math.isfinite(seconds):
                writer.add_scalar("sum_of_kernels_ms", seconds * 1e3, measured)
            for task in optimizer.tasks:
                best = task.search.best
                if best is not None and best.seconds is not None:
                    name = f"task_ms/{task.instance.idx:03d}"
                    writer.add_scalar(name, best.seconds * 1e3, measured)
            writer.flush()

        yield write
