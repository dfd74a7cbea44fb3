"""Tuning the kernels of a network: what is known already is taken, the rest is searched."""

from __future__ import annotations

import logging
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tvm.auto_scheduler import MeasureSession, ProgramBuilder, ProgramRunner
from tvm.auto_scheduler.measure_local import DeviceLostError
from tvm.auto_scheduler.measure_record import careful_file
from tvm.runtime.files import FolderLock, remove_partials
from tvm.target import Target

from .cache import KernelCache, read_kernel_records, write_kernel_records
from .compiler import CompiledNetwork, compile, compile_network
from .coverage import FOUND
from .forms import choose_forms, find_rivals, forget_choice
from .in_place import choose_in_place, keep_untuned
from .network import GraphOptions, Network
from .optim import Optimizer, TuneResult
from .progress import phase
from .schedules import FORMS, IN_PLACE, REMEMBERED, RecordedSchedules, record_file
from .settings import SearchBudget, require_device
from .sym_task import SymTaskAndInstances, add_rivals, merge_tasks, save_tasks, tasks_of_network

__all__ = [
    "KernelSearch",
    "compile_in_place",
    "compile_rivals",
    "compile_tuned",
    "measuring_on",
    "run_folder",
    "search_kernels",
    "tune",
    "tune_together",
]

logger = logging.getLogger(__name__)

# A kernel for which so many programs were measured once is not searched again.
_ENOUGH_PROGRAMS = 64


@dataclass(frozen=True)
class KernelSearch:
    """Outcome of `search_kernels`.

    Attributes
    ----------
    tasks : all kernels of the networks that are worth tuning.
    result : of the search; None where every kernel was known, or none can be tuned.
    remembered : seconds of the kernels that were not searched, by workload key.
    resumed : measurements of an earlier run of the folder.
    lost : what ended the search where its device was lost, else None.
    """

    tasks: list[SymTaskAndInstances]
    result: TuneResult | None
    remembered: dict[str, float]
    resumed: int
    lost: DeviceLostError | None = None

    @property
    def interrupted(self) -> bool:
        """Whether the search was ended before its time, by the user or a lost device."""
        return self.result is not None and self.result.interrupted


def tune(
    model: torch.nn.Module | Callable[..., Any] | torch.export.ExportedProgram | Network,
    example_inputs: Sequence[Any] | torch.Tensor = (),
    trials: int = 300,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    target: Target | str = "llvm",
    folder: str | os.PathLike[str] | None = None,
    winograd: bool | None = None,
    seed: int = 0,
    cost_model: str = "packaged",
    cache: bool = True,
    progress: bool = True,
    runner: str = "local",
    fleet: str = "local",
) -> CompiledNetwork:
    """Tune a network for this machine and compile it.

    Kernels that were tuned on this machine before, for whatever network, are not tuned again;
    `tvm.felix.cache` says where they are kept.

    Parameters
    ----------
    model : a module, taken as it behaves in evaluation mode and left as it was; a function of
        tensors; or a program of ``torch.export``, or a network that is imported already, which
        bring their example inputs.
    example_inputs, example_kwargs : inputs of the shapes and types to tune for.
    trials : programs to measure over all kernels.
    target : what to tune for; it must be able to run here.
    folder : where records, tasks and the cost model go; a run that is there is continued. By
        default they are kept only in the cache.
    winograd : whether 3x3 convolutions are computed by Winograd's minimal filtering, and large
        products with constant weights by Strassen's scheme: True wherever that is estimated to be
        less work, False nowhere. By default both forms of each are tuned where they are close, as
        those of attention, and the one is taken that is faster inside the network; on this machine
        only, a Ray cluster does as with True.
    seed : of every random choice.
    cost_model : "packaged", "none", or the path of a checkpoint.
    cache : whether known kernels are taken from this machine's cache, and new ones kept there.
    progress : show a progress bar, where standard error is a terminal.
    runner : "local" to build and measure on this machine, "ray" on a Ray cluster.
    fleet : address of the Ray cluster; "local" starts one on this machine. See `tvm.felix.fleet`.

    Returns
    -------
    The tuned network, which is called like the model. Ctrl-C ends the search; what was found until
    then is compiled.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message; an option is out of
        range; or programs for the target cannot run here, where they are measured here.
    RuntimeError : the device's driver is too old, or there is no compiler of kernels.
    BlockingIOError : another process tunes in this folder.
    ConnectionError : there is no cluster at the address of the fleet.
    """
    target = target if isinstance(target, Target) else Target(target)
    if isinstance(model, Network):
        network = model
    else:
        # Importing takes a while.
        _check_search(target, trials, seed, cost_model, runner)
        network = Network(model, example_inputs, example_kwargs)
    return tune_together(
        {"network": network},
        trials,
        target=target,
        folder=folder,
        winograd=winograd,
        seed=seed,
        cost_model=cost_model,
        cache=cache,
        progress=progress,
        runner=runner,
        fleet=fleet,
    )["network"]


