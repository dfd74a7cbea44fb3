"""Operators of a library as templates: a computation and its schedule under one name."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te
from tvm.target import Target
from tvm.te import _ffi_api

from .context import ApplyConfig, DispatchContext
from .task import TASK_TABLE, args_to_workload

__all__ = ["deep_tuple", "get_workload", "register_topi_compute", "register_topi_schedule"]

_COMPUTES: dict[str, Callable[..., Any]] = {}
_SCHEDULES: dict[str, Callable[..., Any]] = {}
# Attribute of an operation that says which workload it was made for.
_ATTRIBUTE = "workload"


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Decorator of a computation ``f(cfg, *args)`` that defines and reads knobs on `cfg`.

    What it gives is called without `cfg`, which the contexts around choose for the arguments.

    Parameters
    ----------
    task_name : such as "dense.mine"; a schedule of the same name completes the template.
    """

    def enter(compute: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compute)
        def run(*args: Any) -> Any:
            workload = args_to_workload(args, task_name)
            config = DispatchContext.current.query(Target.current(), workload)
            result = compute(config, *args)
            if isinstance(result, (list, tuple)):
                return [_marked(output, workload) for output in result]
            return _marked(result, workload)

        _COMPUTES[task_name] = run
        _complete(task_name)
        return run

    return enter if func is None else enter(func)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Decorator of a schedule ``f(cfg, outs)``; called without `cfg`, too."""

    def enter(schedule: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(schedule)
        def run(outs: Any, *args: Any) -> Any:
            outputs = [outs] if isinstance(outs, te.Tensor) else list(outs)
            workload = get_workload(outputs, task_name)
            if workload is None:
                raise RuntimeError(
                    f"{task_name}: the outputs hold no computation that was made by the function "
                    "registered with register_topi_compute under this name"
                )
            config = DispatchContext.current.query(Target.current(), workload)
            return schedule(config, outs, *args)

        _SCHEDULES[task_name] = run
        _complete(task_name)
        return run

    return enter if func is None else enter(func)


def get_workload(outs: Sequence[te.Tensor], task_name: str | None = None) -> tuple[Any, ...] | None:
    """The workload of the nearest computation that is a template's; None if there is none.

    Parameters
    ----------
    task_name : look for this template only.
    """
    pending, seen = [tensor.op for tensor in outs], set()
    while pending:
        operation = pending.pop(0)
        if operation in seen:
            continue
        seen.add(operation)
        text = operation.attrs.get(_ATTRIBUTE) if isinstance(operation, te.ComputeOp) else None
        if text is not None:
            workload = deep_tuple(json.loads(str(text)))
            if task_name in (None, workload[0]):
                return workload
        pending.extend(tensor.op for tensor in operation.input_tensors)
    return None


def deep_tuple(value: Any) -> Any:
    """Lists as tuples, all the way down: what JSON made of a workload."""
    return tuple(deep_tuple(item) for item in value) if isinstance(value, list) else value


def _marked(output: te.Tensor, workload: tuple[Any, ...]) -> te.Tensor:
    """The same computation, which knows its workload."""
    op = output.op
    attrs = {**dict(op.attrs), _ATTRIBUTE: json.dumps(workload)}
    marked = _ffi_api.ComputeOp(str(op.name), str(op.tag), attrs, list(op.axis), list(op.body))
    return marked.output(int(output.value_index))


def _complete(task_name: str) -> None:
    """Enter the template once both of its halves are there."""
    if task_name not in _COMPUTES or task_name not in _SCHEDULES:
        return

    def run(*args: Any) -> tuple[te.Schedule, list[te.Tensor]]:
        config = DispatchContext.current.query(Target.current(), None)
        with ApplyConfig(config):
            result = _COMPUTES[task_name](*args)
            outputs = list(result) if isinstance(result, (list, tuple)) else [result]
            schedule = _SCHEDULES[task_name](outputs)
        inputs = [argument for argument in args if isinstance(argument, te.Tensor)]
        return schedule, [*inputs, *outputs]

    TASK_TABLE[task_name] = run
