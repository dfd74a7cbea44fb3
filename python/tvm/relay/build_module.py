"""Running and building programs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

import tvm
from tvm import error
from tvm.ir import GlobalVar, IRModule, RelayExpr, TensorType
from tvm.meta_schedule import Database
from tvm.meta_schedule.relay_integration import compile_graph as compile_from
from tvm.meta_schedule.relay_integration import is_meta_schedule_enabled
from tvm.runtime import ADT, Device, Module, NDArray, module_from_functions
from tvm.runtime.container import Map
from tvm.runtime.params import named_arrays
from tvm.target import Target

from .analysis.infer import infer_module
from .analysis.variables import free_vars
from .backend.executor import Executor, Runtime
from .backend.executor_factory import AOTExecutorFactoryModule, GraphExecutorFactoryModule
from .backend.interpreter import (
    Closure,
    Interpreter,
    compile_graph,
    compiled,
    entered,
    relax_graph,
    stored,
)
from .backend.places import check_devices, target_for, target_of
from .backend.templates import apply_records
from .backend.to_relax import is_graph
from .backend.values import ConstructorValue, RefValue
from .binding import bind, bind_params_by_name
from .expr import Call, Constant, Function, exact_const
from .expr_functor import post_order_visit
from .ty import is_dynamic

logger = logging.getLogger(__name__)

__all__ = [
    "BuildModule",
    "ExpressionExecutor",
    "bind_params_by_name",
    "build",
    "create_executor",
    "optimize",
]

_KINDS = ("graph", "vm", "debug", "aot")


def _dtype_of(param: Any) -> str | None:
    return str(param.checked_type.dtype) if isinstance(param.checked_type, TensorType) else None


def _argument(value: Any, device: Device, dtype: str | None = None) -> Any:
    """An array of the device; NumPy's arrays and numbers become the type that is wanted."""
    if isinstance(value, (tuple, list)) and dtype is None:
        return tuple(_argument(v, device) for v in value)
    if isinstance(value, Constant):
        value = value.data
    if isinstance(value, (ADT, ConstructorValue, RefValue)):
        return entered(value)
    if isinstance(value, NDArray):
        return value if value.device == device else value.copyto(device)
    array = np.asarray(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        array = array.astype("int32" if isinstance(value, int) else "float32")
    if dtype is not None and dtype != "bfloat16" and array.dtype != dtype:
        array = array.astype(dtype)
    return tvm.nd.array(array, device)


def _result(value: Any) -> Any:
    return [_result(v) for v in value] if isinstance(value, tuple) else value


class ExpressionExecutor:
    """Evaluates expressions; made by :func:`create_executor`."""

    def __init__(self, kind: str, mod: IRModule, device: Device, target: Target) -> None:
        self.kind = kind
        self.mod = mod
        self.device = device
        self.target = target

    def evaluate(
        self, expr: RelayExpr | None = None, binds: Mapping[Any, Any] | None = None
    ) -> Any:
        """The value of an expression, or for a function or name a Python function.

        Parameters
        ----------
        expr : by default the module's "main".
        binds : values of free variables.

        Raises
        ------
        ValueError : the expression has more free variables.
        """
        if expr is None:
            return self._function(self.mod["main"])
        if isinstance(expr, GlobalVar):
            return self._function(self.mod[expr])
        if binds:
            values = {
                var: value if isinstance(value, RelayExpr) else exact_const(value)
                for var, value in binds.items()
            }
            expr = bind(expr, values)
        free = free_vars(expr)
        if free:
            names = ", ".join(str(v.name_hint) for v in free)
            raise error.ValueError(f"relay: evaluate: variables without a value: {names}")
        if isinstance(expr, Function):
            return self._function(expr)
        return self._function(Function([], expr))()

    def optimize(self) -> IRModule:
        """The module as it is evaluated, with every type known."""
        return infer_module(self.mod)

    def _function(self, func: Function) -> Any:
        mod = self.mod.clone()
        mod["__evaluated__"] = func
        mod = infer_module(mod)
        check_devices(mod, self.target)
        typed = mod["__evaluated__"]
        names = [str(p.name_hint) for p in typed.params]
        interpreter = Interpreter(mod, self.target, self.device)
        if is_graph(typed, mod):
            run = compiled(typed, self.target, self.device, mod)
        else:
            if self.kind in ("graph", "aot") and _needs_machine(typed):
                raise error.ValueError(
                    f"relay: the {self.kind} executor runs graphs of tensors of fixed shape; take "
                    'create_executor("vm")'
                )

            def run(*args: Any) -> Any:
                return interpreter.run(typed, args)

        def call(*args: Any, **kwargs: Any) -> Any:
            given = list(args) + [kwargs[name] for name in names[len(args) :] if name in kwargs]
            if len(given) != len(names):
                raise error.ValueError(
                    f"relay: the function takes {len(names)} arguments ({', '.join(names)}), got "
                    f"{len(given)}"
                )
            values = [_argument(a, self.device, _dtype_of(p)) for a, p in zip(given, typed.params)]
            return finished(run(*values))

        def finished(result: Any) -> Any:
            if isinstance(result, Closure):
                # What is there of the types of its arguments is in the program.
                return lambda *more: finished(
                    interpreter.apply(result, [_argument(a, self.device) for a in more])
                )
            if self.kind in ("graph", "aot"):
                return _result(result)
            return stored(result, inspected=self.kind == "debug")

        return call


def _entry(mod: IRModule | Function, params: Mapping[str, Any] | None) -> IRModule:
    mod = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    if params:
        mod = mod.clone()
        mod["main"] = bind_params_by_name(mod["main"], params)
    return infer_module(mod)


def _made(kind: type, setting: str, value: Any) -> Any:
    if isinstance(value, str):
        return kind(value)
    if value is not None and not isinstance(value, kind):
        raise error.TypeError(
            f"relay.build: {setting} is a relay.backend.{kind.__name__} or its name, got "
            f"{type(value).__name__}"
        )
    return value


_TAKEN = ("vm_load_executable", "get_graph_json", "get_graph_params")


def build(
    ir_mod: IRModule | Function,
    target: Any = None,
    target_host: Any = None,
    executor: Any = None,
    runtime: Any = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
) -> GraphExecutorFactoryModule | AOTExecutorFactoryModule:
    """Compile a graph.

    Parameters
    ----------
    ir_mod : a module whose "main" is a graph of tensors of fixed shape, or that function.
    target : what to compile for; that of ``with target`` by default. Of several, or a table of them
        by device, it is the one on whose device `relay.transform.PlanDevices` finds all values.
    params : values of parameters of "main" by name, which become part of the library.
    target_host : what the host's part is compiled for.
    executor, runtime : `relay.backend.Executor` and `relay.backend.Runtime`, or their names; by
        default the attributes "executor" and "runtime" of the module.
    mod_name : under which the library gives its executor, loaded or not.

    Returns
    -------
    A factory of executors; see `tvm.contrib.graph_executor`, and for ``Executor("aot")``
    `tvm.runtime.executor`.

    Raises
    ------
    ValueError : there is no target, or the program would run on several devices, memory pools are
        given, or the module is no such graph; those run by `relay.vm.compile`. Or the option
        "relay.backend.use_meta_schedule" is set where no database is in scope.
    """
    if workspace_memory_pools is not None or constant_memory_pools is not None:
        raise error.ValueError("relay.build: memory is planned by relax, without pools")
    attrs = ir_mod.attrs if isinstance(ir_mod, IRModule) and ir_mod.attrs is not None else {}
    # Both say what builds do, or refuse when they are made.
    given = attrs.get("executor", None) if executor is None else executor
    asked = _made(Executor, "executor", given) or Executor("graph")
    _made(Runtime, "runtime", attrs.get("runtime", None) if runtime is None else runtime)
    if not mod_name.isidentifier() or mod_name in _TAKEN:
        raise error.ValueError(f"relay.build: mod_name '{mod_name}' is no name for a function")
    mod = _entry(ir_mod, params)
    resolved = target_for(mod, target, target_host)
    check_devices(mod, resolved)
    func = mod["main"]
    if not is_graph(func, mod):
        raise error.ValueError(
            "relay.build: main is no graph of tensors of fixed shape; compile it by "
            "relay.vm.compile"
        )
    name = "main" if mod_name == "default" else mod_name
    if is_meta_schedule_enabled():
        database = Database.current()
        if database is None:
            raise error.ValueError(
                'relay.build: the option "relay.backend.use_meta_schedule" takes schedules of a '
                "database; build inside of `with database:`"
            )
        executable = compile_from(database, relax_graph(func, mod, name), resolved)
    else:
        tuned = apply_records(mod, resolved)
        executable = compile_graph(
            tuned.mod["main"], resolved, tuned.mod, name, tuned.schedule, tuned.keeps
        )
    if not executable.function_names:
        raise error.ValueError("relay.build: there is nothing to build")
    if not _has_calls(func):
        logger.warning("relay.build: no function was lowered, as main gives back what it takes")
    factory = AOTExecutorFactoryModule if asked.name == "aot" else GraphExecutorFactoryModule
    return factory(mod, resolved, asked, executable, mod_name)


def _has_calls(func: Function) -> bool:
    calls: list[Call] = []
    post_order_visit(func, lambda node: calls.append(node) if isinstance(node, Call) else None)
    return bool(calls)


@tvm._ffi.register_func("relay.ToRelaxModule")
def _to_relax_module(mod: IRModule | Function, params: Mapping[str, Any]) -> IRModule:
    """The graph as `build` compiles it, for what finds tasks in it."""
    mod = _entry(mod, params)
    if not is_graph(mod["main"], mod):
        raise error.ValueError("relay: main is no graph of tensors of fixed shape")
    return relax_graph(mod["main"], mod)


def optimize(
    mod: IRModule | Function, target: Any = None, params: Mapping[str, Any] | None = None
) -> tuple[IRModule, dict[str, Any]]:
    """The module with parameters bound and types known, as `build` compiles it, and no parameters
    that are left."""
    target_of(target)
    return _entry(mod, params), {}


def _needs_machine(func: Function) -> bool:
    return any(is_dynamic(p.checked_type_) for p in func.params)


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: Device | None = None,
    target: Any = "llvm",
    params: Mapping[str, Any] | None = None,
) -> ExpressionExecutor:
    """What evaluates expressions.

    Parameters
    ----------
    kind : "graph" or "aot" for graphs of tensors of fixed shape, "vm" or "debug" for every program.
    mod : functions that expressions may name.
    params : values of parameters of "main" by name.

    Raises
    ------
    ValueError : there is no such kind.
    """
    if kind not in _KINDS:
        raise error.ValueError(f"relay.create_executor: kind is one of {_KINDS}, got '{kind}'")
    mod = IRModule() if mod is None else mod
    if params:
        mod = mod.clone()
        mod["main"] = bind_params_by_name(mod["main"], params)
    device = tvm.cpu() if device is None else device
    target = target if isinstance(target, Target) else Target(target)
    return ExpressionExecutor(kind, mod, device, target)


