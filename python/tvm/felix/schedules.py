"""Recorded schedules for the kernels of a network: of a tuning run, and of this machine."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tvm import relax
from tvm.auto_scheduler import ApplyHistoryBest, DispatchContext, load_record_from_string
from tvm.auto_scheduler.compute_dag import ComputeDAG
from tvm.auto_scheduler.loop_state import StateObject, state_object_of
from tvm.auto_scheduler.measure_record import library_records, record_summaries
from tvm.auto_scheduler.relax_integration import group_task
from tvm.runtime.files import read_json
from tvm.target import Target

from .cache import KernelCache, read_kernel_records
from .network import Network, read_graph_options

__all__ = [
    "FORMS",
    "IN_PLACE",
    "REMEMBERED",
    "RecordedSchedules",
    "ScheduleSourceError",
    "record_file",
]

logger = logging.getLogger(__name__)

# Beside a run's records: those that this machine had of its kernels before.
REMEMBERED = "remembered.json"
# And the kernels that are faster by the library's schedule inside the network.
IN_PLACE = "in_place.json"
# And the subgraphs that are faster as they are than in the form that a pass would give them.
FORMS = "forms.json"


def record_file(records: str | os.PathLike[str]) -> Path:
    """The record file of a run's folder, or the file itself.

    Raises
    ------
    FileNotFoundError : there is no such file.
    """
    path = Path(records)
    if path.is_dir():
        # A run whose kernels were all known has measured nothing.
        found = [path / name for name in ("records.json", REMEMBERED) if (path / name).exists()]
        path = found[0] if found else path / "records.json"
    if not path.exists():
        raise FileNotFoundError(
            f"felix.compile: record file {path} does not exist; tune first, or leave out records"
        )
    return path


class ScheduleSourceError(ValueError):
    """The records that were given are of no use for the network."""


class RecordedSchedules(DispatchContext):
    """The best recorded schedule of each kernel: of a run, else of this machine.

    Parameters
    ----------
    target : only schedules that were measured on its machine count.
    records : record file, or folder of a run.
    cache : asked for kernels that `records` does not have.
    read_ahead : False leaves out all that programs of `records` prefetch.

    Attributes
    ----------
    reads_ahead : whether any program that was asked for until now prefetches weights.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ValueError : a line of the file is no record; the message names it.
    """

    def __init__(
        self,
        target: Target,
        records: str | os.PathLike[str] | None = None,
        cache: KernelCache | None = None,
        read_ahead: bool = True,
    ) -> None:
        super().__init__()
        self.target = target
        self._read_ahead = read_ahead
        self.reads_ahead = False
        self.path = None if records is None else record_file(records)
        self._cache = cache
        self._files = [] if self.path is None else _files(self.path)
        self._run = ApplyHistoryBest(self._files)
        # Kernels of the run that nothing found was faster for than the library's schedule.
        self._library = {
            key
            for file in self._files
            for key, measured in _library_kernels(file)
            if target.is_same_machine(Target(measured))
        }
        self._in_place = _InPlace() if self.path is None else _read_in_place(self.path, target)

    def _query_inside(
        self, target: Target, workload_key: str, dag: ComputeDAG | None, func_name: str
    ) -> StateObject | None:
        if workload_key in self._in_place.library:
            return None
        state = self._run.query(target, workload_key, True, dag, func_name)
        near = not self._read_ahead or workload_key in self._in_place.without_read_ahead
        if state is not None and any(_reads_ahead(step) for step in state.transform_steps):
            self.reads_ahead = True
        if state is not None and dag is not None and near:
            return _without_read_ahead(dag, state)
        if state is not None or self._cache is None:
            return state
        known = self._cache.best(workload_key, target)
        if known is None or known.is_library or workload_key in self._library:
            return None
        return load_record_from_string(known.line)[0].state

    def origin(self, group: relax.FusedGroup) -> str | None:
        """Where a kernel's schedule is from.

        Returns
        -------
        "records", "cache", "library" where a search found nothing faster than the operator
        library's, or None where nobody searched, if only the library's schedule was measured too.
        """
        if not group.is_tunable:
            return None
        key = str(group_task(group, self.target).workload_key)
        if key in self._in_place.library:
            return "library"
        if self._run.query(self.target, key) is not None:
            return "records"
        if key in self._library:
            return "library" if key in self._searched else None
        known = None if self._cache is None else self._cache.best(key, self.target)
        if known is None or not known.n_measured:
            return None
        return "library" if known.is_library else "cache"

    @cached_property
    def _searched(self) -> set[str]:
        """Kernels of the run that any program was measured of, valid or not."""
        found: set[str] = set()
        for file in self._files:
            if file.name == REMEMBERED:
                records = [r for r in read_kernel_records(file) if r.n_measured]
                found |= {record.summary.workload_key for record in records}
            else:
                found |= {summary.workload_key for _, _, summary in record_summaries(file)}
        return found

    def _is_known(self, group: relax.FusedGroup) -> bool:
        """Whether anything was measured of a kernel."""
        key = str(group_task(group, self.target).workload_key)
        if key in self._library or self.origin(group) is not None:
            return True
        return self._cache is not None and self._cache.best(key, self.target) is not None

    def tuned_form(self, network: Network) -> Network:
        """The network with the graph that was tuned."""
        options = None
        if self.path is not None:
            tasks = self.path.with_name("tasks.json")
            options = read_graph_options(tasks) if tasks.exists() else None
        if options is not None:
            plain = _faster_plain(self.path, self.target) if self.path is not None else ()
            return network.with_options(replace(options, plain=plain))
        if self.path is None and (self._cache is None or self._cache.is_empty()):
            return network
        if "cpu" not in self.target.keys:
            return network
        if self.path is not None:
            # A file alone does not say which graph its kernels are of.
            forms = [
                network.with_options(replace(network.options, winograd=winograd, strassen=strassen))
                for strassen in (network.options.strassen, not network.options.strassen)
                for winograd in (network.options.winograd, not network.options.winograd)
            ]
            return max(forms, key=self._known_kernels)
        if self.coverage(network) == 1:
            return network
        other = replace(network.options, winograd=not network.options.winograd)
        return max(network, network.with_options(other), key=self.coverage)

    def _known_kernels(self, network: Network) -> int:
        return sum(self._is_known(group) for group in relax.extract_tasks(network.mod))

    def coverage(self, network: Network) -> float:
        """Share of the kernels to tune that have a record."""
        groups = relax.extract_tasks(network.mod)
        known = sum(self._is_known(group) for group in groups)
        return known / len(groups) if groups else 1.0

    def check_use(self, network: Network) -> None:
        """Say so where the records are of another network, or of another machine.

        Raises
        ------
        ScheduleSourceError : there are records, and none is of a kernel of the network.
        """
        groups = relax.extract_tasks(network.mod)
        ours = {str(group_task(group, self.target).workload_key) for group in groups}
        measured = _measured(self._files)
        used = [
            key
            for key in ours
            if key in self._library or self._run.query(self.target, key) is not None
        ]
        if used or not ours or self.path is None:
            if self.path is not None and len(used) < len(ours):
                logger.warning(
                    "%s has schedules for %d of the network's %d kernels; the others are not tuned",
                    self.path,
                    len(used),
                    len(ours),
                )
            return
        if not measured:
            logger.warning("%s holds no program that ran: the network is not tuned", self.path)
            return
        elsewhere = {target for key in ours for target in measured.get(key, ())}
        if elsewhere:
            raise ScheduleSourceError(
                f"{self.path} has schedules of this network for other machines only: "
                f"{'; '.join(sorted(elsewhere))}. This one is {self.target.with_machine()}; tune "
                "here, or leave out records"
            )
        raise ScheduleSourceError(
            f"{self.path} is of another network{_name_of_run(self.path)}: none of its "
            f"{len(measured)} kernels is among the {len(ours)} of this one. Shapes and batch "
            "size count; tune this network, or leave out records"
        )


def _files(records: Path) -> list[Path]:
    beside = records.with_name(REMEMBERED)
    return [records, *([beside] if beside.exists() and beside != records else [])]


def _library_kernels(records: Path) -> list[tuple[str, str]]:
    """Workloads and targets of which a file says that the library's schedule was measured."""
    if records.name == REMEMBERED:
        known = [r.summary for r in read_kernel_records(records) if r.is_library]
        return [(summary.workload_key, summary.target) for summary in known]
    return list(library_records(records))


