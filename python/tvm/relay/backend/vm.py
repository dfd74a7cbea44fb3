"""Programs of every kind, compiled and run: branches, loops, shapes known at run time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import error
from tvm.ir import IRModule, Op, RelayExpr, TensorType
from tvm.runtime import (
    ADT,
    Device,
    Module,
    NDArray,
    load_param_dict_from_file,
    module_from_functions,
    save_param_dict_to_file,
)
from tvm.runtime.profiling import MetricCollector, Report
from tvm.runtime.vm import Executable, VirtualMachine
from tvm.target import Target

from ..analysis.infer import infer_module
from ..binding import bind_params_by_name
from ..build_module import ExpressionExecutor
from ..expr import Call, Constant, Function, Var, exact_const
from ..expr_functor import PostOrderMutator, post_order_visit
from ..text_printer import as_text
from .interpreter import profiled
from .places import check_devices, target_for

__all__ = ["Executable", "VMCompiler", "VirtualMachine", "compile"]

_KIND = "relay.VMExecutable"
_LATE = "late_bound_const"


class _Outside(PostOrderMutator):
    """Large constants as calls of functions that give them, so that they can be left out."""

    def __init__(self, mod: IRModule, limit: int) -> None:
        super().__init__()
        self._mod, self._limit = mod, limit

    def visit_constant(self, const: Constant) -> Any:
        array = const.data
        size = int(np.prod(array.shape, dtype="int64")) * tvm.DataType(array.dtype).itemsize
        if size < self._limit:
            return const
        names = [str(gv.name_hint) for gv in self._mod.get_global_vars()]
        name = f"{_LATE}_{sum(n.startswith(_LATE) for n in names)}"
        self._mod[name] = Function([], const)
        return Call(self._mod.get_global_var(name), [])


def _late(mod: IRModule) -> dict[str, Function]:
    found = {str(gv.name_hint): f for gv, f in mod.functions.items()}
    return {name: f for name, f in found.items() if name.startswith(_LATE)}


class _Program:
    """What the runtime module of a program does."""

    def __init__(self, mod: IRModule, target: Target) -> None:
        self.mod = mod
        self.target = target
        # Whether saved programs leave late bound constants out.
        self._left_out = False

    def module(self) -> Module:
        """The runtime module."""
        return module_from_functions(
            _KIND,
            {
                "vm_load_executable": lambda device: _Machine(self, device).module(),
                "get_target": self.target_text,
                "get_globals": self.names,
                "get_listing": self.listing,
                "get_operators": self.operators,
                "get_constants": self.constants,
                "get_function_params": self.params_of,
                "save": self.text,
                "get_late_bound_consts": self.take_consts,
                "move_late_bound_consts": self.move_consts,
                "load_late_bound_consts": self.load_consts,
                "load_late_bound_consts_from_map": self.put_consts,
            },
            self.text,
            "relay",
        )

    def text(self) -> str:
        """The program as `_load` reads it."""
        mod = self.mod
        if self._left_out:
            mod = mod.clone()
            for name, func in _late(mod).items():
                mod[name] = Function([], Var("missing", func.body.checked_type), attrs=func.attrs)
        return f"{self.target_text()}\n{tvm.ir.save_json(mod)}"

    def target_text(self) -> str:
        """The target, with its host, on one line."""
        return json.dumps(dict(self.target.export()))

    def _names(self) -> list[str]:
        late = _late(self.mod)
        return sorted(
            name for gv, f in self.mod.functions.items()
            if isinstance(f, Function) and (name := str(gv.name_hint)) not in late
        )  # fmt: skip

    def names(self) -> list[str]:
        """Functions of the program."""
        return self._names()

    def function(self, name: str) -> Function:
        """A function; KeyError if there is none."""
        return self.mod[name]

    def params_of(self, name: str) -> list[str]:
        """Names of a function's parameters."""
        return [str(p.name_hint) for p in self.function(name).params]

    def listing(self) -> str:
        """Every function with its parameters and its text."""
        parts = []
        for name in self._names():
            text = as_text(self.function(name), show_meta_data=False)
            parts.append(f"{name}({', '.join(self.params_of(name))})\n{text}\n")
        return "\n".join(parts)

    def _visit(self, look: Callable[[RelayExpr], None]) -> None:
        for func in self.mod.functions.values():
            if isinstance(func, Function):
                post_order_visit(func, look)

    def operators(self) -> list[str]:
        """Operators that functions call, sorted."""
        found: set[str] = set()

        def look(expr: RelayExpr) -> None:
            if isinstance(expr, Call) and isinstance(expr.op, Op):
                found.add(str(expr.op.name))

        self._visit(look)
        return sorted(found)

    def constants(self) -> str:
        """The constants of functions, each once, one a line."""
        found: dict[Constant, None] = {}
        self._visit(lambda e: found.setdefault(e) if isinstance(e, Constant) else None)
        return "\n".join(
            f"VM Const[{k}]: Tensor[{tuple(const.data.shape)}, {const.data.dtype}]"
            for k, const in enumerate(found)
        )

    def take_consts(self, limit: int) -> dict[str, NDArray]:
        """Large constants, which saved programs are without from now on."""
        mod = self.mod.clone()
        for name in self._names():
            if isinstance(mod[name], Function):
                mod[name] = _Outside(mod, limit).visit(mod[name])
        self.mod = infer_module(mod)
        self._left_out = True
        return {name: f.body.data for name, f in _late(self.mod).items()}

    def move_consts(self, path: str, limit: int) -> None:
        """Write large constants to a file."""
        save_param_dict_to_file(self.take_consts(limit), path)

    def load_consts(self, path: str) -> None:
        """Put constants of a file back."""
        self.put_consts(load_param_dict_from_file(path))

    def put_consts(self, given: Mapping[str, NDArray]) -> None:
        """Put constants back."""
        late = _late(self.mod)
        missing = [n for n in late if n not in given]
        if missing:
            raise error.ValueError(f"relay.vm: constants of the program are missing: {missing}")
        mod = self.mod.clone()
        for name, func in late.items():
            known = TensorType(list(given[name].shape), str(given[name].dtype))
            if known != func.body.checked_type_ and known != getattr(
                func.body, "type_annotation", known
            ):
                raise error.ValueError(
                    f"relay.vm: constant {name} is of type {known}, not {func.body.checked_type_}"
                )
            mod[name] = Function([], exact_const(given[name]))
        self.mod = infer_module(mod)