class _Building:
    """What the functions of one object know together."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._built: GraphExecutorFactoryModule | None = None

    def set_params(self, params: Any) -> None:
        self._params = {str(name): value for name, value in params.items()}

    def build(self, mod: Any, target: Any, target_host: Any) -> None:
        made = build(mod, _from_map(target), target_host, params=self._params)
        assert isinstance(made, GraphExecutorFactoryModule)
        self._built = made

    def optimize(self, mod: Any, target: Any) -> IRModule:
        return optimize(mod, _from_map(target), self._params)[0]

    @property
    def result(self) -> GraphExecutorFactoryModule:
        if self._built is None:
            raise error.ValueError("relay.BuildModule: nothing is built yet; call build first")
        return self._built


def _from_map(target: Any) -> Any:
    return dict(target.items()) if isinstance(target, Map) else target


@tvm._ffi.register_func("relay.build_module._BuildModule")
def _BuildModule() -> Module:
    """A module with the functions build(mod, target, target_host), optimize(mod, target),
    set_params(params), get_graph_json(), get_module() and get_params()."""
    building = _Building()
    return module_from_functions(
        "relay.build_module",
        {
            "build": building.build,
            "optimize": building.optimize,
            "set_params": building.set_params,
            "get_graph_json": lambda: building.result.graph_json,
            "get_module": lambda: building.result.module,
            "get_params": lambda: building.result.params,
        },
    )


class BuildModule:
    """`relay.build` in steps, as older programs do it: parameters, the build, what it made.

    Attributes
    ----------
    mod : the module whose functions do the work.
    """

    def __init__(self) -> None:
        self.mod = _BuildModule()
        self._get_graph_json = self.mod["get_graph_json"]
        self._get_module = self.mod["get_module"]
        self._get_params_func = self.mod["get_params"]
        self._set_params_func = self.mod["set_params"]
        self._build = self.mod["build"]
        self._optimize = self.mod["optimize"]

    def build(
        self,
        mod: IRModule | Function,
        target: Any = None,
        target_host: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[str, Module, dict[str, NDArray]]:
        """Build a graph; arguments as of `relay.build`.

        Returns
        -------
        The graph as JSON, the library, and the parameters by the names of the graph's inputs.

        Raises
        ------
        ValueError : as `relay.build` does.
        """
        self._set_params(params or {})
        self._build(mod, _update_target(target), target_host)
        return self.get_json(), self.get_module(), self.get_params()

    def optimize(
        self,
        mod: IRModule | Function,
        target: Any = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[IRModule, dict[str, NDArray]]:
        """See `relay.optimize`."""
        self._set_params(params or {})
        return self._optimize(mod, _update_target(target)), {}

    def _set_params(self, params: Mapping[str, Any]) -> None:
        self._set_params_func(named_arrays(params))

    def get_json(self) -> str:
        """The graph, after a build."""
        return str(self._get_graph_json())

    def get_module(self) -> Module:
        """The library, after a build."""
        return self._get_module()

    def get_params(self) -> dict[str, NDArray]:
        """The parameters, after a build, by the names of the graph's inputs."""
        return {str(name): value for name, value in self._get_params_func().items()}


def _update_target(target: Any) -> dict[int, Target]:
    """A target, its name, or a table of devices, as a table of device types."""
    resolved = target_of(target)
    return {resolved.get_target_device_type(): resolved}
