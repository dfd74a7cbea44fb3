"""Templates, and tasks: a template with arguments and a target."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import te, tir
from tvm.auto_scheduler import ComputeDAG
from tvm.target import Target

from .context import ApplyConfig, DispatchContext
from .space import ConfigSpace, InstantiationError

__all__ = [
    "TASK_TABLE",
    "Task",
    "args_to_workload",
    "compute_flop",
    "create",
    "deserialize_args",
    "serialize_args",
    "template",
]

# Name of a template -> the function as its author wrote it.
TASK_TABLE: dict[str, Callable[..., Any]] = {}


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments of a template as hashable values that JSON can say.

    Tensors become ("TENSOR", shape, dtype); containers become tuples.

    Raises
    ------
    TypeError : an argument is neither tensor, number, text, None nor a container of these.
    """
    return tuple(_serialize(argument) for argument in args)


def _serialize(value: Any) -> Any:
    if isinstance(value, te.Tensor):
        return ("TENSOR", tuple(_serialize(extent) for extent in value.shape), str(value.dtype))
    if isinstance(value, (tir.IntImm, tir.FloatImm, tir.StringImm)):
        return value.value
    if isinstance(value, tir.PrimExpr):
        raise TypeError(f"template: arguments are constant, got the expression {value}")
    if isinstance(value, dict):
        return tuple((str(key), _serialize(item)) for key, item in value.items())
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Sequence) or hasattr(value, "__iter__"):
        return tuple(_serialize(item) for item in value)
    raise TypeError(f"template: an argument of type {type(value).__name__} cannot be recorded")


def deserialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Inverse of `serialize_args`: tensors become placeholders."""
    return tuple(_deserialize(argument) for argument in args)


def _deserialize(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        if len(value) == 3 and value[0] == "TENSOR":
            return te.placeholder(tuple(value[1]), dtype=value[2])
        return tuple(_deserialize(item) for item in value)
    return value


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """Key of a template with arguments: its name and the serialized arguments."""
    values = serialize_args(args)
    return values if task_name is None else (task_name, *values)


class Task:
    """A template with arguments, for a target: what a tuner tunes.

    Parameters
    ----------
    name : of the template.
    args : what it takes; tensors stand for placeholders of their shape.

    Attributes
    ----------
    config_space : its knobs.
    flop : floating point operations of one run.
    workload : the key under which results are recorded.

    Raises
    ------
    ValueError : no template has that name.
    """

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        if name not in TASK_TABLE:
            raise ValueError(
                f"autotvm: no template is called {name!r}; import the module that defines it. "
                f"There are {sorted(TASK_TABLE)}"
            )
        self.name = name
        self.args = serialize_args(args)
        self.kwargs: dict[str, Any] = {}
        self.config_space: ConfigSpace | None = None
        self.flop: float | None = None
        self.target: Target | None = None
        self.target_host: Target | None = None
        self.func = TASK_TABLE[name]

    @property
    def workload(self) -> tuple[Any, ...]:
        """Name of the template and its arguments."""
        return (self.name, *self.args)

    def instantiate(self, config: ConfigSpace) -> tuple[te.Schedule, list[te.Tensor]]:
        """The program of a point.

        Parameters
        ----------
        config : of the task's space, or of a record of it.

        Returns
        -------
        Schedule and arguments.

        Raises
        ------
        InstantiationError : the template refuses the point.
        """
        config.flop = 0.0
        config.errors.clear()
        schedule, arguments = self._run(config)
        if not config.valid():
            raise InstantiationError("; ".join(config.errors))
        return schedule, list(arguments)

    def _run(self, config: ConfigSpace) -> Any:
        target = self.target if self.target is not None else Target("llvm")
        with ApplyConfig(config), target:
            return self.func(*deserialize_args(self.args))

    def prepare_space(self) -> None:
        """Run the template to learn its knobs and its operations."""
        space = ConfigSpace()
        schedule, arguments = self._run(space)
        space.errors.clear()
        source = _source_of(self.func)
        space.code_hash = (
            getattr(schedule, "code_hash", None) or hashlib.sha256(source.encode()).hexdigest()[:16]
        )
        for entity_space in space.space_map.values():
            if not len(entity_space):
                raise ValueError(f"template {self.name!r}: a knob has no candidate")
        self.config_space = space
        self.flop = space.flop or compute_flop(schedule, arguments)

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, workload={self.workload})"

    def __getstate__(self) -> dict[str, Any]:
        # The function is the reader's own: code never travels with a task.
        state = dict(self.__dict__)
        del state["func"]
        state["target"] = None if self.target is None else str(self.target)
        state["target_host"] = None if self.target_host is None else str(self.target_host)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.func = TASK_TABLE.get(self.name, _missing(self.name))
        self.target = None if state["target"] is None else Target(state["target"])
        self.target_host = None if state["target_host"] is None else Target(state["target_host"])


def _missing(name: str) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        raise InstantiationError(f"autotvm: no template is called {name!r} in this process")

    return run


def _source_of(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return getattr(function, "__qualname__", "")


def compute_flop(schedule: te.Schedule, arguments: Sequence[te.Tensor] | None = None) -> float:
    """Floating point operations of a schedule's program.

    Parameters
    ----------
    arguments : its tensors; by default the outputs of the schedule and what they read.

    Raises
    ------
    RuntimeError : they cannot be counted; say them in the template with ``cfg.add_flop``.
    """
    if arguments is None:
        arguments = [op.output(0) for op in schedule.outputs]
    flop = float(ComputeDAG([arg for arg in arguments if isinstance(arg, te.Tensor)]).flop_ct)
    if not math.isfinite(flop) or flop <= 0:
        raise RuntimeError(
            "autotvm: the operations of the template cannot be counted; say them with "
            "cfg.add_flop(...)"
        )
    return flop


def template(
    task_name: str | Callable[..., Any] | None = None, func: Callable[..., Any] | None = None
) -> Any:
    """Decorator that makes a function a template.

    The function defines knobs on `get_config()`, and returns a schedule and its arguments. Called
    directly, it is run with the configuration that the contexts around know for its arguments.

    Parameters
    ----------
    task_name : name in records; by default the function's own.

    Raises
    ------
    ValueError : another function has the name.

    Examples
    --------
    >>> @autotvm.template("demo/matmul")
    ... def matmul(n):
    ...     a, b = te.placeholder((n, n)), te.placeholder((n, n))
    ...     k = te.reduce_axis((0, n))
    ...     c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))
    ...     s, cfg = te.create_schedule(c.op), autotvm.get_config()
    ...     cfg.define_split("tile_x", c.op.axis[1], num_outputs=2)
    ...     cfg["tile_x"].apply(s, c, c.op.axis[1])
    ...     return s, [a, b, c]
    """
    if callable(task_name):
        return template(None, task_name)

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        name = task_name or function.__name__
        known = TASK_TABLE.get(name)
        # Running a cell of a notebook or reloading a module defines the same template again.
        if known is not None and (known.__module__, known.__qualname__) != (
            function.__module__,
            function.__qualname__,
        ):
            raise ValueError(
                f"template: {name!r} is the name of {known.__module__}.{known.__qualname__} already"
            )
        TASK_TABLE[name] = function

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            values = list(bound.args)
            workload = args_to_workload(values, name)
            config = DispatchContext.current.query(Target.current(), workload)
            with ApplyConfig(config):
                return function(*values)

        run.task_name = name  # type: ignore[attr-defined]
        return run

    return enter if func is None else enter(func)


def create(
    task_name: str | Callable[..., Any],
    args: Sequence[Any],
    target: Target | str,
    target_host: Target | str | None = None,
) -> Task:
    """A task with its space.

    Parameters
    ----------
    task_name : name of a template, or the template itself.
    args : arguments of the template.
    target, target_host : what it is compiled for.

    Raises
    ------
    ValueError : no template has the name, or one of its knobs has no candidate.
    """
    if callable(task_name):
        name = getattr(task_name, "task_name", None)
        if name is None:
            raise ValueError(f"autotvm.task.create: {task_name!r} is no template")
        task_name = str(name)
    task = Task(task_name, args)
    target = target if isinstance(target, Target) else Target(target)
    if target_host is not None:
        target = Target(target, target_host)
        task.target_host = Target(target_host) if isinstance(target_host, str) else target_host
    task.target = target
    task.prepare_space()
    return task
