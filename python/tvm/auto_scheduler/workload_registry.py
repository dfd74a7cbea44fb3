"""Workloads by name: functions that users register, and tensors taken from networks."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tvm._ffi
from tvm import te

from .utils import (
    decode_workload_key,
    deserialize_args,
    get_func_name,
    register_by_name,
    serialize_args,
)

__all__ = [
    "WORKLOAD_FUNC_REGISTRY",
    "deserialize_workload_registry_entry",
    "is_registered_function",
    "load_workload_func_registry",
    "make_workload_key",
    "register_workload",
    "register_workload_tensors",
    "save_workload_func_registry",
    "serialize_workload_registry_entry",
    "workload_key_to_tensors",
]

# Function name -> function, and full workload key -> list of tensors.
WORKLOAD_FUNC_REGISTRY: dict[str, Any] = {}
# Functions that were registered at any time: files of registries may name these only.
_REGISTERED: list[Callable[..., Any]] = []


def register_workload(
    func_name: str | Callable[..., Any],
    f: Callable[..., Any] | None = None,
    override: bool = False,
) -> Any:
    """Register a function that returns the io tensors of a computation, inputs first.

    Usable as ``@register_workload``, ``@register_workload("name")`` or
    ``register_workload("name", f)``; gives the function back. Arguments of the function must be
    numbers, strings, tensors or tuples of these.

    Raises
    ------
    ValueError : the name is not a string.
    RuntimeError : the name is taken by another function, and `override` is False.

    Examples
    --------
    >>> @auto_scheduler.register_workload
    ... def matmul(n, m, k):
    ...     a = te.placeholder((n, k))
    ...     b = te.placeholder((k, m))
    ...     r = te.reduce_axis((0, k))
    ...     return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r))]
    """
    return register_by_name(
        WORKLOAD_FUNC_REGISTRY, "register_workload", func_name, f, override, _REGISTERED.append
    )


def register_workload_tensors(
    workload_key: str, tensors: Sequence[te.Tensor], override: bool = True
) -> str:
    """Register the io tensors of a computation under its full key; gives the key back.

    Raises
    ------
    RuntimeError : the key is taken and `override` is False.
    """
    if workload_key in WORKLOAD_FUNC_REGISTRY and not override:
        raise RuntimeError(f"register_workload_tensors: {workload_key} is registered already")
    WORKLOAD_FUNC_REGISTRY[workload_key] = list(tensors)
    return workload_key


def make_workload_key(func: str | Callable[..., Any], args: Any) -> str:
    """JSON text ``[name, arg, ...]`` of a registered function and its arguments.

    Raises
    ------
    ValueError : `func` is not a registered function or name, or an argument cannot be written.
    """
    if callable(func):
        name = get_func_name(func)
    elif isinstance(func, str):
        name = func
    else:
        raise ValueError(
            f"make_workload_key: expected a function or its name, got {type(func).__name__}"
        )
    if name not in WORKLOAD_FUNC_REGISTRY:
        raise ValueError(
            f"make_workload_key: {name!r} is not registered; decorate the function with "
            "@auto_scheduler.register_workload"
        )
    if not isinstance(args, (list, tuple)):
        args = (args,)
    return json.dumps([name, *serialize_args(args)])


@tvm._ffi.register_func("auto_scheduler.workload_key_to_tensors")
def workload_key_to_tensors(workload_key: str) -> list[te.Tensor]:
    """The io tensors that a workload key stands for.

    Raises
    ------
    ValueError : nothing is registered for the key.
    """
    entry = WORKLOAD_FUNC_REGISTRY.get(workload_key)
    if entry is not None and not callable(entry):
        return list(entry)
    name, args = decode_workload_key(workload_key)
    func = WORKLOAD_FUNC_REGISTRY.get(name)
    if not callable(func):
        raise ValueError(
            f"workload {workload_key} is unknown in this process; register its function with "
            "register_workload or its tensors with register_workload_tensors"
        )
    return list(func(*deserialize_args(args)))


def is_registered_function(workload_key: str) -> bool:
    """Whether a function is registered that makes the tensors of a key."""
    return callable(WORKLOAD_FUNC_REGISTRY.get(decode_workload_key(workload_key)[0]))


def serialize_workload_registry_entry(workload_key: str) -> tuple[str, Any]:
    """Name and picklable value of the entry behind a key, for a process that has not got it.

    Raises
    ------
    ValueError : nothing is registered for the key.
    """
    if workload_key in WORKLOAD_FUNC_REGISTRY:
        name = workload_key
    else:
        name, _ = decode_workload_key(workload_key)
    if name not in WORKLOAD_FUNC_REGISTRY:
        raise ValueError(f"workload {workload_key} is not registered")
    entry = WORKLOAD_FUNC_REGISTRY[name]
    return name, entry if callable(entry) else tvm.ir.save_json(list(entry))


def deserialize_workload_registry_entry(data: tuple[str, Any]) -> None:
    """Register what `serialize_workload_registry_entry` gave, unless it is known already."""
    name, value = data
    if name not in WORKLOAD_FUNC_REGISTRY:
        WORKLOAD_FUNC_REGISTRY[name] = (
            list(tvm.ir.load_json(value)) if isinstance(value, str) else value
        )


def save_workload_func_registry(filename: str | Path) -> None:
    """Pickle the registry into a file. Functions are stored by reference to their module.

    Raises
    ------
    ValueError : a function cannot be found by its module and name, such as one inside of another.
    """
    entries = [serialize_workload_registry_entry(key) for key in WORKLOAD_FUNC_REGISTRY]
    try:
        data = pickle.dumps(entries)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(f"save_workload_func_registry: {error}") from error
    Path(filename).write_bytes(data)


class _RegistryReader(pickle.Unpickler):
    """Reads a pickle that can name functions that were registered here, and call none."""

    def find_class(self, module: str, name: str) -> _Function:
        """What stands for a function while the file is read."""
        return _Function(module, name)


class _Function(NamedTuple):
    module: str
    name: str


def load_workload_func_registry(filename: str | Path) -> None:
    """Replace the registry by a file's. Nothing that the file names is imported or called.

    Raises
    ------
    ValueError : the file is no registry, or names a function that was not registered in this
        process; then the registry stays as it is.
    """
    where = f"load_workload_func_registry: {filename}"
    try:
        with open(filename, "rb") as file:
            entries = {str(name): value for name, value in _RegistryReader(file).load()}
    except (pickle.UnpicklingError, TypeError, ValueError, EOFError, AttributeError) as error:
        raise ValueError(f"{where} is no file of save_workload_func_registry: {error}") from error
    known = {(f.__module__, f.__qualname__): f for f in _REGISTERED if hasattr(f, "__qualname__")}
    table: dict[str, Any] = {}
    for name, value in entries.items():
        if isinstance(value, str):
            table[name] = list(tvm.ir.load_json(value))
        elif isinstance(value, _Function) and value in known:
            table[name] = known[value]
        else:
            what = ".".join(value) if isinstance(value, _Function) else repr(value)
            raise ValueError(
                f"{where}: the entry {name!r} is {what}, no function that was registered in this "
                "process; import the module that registers it"
            )
    WORKLOAD_FUNC_REGISTRY.clear()
    WORKLOAD_FUNC_REGISTRY.update(table)
