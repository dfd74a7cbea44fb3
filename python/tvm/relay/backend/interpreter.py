"""Runs programs with branches, functions as values, cells and shapes known at run time.

Operators run as kernels compiled for the shapes that come, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tvm
from tvm import error, relax
from tvm.ir import Constructor, GlobalVar, IRModule, Op, RelayExpr, TensorType, TupleType
from tvm.ir.transform import PassContext
from tvm.relax.compile_fused import current_schedules
from tvm.runtime import ADT, Device, NDArray, tuple_object
from tvm.runtime.profiling import Duration, MetricCollector, Percent, Report
from tvm.target import Target

from ..adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from ..analysis.infer import infer_function
from ..expr import (
    Call,
    Constant,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    set_checked_type,
)
from ..expr_functor import computed_first, post_order_visit
from ..op.memory import is_kill
from ..op.registry import find_row, settings_of
from .shape_functions import shaped_type
from .to_relax import to_relax
from .values import ConstructorValue, RefValue

__all__ = [
    "Closure",
    "ConstructorValue",
    "Interpreter",
    "Made",
    "Ref",
    "RefValue",
    "may_be_setting",
    "schedules_for",
    "stored",
]


class Closure:
    """A function with the values of the variables around it."""

    def __init__(self, func: Function, env: Mapping[Var, Any]) -> None:
        self.func = func
        self.env = dict(env)


class Ref:
    """A cell."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Made:
    """A value of a defined type: how it was made, and of what."""

    def __init__(
        self, tag: int, fields: Sequence[Any], constructor: Constructor | None = None
    ) -> None:
        self.tag = tag
        self.fields = tuple(fields)
        self.constructor = constructor


def stored(value: Any, inspected: bool = False) -> Any:
    """A result as programs around this one keep it: arrays, and tuples and made values as ADTs.

    Parameters
    ----------
    inspected : made values become `ConstructorValue`, which names the constructor, and cells
        `RefValue`.

    Raises
    ------
    TypeError : it is a function, or a cell that is not to be inspected.
    """
    if isinstance(value, tuple):
        return tuple_object([stored(v, inspected) for v in value])
    if isinstance(value, Made):
        fields = [stored(v, inspected) for v in value.fields]
        if inspected:
            return ConstructorValue(value.tag, fields, value.constructor)
        return ADT(value.tag, fields)
    if inspected and isinstance(value, Ref):
        return RefValue(stored(value.value, inspected))
    if isinstance(value, (Closure, Ref)):
        kind = "function" if isinstance(value, Closure) else "cell"
        raise error.TypeError(f"relay: a {kind} cannot leave the program as a result")
    return value


def entered(value: Any) -> Any:
    """An argument as the interpreter keeps it; ADTs with the tag 0 are tuples."""
    if isinstance(value, ADT):
        fields = [entered(f) for f in value]
        return Made(int(value.tag), fields) if value.tag else tuple(fields)
    if isinstance(value, ConstructorValue):
        return Made(int(value.tag), [entered(f) for f in value.fields], value.constructor)
    if isinstance(value, RefValue):
        return Ref(entered(value.value))
    return value


def type_of_value(value: Any) -> Any:
    """The type of an array or a tuple of them."""
    if isinstance(value, NDArray):
        return TensorType(list(value.shape), str(value.dtype))
    if not isinstance(value, tuple):
        raise error.TypeError(f"relay: an operator takes tensors, got a {type(value).__name__}")
    return TupleType([type_of_value(v) for v in value])


_SMALL = 64


def may_be_setting(constant: Constant) -> bool:
    """Whether a constant is a number, or whole numbers that may be a shape, axes or places."""
    values = constant.data.numpy()
    return values.size == 1 or (values.size <= _SMALL and values.dtype.kind in "iub")


