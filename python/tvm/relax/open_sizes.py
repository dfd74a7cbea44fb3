"""Executables of programs whose sizes are open: compiled for the sizes that come."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tvm import error
from tvm.ir import IRModule
from tvm.runtime import Device, Module, NDArray
from tvm.runtime.function_module import module_from_functions
from tvm.runtime.relax_vm import Executable, VirtualMachine

from .analysis import called_global_vars, defined_symbolic_vars
from .expr import Function
from .struct_info import TensorStructInfo
from .transform.bind import bind_function, extents_of

__all__ = ["OpenExecutable", "has_open_sizes"]


def has_open_sizes(mod: IRModule) -> bool:
    """Whether graph functions have symbolic extents that the shapes of the tensors they are called
    with give, and do not call each other."""
    graphs = {
        str(gvar.name_hint): func
        for gvar, func in mod.functions.items()
        if isinstance(func, Function)
    }
    is_open = {name: bool(defined_symbolic_vars(func)) for name, func in graphs.items()}
    called = {str(gvar.name_hint) for func in graphs.values() for gvar in called_global_vars(func)}
    return (
        any(is_open.values())
        and not any(is_open.get(name, False) for name in called)
        and all(set(defined_symbolic_vars(func)) <= _given(func) for func in graphs.values())
    )


def _given(func: Function) -> set[Any]:
    """The symbolic extents that are an extent of a parameter."""
    return {
        extent
        for param in func.params
        if isinstance(param.struct_info, TensorStructInfo) and param.struct_info.shape is not None
        for extent in param.struct_info.shape.values
        if not hasattr(extent, "value")
    }


class OpenExecutable(Executable):
    """A network of open sizes. Each choice of sizes is compiled when it comes first.

    A library that is exported has kernels of open sizes instead, since nothing can be compiled
    where it runs.

    Parameters
    ----------
    mod : a module that is well formed.
    compile_sizes : from a module of fixed sizes to its executable.
    compile_open : makes an executable for all sizes.
    """

    def __init__(
        self,
        mod: IRModule,
        compile_sizes: Callable[[IRModule], Executable],
        compile_open: Callable[[], Executable],
    ) -> None:
        self._graph = mod
        self._compile = compile_sizes
        self._compile_open = compile_open
        self._linked: list[Module] = []
        self._compiled: dict[tuple[str, tuple[int, ...]], Executable] = {}
        super().__init__(
            module_from_functions("relax.OpenExecutable", {"vm_load_executable": self.machine})
        )

    @property
    def function_names(self) -> list[str]:
        """Functions that a virtual machine can call."""
        return [
            str(gvar.name_hint)
            for gvar, func in self._graph.functions.items()
            if isinstance(func, Function)
        ]

    def machine(self, device: Device) -> Module:
        """The functions, as they run on a device."""
        machines: dict[int, Module] = {}

        def entry(name: str) -> Callable[..., Any]:
            def call(*args: Any) -> Any:
                executable = self.at(name, args)
                if id(executable) not in machines:
                    machines[id(executable)] = executable.machine(device)
                return machines[id(executable)][name](*args)

            return call

        return module_from_functions(
            "relax.OpenMachine", {name: entry(name) for name in self.function_names}
        )

    def at(self, name: str, args: Any) -> Executable:
        """The executable for the sizes that arguments have.

        Raises
        ------
        TypeError : their number is wrong, or one is no tensor.
        ValueError : one extent would have two values, or a tensor has another number of axes.
        """
        func = self._graph[name]
        if len(args) != len(func.params):
            raise error.TypeError(
                f"{name}: the function takes {len(func.params)} inputs, got {len(args)}"
            )
        extents: dict[Any, int] = {}
        for param, arg in zip(func.params, args):
            info, where = param.struct_info, f"{name}: input '{param.name_hint}'"
            if not isinstance(arg, NDArray):
                raise error.TypeError(f"{where} must be a tensor, got {type(arg).__name__}")
            if len(arg.shape) != info.ndim:
                raise error.ValueError(
                    f"{where} must have {info.ndim} axes, got the shape {tuple(arg.shape)}"
                )
            for extent, value in extents_of(where, info, arg.shape).items():
                if extents.setdefault(extent, value) != value:
                    raise error.ValueError(
                        f"{where} has the shape {tuple(arg.shape)}, with {extent}={value}; another "
                        f"input says {extent}={extents[extent]}"
                    )
        key = (name, tuple(extents.values()))
        if key not in self._compiled:
            executable = self._compile(self._fixed(name, extents))
            for module in self._linked:
                executable.link(module)
            self._compiled[key] = executable.jit()
        return self._compiled[key]

    def _fixed(self, name: str, extents: dict[Any, int]) -> IRModule:
        """The module with one function for sizes, and what can be called."""
        functions = {
            gvar: func
            for gvar, func in self._graph.functions.items()
            if not isinstance(func, Function) or not defined_symbolic_vars(func)
        }
        gvar = self._graph.get_global_var(name)
        functions[gvar] = bind_function(self._graph[name], {}, extents)
        return self._graph.with_functions(functions)

    def link(self, module: Module) -> None:
        self._linked.append(module)

    def jit(self) -> Executable:
        return self

    def profiled(self, machine: Module, name: str, args: Any) -> Module:
        """The machine whose kernels a call for these arguments runs."""
        return VirtualMachine(self.at(name, args), args[0].device).module

    def export_library(
        self,
        path: str | os.PathLike[str],
        fcompile: Callable[..., None] | None = None,
        *,
        weights: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """Write one shared library that runs at every size; see `Executable.export_library`."""
        executable = self._compile_open()
        for module in self._linked:
            executable.link(module)
        executable.export_library(path, fcompile, weights=weights, **options)

    def as_text(self) -> str:
        """The steps of the program that an exported library has, a line each."""
        return self._compile_open().as_text()

    def as_python(self) -> str:
        """Python that builds the program that an exported library has."""
        return self._compile_open().as_python()

    def stats(self) -> str:
        """What an exported library consists of, a line each."""
        return self._compile_open().stats()
