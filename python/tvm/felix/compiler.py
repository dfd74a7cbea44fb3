"""Networks as compiled callables: torch tensors in, torch tensors out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

import tvm
from tvm import auto_scheduler, relax
from tvm.auto_scheduler.relax_integration import group_task, recorded_schedule
from tvm.ir import IRModule
from tvm.relax.frontend.torch import export_for_inference, from_exported_program
from tvm.target import Target

__all__ = ["CompiledNetwork", "compile", "import_network"]


def import_network(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    example_kwargs: Mapping[str, Any] | None = None,
    winograd: bool = False,
) -> tuple[IRModule, torch.export.ExportedProgram]:
    """A network as optimised, fused graph functions, and the program it was imported from.

    Parameters
    ----------
    winograd : whether 3x3 convolutions are taken apart into Winograd's transforms and products.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message.
    """
    program = export_for_inference(model, example_inputs, example_kwargs)
    mod = from_exported_program(program)
    return relax.transform.OptimizeForInference(winograd)(mod), program


def compile(
    model: torch.nn.Module,
    example_inputs: Sequence[Any],
    target: Target | str = "llvm",
    records: str | os.PathLike[str] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    winograd: bool | None = None,
) -> CompiledNetwork:
    """Compile a network as it behaves in eval mode.

    Parameters
    ----------
    model : left as it was.
    example_inputs, example_kwargs : inputs of the shapes and types to compile for.
    target : what to compile for; it must be able to run in this process.
    records : file of measured schedules. Each kernel gets the fastest one recorded for it on this
        target; kernels without a record get a default schedule.
    winograd : compute 3x3 convolutions by Winograd's minimal filtering where that is less work:
        two to four times fewer products, results that differ by rounding, about 1e-5 of the
        largest. For processors. None for the way that more of the records belong to, and without
        records for no.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message.
    FileNotFoundError : there is no such record file.
    """
    target = target if isinstance(target, Target) else Target(target)
    source = _RecordedSchedules(records, target) if records is not None else None
    mod, program = import_network(model, example_inputs, example_kwargs, bool(winograd))
    if winograd is None and source is not None and source.coverage(mod) < 1:
        other, _ = import_network(model, example_inputs, example_kwargs, winograd=True)
        mod = max(mod, other, key=source.coverage)
    executable = relax.build(mod, target, source)
    return CompiledNetwork(executable, program, mod, target)


class _RecordedSchedules:
    """The best recorded schedule of each kernel, for ``relax.build``."""

    def __init__(self, records: str | os.PathLike[str], target: Target) -> None:
        if not os.path.exists(records):
            raise FileNotFoundError(
                f"felix.compile: record file {os.fspath(records)} does not exist; tune first, or "
                "leave out records"
            )
        self._records = os.fspath(records)
        self._target = target
        self._schedules: dict[str, relax.GroupSchedule | None] = {}

    def coverage(self, mod: IRModule) -> float:
        """Share of the kernels to tune that have a record."""
        groups = relax.extract_tasks(mod)
        known = sum(self._best(group) is not None for group in groups)
        return known / len(groups) if groups else 1.0

    def _best(self, group: relax.FusedGroup) -> relax.GroupSchedule | None:
        if group.key not in self._schedules:
            task = group_task(group, self._target)
            best, _ = auto_scheduler.load_best_record(
                self._records, str(task.workload_key), self._target
            )
            # The record's state belongs to the tensors of its own task, which equal this one's.
            self._schedules[group.key] = (
                None
                if best is None
                else recorded_schedule(
                    best.task.compute_dag, best.state, int(task.layout_rewrite_option)
                )
            )
        return self._schedules[group.key]

    def __call__(self, group: relax.FusedGroup) -> relax.GroupSchedule | None:
        return self._best(group) if group.is_tunable else None


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
        program: torch.export.ExportedProgram,
        mod: IRModule,
        target: Target,
    ) -> None:
        self.executable = executable
        self.machine = relax.VirtualMachine(executable, tvm.cpu())
        self._main = self.machine["main"]
        self._in_spec = program.call_spec.in_spec
        self._out_spec = program.call_spec.out_spec
        self._example = pytree.tree_leaves(program.example_inputs)
        self._mod = mod
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Results of the network, in the structure that the torch module returns.

        Raises
        ------
        ValueError : an input has another shape or type than the example; the message names it,
            with what was expected and what came.
        TypeError : the inputs are not structured like the example.
        """
        result = self._main(*(_as_ndarray(tensor) for tensor in self._tensors(args, kwargs)))
        arrays = [result] if isinstance(result, tvm.nd.NDArray) else list(result)
        tensors = [torch.from_dlpack(array) for array in arrays]
        return pytree.tree_unflatten(tensors, self._out_spec)

    def _tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            raise TypeError(
                "compiled network: the inputs must be structured like the example; expected "
                f"{self._in_spec}, got {spec}"
            )
        tensors = []
        for given, example in zip(leaves, self._example):
            if isinstance(example, torch.Tensor):
                if not isinstance(given, torch.Tensor):
                    raise TypeError(
                        f"compiled network: expected a tensor, got {type(given).__name__}"
                    )
                tensors.append(given)
            elif given != example:
                raise ValueError(
                    f"compiled network: {example!r} is part of the program, got {given!r}; "
                    "compile again for another value"
                )
        return tensors

    def task_seconds(self, repeats: int = 5) -> dict[str, float]:
        """Seconds of one call of each kernel inside the network, by workload key.

        Parameters
        ----------
        repeats : runs of the network, on its example inputs; the median over all calls of a kernel
            is taken.
        """
        inputs = [_as_ndarray(t) for t in self._example if isinstance(t, torch.Tensor)]
        samples: dict[str, list[float]] = {}
        for _ in range(repeats):
            for call in self.machine.profile("main", *inputs).calls:
                seconds = call["Duration (us)"].microseconds * 1e-6
                samples.setdefault(call["Name"], []).append(seconds)
        return {
            str(group_task(group, self._target).workload_key): float(np.median(samples[group.name]))
            for group in relax.extract_tasks(self._mod)
        }


def _as_ndarray(tensor: torch.Tensor) -> tvm.nd.NDArray:
    return tvm.nd.from_dlpack(tensor.detach().contiguous())
