"""Running programs with control flow, as `tvm.relay.vm.compile` makes them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm._ffi import get_global_func

from .container import ADT, tuple_object
from .device import Device, cpu, device
from .module import BenchmarkResult, Module
from .ndarray import NDArray, array
from .packed_func import PackedFunc
from .relax_vm import check_memory_cfg

__all__ = ["Executable", "VirtualMachine"]


class Executable:
    """A program for :class:`VirtualMachine`.

    Parameters
    ----------
    mod : the runtime module that `relay.vm.compile` made, or one that `runtime.load_module` read
        from the library of it.

    Attributes
    ----------
    mod : the module, whose ``export_library`` writes the program to a shared library.
    """

    def __init__(self, mod: Module) -> None:
        self.mod = _program_of(mod)

    @property
    def module(self) -> Module:
        """The runtime module."""
        return self.mod

    @property
    def lib(self) -> Module:
        """The runtime module, which has the code of kernels too."""
        return self.mod

    @property
    def globals(self) -> list[str]:
        """Names of the functions."""
        return [str(name) for name in self.mod["get_globals"]()]

    @property
    def target(self) -> str:
        """What kernels are compiled for, as text that `tvm.target.Target` reads."""
        return str(self.mod["get_target"]())

    @property
    def bytecode(self) -> str:
        """The functions as text: a line such as ``main(x, y)``, then what it computes."""
        return str(self.mod["get_listing"]())

    @property
    def primitive_ops(self) -> list[str]:
        """Operators that the functions call, sorted; each becomes kernels for the shapes that
        come."""
        return [str(name) for name in self.mod["get_operators"]()]

    @property
    def constants(self) -> str:
        """The constants of the functions, one a line, with their shapes and types."""
        return str(self.mod["get_constants"]())

    @property
    def virtual_devices(self) -> str:
        """The device that kernels are compiled for, as a line of text."""
        kind = device(str(json.loads(self.target)["kind"]))
        return f"VirtualDevice[0]: device type {kind.device_type}"

    @property
    def stats(self) -> str:
        """How many constants, functions and operators there are, and which."""
        constants = self.constants.splitlines()
        return "\n".join(
            [
                "Relay VM executable statistics:",
                f"  Constants (#{len(constants)}): [{', '.join(constants)}]",
                f"  Globals (#{len(self.globals)}): {self.globals}",
                f"  Primitive ops (#{len(self.primitive_ops)}): {self.primitive_ops}",
            ]
        )

    def get_function_params(self, func_name: str) -> list[str]:
        """Names of a function's parameters; KeyError if there is no such function."""
        return [str(name) for name in self.mod["get_function_params"](func_name)]

    def save(self) -> tuple[bytearray, Module]:
        """The program as bytes, and the library of its kernels; see :meth:`load_exec`."""
        return bytearray(str(self.mod["save"]()).encode()), self.mod

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Module | None = None) -> Executable:
        """The program that `save` gave.

        Raises
        ------
        TypeError : the first argument is no bytes. ValueError : they hold no program, or nothing
            in this process knows such programs; import tvm.relay.
        """
        if not isinstance(bytecode, (bytes, bytearray)):
            raise TypeError(
                f"runtime.vm: load_exec takes the bytes of `save`, got {type(bytecode).__name__}"
            )
        return Executable(_loader()(bytecode.decode()))

    def move_late_bound_consts(self, path: str | os.PathLike[str], byte_limit: int) -> None:
        """Take constants of at least `byte_limit` bytes out of the program and write them to a
        file; a program read back needs them by :meth:`load_late_bound_consts`."""
        self.mod["move_late_bound_consts"](os.fspath(path), byte_limit)

    def get_late_bound_consts(self, byte_limit: int) -> dict[str, NDArray]:
        """The same, with the constants by name instead of a file."""
        return {str(k): v for k, v in self.mod["get_late_bound_consts"](byte_limit).items()}

    def load_late_bound_consts(self, path: str | os.PathLike[str]) -> None:
        """Put constants of a file back; ValueError if some are missing."""
        self.mod["load_late_bound_consts"](os.fspath(path))

    def load_late_bound_consts_from_map(self, map: Mapping[str, NDArray]) -> None:
        """Put constants back; ValueError if some are missing."""
        self.mod["load_late_bound_consts_from_map"](dict(map))


def _loader() -> PackedFunc:
    found = get_global_func("relay.vm.LoadExecutable", allow_missing=True)
    if found is None:
        raise ValueError("runtime.vm: programs of relay are read by tvm.relay; import it first")
    return found


def _program_of(mod: Module) -> Module:
    """The module of the program: itself, or what a library holds."""
    for candidate in [mod, *mod.imported_modules]:
        if candidate.implements_function("vm_load_executable"):
            return candidate
    raise ValueError("runtime.vm: the module holds no program of relay.vm.compile")


def _converted(value: Any, device: Device) -> Any:
    """An argument on the device; numbers are int32, float32 or bool, tuples ADTs."""
    if isinstance(value, NDArray):
        return value if value.device == device else value.copyto(device)
    if isinstance(value, ADT):
        return value
    if isinstance(value, (tuple, list)):
        return tuple_object([_converted(v, device) for v in value])
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = np.array(value, "int32" if isinstance(value, int) else "float32")
    data = getattr(value, "data", None)
    return array(data if isinstance(data, NDArray) else np.asarray(value), device)