def tune_together(
    networks: Mapping[str, Network | tuple[torch.nn.Module | Callable[..., Any], Sequence[Any]]],
    trials: int = 300,
    *,
    target: Target | str = "llvm",
    folder: str | os.PathLike[str] | None = None,
    winograd: bool | None = None,
    seed: int = 0,
    cost_model: str = "packaged",
    cache: bool = True,
    progress: bool = True,
    runner: str = "local",
    fleet: str = "local",
) -> dict[str, CompiledNetwork]:
    """Tune several networks in one search, with one cost model and one file of records.

    Kernels that networks share are searched once. The search lowers the sum of all networks' times,
    so a large network gets more of the measurements than a small one.

    Parameters
    ----------
    networks : name to a network, or to a model and its example inputs.
    trials : programs to measure over all kernels of all networks.
    target, folder, winograd, seed, cost_model, cache, progress, runner, fleet : as for `tune`.

    Returns
    -------
    The tuned networks, under their names.

    Raises
    ------
    ValueError : there is no network; else as `tune`.
    """
    target = target if isinstance(target, Target) else Target(target)
    budget = _check_search(target, trials, seed, cost_model, runner)
    if not networks:
        raise ValueError("tune_together: there is no network to tune")
    options = GraphOptions.for_target(target, winograd)
    imported = {
        name: (entry if isinstance(entry, Network) else Network(*entry)).with_options(options)
        for name, entry in networks.items()
    }
    kernels = KernelCache.of_machine() if cache else None
    with run_folder(folder) as path:
        untuned, rivals = compile_rivals(
            list(imported.values()), target, path, winograd is None and runner == "local"
        )
        with measuring_on(fleet if runner == "ray" else None, target) as machines:
            search = search_kernels(
                list(imported.values()),
                target,
                path,
                budget,
                kernels,
                progress=progress,
                rivals=rivals,
                **machines,
            )
        if search.lost is not None:
            raise search.lost
        tuned = compile_tuned(
            list(imported.values()),
            target,
            path,
            kernels,
            untuned,
            rivals,
            in_place=runner == "local" and not search.interrupted,
        )
        for network in tuned:
            # Where schedules are from is read of the folder, which may be a temporary one.
            logger.info("%s: %s", network.network.name, network.coverage)
        return dict(zip(imported, tuned))


def compile_in_place(
    model: torch.nn.Module | Callable[..., Any] | torch.export.ExportedProgram | Network,
    example_inputs: Sequence[Any] | torch.Tensor = (),
    target: Target | str = "llvm",
    *,
    records: str | os.PathLike[str],
    example_kwargs: Mapping[str, Any] | None = None,
    winograd: bool | None = None,
    cache: bool = True,
) -> CompiledNetwork:
    """Compile a network with the records of a run, timed inside of the network as `tune` does it.

    `felix.compile` gives each kernel what was fastest alone. Here kernels are timed where they run,
    those that the library's schedule is faster for there are left to it, and so are all if the
    network as a whole is faster without a search. The folder keeps the choice, which later calls of
    `felix.compile` follow. For records of `Optimizer.tune`, of `auto_scheduler`, of a run that was
    interrupted, or of other machines of the same kind.

    Parameters
    ----------
    records : folder of the run, which has its ``records.json`` and may be written to; or this file.
    model, example_inputs, target, example_kwargs, winograd, cache : as for `felix.compile`.

    Raises
    ------
    ValueError : the records are in a file of another name; else as `felix.compile`.
    BlockingIOError : another process has a run in this folder.
    FileNotFoundError : there are no such records.
    """
    path = record_file(records)
    if path.name not in ("records.json", REMEMBERED):
        raise ValueError(
            f"compile_in_place: what is faster is kept beside records.json, not {path.name}: "
            "give the records a folder of their own, and that name"
        )
    target = target if isinstance(target, Target) else Target(target)
    first = compile(model, example_inputs, target, path, example_kwargs, winograd, cache)
    with run_folder(path.parent) as folder:
        known = KernelCache.of_machine() if cache else None
        [network] = compile_tuned([first.network], target, folder, known)
    return network


