"""Compiled networks and the machine that runs them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from tvm._ffi import get_global_func

from .device import Device, cpu
from .module import Module, load_module
from .ndarray import NDArray, array
from .packed_func import PackedFunc
from .profiling import MetricCollector, Report

__all__ = [
    "Executable",
    "VMInstrumentReturnKind",
    "VirtualMachine",
    "check_memory_cfg",
    "load_executable",
    "make_executable",
]


class VMInstrumentReturnKind(IntEnum):
    """What an instrument says before a call."""

    NO_OP = 0
    """Carry it out."""
    SKIP_RUN = 1
    """Leave it out."""


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

    def __getitem__(self, name: str) -> PackedFunc:
        """A function of the module behind it, such as "vm_load_executable"."""
        return self.mod[name]

    @property
    def function_names(self) -> list[str]:
        """Functions that a virtual machine can call."""
        return [str(name) for name in self.mod["function_names"]()]

    def machine(self, device: Device) -> Module:
        """The functions, as they run on a device."""
        return self.mod["vm_load_executable"](device)

    def profiled(self, machine: Module, name: str, args: Sequence[Any]) -> Module:
        """The machine whose kernels a call of a function runs."""
        return machine

    def link(self, module: Module) -> None:
        """Let kernels, and programs, call the functions of another module, which `export_library`
        writes into the same library."""
        for kernels in self.mod.imported_modules:
            kernels.import_module(module)
        self.mod.import_module(module)

    def jit(self) -> Executable:
        """The executable as it runs in this process: itself, unless object code has to be linked.

        Raises
        ------
        RuntimeError : there is no linker, or it failed (with its output).
        """
        if all(module.is_runnable for module in self.mod._import_tree()):
            return self
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "executable.so")
            self.export_library(path)
            # A loaded library stays in memory when its file is gone.
            return load_executable(path)

    def as_text(self) -> str:
        """The steps of functions that are programs, a line each."""
        return str(_runtime("ProgramText")(self.mod))

    def as_python(self) -> str:
        """Python that builds the functions that are programs with an `ExecBuilder`.

        Literals are called by their numbers, so the builder must have them.
        """
        return str(_runtime("ProgramPython")(self.mod))

    def stats(self) -> str:
        """What the executable consists of, a line each."""
        return str(_runtime("Statistics")(self.mod))

    def export_library(
        self,
        path: str | os.PathLike[str],
        fcompile: Callable[..., None] | None = None,
        *,
        weights: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Write one shared library with everything in it; ``load_executable`` reads it back.

        A host in C or C++ needs only that file and libtvm_runtime.

        Parameters
        ----------
        path : ends in ".so"; in ".tar" for an archive of what would be linked.
        weights : file for constants, instead of the library. It is mapped into memory when the
            executable is loaded: pages are read as they are needed, and processes share them. The
            program that loads the library calls the executable's ``load_weights`` with its path;
            ``load_executable`` does.
        fcompile, options : how it is linked, see `Module.export_library`; by default with the
            system's ``cc``.
        """
        mod = self.mod if weights is None else _runtime("MoveWeights")(self.mod, os.fspath(weights))
        mod.export_library(os.fspath(path), fcompile, **options)


def load_executable(
    path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None
) -> Executable:
    """Read what ``Executable.export_library`` wrote.

    Parameters
    ----------
    weights : the file of the weights, if they are not in the library; by default the one of the
        name that was given then, beside the library.

    Raises
    ------
    ValueError : the library holds no network, or the weights are those of another one.
    RuntimeError : there is no such file.
    """
    module = load_module(os.fspath(path))
    if module.type_key != "relax.Executable":
        raise ValueError(
            f"load_executable: {os.fspath(path)} holds no network but a module of kind "
            f'"{module.type_key}"; export one with Executable.export_library'
        )
    name = str(module["weights_file"]())
    if name:
        beside = os.path.join(os.path.dirname(os.fspath(path)), name)
        module["load_weights"](beside if weights is None else os.fspath(weights))
    return Executable(module)


Encoded = Sequence[tuple[str, list[str], list[int]]]
"""Name, input names and encoding of functions."""


def make_executable(
    library: Module | None,
    kernels: Sequence[str],
    constants: Sequence[NDArray],
    functions: Encoded,
    tables: tuple[Sequence[str], Sequence[Any]] = ((), ()),
    programs: Encoded = (),
) -> Executable:
    """An executable from compiled kernels and encoded functions, as ``relax.build`` makes them.

    Parameters
    ----------
    library : has the kernels as functions; None if nothing is called that was compiled.
    functions : over tensors of fixed shapes; the encoding is described in
        tvm/runtime/relax_vm/executable.h.
    tables : names of what programs call, and their literals.
    programs : over values of any kind, see tvm/runtime/relax_vm/program.h.
    """
    mod = _runtime("Executable")(library, list(kernels), list(constants))
    for name, input_names, words in functions:
        _runtime("AddFunction")(mod, name, input_names, words)
    _runtime("SetProgramTables")(mod, list(tables[0]), list(tables[1]))
    for name, input_names, words in programs:
        _runtime("AddProgram")(mod, name, input_names, words)
    return Executable(mod)


def check_memory_cfg(memory_cfg: str | Mapping[Device, str] | None) -> None:
    """See that a machine's `memory_cfg` names kinds of allocators.

    Raises
    ------
    ValueError : one is neither "naive" nor "pooled".
    """
    wanted = memory_cfg.values() if isinstance(memory_cfg, Mapping) else [memory_cfg]
    for kind in wanted:
        if kind not in (None, "naive", "pooled"):
            raise ValueError(
                f'VirtualMachine: memory_cfg is "naive" or "pooled", or one of them for each '
                f"device; got {kind!r}"
            )