class VirtualMachine:
    """Runs the functions of a program.

    Parameters
    ----------
    exe : the program, or a runtime module that holds one.
    device : where kernels run; the first of several.
    memory_cfg : "naive" or "pooled", for all devices or by device, which are one here: kernels have
        their memory planned when they are compiled.

    Attributes
    ----------
    module : a runtime module; its functions "invoke" and "set_input" are what this class calls.
    """

    def __init__(
        self,
        exe: Executable | Module,
        device: Device | Sequence[Device] | None = None,
        memory_cfg: str | Mapping[Device, str] | None = None,
    ) -> None:
        check_memory_cfg(memory_cfg)
        if not isinstance(exe, (Executable, Module)):
            raise TypeError(
                f"runtime.vm: a machine runs an Executable or a Module, got {type(exe).__name__}"
            )
        first: Any = device[0] if isinstance(device, (list, tuple)) else device
        self.device: Device = cpu() if first is None else first
        self._exec = exe if isinstance(exe, Executable) else Executable(exe)
        self.module = self._exec.mod["vm_load_executable"](self.device)
        self._outputs: dict[str, list[NDArray]] = {}

    def _ordered(self, func_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Arguments in the order of the parameters."""
        if not kwargs:
            return list(args)
        names = self._exec.get_function_params(func_name)
        unknown = [name for name in kwargs if name not in names]
        if unknown:
            raise ValueError(
                f"runtime.vm: function '{func_name}' has no parameter {unknown}; it has {names}"
            )
        rest = [name for name in names if name not in kwargs]
        given = {**dict(zip(rest, args)), **kwargs}
        if len(args) > len(rest) or len(given) != len(names):
            raise ValueError(
                f"runtime.vm: function '{func_name}' takes {len(names)} arguments "
                f"({', '.join(names)}), got {len(args) + len(kwargs)}"
            )
        return [given[name] for name in names]

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keep arguments for a call of `invoke` without any.

        Raises
        ------
        ValueError : a wrong number of arguments, or a name that no parameter has.
        """
        values = [_converted(v, self.device) for v in self._ordered(func_name, args, kwargs)]
        self.module["set_input"](func_name, *values)

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keep one argument: its number or name, then its value; or by keyword.

        Raises
        ------
        ValueError : not one argument is given, or there is no such parameter.
        """
        if kwargs:
            if args or len(kwargs) != 1:
                raise ValueError("runtime.vm: set_one_input sets one argument")
            args = next(iter(kwargs.items()))
        if len(args) != 2:
            raise ValueError("runtime.vm: set_one_input takes a number or a name, and a value")
        self.module["set_one_input"](func_name, args[0], _converted(args[1], self.device))

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """The result of a function: an NDArray, or an ADT of several values.

        Raises
        ------
        KeyError : there is no such function. ValueError : a wrong number of arguments.
        """
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        result = self.module["invoke"](func_name)
        if func_name in self._outputs:
            for value, out in zip(self.get_outputs(), self._outputs[func_name]):
                value.copyto(out)
        # Of a machine elsewhere, several results come one by one: sessions send arrays.
        return result if isinstance(result, (NDArray, ADT)) else tuple_object(self.get_outputs())

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The result of "main"."""
        return self.invoke("main", *args, **kwargs)

    def set_outputs(self, func_name: str, *args: NDArray) -> None:
        """Arrays that each run of a function writes its results to; none for no longer doing so.

        Raises
        ------
        KeyError : there is no such function.
        """
        self._exec.get_function_params(func_name)
        self._outputs[func_name] = list(args)

    def invoke_with_outputs(
        self, func_name: str, input_args: Mapping[str, Any], output_args: Sequence[NDArray]
    ) -> None:
        """Run a function and write its results to arrays."""
        self.invoke_stateful(func_name, **input_args)
        for result, out in zip(self.get_outputs(), output_args):
            result.copyto(out)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Run a function whose results :meth:`get_outputs` then gives."""
        self.invoke(func_name, *args, **kwargs)

    def get_outputs(self) -> list[Any]:
        """The results of the last run; ValueError if there was none."""
        return [self.module["get_output"](k) for k in range(self.module["get_num_outputs"]())]

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """Number of a parameter, -1 if there is none of that name."""
        names = self._exec.get_function_params(func_name)
        return names.index(input_name) if input_name in names else -1

    def benchmark(
        self,
        device: Device,
        *args: Any,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        end_to_end: bool = False,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Seconds that a function takes.

        Parameters
        ----------
        end_to_end : count the conversion of the arguments too.
        """
        ms = 0 if min_repeat_ms is None else min_repeat_ms
        if not end_to_end:
            self.set_input(func_name, *args, **kwargs)
            timer = self.module.time_evaluator(
                "invoke", device, repeat=repeat, number=number, min_repeat_ms=ms
            )
            return timer(func_name)
        values = [_converted(v, self.device) for v in self._ordered(func_name, args, kwargs)]
        timer = self.module.time_evaluator(
            "set_and_invoke", device, repeat=repeat, number=number, min_repeat_ms=ms
        )
        return timer(func_name, *values)
