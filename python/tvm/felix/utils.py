"""Search tasks of networks with how often these execute them, and tables of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tvm import auto_scheduler, relax
from tvm._older_names import hints_for
from tvm.auto_scheduler.relax_integration import group_task
from tvm.target import Target

from .network import GraphOptions, Network

__all__ = ["AnsorTaskWeight", "ansor_tasks_of_network", "coalesce_dicts", "extract_ansor_tasks"]

if not TYPE_CHECKING:
    __getattr__ = hints_for(__name__)


class AnsorTaskWeight(NamedTuple):
    """A search task, and how often one run of the network executes it."""

    task: auto_scheduler.SearchTask
    weight: int


def extract_ansor_tasks(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    target: Target | str = "llvm",
    winograd: bool | None = False,
) -> list[AnsorTaskWeight]:
    """The distinct search tasks of a network; arguments and errors as of `felix.extract_tasks`."""
    target = target if isinstance(target, Target) else Target(target)
    network = Network(model, example_inputs, options=GraphOptions.for_target(target, winograd))
    tasks = ansor_tasks_of_network(network, target)
    if not tasks:
        raise ValueError(
            "extract_tasks: the network has nothing to tune: no operator of it computes anything, "
            "or the library writes their kernels whole"
        )
    return tasks


def ansor_tasks_of_network(network: Network, target: Target) -> list[AnsorTaskWeight]:
    """The tasks of a network that is imported already, which may be none; most work first."""
    merged: dict[str, AnsorTaskWeight] = {}
    for group in relax.extract_tasks(network.mod):
        task = group_task(group, target)
        key = str(task.workload_key)
        earlier = merged[key].weight if key in merged else 0
        merged[key] = AnsorTaskWeight(task, earlier + group.weight)
    return sorted(merged.values(), key=lambda pair: -pair.weight * max(_flop(pair.task), 1.0))


def _flop(task: auto_scheduler.SearchTask) -> float:
    return float(task.compute_dag.flop_ct)


def coalesce_dicts(
    dicts: Sequence[Mapping[str, int]],
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Sizes of several instances as one table.

    Returns
    -------
    The values of each name, in order of the instances, and the names with one value in all.

    Raises
    ------
    ValueError : the instances have other names.
    """
    names = list(dicts[0]) if dicts else []
    for each in dicts[1:]:
        if set(each) != set(names):
            raise ValueError(f"coalesce_dicts: the names are {names}, and {list(each)}")
    table = {name: tuple(each[name] for each in dicts) for name in names}
    return table, {name: values[0] for name, values in table.items() if len(set(values)) == 1}
