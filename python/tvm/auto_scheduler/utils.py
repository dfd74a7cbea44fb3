"""Workload names and arguments in a form that JSON can hold."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Sequence
from typing import Any

from tvm import rpc, te
from tvm.runtime import Object

__all__ = [
    "calc_similarity_tag",
    "calc_workload_dis_factor",
    "check_remote",
    "decode_workload_key",
    "deserialize_args",
    "get_const_tuple",
    "get_func_name",
    "register_by_name",
    "request_remote",
    "serialize_args",
    "shorten_error_text",
]

_TENSOR_TAG = "TENSOR"
# Half of what is kept of an error text: its beginning and its end say most.
_ERROR_TEXT_HALF = 256


def shorten_error_text(text: str) -> str:
    """The first and last 256 characters of a longer text."""
    if len(text) <= 2 * _ERROR_TEXT_HALF:
        return text
    return text[:_ERROR_TEXT_HALF] + "\n...\n" + text[-_ERROR_TEXT_HALF:]


def get_func_name(func: Callable[..., Any]) -> str:
    """Name under which a function is registered; the same in every process.

    It says where the function is defined (`outer.<locals>.inner`): two of the same short name in
    two places are two workloads.
    """
    if isinstance(func, functools.partial):
        func = func.func
    return str(getattr(func, "__qualname__", None) or type(func).__qualname__)


def register_by_name(
    table: dict[str, Any],
    where: str,
    func_name: str | Callable[..., Any],
    f: Callable[..., Any] | None,
    override: bool,
    on_register: Callable[[Callable[..., Any]], object] | None = None,
) -> Any:
    """Put a function into a table of functions: the body of decorators named `where`.

    `func_name` is a name, or the function itself; without a function a decorator comes back.
    `on_register` is told of the function.

    Raises
    ------
    ValueError : the name is not a string.
    RuntimeError : the name is taken, and `override` is False.
    """
    if callable(func_name):
        f = func_name
        func_name = get_func_name(f)
    if not isinstance(func_name, str):
        raise ValueError(f"{where}: the name must be a string, got {type(func_name).__name__}")
    name = func_name

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        if name in table and not override:
            raise RuntimeError(
                f"{where}: {name!r} is registered already; choose another name or pass "
                "override=True"
            )
        table[name] = func
        if on_register is not None:
            on_register(func)
        return func

    return register(f) if f is not None else register


def get_const_tuple(shape: Sequence[Any]) -> tuple[int, ...]:
    """The literal extents of a shape.

    Raises
    ------
    ValueError : an extent is symbolic.
    """
    extents = []
    for extent in shape:
        value = getattr(extent, "value", extent)
        if not isinstance(value, int):
            raise ValueError(f"shape {list(shape)}: extent {extent} is not a number")
        extents.append(int(value))
    return tuple(extents)


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as nested tuples of numbers and strings; a tensor by shape and dtype.

    Raises
    ------
    ValueError : an argument is neither a number, a string, a tensor nor a sequence of these.
    """
    result: list[Any] = []
    for arg in args:
        if isinstance(arg, te.Tensor):
            result.append((_TENSOR_TAG, get_const_tuple(arg.shape), str(arg.dtype)))
        elif isinstance(arg, (list, tuple)):
            result.append(serialize_args(arg))
        elif arg is None or isinstance(arg, (bool, int, float, str)):
            result.append(arg)
        else:
            raise ValueError(
                f"workload argument {arg!r} of type {type(arg).__name__} cannot be written as "
                "JSON; use numbers, strings, tensors and tuples of these"
            )
    return tuple(result)


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """Inverse of `serialize_args`; tensors become new placeholders, tuples become lists."""
    result: list[Any] = []
    for arg in args:
        if isinstance(arg, (list, tuple)):
            if len(arg) == 3 and arg[0] == _TENSOR_TAG:
                result.append(te.placeholder(tuple(arg[1]), dtype=arg[2]))
            else:
                result.append(deserialize_args(arg))
        else:
            result.append(arg)
    return result


