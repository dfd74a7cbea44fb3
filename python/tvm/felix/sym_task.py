"""Tuning tasks: a computation with its symbolic sketches, and the places that use it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from tvm import auto_scheduler, ir, te
from tvm._older_names import hints_for
from tvm.runtime.files import read_json, write_atomically
from tvm.target import Target

from . import ffi
from .network import GraphOptions, Network
from .operators import RELAY_BUILDERS, Operator, operators_of
from .sketch import Sketch
from .sym_dag import SymbolicDAG
from .utils import AnsorTaskWeight, ansor_tasks_of_network, coalesce_dicts, extract_ansor_tasks

__all__ = [
    "SymTask",
    "SymTaskAndInstances",
    "TaskInstance",
    "add_rivals",
    "batch_create_tasks",
    "choose_tasks",
    "extract_tasks",
    "extract_tasks_",
    "load_tasks",
    "make_task",
    "merge_tasks",
    "save_tasks",
    "tasks_of_network",
]

if not TYPE_CHECKING:
    __getattr__ = hints_for(__name__)

logger = logging.getLogger(__name__)

_FORMAT = 1


@dataclass(frozen=True)
class TaskInstance:
    """One concrete task of a network.

    Attributes
    ----------
    idx : position in order of extraction.
    weight : how often one run of the network executes it.
    sizes : the value of each size of the symbolic task.
    ansor_task : the concrete search task.
    desc : operator names.
    is_rival : whether the task is of another form of a part of the network, so that its time is
        none of the network's.
    """

    idx: int
    weight: int
    sizes: Mapping[str, int]
    # Its text is that of the whole computation.
    ansor_task: auto_scheduler.SearchTask = field(repr=False)
    desc: str
    is_rival: bool = False

    @property
    def flop(self) -> float:
        """Floating-point operations of one execution, at least 1."""
        return max(float(self.ansor_task.compute_dag.flop_ct), 1.0)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the last output."""
        return tuple(int(extent) for extent in self.ansor_task.compute_dag.tensors[-1].shape)