class Interpreter:
    """Evaluates the functions of a module.

    Parameters
    ----------
    mod : whose types are known.
    target, device : what kernels are compiled for and where they run.
    """

    def __init__(self, mod: IRModule, target: Target, device: Device) -> None:
        self._mod = mod
        self._target = target
        self._device = device
        self._kernels: dict[Any, Any] = {}

    def run(self, func: Function, args: Sequence[Any]) -> Any:
        """The result of a function for arrays or tuples of them."""
        if len(args) != len(func.params):
            names = ", ".join(str(p.name_hint) for p in func.params)
            raise error.TypeError(
                f"relay: the function takes {len(func.params)} arguments ({names}), got {len(args)}"
            )
        return self.apply(Closure(func, {}), args)

    def apply(self, closure: Closure, args: Sequence[Any]) -> Any:
        """The result of a function that a program gave."""
        return self._call(closure, [entered(a) for a in args])

    def _call(self, function: Any, args: list[Any]) -> Any:
        # A call at the end of a function takes its place, so that loops take no stack.
        while True:
            if isinstance(function, Constructor):
                return Made(int(function.tag), args, function)
            if not isinstance(function, Closure):
                raise error.TypeError("relay: a value that is no function is called")
            env = {**function.env, **dict(zip(function.func.params, args))}
            attrs = function.func.attrs
            if attrs is not None and "Compiler" in attrs:
                return _external(function.func, args)
            expr: RelayExpr = function.func.body
            while True:
                if isinstance(expr, Let):
                    self._bind(expr, env)
                    expr = expr.body
                elif isinstance(expr, If):
                    chosen = bool(self._eval(expr.cond, env).numpy())
                    expr = expr.true_branch if chosen else expr.false_branch
                elif isinstance(expr, Match):
                    expr = _chosen(expr, self._eval(expr.data, env), env)
                else:
                    break
            if isinstance(expr, Call) and not isinstance(expr.op, (Op, Constructor)):
                function = self._eval(expr.op, env)
                args = [self._eval(a, env) for a in expr.args]
                continue
            return self._eval(expr, env)

    def _bind(self, let: Let, env: dict[Any, Any]) -> None:
        if is_kill(let.value):
            env.pop(let.value.args[0], None)
            env[let.var] = ()
            return
        value = self._eval(let.value, env)
        if isinstance(let.value, Function):
            value.env[let.var] = value
        env[let.var] = value

    def _eval(self, expr: RelayExpr, env: dict[Any, Any]) -> Any:
        """The value of an expression; operands first, without recursion, each once."""
        pending = [(expr, False)]
        while pending:
            node, ready = pending.pop()
            if node in env:
                continue
            operands = () if ready else _operands(node)
            if operands:
                pending.append((node, True))
                pending.extend((o, False) for o in reversed(operands))
            else:
                env[node] = self._value(node, env)
        return env[expr]

    def _value(self, expr: RelayExpr, env: dict[Any, Any]) -> Any:
        if isinstance(expr, Constant):
            return expr.data
        if isinstance(expr, Var):
            raise error.ValueError(f"relay: variable '{expr.name_hint}' has no value")
        if isinstance(expr, GlobalVar):
            return Closure(self._mod[expr], {})
        if isinstance(expr, Function):
            return Closure(expr, env)
        if isinstance(expr, Tuple):
            return tuple(env[f] for f in expr.fields)
        if isinstance(expr, TupleGetItem):
            return env[expr.tuple_value][expr.index]
        if isinstance(expr, Let):
            inner = dict(env)
            node: RelayExpr = expr
            while isinstance(node, Let):
                self._bind(node, inner)
                node = node.body
            return self._eval(node, inner)
        if isinstance(expr, If):
            chosen = bool(env[expr.cond].numpy())
            return self._eval(expr.true_branch if chosen else expr.false_branch, dict(env))
        if isinstance(expr, Match):
            inner = dict(env)
            return self._eval(_chosen(expr, env[expr.data], inner), inner)
        if isinstance(expr, Constructor):
            return expr
        if isinstance(expr, RefCreate):
            return Ref(env[expr.value])
        if isinstance(expr, RefRead):
            return env[expr.ref].value
        if isinstance(expr, RefWrite):
            env[expr.ref].value = env[expr.value]
            return ()
        if isinstance(expr, Call):
            if isinstance(expr.op, Op):
                return self.operator(expr, [env[a] for a in expr.args])
            if isinstance(env[expr.op], Constructor):
                made = env[expr.op]
                return Made(int(made.tag), [env[a] for a in expr.args], made)
            return self._call(env[expr.op], [env[a] for a in expr.args])
        raise error.TypeError(f"relay: {type(expr).__name__} has no value")

    def operator(self, call: Call, args: Sequence[Any]) -> Any:
        """The result of an operator for values of its operands."""
        row = find_row(call.op)
        if row is not None and row.host is not None:
            settings = settings_of(call)
            for key, default in row.settings.items():
                settings.setdefault(key, default)
            arrays = [a.numpy() if isinstance(a, NDArray) else a for a in args]
            return self._stored(row.host(arrays, settings))
        if row is not None and row.settled is not None:
            data = Var("data", type_of_value(args[0]))
            static = row.settled([data, *map(Constant, args[1:])], settings_of(call))
            assert isinstance(static, Call)
            given = [args[0] if arg.same_as(data) else arg.data for arg in static.args]
            return self.operator(static, given)
        return self._kernel(call, args)

    def _stored(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(self._stored(r) for r in result)
        return tvm.nd.array(np.ascontiguousarray(result).reshape(np.shape(result)), self._device)

    def _kernel(self, call: Call, args: Sequence[Any]) -> Any:
        types = tuple(type_of_value(a) for a in args)
        # Operands that are constants in the program may be settings of the kernel.
        fixed = tuple(
            (k, arg) for k, arg in enumerate(call.args)
            if isinstance(arg, Constant) and may_be_setting(arg)
        )  # fmt: skip
        shape = self._computed_shape(call, args)
        key = (
            str(call.op.name), types, repr(settings_of(call)),
            tuple((k, arg.data.numpy().tobytes()) for k, arg in fixed), shape,
        )  # fmt: skip
        if key not in self._kernels:
            params = [Var(f"p{k}", t) for k, t in enumerate(types)]
            operands: list[RelayExpr] = list(params)
            for k, arg in fixed:
                operands[k] = arg
            used = [p for k, p in enumerate(params) if operands[k].same_as(p)]
            func = Function(used, Call(call.op, operands, call.attrs))
            typed = infer_function(func, None, {})
            places = [k for k, p in enumerate(params) if operands[k].same_as(p)]
            if shape is not None:
                set_checked_type(typed.body, shape)
            # Who watches the passes over a module does not mean those that work out a value of it.
            with PassContext(config=PassContext.current().config):
                machine = compiled(typed, self._target, self._device)
            self._kernels[key] = (machine, places, typed.body.checked_type_)
        machine, places, type_ = self._kernels[key]
        return machine(*[args[k] for k in places])

    def _computed_shape(self, call: Call, args: Sequence[Any]) -> Any:
        """The type of a result whose shape follows from values, as its operator computes it; None
        where the shapes of operands say it."""
        if not isinstance(call.op, Op) or call.op.get_attr("FShapeFunc") is None:
            return None
        params = [Var(f"p{k}", type_of_value(arg)) for k, arg in enumerate(args)]
        probe = Function(params, Call(call.op, params, call.attrs))
        return shaped_type(call, infer_function(probe, None, {}).body.checked_type_, args)


def _fits(pattern: Pattern, value: Any, env: dict[Any, Any]) -> bool:
    """Whether a value looks like a pattern, whose variables it then gives values."""
    if isinstance(pattern, PatternVar):
        env[pattern.var] = value
    elif isinstance(pattern, PatternTuple):
        return all(_fits(p, v, env) for p, v in zip(pattern.patterns, value))
    elif isinstance(pattern, PatternConstructor):
        if isinstance(value, tuple):
            # Arguments of a constructor whose tag is 0 come as tuples do.
            value = Made(0, value)
        same = value.tag == pattern.constructor.tag
        return same and all(_fits(p, v, env) for p, v in zip(pattern.patterns, value.fields))
    return True


def _chosen(match: Match, value: Any, env: dict[Any, Any]) -> RelayExpr:
    for clause in match.clauses:
        found: dict[Any, Any] = {}
        if _fits(clause.lhs, value, found):
            env.update(found)
            return clause.rhs
    raise error.ValueError("relay: no clause of a match fits the value")


def _external(func: Function, args: Sequence[Any]) -> Any:
    raise error.ValueError(
        f"relay: function '{func.attrs['global_symbol']}' is for compiler "
        f"'{func.attrs['Compiler']}'; build the module and run it by the graph executor"
    )


def _operands(expr: RelayExpr) -> list[RelayExpr]:
    """What has a value before an expression has one; operators are none."""
    return [part for part in computed_first(expr) if not isinstance(part, Op)]


def _flattened(value: Any) -> list[Any]:
    if isinstance(value, NDArray):
        return [value]
    return [leaf for item in value for leaf in _flattened(item)]


def _nested(leaves: list[Any], type_: Any) -> Any:
    if isinstance(type_, TupleType):
        return tuple(_nested(leaves, field) for field in type_.fields)
    return leaves.pop(0)


_USE_RECORDS = "relay.backend.use_auto_scheduler"


def relax_graph(
    func: Function,
    mod: IRModule | None = None,
    name: str = "main",
    target: Target | None = None,
    kept: Callable[[Call], bool] = lambda call: False,
) -> IRModule:
    """A function, whose types are known and which is a graph, as a module of relax.

    Parameters
    ----------
    target, kept : see `to_relax`.
    """
    params, body = _flat_params(func)
    same = all(a.same_as(b) for a, b in zip(params, func.params))
    return to_relax(func if same else Function(params, body), mod, name, target, kept)


def schedules_for(
    chosen: Callable[[relax.FusedGroup], relax.GroupSchedule | None] | None = None,
) -> Callable[[relax.FusedGroup], relax.GroupSchedule | None]:
    """Where the schedules of a build come from: `chosen`, then the contexts around."""
    use = PassContext.current().config.get(_USE_RECORDS)
    # Schedules of records come from the innermost context, unless the build is told to leave them.
    around = current_schedules() if use is None or bool(use) else None

    def schedule_of(group: relax.FusedGroup) -> relax.GroupSchedule | None:
        found = None if chosen is None else chosen(group)
        if found is None and around is not None:
            found = around(group) if callable(around) else around.get(group.key)
        return found

    return schedule_of


def compile_graph(
    func: Function,
    target: Target,
    mod: IRModule | None = None,
    name: str = "main",
    chosen: Callable[[relax.FusedGroup], relax.GroupSchedule | None] | None = None,
    kept: Callable[[Call], bool] = lambda call: False,
) -> relax.Executable:
    """A function, whose types are known and which is a graph, compiled by relax.

    Functions of other compilers are made by theirs, ``relay.ext.<name>``, and linked.

    Parameters
    ----------
    chosen : the schedule of a kernel, where that is decided; others come from the contexts around.
    kept : see `to_relax`.

    Raises
    ------
    ValueError : there is no such compiler.
    """
    graph = relax_graph(func, mod, name, target, kept)
    executable = relax.build(graph, target, schedules_for(chosen))
    for other in _foreign_modules(func, mod):
        executable.mod.imported_modules[0].import_module(other)
    return executable


def _foreign_modules(func: Function, mod: IRModule | None) -> list[Any]:
    found: dict[str, Function] = {}

    def look(expr: RelayExpr) -> None:
        if isinstance(expr, GlobalVar) and mod is not None and expr in mod:
            expr = mod[expr]
        if isinstance(expr, Function) and expr.attrs is not None and "Compiler" in expr.attrs:
            found.setdefault(str(expr.attrs["global_symbol"]), expr)

    post_order_visit(func, look)
    modules = []
    for foreign in found.values():
        name = str(foreign.attrs["Compiler"])
        compiler = tvm.get_global_func(f"relay.ext.{name}", allow_missing=True)
        if compiler is None:
            raise error.ValueError(
                f"relay.build: there is no compiler '{name}'; register it as relay.ext.{name}"
            )
        modules.append(compiler(foreign))
    return modules


@dataclass
class _Profile:
    collectors: Sequence[MetricCollector]
    reports: list[Report] = field(default_factory=list)


_profile: ContextVar[_Profile | None] = ContextVar("relay_profile", default=None)


def profiled(run: Callable[[], object], collectors: Sequence[MetricCollector] = ()) -> Report:
    """What the kernels take that a program calls, whatever way it goes through its branches.

    Each part of the program runs once for its results and once to be measured.

    Parameters
    ----------
    run : runs the program.
    collectors : measure more than time, see `tvm.runtime.profiling`.
    """
    profile = _Profile(collectors)
    token = _profile.set(profile)
    try:
        run()
    finally:
        _profile.reset(token)
    calls = [call for report in profile.reports for call in report.calls]
    total: dict[str, float] = {}
    for report in profile.reports:
        for device, metrics in report.device_metrics.items():
            total[device] = total.get(device, 0.0) + metrics[_DURATION].microseconds
    for call in calls:
        share = call[_DURATION].microseconds / max(total[str(call["Device"])], 1e-9)
        call["Percent"] = Percent(100 * share)
    devices = {device: {_DURATION: Duration(us)} for device, us in total.items()}
    return Report(calls, devices, {"Executor": "relay VM"})


_DURATION = "Duration (us)"


def compiled(func: Function, target: Target, device: Device, mod: IRModule | None = None) -> Any:
    """A function of arrays for a graph; its results are nested as those of the graph."""
    if not func.params and _is_value(func.body):
        result = _constant(func.body, device)
        return lambda: result
    machine = relax.VirtualMachine(compile_graph(func, target, mod), device)
    main = machine["main"]
    type_ = func.body.checked_type_

    def run(*args: Any) -> Any:
        given = [leaf for a in args for leaf in _flattened(a)]
        result = main(*given)
        profile = _profile.get()
        if profile is not None:
            # After the call for the results, so that memory and code are there already.
            profile.reports.append(machine.profile("main", *given, collectors=profile.collectors))
        leaves = [result] if isinstance(result, NDArray) else list(result)
        return _nested(leaves, type_)

    return run


def _is_value(expr: RelayExpr) -> bool:
    return isinstance(expr, Constant) or (
        isinstance(expr, Tuple) and all(_is_value(f) for f in expr.fields)
    )


def _constant(expr: Any, device: Device) -> Any:
    if isinstance(expr, Constant):
        return expr.data.copyto(device)
    return tuple(_constant(f, device) for f in expr.fields)


def _flat_params(func: Function) -> tuple[list[Var], RelayExpr]:
    """Parameters that are tuples become one for each field, since kernels take tensors."""
    if not any(isinstance(p.checked_type_, TupleType) for p in func.params):
        return list(func.params), func.body
    params: list[Var] = []
    values: list[tuple[Var, RelayExpr]] = []

    def spread(name: str, type_: Any) -> RelayExpr:
        if isinstance(type_, TupleType):
            return Tuple([spread(f"{name}_{k}", f) for k, f in enumerate(type_.fields)])
        params.append(Var(name, type_))
        return params[-1]

    for param in func.params:
        values.append((param, spread(str(param.name_hint), param.checked_type_)))
    body = func.body
    for param, value in reversed(values):
        body = Let(param, value, body)
    typed = infer_function(Function(params, body), None, {})
    return list(typed.params), typed.body
