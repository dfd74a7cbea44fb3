"""Networks as compiled callables: torch tensors in, torch tensors out."""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tvm
from tvm import relax
from tvm.auto_scheduler.relax_integration import group_task
from tvm.relax.frontend.torch import CallSignature
from tvm.runtime.machine_pool import MachinePool
from tvm.runtime.profiling import Report
from tvm.target import Target

from .cache import KernelCache
from .coverage import Coverage, KernelUse, read_coverage
from .network import GraphOptions, Network
from .schedules import RecordedSchedules

__all__ = ["CompiledNetwork", "as_ndarray", "compile", "compile_network"]


def compile(
    model: torch.nn.Module | Callable[..., Any] | torch.export.ExportedProgram | Network,
    example_inputs: Sequence[Any] | torch.Tensor = (),
    target: Target | str = "llvm",
    records: str | os.PathLike[str] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    winograd: bool | None = None,
    cache: bool = True,
) -> CompiledNetwork:
    """Compile a network as it behaves in eval mode.

    Parameters
    ----------
    model : a module, left as it was; a function of tensors; or a program of ``torch.export``, or a
        network that is imported already, which bring their example inputs.
    example_inputs, example_kwargs : inputs of the shapes and types to compile for; a single tensor
        need not stand in a tuple.
    target : what to compile for; it must be able to run in this process.
    records : folder of a tuning run, or file of measured schedules. Each kernel gets the fastest
        one recorded for it on this target, unless the library's schedule was measured to be faster.
    winograd : compute 3x3 convolutions by Winograd's minimal filtering where that is less work:
        two to four times fewer products, results that differ by rounding, about 1e-5 of the
        largest. For processors. None for what the tasks beside the records were tuned with; where
        there are none, for the way that more of the known schedules belong to, and for this form
        where none is known. False leaves matrix products as they are, too (see Strassen's scheme in
        docs/networks.md).
    cache : whether kernels without a record in `records` get the schedules that this machine
        remembers from other runs (see `tvm.felix.cache`). What no one tuned gets the schedule that
        topi knows for it.

    Returns
    -------
    The network; printing it shows which of its kernels are tuned, and by what.

    Raises
    ------
    ValueError : operators that cannot be imported, all of them in one message; or the records are
        of another network or machine.
    FileNotFoundError : there are no such records.
    """
    target = target if isinstance(target, Target) else Target(target)
    source = RecordedSchedules(target, records, KernelCache.of_machine() if cache else None)
    if isinstance(model, Network):
        network = model
    else:
        options = GraphOptions.for_target(target, winograd)
        network = Network(model, example_inputs, example_kwargs, options)
    if winograd is None:
        network = source.tuned_form(network)
    source.check_use(network)
    return compile_network(network, target, source)


def compile_network(
    network: Network, target: Target, source: RecordedSchedules | None = None
) -> CompiledNetwork:
    """Compile a network that is imported already, with recorded schedules if there are any."""
    executable = relax.build(network.mod, target, source)
    return CompiledNetwork(executable, network, target, source)