def compile_rivals(
    networks: Sequence[Network], target: Target, folder: Path, wanted: bool
) -> tuple[list[CompiledNetwork] | None, list[Network]]:
    """The networks compiled without records, and what `find_rivals` finds.

    Parameters
    ----------
    wanted : whether there is a choice of forms; if not, the folder's last one is forgotten, nothing
        is compiled and there are no rivals.
    """
    if not (wanted and any(network.forms for network in networks)):
        (folder / FORMS).unlink(missing_ok=True)
        return None, []
    phase("Compiling without a search, in each form that parts of the network have")
    untuned = [compile_network(network, target) for network in networks]
    return untuned, find_rivals(networks, untuned, target, folder)


def compile_tuned(
    networks: Sequence[Network],
    target: Target,
    folder: Path,
    cache: KernelCache | None,
    untuned: Sequence[CompiledNetwork] | None = None,
    rivals: Sequence[Network] = (),
    *,
    in_place: bool = True,
) -> list[CompiledNetwork]:
    """Compile networks with what was searched in a folder, and with what the machine remembers.

    Parameters
    ----------
    untuned : the networks compiled without; made where they are needed and not given.
    rivals : other forms of them, whose kernels were searched, too.
    in_place : time the kernels inside the networks, leave to the library those for which that is
        faster, leave out prefetches where that is, and take from rivals what is faster. Of
        processors. Without it, as where a run was interrupted or measured elsewhere, networks are
        only timed as a whole: one that is slower than untuned keeps the library's schedules.
    """
    has_records = any((folder / name).exists() for name in ("records.json", REMEMBERED))
    (folder / IN_PLACE).unlink(missing_ok=True)

    def schedules(read_ahead: bool = True) -> RecordedSchedules:
        return RecordedSchedules(target, folder if has_records else None, cache, read_ahead)

    def compiled(networks: Sequence[Network]) -> list[CompiledNetwork]:
        source = schedules()
        return [compile_network(network, target, source) for network in networks]

    phase("Compiling with what was found")
    source = schedules()
    tuned = [compile_network(network, target, source) for network in networks]
    if "cpu" not in target.keys:
        return tuned
    best = tuned
    if in_place:
        best, tuned, untuned = _choose_parts(
            folder, target, tuned, untuned, rivals, source, schedules
        )
    # What was remembered of other runs was weighed there, as long as nothing is compiled anew.
    if untuned is None and any(_searched(network) for network in best):
        untuned = [compile_network(network, target) for network in networks]
    changed = best is not tuned or any(k.schedule in FOUND for net in best for k in net.kernels)
    if untuned is None or not changed:
        return best
    phase("Timing the network tuned and untuned")
    slower = keep_untuned(folder, target, best, untuned, tuned)
    if not slower:
        return best
    logger.warning(
        "%s: faster with the library's schedules than with what was found, which is left out",
        ", ".join(dict.fromkeys(slower)),
    )
    forget_choice(folder, target)
    return compiled(networks)


