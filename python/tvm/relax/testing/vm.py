"""Registered functions that programs of tests call by name, and checks of machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm._ffi import register_func
from tvm.runtime import Device, NDArray
from tvm.runtime.ndarray import array
from tvm.runtime.relax_vm import VirtualMachine

__all__ = ["check_saved_func"]


@register_func("test.vm.move")
def _move(x: Any) -> Any:
    return x


@register_func("test.vm.add")
def _add(a: NDArray, b: NDArray) -> NDArray:
    return array(a.numpy() + b.numpy())


@register_func("test.vm.mul")
def _mul(a: NDArray, b: NDArray) -> NDArray:
    return array(a.numpy() * b.numpy())


@register_func("test.vm.add_scalar")
def _add_scalar(a: int, b: int) -> int:
    return a + b


@register_func("test.vm.equal_zero")
def _equal_zero(a: NDArray) -> NDArray:
    return array(np.asarray(a.numpy() == 0))


@register_func("test.vm.subtract_one")
def _subtract_one(a: NDArray) -> NDArray:
    return array(np.asarray(a.numpy() - 1))


@register_func("test.vm.identity")
def _identity(a: NDArray, out: NDArray) -> None:
    out.copyfrom(a.numpy())


@register_func("test.vm.tile")
def _tile(a: NDArray, out: NDArray) -> None:
    out.copyfrom(np.tile(a.numpy(), (1, 2)))


@register_func("test.vm.get_device_id")
def _get_device_id(device: Device) -> int:
    return device.device_id


@register_func("test.vm.check_if_defined")
def _check_if_defined(value: Any) -> bool:
    return value is not None


def check_saved_func(machine: VirtualMachine, func_name: str, *inputs: Any) -> Any:
    """Keep a call with its arguments, carry it out, and compare with the call itself.

    Returns
    -------
    The result.
    """
    saved = f"{func_name}_saved"
    machine.save_function(func_name, saved, *inputs)
    kept, direct = machine[saved](), machine[func_name](*inputs)
    _assert_same(kept, direct)
    return kept


def _assert_same(a: Any, b: Any) -> None:
    if isinstance(a, NDArray):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-7, atol=1e-7)
    else:
        assert len(a) == len(b)
        for one, other in zip(a, b):
            _assert_same(one, other)