def decode_workload_key(workload_key: str) -> tuple[str, list[Any]]:
    """The name or hash in a workload key, and its arguments.

    A key that is no JSON list is a name without arguments.
    """
    try:
        decoded = json.loads(workload_key)
    except ValueError:
        return workload_key, []
    if not isinstance(decoded, list) or not decoded or not isinstance(decoded[0], str):
        return workload_key, []
    return decoded[0], decoded[1:]


def calc_workload_dis_factor(
    target_workload: tuple[str, list[Any]], workload: tuple[str, list[Any]]
) -> float:
    """By how much costs of `workload` grow for `target_workload`; infinite if incompatible.

    Sizes may be multiples: a workload of twice the batch takes about twice as long. Both are pairs
    as `decode_workload_key` gives them.
    """

    def factor(want: Any, have: Any) -> float:
        if isinstance(want, list) and isinstance(have, list) and len(want) == len(have):
            return math.prod(factor(w, h) for w, h in zip(want, have))
        numbers = type(want) is int and type(have) is int
        if numbers and have != 0 and want != 0 and want % have == 0:
            return want / have
        return 1.0 if want == have else math.inf

    if target_workload[0] != workload[0]:
        return math.inf
    return factor(list(target_workload[1]), list(workload[1]))


# Tasks are alike while their work differs by less than the golden ratio.
_ALIKE = 1.618


def calc_similarity_tag(dag: Object) -> str:
    """Equal for tasks of the same operators and about the same work; empty without such tags.

    Operators name themselves in the attribute ``auto_scheduler_task_scheduler_tag``.
    """
    tag = "".join(
        f"{op.attrs['auto_scheduler_task_scheduler_tag']}_"
        for op in dag.ops
        if isinstance(op, te.ComputeOp) and "auto_scheduler_task_scheduler_tag" in op.attrs
    )
    if not tag:
        return ""
    return f"{tag}{int(math.log(float(dag.flop_ct) + 1, _ALIKE))}"


def _tracker_at(host: str | None, port: int | None) -> rpc.TrackerSession:
    host = host or os.environ.get("TVM_TRACKER_HOST")
    named = str(port or os.environ.get("TVM_TRACKER_PORT") or "")
    if not host or not named.isdecimal():
        raise ValueError(
            f"request_remote: {host or 'no host'}, port {named or '(none)'} is no tracker; give "
            "host and port, or set TVM_TRACKER_HOST and TVM_TRACKER_PORT"
        )
    return rpc.connect_tracker(host, int(named))


def request_remote(
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 1,
    timeout: float = 60,
) -> rpc.RPCSession:
    """A session with a device of a tracker, waiting until one is free.

    Parameters
    ----------
    host, port : of the tracker; from the environment's ``TVM_TRACKER_HOST`` and
        ``TVM_TRACKER_PORT`` if left out.
    priority : requests of a higher one are served first.
    timeout : seconds that the session may last; 0 for any.

    Raises
    ------
    RPCError : the tracker is not there. ValueError : no tracker is named.
    """
    tracker = _tracker_at(host, port)
    return tracker.request(device_key, priority=priority, session_timeout=timeout)


def check_remote(
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 100,
    timeout: float = 10,
    *,
    kind: str = "cpu",
) -> bool:
    """Whether a device of a tracker becomes free in time.

    Parameters
    ----------
    host, port : as of `request_remote`.
    timeout : seconds to wait for one.
    kind : of the device that must be there, by its name or that of a target.

    Raises
    ------
    ValueError : no tracker is named.
    """
    try:
        tracker = _tracker_at(host, port)
        with tracker.request(device_key, priority, request_timeout=timeout) as remote:
            return bool(remote.device(kind).exist)
    except rpc.RPCError:
        return False
