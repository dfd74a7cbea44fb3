"""Compiled networks and the machine that runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tvm._ffi import get_global_func

from .device import Device, cpu
from .module import Module, load_module
from .ndarray import NDArray
from .packed_func import PackedFunc
from .profiling import MetricCollector, Report

__all__ = ["Executable", "VirtualMachine", "load_executable", "make_executable"]


def _runtime(name: str) -> PackedFunc:
    return get_global_func(f"runtime.relax_vm.{name}")


class Executable:
    """A compiled network: machine code, constants and the calls of each function.

    Attributes
    ----------
    mod : the runtime module behind it.
    """

    def __init__(self, mod: Module) -> None:
        self.mod = mod

    @property
    def function_names(self) -> list[str]:
        """Functions that a virtual machine can call."""
        return [str(name) for name in _runtime("FunctionNames")(self.mod)]

    def machine(self, device: Device) -> Module:
        """The functions, as they run on a device."""
        return _runtime("VirtualMachine")(self.mod, device)

    def profiled(self, machine: Module, name: str, args: Sequence[Any]) -> Module:
        """The machine whose kernels a call of a function runs."""
        return machine

    def export_library(
        self,
        path: str | os.PathLike[str],
        fcompile: Callable[..., None] | None = None,
        **options: Any,
    ) -> None:
        """Write one shared library with everything in it; ``load_executable`` reads it back.

        A host in C or C++ needs only that file and libtvm_runtime.

        Parameters
        ----------
        path : ends in ".so"; in ".tar" for an archive of what would be linked.
        fcompile, options : how it is linked, see `Module.export_library`; by default with the
            system's ``cc``.
        """
        self.mod.export_library(os.fspath(path), fcompile, **options)


def load_executable(path: str | os.PathLike[str]) -> Executable:
    """Read what ``Executable.export_library`` wrote.

    Raises
    ------
    ValueError : the library holds no network.
    """
    module = load_module(os.fspath(path))
    if module.type_key != "relax.Executable":
        raise ValueError(
            f"load_executable: {os.fspath(path)} holds no network but a module of kind "
            f'"{module.type_key}"; export one with Executable.export_library'
        )
    return Executable(module)


def make_executable(
    library: Module,
    kernels: Sequence[str],
    constants: Sequence[NDArray],
    programs: Sequence[tuple[str, list[str], list[int]]],
) -> Executable:
    """An executable from compiled kernels and encoded programs, as ``relax.build`` makes them.

    Parameters
    ----------
    library : has the kernels as functions.
    programs : name, input names and encoded program of each function; the encoding is described in
        tvm/runtime/relax_vm/executable.h.
    """
    mod = _runtime("Executable")(library, list(kernels), list(constants))
    for name, input_names, words in programs:
        _runtime("AddFunction")(mod, name, input_names, words)
    return Executable(mod)


class VirtualMachine:
    """Runs the functions of an executable; memory is allocated once, here.

    Calls of one function from several threads are carried out one after the other.

    Parameters
    ----------
    executable : from ``relax.build`` or ``load_executable``.
    device : where the inputs and outputs are.

    Attributes
    ----------
    module : the functions as a runtime module, for ``time_evaluator`` for instance.
    """

    def __init__(self, executable: Executable, device: Device | None = None) -> None:
        self._executable = executable
        self.module: Module = executable.machine(cpu() if device is None else device)

    def __getitem__(self, name: str) -> PackedFunc:
        """A function, called with NDArrays.

        The call returns an NDArray, or several for a function that returns a tuple. It raises
        ValueError when an input has another shape or type than the function was compiled for, and
        TypeError when the number of inputs differs.

        Raises
        ------
        KeyError : there is no such function.
        """
        self._check(name)
        return self.module[name]

    def profile(
        self, name: str, *args: NDArray, collectors: Sequence[MetricCollector] = ()
    ) -> Report:
        """Run a function once and measure each kernel call.

        Parameters
        ----------
        collectors : measure more than time, see `tvm.runtime.profiling`.

        Returns
        -------
        Report; printing it shows a table, the longest kernels first.
        """
        self._check(name)
        machine = self._executable.profiled(self.module, name, args)
        return _runtime("Profile")(machine, name, list(collectors), *args)

    def _check(self, name: str) -> None:
        known = self._executable.function_names
        if name not in known:
            raise KeyError(
                f"VirtualMachine: no function '{name}'; the executable has {', '.join(known)}"
            )