def _choose_parts(
    folder: Path,
    target: Target,
    tuned: list[CompiledNetwork],
    untuned: Sequence[CompiledNetwork] | None,
    rivals: Sequence[Network],
    source: RecordedSchedules,
    schedules: Callable[..., RecordedSchedules],
) -> tuple[list[CompiledNetwork], list[CompiledNetwork], Sequence[CompiledNetwork] | None]:
    """Networks with what is faster inside of them, kernel by kernel and form by form.

    Parameters
    ----------
    tuned, untuned : the networks with all that was found, and without, if they were compiled yet.
    source : of the schedules of `tuned`.
    schedules : gives what was found as the folder says by now; with False without what that reads
        ahead.

    Returns
    -------
    The networks, those in the form that they had, and `untuned`, if it was needed.
    """
    networks = [network.network for network in tuned]

    def compiled(networks: Sequence[Network]) -> list[CompiledNetwork]:
        source = schedules()
        return [compile_network(network, target, source) for network in networks]

    others = [compile_network(network, target, source) for network in rivals]
    found = frozenset().union(*map(_searched, tuned))
    # Rivals run where they have programs that the networks have not.
    apart = [network for network in others if not _searched(network) <= found]
    timed = [*tuned, *apart]
    if any(_searched(network) for network in timed):
        if untuned is None:
            untuned = [compile_network(network, target) for network in networks]
        by_hand = [*untuned, *(compile_network(rival.network, target) for rival in apart)]
        near = timed
        if source.reads_ahead:
            without = schedules(read_ahead=False)
            near = [compile_network(network.network, target, without) for network in timed]
        phase("Timing kernels inside of the network")
        kept = choose_in_place(folder, target, timed, near, by_hand)
        logger.info(
            "in the network %d kernels are faster by the library's schedule, and %d without "
            "prefetches",
            len(kept.library),
            len(kept.without_read_ahead),
        )
        if kept:
            tuned, others = compiled(networks), compiled(rivals)
    best = tuned
    if rivals:
        chosen = choose_forms(folder, target, tuned, others)
        plain = {name for network in chosen for name in network.options.plain}
        logger.info("faster as they are: %s", ", ".join(sorted(plain)) or "no parts")
        best = compiled(chosen) if plain else tuned
    return best, tuned, untuned


def _searched(network: CompiledNetwork) -> frozenset[str]:
    """Workload keys of the kernels that a run found programs for."""
    return frozenset(k.workload_key for k in network.kernels if k.schedule == "records")


def _check_search(
    target: Target, trials: int, seed: int, cost_model: str, runner: str
) -> SearchBudget:
    budget = SearchBudget(trials, seed=seed, cost_model=cost_model)
    if runner not in ("local", "ray"):
        raise ValueError(f'runner must be "local" or "ray", got {runner!r}')
    if runner == "local":
        require_device(target)
    budget.model(target)
    return budget