class VirtualMachine:
    """Runs the functions of an executable.

    Memory of functions over tensors of fixed shapes is allocated once, here, and calls of one of
    them from several threads are carried out one after the other. Other functions allocate as they
    run.

    Parameters
    ----------
    rt_mod : from ``relax.build`` or ``load_executable``, or a runtime module that holds an
        executable, also one of another machine (`tvm.rpc`).
    device : where the inputs and outputs are; the first of several.
    memory_cfg : "naive" or "pooled", for all devices or by device, which are one here: memory is
        planned when a program is compiled.
    profile : taken for programs written for TVM; every machine can profile.

    Attributes
    ----------
    module : the functions as a runtime module, for ``time_evaluator`` for instance.
    """

    def __init__(
        self,
        rt_mod: Executable | Module,
        device: Device | Sequence[Device] | None = None,
        memory_cfg: str | Mapping[Device, str] | None = None,
        profile: bool = False,
    ) -> None:
        check_memory_cfg(memory_cfg)
        self._executable = rt_mod.jit() if isinstance(rt_mod, Executable) else Executable(rt_mod)
        first: Any = device[0] if isinstance(device, (list, tuple)) else device
        self.module: Module = self._executable.machine(cpu() if first is None else first)
        self._saved: set[str] = set()

    def __getitem__(self, name: str) -> PackedFunc:
        """A function, called with NDArrays, and with what else its parameters are.

        The call returns an NDArray, or several for a function that returns a tuple. It raises
        ValueError when an input has another shape or type than the function was compiled for, and
        TypeError when the number of inputs differs.

        Raises
        ------
        KeyError : there is no such function.
        """
        if name not in self._saved:
            self._check(name)
        return self.module[name]

    def invoke_closure(self, closure: PackedFunc, *args: Any) -> Any:
        """Call a function that a function returned."""
        return closure(*map(_argument, args))

    def save_function(
        self,
        func_name: str,
        saved_name: str,
        *args: Any,
        include_return: bool = True,
        **kwargs: Any,
    ) -> None:
        """Keep a call with its arguments as a function without any, for measuring.

        Parameters
        ----------
        saved_name : what ``machine[saved_name]`` calls it.
        include_return : whether it returns the result.

        Raises
        ------
        ValueError : there is no such function, or an argument it does not have.
        """
        values = self._ordered(func_name, args, kwargs)
        self.module["save_function"](func_name, saved_name, include_return, *values)
        self._saved.add(saved_name)

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keep arguments for `invoke_stateful`.

        Raises
        ------
        ValueError : there is no such function, or an argument it does not have.
        """
        self.module["set_input"](func_name, *self._ordered(func_name, args, kwargs))

    def invoke_stateful(self, func_name: str) -> None:
        """Call a function with the arguments kept; `get_outputs` gives the result.

        Raises
        ------
        ValueError : no arguments are kept.
        """
        self.module["invoke_stateful"](func_name)

    def get_outputs(self, func_name: str) -> Any:
        """The result of the last `invoke_stateful`; tuples are tuples.

        Raises
        ------
        ValueError : the function was not run.
        """
        return self._output(func_name)

    def _output(self, name: str, *fields: int) -> Any:
        count = self.module["get_output_arity"](name, *fields)
        if count < 0:
            return self.module["get_output"](name, *fields)
        return tuple(self._output(name, *fields, i) for i in range(count))

    def set_instrument(self, instrument: Callable[..., Any] | PackedFunc) -> None:
        """Have a function called before and after every call that programs make of kernels and
        functions of the runtime.

        It takes the function, its name, whether it is before the call, the result (None before),
        and the arguments. `VMInstrumentReturnKind.SKIP_RUN`, the number 1, returned before a call,
        leaves the call out. Functions that are lists of kernels are not watched.
        """
        self.module["set_instrument"](instrument)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        **options: Any,
    ) -> Callable[..., Any]:
        """What measures a function; see `Module.time_evaluator`."""
        return self.module.time_evaluator(func_name, dev, number=number, repeat=repeat, **options)

    def profile(
        self, name: str, *args: NDArray, collectors: Sequence[MetricCollector] = ()
    ) -> Report:
        """Run a function once and measure each kernel call.

        Parameters
        ----------
        args : those of `set_input` if there are none.
        collectors : measure more than time, see `tvm.runtime.profiling`.

        Returns
        -------
        Report; printing it shows a table, the longest kernels first.
        """
        self._check(name)
        machine = self._executable.profiled(self.module, name, args)
        if machine.type_key == "relax.VirtualMachine":
            return _runtime("Profile")(machine, name, list(collectors), *args)
        # The machine is in another process.
        return Report.from_json(machine["profile"](name, *args))

    def _ordered(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """Arguments in the order of the parameters."""
        self._check(name)
        if not kwargs:
            return [_argument(arg) for arg in args]
        names = [str(n) for n in self._executable.mod["input_names"](name)]
        unknown = sorted(set(kwargs) - set(names[len(args) :]))
        missing = [n for n in names[len(args) :] if n not in kwargs]
        if unknown or missing:
            raise ValueError(
                f"VirtualMachine: '{name}' takes {', '.join(names)}; "
                + (f"missing: {', '.join(missing)}" if missing else f"not {', '.join(unknown)}")
            )
        return [_argument(arg) for arg in [*args, *(kwargs[n] for n in names[len(args) :])]]

    def _check(self, name: str) -> None:
        known = self._executable.function_names
        if name not in known:
            raise AttributeError(
                f"VirtualMachine: no function '{name}'; the executable has {', '.join(known)}"
            )


def _argument(value: Any) -> Any:
    """NumPy's arrays become NDArrays; so do those in tuples."""
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, (tuple, list)):
        return [_argument(item) for item in value]
    return value