class _Machine:
    """What the runtime module of a machine does: it keeps arguments and results."""

    def __init__(self, program: _Program, device: Device) -> None:
        self._program = program
        self._executor = ExpressionExecutor("vm", program.mod, device, program.target)
        self._functions: dict[str, Any] = {}
        self._inputs: dict[str, list[Any]] = {}
        self._result: Any = None

    def module(self) -> Module:
        """The runtime module."""
        return module_from_functions(
            "relay.VirtualMachine",
            {
                "set_input": self.set_input,
                "set_one_input": self.set_one_input,
                "invoke": self.invoke,
                "profile": self.profile,
                "set_and_invoke": self.set_and_invoke,
                "get_num_outputs": self.num_outputs,
                "get_output": self.output,
            },
        )

    def set_input(self, name: str, *values: Any) -> None:
        """Keep the arguments of a function."""
        self._inputs[name] = list(values)

    def set_one_input(self, name: str, which: int | str, value: Any) -> None:
        """Keep one argument, by number or name."""
        params = self._program.params_of(name)
        if isinstance(which, str) and which in params:
            which = params.index(which)
        if not isinstance(which, int) or not 0 <= which < len(params):
            raise error.ValueError(
                f"relay.vm: function '{name}' has no parameter {which!r}; it has {params}"
            )
        held = self._inputs.setdefault(name, [])
        held.extend([None] * (len(params) - len(held)))
        held[which] = value

    def invoke(self, name: str) -> Any:
        """The result of a function for the arguments that are kept."""
        if name not in self._functions:
            gvar = self._program.mod.get_global_var(name)
            self._functions[name] = self._executor.evaluate(gvar)
        self._result = self._functions[name](*self._inputs.get(name, []))
        return self._result

    def profile(self, name: str, collectors: Sequence[MetricCollector]) -> Report:
        """What the kernels of a call of a function take, for the arguments that are kept."""
        return profiled(lambda: self.invoke(name), list(collectors))

    def set_and_invoke(self, name: str, *values: Any) -> Any:
        """Both."""
        self.set_input(name, *values)
        return self.invoke(name)

    def _outputs(self) -> Sequence[Any]:
        if self._result is None:
            raise error.ValueError("relay.vm: there are no results; run a function")
        return list(self._result) if isinstance(self._result, ADT) else [self._result]

    def num_outputs(self) -> int:
        """Number of results of the last run."""
        return len(self._outputs())

    def output(self, k: int) -> Any:
        """One of them."""
        return self._outputs()[k]


@tvm._ffi.register_func("relay.vm.LoadExecutable")
def load_program(code: str) -> Module:
    """The runtime module of a program that `_Program.text` wrote.

    Raises
    ------
    ValueError : the text holds none.
    """
    target, _, program = code.partition("\n")
    if not program:
        raise error.ValueError("relay.vm: the text holds no program")
    mod = tvm.ir.load_json(program)
    if not isinstance(mod, IRModule):
        raise error.ValueError("relay.vm: the text holds no module")
    found = _Program(infer_module(mod), Target(target))
    found._left_out = bool(_late(mod))
    return found.module()


class VMCompiler:
    """Compiles step by step: parameters, then the module, then the executable."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._lowered: tuple[IRModule, Target] | None = None
        self._executable: Executable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Values of parameters of "main" by name."""
        self._params = dict(params)

    def get_params(self) -> dict[str, Any]:
        """The values that were set."""
        return dict(self._params)

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
        typed = infer_module(mod)
        resolved = target_for(typed, target, target_host)
        check_devices(typed, resolved)
        self._lowered = typed, resolved
        self._executable = None

    def optimize(
        self, mod: IRModule, target: Any = None, target_host: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[IRModule, dict[str, Any]]:  # fmt: skip
        """The module as `codegen` gets it, and no parameters that are left; see :meth:`lower`."""
        if params:
            self.set_params(params)
        self.lower(mod, target, target_host)
        assert self._lowered is not None
        return self._lowered[0], {}

    def codegen(self) -> None:
        """Make the executable of what `lower` left; its kernels are compiled for the shapes that
        come.

        Raises
        ------
        ValueError : `lower` was not called.
        """
        if self._lowered is None:
            raise error.ValueError("VMCompiler: call lower before codegen")
        self._executable = Executable(_Program(*self._lowered).module())

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