class SymTask:
    """A computation over named sizes, with all symbolic sketches of one instance of it.

    Parameters
    ----------
    max_sketches : how many at most.
    hash_match : whether structure and sizes must give the task's workload again; if they do not,
        the task has a structure of its own.

    Attributes
    ----------
    ansor_task : the search task that the sketches belong to; `of` gives those of other sizes.
    search_space : the name of the space that they are from, see auto_scheduler.search_spaces.
    failures : why other loop structures gave no sketch.
    """

    def __init__(
        self,
        ansor_task: auto_scheduler.SearchTask,
        max_sketches: int = 8,
        search_space: str = "felix",
        hash_match: bool = True,
    ) -> None:
        self.ansor_task = ansor_task
        self.search_space = search_space
        self._max_sketches, self._hash_match = max_sketches, hash_match
        self._of_others: dict[str, SymTask] = {}
        self.failures: list[str] = []

    @cached_property
    def _structure(self) -> tuple[SymbolicDAG, dict[str, int]]:
        dag = self.ansor_task.compute_dag
        try:
            return SymbolicDAG.from_ansor(dag, self._hash_match)
        except ValueError as error:
            logger.debug("%s has a structure of its own: %s", self.ansor_task.desc, error)
            return SymbolicDAG(list(dag.tensors), ()), {}

    def __repr__(self) -> str:
        return f"SymTask({' -> '.join(map(str, self.operators))})"

    @property
    def sym_dag(self) -> SymbolicDAG:
        """The structure of the computation, which tasks of other sizes share."""
        return self._structure[0]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that the sketches are for."""
        return dict(self._structure[1])

    def of(self, instance: TaskInstance) -> SymTask:
        """The symbolic task whose sketches are for the sizes of an instance."""
        key = str(instance.ansor_task.workload_key)
        if key == str(self.ansor_task.workload_key):
            return self
        if key not in self._of_others:
            self._of_others[key] = SymTask(
                instance.ansor_task, self._max_sketches, self.search_space, self._hash_match
            )
        return self._of_others[key]

    @cached_property
    def sketches(self) -> list[Sketch]:
        """The sketches, generated and lowered on first use.

        Raises
        ------
        ValueError : no loop structure of the computation could be lowered.
        """
        states, self.failures = ffi.generate_all_sym_sketches(
            self.ansor_task, self._max_sketches, self.search_space
        )
        for failure in self.failures:
            logger.warning(
                "%s: a loop structure gives no sketch: %s", self.ansor_task.desc, failure
            )
        if not states:
            raise ValueError(
                f"no sketch for task {self.ansor_task.desc!r}: " + "; ".join(self.failures)
            )
        return [Sketch(self, index, state) for index, state in enumerate(states)]

    @property
    def backbone_to_sketch(self) -> dict[tuple[str, ...], list[Sketch]]:
        """Sketches by the tags of their transform steps; some share a backbone."""
        table: dict[tuple[str, ...], list[Sketch]] = {}
        for sketch in self.sketches:
            table.setdefault(sketch.backbone, []).append(sketch)
        return table

    @cached_property
    def operators(self) -> list[Operator]:
        """The operators that the computation consists of, with the sizes of `ansor_task`."""
        return operators_of(self.ansor_task.compute_dag)

    def get_flops(self, sizes: Mapping[str, int] | None = None) -> float:
        """Floating-point operations of one execution, for the sketches' sizes or for others.

        Raises
        ------
        ValueError : a size is missing or unknown.
        """
        if sizes is None:
            return float(self.ansor_task.compute_dag.flop_ct)
        return self.sym_dag.flops(sizes)


class SymTaskAndInstances(NamedTuple):
    """A symbolic task with the concrete tasks that have its structure: a pair of them."""

    task: SymTask
    instances: list[TaskInstance]

    @property
    def pairs(self) -> list[tuple[SymTask, TaskInstance]]:
        """The instances, each with the symbolic task for its sizes."""
        return [(self.task.of(instance), instance) for instance in self.instances]


def make_task(
    tensors: Sequence[te.Tensor] | auto_scheduler.SearchTask,
    target: Target | str = "llvm",
    desc: str = "",
    weight: int = 1,
    idx: int = 0,
    search_space: str = "felix",
) -> SymTaskAndInstances:
    """A task of its own from te tensors (inputs first) or from a search task.

    On processors, layout-free inputs count as constants: the tuned program reads them in the layout
    it wants. The
    sketches are from the target's space of the name given.
    """
    if isinstance(tensors, auto_scheduler.SearchTask):
        search_task = tensors
    else:
        target = target if isinstance(target, Target) else Target(target)
        search_task = auto_scheduler.SearchTask(
            compute_dag=list(tensors),
            target=target,
            desc=desc,
            layout_rewrite_option=auto_scheduler.LayoutRewriteOption.get_target_default(
                target, True
            ),
        )
    task = SymTask(search_task, search_space=search_space)
    instance = TaskInstance(idx, weight, task.sizes, search_task, desc or str(search_task.desc))
    return SymTaskAndInstances(task, [instance])


def batch_create_tasks(
    tasks: Sequence[AnsorTaskWeight],
    hash_match: bool = True,
    print_tasks: bool = True,
    progress: bool = True,
) -> list[SymTaskAndInstances]:
    """Symbolic tasks of search tasks, one for all that have equal structure.

    Parameters
    ----------
    tasks : with their weights; their order numbers the instances.
    hash_match : whether a task is left alone whose structure and sizes do not give its workload
        again; otherwise they are not checked.
    print_tasks : print the groups, with the operators of the first task of each and all sizes.
    progress : show a progress bar, where standard error is a terminal.

    Raises
    ------
    TypeError : a task has no weight.
    """
    for pair in tasks:
        if isinstance(pair, auto_scheduler.SearchTask):
            raise TypeError(
                "batch_create_tasks: a task comes with how often it is executed, as "
                "felix.AnsorTaskWeight(task, 1); got a SearchTask alone"
            )
    made = []
    bar = tqdm(tasks, "tasks", leave=False, disable=None if progress else True)
    for idx, (search_task, weight) in enumerate(bar):
        task = SymTask(search_task, hash_match=hash_match)
        instance = TaskInstance(idx, weight, task.sizes, search_task, str(search_task.desc))
        made.append(SymTaskAndInstances(task, [instance]))
    groups = _by_structure(made)
    if print_tasks:
        for group in groups:
            table, _ = coalesce_dicts([instance.sizes for instance in group.instances])
            print(f"{group.instances[0].desc}: {len(group.instances)} tasks")
            print(f"  {' -> '.join(map(str, group.task.operators))}")
            for name, values in table.items():
                print(f"  {name} = {', '.join(map(str, values))}")
    return groups


def _by_structure(groups: Sequence[SymTaskAndInstances]) -> list[SymTaskAndInstances]:
    """The instances in groups of equal structure, in order of the first of each."""
    found: dict[SymbolicDAG, SymTaskAndInstances] = {}
    for group in groups:
        for task, instance in group.pairs:
            if task.sym_dag in found:
                found[task.sym_dag].instances.append(instance)
            else:
                found[task.sym_dag] = SymTaskAndInstances(task, [instance])
    return list(found.values())


def extract_tasks(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    target: Target | str = "llvm",
    save_to: str | Path | None = None,
    winograd: bool | None = False,
) -> list[SymTaskAndInstances]:
    """The distinct computations of a network that are worth tuning, most work first.

    Those of equal structure are instances of one symbolic task, as a network's 3x3 convolutions of
    several sizes.

    Parameters
    ----------
    model : imported as it behaves in evaluation mode; left as it was.
    example_inputs : tensors of the shapes and dtypes to compile for.
    target : what to tune for.
    save_to : JSON file for the tasks, readable by `load_tasks` without the model.
    winograd : take 3x3 convolutions apart where that is less work, so that the product of the
        transformed data is the task. The file at `save_to` says so. Matrix products are taken as
        they are, too, if it is False; else those are left out that `compile` computes by Strassen's
        scheme.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message; or the network has
        nothing to tune.
    TypeError : the target is a path or None, as Felix has its file for the tasks there.
    """
    if target is None or isinstance(target, Path):
        got = "None" if target is None else f"the path {target}"
        raise TypeError(
            f"extract_tasks: target is text or a Target, got {got}; the file to write is given by "
            "name, save_to="
        )
    target = target if isinstance(target, Target) else Target(target)
    tasks = extract_tasks_(
        model, example_inputs, target, winograd, print_tasks=False, progress=False
    )
    if save_to is not None:
        save_tasks(tasks, save_to, GraphOptions.for_target(target, winograd))
    return tasks


def extract_tasks_(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    target: Target | str = "llvm",
    winograd: bool | None = False,
    hash_match: bool = True,
    print_tasks: bool = True,
    progress: bool = True,
) -> list[SymTaskAndInstances]:
    """What `extract_tasks` does, with the options of `batch_create_tasks` and no file."""
    found = extract_ansor_tasks(model, example_inputs, target, winograd)
    return batch_create_tasks(found, hash_match, print_tasks, progress)


def tasks_of_network(network: Network, target: Target) -> list[SymTaskAndInstances]:
    """The tasks of a network that is imported already, each on its own; there may be none."""
    found = ansor_tasks_of_network(network, target)
    return [make_task(task, weight=weight, idx=idx) for idx, (task, weight) in enumerate(found)]


def merge_tasks(groups: Sequence[Sequence[SymTaskAndInstances]]) -> list[SymTaskAndInstances]:
    """The tasks of several networks as one list, equal ones once with their weights added."""
    merged: dict[str, SymTaskAndInstances] = {}
    for tasks in groups:
        for group in tasks:
            for task, instance in group.pairs:
                _add(merged, SymTaskAndInstances(task, [instance]))
    return _numbered(merged.values())


def add_rivals(
    tasks: Sequence[SymTaskAndInstances], rivals: Sequence[SymTaskAndInstances]
) -> list[SymTaskAndInstances]:
    """The tasks of networks, and behind them those that only other forms of the networks have."""
    found = list(tasks)
    known = {group.instances[0].ansor_task.workload_key for group in tasks}
    for group in rivals:
        (instance,) = group.instances
        if instance.ansor_task.workload_key not in known:
            rival = replace(instance, idx=len(found), is_rival=True)
            found.append(SymTaskAndInstances(group.task, [rival]))
    return found


def choose_tasks(
    tasks: Sequence[SymTaskAndInstances],
    operators: Sequence[str] = (),
    per_operator: int | None = None,
    seed: int = 0,
) -> list[TaskInstance]:
    """Some concrete tasks, as those that programs are measured of to train a model.

    Parameters
    ----------
    operators : names of kinds in RELAY_BUILDERS; a task is taken that has one of them. Without
        names every task is.
    per_operator : at most this many of each kind, drawn at random; without names, in all.
    seed : of the draw.

    Returns
    -------
    In order of extraction, each once.

    Raises
    ------
    ValueError : there is no such kind, or `per_operator` is below 1.
    """
    known = [builder.name for builder in RELAY_BUILDERS]
    for name in operators:
        if name not in known:
            raise ValueError(f"choose_tasks: no operator {name!r}; known are {', '.join(known)}")
    if per_operator is not None and per_operator < 1:
        raise ValueError(f"choose_tasks: per_operator must be >= 1, got {per_operator}")
    instances = [(g.task, instance) for g in tasks for instance in g.instances]
    kinds = [
        [i for task, i in instances if any(found.name == name for found in task.operators)]
        for name in operators
    ]
    rng = np.random.default_rng(seed)
    chosen: dict[int, TaskInstance] = {}
    for members in kinds if operators else [[instance for _, instance in instances]]:
        for position in rng.permutation(len(members))[:per_operator]:
            chosen[members[position].idx] = members[position]
    return [chosen[idx] for idx in sorted(chosen)]


def _add(merged: dict[str, SymTaskAndInstances], group: SymTaskAndInstances) -> None:
    (instance,) = group.instances
    key = str(instance.ansor_task.workload_key)
    if key in merged:
        (known,) = merged[key].instances
        group = SymTaskAndInstances(
            merged[key].task, [replace(known, weight=known.weight + instance.weight)]
        )
    merged[key] = group


def _numbered(groups: Any) -> list[SymTaskAndInstances]:
    ordered = sorted(groups, key=lambda g: -g.instances[0].weight * g.instances[0].flop)
    return [
        SymTaskAndInstances(group.task, [replace(group.instances[0], idx=idx)])
        for idx, group in enumerate(ordered)
    ]


def save_tasks(
    tasks: Sequence[SymTaskAndInstances], path: str | Path, graph: GraphOptions | None = None
) -> None:
    """Write tasks with their computations as JSON, and how the network's graph was made."""
    entries = []
    for group in tasks:
        for instance in group.instances:
            task = instance.ansor_task
            entries.append(
                {
                    "idx": instance.idx,
                    "weight": instance.weight,
                    "desc": instance.desc,
                    "flop": instance.flop,
                    "is_rival": instance.is_rival,
                    "workload_key": str(task.workload_key),
                    "target": str(task.target),
                    "hardware": task.hardware_params.as_list(),
                    "layout_rewrite_option": int(task.layout_rewrite_option),
                    "tensors": json.loads(ir.save_json(list(task.compute_dag.tensors))),
                }
            )
    document = {"format": _FORMAT, "tasks": entries}
    if graph is not None:
        document["graph"] = asdict(graph)
    write_atomically(path, json.dumps(document) + "\n")