@dataclass(frozen=True)
class _InPlace:
    """Workload keys of kernels that something else is faster for inside of a network."""

    library: frozenset[str] = frozenset()
    without_read_ahead: frozenset[str] = frozenset()


def _read_in_place(records: Path, target: Target) -> _InPlace:
    """What the run of a record file found out inside of its network.

    Raises
    ------
    ValueError : the file that says so is damaged; the message names it.
    """
    path = records.with_name(IN_PLACE)
    if records.name not in ("records.json", REMEMBERED) or not path.exists():
        return _InPlace()
    document: Any = read_json(path)
    try:
        measured, library = Target(document["target"]), document["seconds"].keys()
        # Files of earlier releases have no such entry.
        near = document.get("without_read_ahead", {}).keys()
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: expected a target and seconds of kernels: {error}") from error
    if not target.is_same_machine(measured):
        return _InPlace()
    return _InPlace(frozenset(map(str, library)), frozenset(map(str, near)))


def _without_read_ahead(dag: ComputeDAG, state: StateObject) -> StateObject:
    """A program that leaves it to the processor to fetch its weights in time."""
    steps = [step for step in state.transform_steps if not _reads_ahead(step)]
    if len(steps) == len(state.transform_steps):
        return state
    return state_object_of(dag.replay_steps(steps))


def _reads_ahead(step: Any) -> bool:
    return str(getattr(step, "pragma_type", "")).startswith("read_ahead$")


def _faster_plain(records: Path, target: Target) -> tuple[str, ...]:
    """The subgraphs that the run of a record file found to be faster as they are.

    Raises
    ------
    ValueError : the file that says so is damaged; the message names it.
    """
    path = records.with_name(FORMS)
    if not path.exists():
        return ()
    document: Any = read_json(path)
    try:
        measured, plain = Target(document["target"]), tuple(map(str, document["plain"]))
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{path}: expected a target and names of forms: {error}") from error
    return plain if target.is_same_machine(measured) else ()


def _measured(paths: Sequence[Path]) -> dict[str, set[str]]:
    """The workloads of which programs ran, with the targets that they ran on."""
    found: dict[str, set[str]] = {}
    for path in paths:
        for _, _, summary in record_summaries(path):
            if summary.seconds < math.inf:
                found.setdefault(summary.workload_key, set()).add(summary.target)
    return found


def _name_of_run(records: Path) -> str:
    settings = records.with_name("run.json")
    content: Any = read_json(settings) if settings.exists() else None
    return f" ({content['network']})" if isinstance(content, dict) and "network" in content else ""