class CompiledNetwork:
    """A compiled network; calling it is calling the module it was made from.

    Any number of threads may call it at once: they share the weights, and each call has buffers of
    its own. At most as many calls run at a time as the machine has cores, which bounds the memory.
    It never changes, so a copy is the network itself. Pickled, it holds machine code of this
    processor; unpickling what others wrote runs what they want.

    Attributes
    ----------
    executable : what ``relax.build`` made; ``executable.export_library`` writes it to a file.
    network : the imported network, which can be tuned or compiled again without importing it again.
    target : what it is compiled for.
    """

    def __init__(
        self,
        executable: relax.Executable,
        network: Network,
        target: Target,
        source: RecordedSchedules | None = None,
    ) -> None:
        self.executable = executable
        self.network = network
        self.target = target
        self._source = source
        self._device = tvm.device(str(target.kind.name))
        # Of processors nothing needs to be asked at each call.
        self._is_apart = self._device.device_type != _CPU
        self._main = MachinePool(executable, "main", self._device)
        self._signature = CallSignature(network.program)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Results of the network, in the structure that the torch module returns.

        Inputs may be on the processor or on the network's device; results are where the inputs are,
        and on the device where some are.

        Raises
        ------
        ValueError : an input has another shape or type than the example; the message names it,
            with what was expected and what came.
        TypeError : the inputs are not structured like the example.
        """
        tensors = self._signature.tensors(args, kwargs)
        inputs = [as_ndarray(tensor) for tensor in tensors]
        result = self._main(*self._there(inputs))
        arrays = [result] if isinstance(result, tvm.nd.NDArray) else list(result)
        if self._is_apart and all(array.device.device_type == _CPU for array in inputs):
            arrays = [
                array if array.device.device_type == _CPU else array.copyto(tvm.cpu())
                for array in arrays
            ]
        return self._signature.results([torch.from_dlpack(array.to_dlpack()) for array in arrays])

    def __repr__(self) -> str:
        return f"CompiledNetwork of {self.network.name} for {self.target}\n{self.coverage}"

    def __copy__(self) -> CompiledNetwork:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledNetwork:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        network = self.network
        program = io.BytesIO()
        torch.export.save(network.program, program)
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / _LIBRARY
            self.executable.export_library(library)
            parts = (library.read_bytes(), program.getvalue(), network.name, network.options)
        return _unpickled, (*parts, str(self.target), self.coverage)

    @cached_property
    def machine(self) -> relax.VirtualMachine:
        """A virtual machine beside those of calls."""
        return relax.VirtualMachine(self.executable, self._device)

    @cached_property
    def coverage(self) -> Coverage:
        """Which kernels are tuned, and where their schedules are from; printing it shows a list."""
        return read_coverage(self.network.mod, self.target, self._source)

    @property
    def kernels(self) -> list[KernelUse]:
        """The distinct kernels, in order of their first call."""
        return list(self.coverage.kernels)

    def profile(self, *args: Any, **kwargs: Any) -> Report:
        """Run once and measure each kernel call; printing the report shows the longest first.

        Without arguments the example inputs are used.
        """
        if args or kwargs:
            inputs = self._signature.tensors(args, kwargs)
        else:
            inputs = self._signature.example_tensors
        return self.machine.profile("main", *self._there([as_ndarray(tensor) for tensor in inputs]))

    def _there(self, arrays: Sequence[tvm.nd.NDArray]) -> list[tvm.nd.NDArray]:
        """Arrays on the network's device, copied only if they are elsewhere."""
        if not self._is_apart:
            return list(arrays)
        return [
            array if array.device == self._device else array.copyto(self._device)
            for array in arrays
        ]

    def run_seconds(self) -> float:
        """Seconds of one run on the example inputs, which follows one that is not timed.

        The way in from torch is none of it.
        """
        inputs = self._there([as_ndarray(tensor) for tensor in self._signature.example_tensors])
        self._main(*inputs)
        start = time.perf_counter()
        self._main(*inputs)
        self._device.sync()
        return time.perf_counter() - start

    def task_seconds(self, repeats: int = 5) -> dict[str, float]:
        """Seconds of one call of each kernel that can be tuned inside the network, by workload key.

        Parameters
        ----------
        repeats : as for `kernel_seconds`.
        """
        seconds = self.kernel_seconds(repeats)
        return {workload: seconds[key] for workload, key in self._workloads.items()}

    @cached_property
    def _workloads(self) -> dict[str, str]:
        """`relax.FusedGroup.key` of what can be tuned, by workload key."""
        return {
            str(group_task(group, self.target).workload_key): group.key
            for group in relax.extract_tasks(self.network.mod)
        }

    @cached_property
    def _kernel_names(self) -> dict[str, str]:
        """Name in the executable by `relax.FusedGroup.key`."""
        return {group.key: group.name for group in relax.fused_groups(self.network.mod)}

    def kernel_seconds(self, repeats: int = 5) -> dict[str, float]:
        """Seconds of one call of each kernel inside the network, by `relax.FusedGroup.key`.

        Parameters
        ----------
        repeats : runs of the network, on its example inputs; the median over all calls of a kernel
            is taken.
        """
        samples: dict[str, list[float]] = {}
        for _ in range(repeats):
            for call in self.profile().calls:
                seconds = call["Duration (us)"].microseconds * 1e-6
                samples.setdefault(call["Name"], []).append(seconds)
        return {key: float(np.median(samples[name])) for key, name in self._kernel_names.items()}


_CPU = int(tvm.cpu().device_type)
# Name of a pickled network's code while it is in a file.
_LIBRARY = "network.so"


def _unpickled(
    library: bytes,
    program: bytes,
    name: str,
    options: GraphOptions,
    target: str,
    coverage: Coverage,
) -> CompiledNetwork:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / _LIBRARY
        file.write_bytes(library)
        executable = relax.load_executable(file)
    exported = torch.export.load(io.BytesIO(program))
    network = CompiledNetwork(
        executable, Network.of_program(exported, name, options), Target(target)
    )
    network.coverage = coverage
    return network


def as_ndarray(tensor: torch.Tensor) -> tvm.nd.NDArray:
    """A tensor's memory as an array, copied only where its strides are not those of its shape.

    Complex numbers are pairs of real ones in a last dimension.
    """
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    # Capsules pass the protocol's questions by, which take longer than a small kernel.
    if tensor.requires_grad:
        tensor = tensor.detach()
    return tvm.nd.from_dlpack(torch.utils.dlpack.to_dlpack(tensor.contiguous()))