def load_tasks(path: str | Path) -> list[SymTaskAndInstances]:
    """Read what `save_tasks` wrote; tasks of equal structure are one group.

    Raises
    ------
    ValueError : the file is damaged or has another format version; the message names it.
    """
    document = read_json(path)
    found = document.get("format") if isinstance(document, dict) else None
    if found != _FORMAT:
        raise ValueError(f"{path}: task file format {found}, expected {_FORMAT}")
    entries = document.get("tasks")
    if not isinstance(entries, list):
        raise ValueError(f"{path}: there is no list of tasks")
    tasks = []
    for number, entry in enumerate(entries):
        try:
            search_task = auto_scheduler.SearchTask(
                compute_dag=list(ir.load_json(json.dumps(entry["tensors"]))),
                target=entry["target"],
                desc=entry["desc"],
                layout_rewrite_option=entry["layout_rewrite_option"],
                # Files of earlier releases have the limits of the target.
                hardware_params=auto_scheduler.HardwareParams(*entry["hardware"])
                if "hardware" in entry
                else None,
            )
            made = make_task(
                search_task, desc=entry["desc"], weight=entry["weight"], idx=entry["idx"]
            )
            (instance,) = made.instances
            rival = replace(instance, is_rival=bool(entry.get("is_rival", False)))
            tasks.append(SymTaskAndInstances(made.task, [rival]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"{path}: task {number} cannot be read: {what}") from error
    return _by_structure(tasks)
