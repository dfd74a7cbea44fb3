"""Networks as compiled callables: torch tensors in, torch tensors out."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tvm
from tvm import relax
from tvm.auto_scheduler import ApplyHistoryBest
from tvm.auto_scheduler.relax_integration import group_task
from tvm.relax.frontend.torch import CallSignature
from tvm.target import Target

from .network import GraphOptions, Network, read_graph_options

__all__ = ["CompiledNetwork", "compile", "compile_network", "recorded_schedules"]


def compile(
    model: torch.nn.Module | Callable[..., Any],
    example_inputs: torch.Tensor | Sequence[Any],
    target: Target | str = "llvm",
    records: str | os.PathLike[str] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    winograd: bool | None = None,
) -> CompiledNetwork:
    """Compile a network, or a function of tensors, as it behaves in eval mode.

    Parameters
    ----------
    model : left as it was.
    example_inputs, example_kwargs : inputs of the shapes and types to compile for; a single tensor
        stands for a sequence of one.
    target : what to compile for; it must be able to run in this process.
    records : folder of a tuning run, or file of measured schedules. Each kernel gets the fastest
        one recorded for it on this target; kernels without a record, or whose records are all
        slower than the library's schedule was, get the library's.
    winograd : compute 3x3 convolutions by Winograd's minimal filtering where that is less work:
        two to four times fewer products, results that differ by rounding, about 1e-5 of the
        largest. For processors. None for what the tasks beside the records were tuned with; where
        there are none, for the way that more of the records belong to; and without records for no.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message.
    FileNotFoundError : there are no such records.
    """
    target = target if isinstance(target, Target) else Target(target)
    network = Network(model, example_inputs, example_kwargs, GraphOptions(bool(winograd)))
    source = None
    if records is not None:
        source = recorded_schedules(records)
        if winograd is None:
            network = _tuned_form(network, _record_file(records), source, target)
    return compile_network(network, target, source)


def compile_network(
    network: Network, target: Target, source: ApplyHistoryBest | None = None
) -> CompiledNetwork:
    """Compile a network that is imported already, with recorded schedules if there are any."""
    executable = relax.build(network.mod, target, source)
    return CompiledNetwork(executable, network, target)


def recorded_schedules(records: str | os.PathLike[str]) -> ApplyHistoryBest:
    """The best schedules of a record file, or of the folder of a run.

    Raises
    ------
    FileNotFoundError : there is no such file.
    """
    return ApplyHistoryBest(_record_file(records))


def _record_file(records: str | os.PathLike[str]) -> Path:
    path = Path(records)
    if path.is_dir():
        path = path / "records.json"
    if not path.exists():
        raise FileNotFoundError(
            f"felix.compile: record file {path} does not exist; tune first, or leave out records"
        )
    return path


def _tuned_form(
    network: Network, records: Path, source: ApplyHistoryBest, target: Target
) -> Network:
    """The network with the graph that was tuned."""
    tasks = records.with_name("tasks.json")
    options = read_graph_options(tasks) if tasks.exists() else None
    if options is not None:
        return network.with_options(options)
    coverage = functools.partial(_coverage, source=source, target=target)
    if coverage(network) == 1:
        return network
    return max(network, network.with_options(GraphOptions(winograd=True)), key=coverage)


def _coverage(network: Network, source: ApplyHistoryBest, target: Target) -> float:
    """Share of the kernels to tune that have a record."""
    keys = [str(group_task(g, target).workload_key) for g in relax.extract_tasks(network.mod)]
    return sum(source.query(target, key) is not None for key in keys) / len(keys) if keys else 1.0


class CompiledNetwork:
    """A compiled network; calling it is calling the module it was made from.

    Attributes
    ----------
    executable : what ``relax.build`` made; ``executable.export_library`` writes it to a file.
    machine : the virtual machine that runs it.
    """

    def __init__(
        self,
        executable: relax.Executable,
        network: Network,
        target: Target,
    ) -> None:
        self.executable = executable
        self.machine = relax.VirtualMachine(executable, tvm.cpu())
        self._main = self.machine["main"]
        self._signature = CallSignature(network.program)
        self._network = network
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Results of the network, in the structure that the torch module returns.

        Raises
        ------
        ValueError : an input has another shape or type than the example; the message names it,
            with what was expected and what came.
        TypeError : the inputs are not structured like the example.
        """
        tensors = self._signature.tensors(args, kwargs)
        result = self._main(*(_as_ndarray(tensor) for tensor in tensors))
        arrays = [result] if isinstance(result, tvm.nd.NDArray) else list(result)
        return self._signature.results([torch.from_dlpack(array) for array in arrays])

    def task_seconds(self, repeats: int = 5) -> dict[str, float]:
        """Seconds of one call of each kernel inside the network, by workload key.

        Parameters
        ----------
        repeats : runs of the network, on its example inputs; the median over all calls of a kernel
            is taken.
        """
        inputs = [_as_ndarray(tensor) for tensor in self._signature.example_tensors]
        samples: dict[str, list[float]] = {}
        for _ in range(repeats):
            for call in self.machine.profile("main", *inputs).calls:
                seconds = call["Duration (us)"].microseconds * 1e-6
                samples.setdefault(call["Name"], []).append(seconds)
        return {
            str(group_task(group, self._target).workload_key): float(np.median(samples[group.name]))
            for group in relax.extract_tasks(self._network.mod)
        }


def _as_ndarray(tensor: torch.Tensor) -> tvm.nd.NDArray:
    return tvm.nd.from_dlpack(tensor.detach().contiguous())