@contextmanager
def run_folder(folder: str | os.PathLike[str] | None) -> Iterator[Path]:
    """A folder for a run, held for this process; a temporary one where none is given.

    Raises
    ------
    BlockingIOError : another process has a run in this folder.
    OSError : it cannot be written.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="felix-") as made:
            yield Path(made)
        return
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    with FolderLock(path):
        remove_partials(path)
        yield path


@contextmanager
def measuring_on(fleet: str | None, target: Target) -> Iterator[dict[str, Any]]:
    """Builder and runner of a search, by name: those of a Ray cluster, or none for this machine.

    Raises
    ------
    ConnectionError : there is no cluster at the address.
    ModuleNotFoundError : ray is not installed.
    """
    if fleet is None:
        yield {}
        return
    from .fleet import DEVICE_RESOURCE, Fleet

    with Fleet(fleet) as cluster:
        runner = cluster.runner(
            resource="GPU" if "gpu" in target.keys else DEVICE_RESOURCE,
            number=1,
            repeat=8,
            min_repeat_ms=2,
        )
        try:
            yield {"builder": cluster.builder(), "runner": runner}
        finally:
            runner.close()


def search_kernels(
    networks: Sequence[Network],
    target: Target,
    folder: Path,
    budget: SearchBudget,
    cache: KernelCache | None,
    *,
    progress: bool = True,
    rivals: Sequence[Network] = (),
    on_round: Callable[[Optimizer], None] | None = None,
    on_tasks: Callable[[list[SymTaskAndInstances]], None] | None = None,
    builder: ProgramBuilder | None = None,
    runner: ProgramRunner | None = None,
) -> KernelSearch:
    """Tune the kernels of networks; everything is left in `folder`, an earlier run continued.

    Parameters
    ----------
    networks : at least one, all with the same graph options; kernels that they share are one task.
    cache : kernels that it knows well enough are not searched, and their records are copied into
        the folder; what is found is added to it.
    rivals : other forms of the networks, whose kernels are searched, too.
    on_tasks : called with the kernels before the search.
    on_round : called after each round of the search.
    builder, runner : what compiles programs and gives their seconds; by default this machine.

    Raises
    ------
    ValueError : a file of the earlier run is damaged.
    OSError : the folder cannot be written, or the disk is full; what was measured is kept.
    """
    tasks = merge_tasks([tasks_of_network(network, target) for network in networks])
    if rivals:
        others = merge_tasks([tasks_of_network(network, target) for network in rivals])
        tasks = add_rivals(tasks, others)
    save_tasks(tasks, folder / "tasks.json", networks[0].options)
    if not tasks:
        logger.info("the library writes every kernel whole: nothing to search")
        return KernelSearch(tasks, None, {}, 0)
    if on_tasks is not None:
        on_tasks(tasks)
    records = folder / "records.json"
    known = _recall(tasks, target, folder, budget, cache)
    wanted = [task for task in tasks if _key(task) not in known]
    if not wanted:
        logger.info("every kernel was tuned on this machine before: nothing to search")
        return KernelSearch(tasks, None, known, 0)
    if known:
        logger.info("%d of %d kernels were tuned before", len(known), len(tasks))
    trials = max(1, math.ceil(budget.trials * len(wanted) / len(tasks)))

    def after_round(state: Optimizer) -> None:
        state.save_state(folder)
        seconds = state.network_seconds()
        logger.info(
            "round %d: %d programs measured, sum of kernels %s, %.0f s",
            state.n_rounds,
            state.n_measure,
            f"{seconds * 1e3:.4f} ms" if math.isfinite(seconds) else "not known yet",
            state.timer.elapsed(),
        )
        if on_round is not None:
            on_round(state)

    session = MeasureSession(builder, runner)
    try:
        # The model is read meanwhile.
        session.start_workers()
        optimizer = Optimizer(wanted, budget.model(target), seed=budget.seed, session=session)
        # Known schedules are where the search starts; they cost no measurement of this run.
        if (folder / REMEMBERED).exists():
            session.n_measure -= optimizer.restore(folder / REMEMBERED)
        resumed = 0
        if records.exists() or careful_file(records).exists():
            resumed = optimizer.restore(records)
            optimizer.load_state(folder)
        logger.info("searching %d kernels with %d programs to measure", len(wanted), trials)
        lost: DeviceLostError | None = None
        try:
            result = optimizer.tune(
                trials,
                budget.config_seeds,
                budget.grad_steps,
                budget.per_round,
                records,
                progress=progress,
                on_round=after_round,
            )
        except DeviceLostError as error:
            lost = DeviceLostError(f"{error}; {optimizer.n_measure} programs were measured before")
            result = optimizer.result(interrupted=True)
        optimizer.save_state(folder)
    finally:
        session.close()
        if cache is not None and records.exists():
            logger.info("%d records are remembered for other networks", cache.add(records))
    for row in result.tasks:
        logger.info(
            "task %d (%s): %s after %d programs, %d failed",
            row.idx,
            row.desc,
            "nothing ran" if row.best_seconds is None else f"{row.best_seconds * 1e3:.4f} ms",
            row.n_measured,
            sum(row.errors.values()),
        )
    return KernelSearch(tasks, result, known, resumed, lost)


def _recall(
    tasks: Sequence[SymTaskAndInstances],
    target: Target,
    folder: Path,
    budget: SearchBudget,
    cache: KernelCache | None,
) -> dict[str, float]:
    """Copy what the cache knows into the folder; seconds of the kernels that need no search."""
    path = folder / REMEMBERED
    # A run that is continued goes on with the kernels that it began with.
    if cache is not None and not (folder / "records.json").exists():
        found = [cache.best(_key(task), target) for task in tasks]
        write_kernel_records(path, [record for record in found if record is not None])
    if not path.exists():
        return {}
    enough = min(_ENOUGH_PROGRAMS, math.ceil(budget.trials / len(tasks)))
    keys = {_key(task) for task in tasks}
    known = {}
    for record in read_kernel_records(path):
        summary = record.summary
        if summary.workload_key in keys and record.n_measured >= enough:
            known[summary.workload_key] = summary.seconds
    return known


def _key(task: SymTaskAndInstances) -> str:
    (instance,) = task.instances
    return str(instance.ansor_task.workload_key)
