"""Programs of every kind, compiled and run: branches, loops, shapes known at run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import error
from tvm.ir import IRModule
from tvm.runtime import Device
from tvm.target import Target

from ..analysis.infer import infer_module
from ..binding import bind_params_by_name
from ..build_module import ExpressionExecutor, target_of
from ..expr import Function

__all__ = ["Executable", "VMCompiler", "VirtualMachine", "compile"]


class Executable:
    """A program for :class:`VirtualMachine`.

    Attributes
    ----------
    mod : the program, whose types are known. target : what its kernels are compiled for.
    """

    def __init__(self, mod: IRModule, target: Target) -> None:
        self.mod = mod
        self.target = target

    @property
    def globals(self) -> list[str]:
        """Names of the functions."""
        return [str(gv.name_hint) for gv, _ in self.mod.functions_items()]

    def get_function_params(self, func_name: str) -> list[str]:
        """Names of a function's parameters."""
        return [str(p.name_hint) for p in self.mod[func_name].params]

    def save(self) -> str:
        """The program as text, which :meth:`load` reads; kernels are compiled when they are met."""
        return f"{self.target}\n{tvm.ir.save_json(self.mod)}"

    @staticmethod
    def load(code: str) -> Executable:
        """A program that `save` wrote.

        Raises
        ------
        ValueError : the text is something else.
        """
        target, _, program = code.partition("\n")
        mod = tvm.ir.load_json(program)
        if not isinstance(mod, IRModule):
            raise error.ValueError("relay.vm: the text holds no module")
        return Executable(infer_module(mod), Target(target))


class VirtualMachine:
    """Runs the functions of an executable."""

    def __init__(self, exe: Executable, device: Device | None = None) -> None:
        device = tvm.cpu() if device is None else device
        self._executor = ExpressionExecutor("vm", exe.mod, device, exe.target)
        self._functions: dict[str, Any] = {}

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            gvar = self._executor.mod.get_global_var(name)
            self._functions[name] = self._executor.evaluate(gvar)
        return self._functions[name]

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """The result of a function.

        Raises
        ------
        KeyError : there is no such function. ValueError : a wrong number of arguments.
        """
        return self._function(func_name)(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The result of "main"."""
        return self.invoke("main", *args, **kwargs)


class VMCompiler:
    """Compiles step by step: parameters, then the module, then the executable."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._lowered: tuple[IRModule, Target] | None = None
        self._executable: Executable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Values of parameters of "main" by name."""
        self._params = dict(params)

    def lower(self, mod: IRModule, target: Any = None, target_host: Any = None) -> None:
        """Find types and bind parameters.

        Raises
        ------
        TypeError, ValueError : the program's types do not fit together, or there is no target.
        """
        mod = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
        if self._params:
            mod = mod.clone()
            mod["main"] = bind_params_by_name(mod["main"], self._params)
        self._lowered = infer_module(mod), target_of(target, target_host)
        self._executable = None

    def codegen(self) -> None:
        """Make the executable of what `lower` left; its kernels are compiled for the shapes that
        come.

        Raises
        ------
        ValueError : `lower` was not called.
        """
        if self._lowered is None:
            raise error.ValueError("VMCompiler: call lower before codegen")
        self._executable = Executable(*self._lowered)

    def get_exec(self) -> Executable:
        """The executable.

        Raises
        ------
        ValueError : there is none yet; call `lower` and `codegen`.
        """
        if self._executable is None:
            raise error.ValueError("VMCompiler: call lower and codegen before get_exec")
        return self._executable


def compile(
    mod: IRModule | Function, target: Any = None, target_host: Any = None,
    params: Mapping[str, Any] | None = None,
) -> Executable:  # fmt: skip
    """An executable of a module's functions.

    Parameters
    ----------
    target_host : what the host's part of kernels is compiled for.
    params : values of parameters of "main" by name.

    Raises
    ------
    TypeError, ValueError : the program's types do not fit together, or there is no target.
    """
    compiler = VMCompiler()
    compiler.set_params(params or {})
    compiler.lower(mod, target, target_host)
    compiler.codegen()
    return compiler.get_exec()
