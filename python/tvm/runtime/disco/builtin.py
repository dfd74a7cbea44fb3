"""The functions ``runtime.disco.*``, which sessions, and compiled code, call inside a worker."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from tvm import error
from tvm._ffi import get_global_func, register_func
from tvm.runtime import relax_vm
from tvm.runtime.container import ShapeTuple
from tvm.runtime.device import Device
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.ndarray import empty as empty_array
from tvm.runtime.packed_func import PackedFunc

from .collectives import REDUCE_OPS, Part
from .worker import copy_elements, current_worker

__all__ = ["disco_device", "disco_worker_id"]


def disco_worker_id() -> int:
    """Number of the worker that runs the calling function; RuntimeError outside of a session."""
    return current_worker().worker_id


def disco_device() -> Device:
    """Device of the worker that runs the calling function; RuntimeError outside of a session."""
    return current_worker().device


register_func("runtime.disco.worker_rank", disco_worker_id)
register_func("runtime.disco.device", disco_device)


@register_func("runtime.disco.worker_id")
def _worker_id() -> ShapeTuple:
    return ShapeTuple([disco_worker_id()])


@register_func("runtime.disco.init_ccl")
def _init_ccl(kind: str, device_ids: Sequence[int]) -> None:
    worker = current_worker()
    device = Device(kind, device_ids[worker.worker_id])
    if not device.exist:
        raise error.RuntimeError(f"init_ccl: device {device} is not available")
    worker.device = device


@register_func("runtime.disco.get_global_func")
def _get_global_func(name: str) -> Any:
    function = get_global_func(name, allow_missing=True)
    if function is None:
        raise error.ValueError(
            f'get_global_func: there is no function "{name}" in this worker; a module that '
            "registers it is loaded with Session.import_python_module"
        )
    return function


@register_func("runtime.disco.import_python_module")
def _import_python_module(name: str) -> None:
    importlib.import_module(name)


@register_func("runtime.disco.load_vm_module")
def _load_vm_module(path: str, device: Device | None) -> Module:
    executable = relax_vm.load_executable(path)
    return relax_vm.VirtualMachine(executable, device or current_worker().device).module


@register_func("runtime.disco.function_of")
def _function_of(module: Module, name: str) -> PackedFunc:
    return module[name]


@register_func("runtime.disco.empty")
def _empty(
    shape: Sequence[int], dtype: str, device: Device | None, worker0_only: bool
) -> NDArray | None:
    worker = current_worker()
    if worker0_only and worker.worker_id != 0:
        return None
    return empty_array(list(shape), dtype, device or worker.device)


@register_func("runtime.disco.copy_from_worker_0")
def _copy_from_worker_0(host: NDArray, remote: Any) -> None:
    copy_elements(_array("copy_from_worker_0", "remote_array", remote), host)


@register_func("runtime.disco.copy_to_worker_0")
def _copy_to_worker_0(host: NDArray, remote: Any) -> None:
    copy_elements(host, _array("copy_to_worker_0", "remote_array", remote))


@register_func("runtime.disco.place_on_worker_0")
def _place_on_worker_0(host: NDArray) -> NDArray:
    device = current_worker().device
    return host if host.device == device else host.copyto(device)


@register_func("runtime.disco.broadcast_from_worker0")
def _broadcast_from_worker0(source: Any, target: Any) -> None:
    _from_worker0("broadcast_from_worker0", source, target)


@register_func("runtime.disco.scatter_from_worker0")
def _scatter_from_worker0(source: Any, target: Any) -> None:
    _from_worker0("scatter_from_worker0", source, target)


@register_func("runtime.disco.gather_to_worker0")
def _gather_to_worker0(source: Any, target: Any) -> None:
    receives = current_worker().worker_id == 0
    sent = _array("gather_to_worker0", "source", source)
    _exchange(
        "gather_to_worker0",
        sent,
        _array("gather_to_worker0", "target", target) if receives else None,
    )


@register_func("runtime.disco.allgather")
def _allgather(source: Any, target: Any) -> None:
    _exchange(
        "allgather", _array("allgather", "source", source), _array("allgather", "target", target)
    )


@register_func("runtime.disco.allreduce")
def _allreduce(source: Any, op: str | ShapeTuple, target: Any) -> None:
    # Compiled code says the operation by its number, in a shape.
    if not isinstance(op, str):
        op = dict(enumerate(REDUCE_OPS)).get(op[0], f"number {op[0]}")
    if op not in REDUCE_OPS:
        raise error.ValueError(f'allreduce: unknown operation "{op}"; known: {list(REDUCE_OPS)}')
    _exchange(
        "allreduce",
        _array("allreduce", "source", source),
        _array("allreduce", "target", target),
        op,
    )


def _from_worker0(kind: str, source: Any, target: Any) -> None:
    sends = current_worker().worker_id == 0
    _exchange(
        kind, _array(kind, "source", source) if sends else None, _array(kind, "target", target)
    )


def _exchange(kind: str, source: NDArray | None, target: NDArray | None, op: str = "") -> None:
    try:
        part = Part.of(source, target, op)
    except error.ValueError as raised:
        raise error.ValueError(f"{kind}: {raised}") from None
    share = current_worker().meet(kind, part)
    if target is not None:
        target.copyfrom(share.reshape(target.shape))


def _array(kind: str, role: str, value: Any) -> NDArray:
    if not isinstance(value, NDArray):
        raise error.TypeError(f"{kind}: the {role} is a {type(value).__name__}, not an NDArray")
    return value
