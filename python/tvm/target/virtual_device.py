"""Where values of a program live."""

from __future__ import annotations

from typing import Any

import tvm._ffi
from tvm import error
from tvm.runtime import Device, Object
from tvm.runtime import device as make_device

from . import _ffi_api
from .target import Target

__all__ = ["VirtualDevice"]

# What a device says, with the value that leaves it open.
_PARTS = (
    ("device_type_int", -1),
    ("virtual_device_id", -1),
    ("target", None),
    ("memory_scope", ""),
)


def _same(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, Target) and isinstance(b, Target) and str(a) == str(b))


@tvm._ffi.register_object("VirtualDevice")
class VirtualDevice(Object):
    """Where a value lives, as far as a program says so.

    Parameters
    ----------
    device : a `tvm.runtime.Device` or its name, such as "cpu"; None for any.
    target : what code for the device is compiled for; None for any.
    memory_scope : memory of the device; "" for any.

    Attributes
    ----------
    device_type_int, virtual_device_id : type and number of the device, -1 for any.

    Raises
    ------
    ValueError : the target is for devices of another type.
    """

    def __init__(self, device: Any = None, target: Any = None, memory_scope: str = "") -> None:
        if isinstance(device, str):
            device = make_device(device)
        kind, number = (-1, -1) if device is None else (int(device.device_type), device.device_id)
        if target is not None and not isinstance(target, Target):
            target = Target(target)
        if target is not None and kind == -1:
            kind = target.get_target_device_type()
        if target is not None and kind != target.get_target_device_type():
            raise error.ValueError(f"VirtualDevice: {device} does not run code for {target}")
        self.__init_handle_by_constructor__(
            _ffi_api.VirtualDevice, kind, number, target, memory_scope
        )

    @property
    def device_type(self) -> int:
        """Number of the type of device, as in DLPack; -1 for any."""
        return int(self.device_type_int)

    @property
    def is_unconstrained(self) -> bool:
        """Whether nothing is said."""
        return (
            self.device_type == self.virtual_device_id == -1
            and self.target is None
            and not self.memory_scope
        )

    @staticmethod
    def join(first: VirtualDevice, second: VirtualDevice) -> VirtualDevice | None:
        """What holds of both; None where one says something else than the other."""
        parts = []
        for name, any_value in _PARTS:
            a, b = getattr(first, name), getattr(second, name)
            if a != any_value and b != any_value and not _same(a, b):
                return None
            parts.append(b if a == any_value else a)
        return VirtualDevice._made(*parts)

    @staticmethod
    def default(device: VirtualDevice, fallback: VirtualDevice) -> VirtualDevice:
        """The device, and of another what is left open if their types agree."""
        joined = VirtualDevice.join(device, fallback)
        return device if joined is None else joined

    @staticmethod
    def _made(kind: int, number: int, target: Target | None, memory_scope: str) -> VirtualDevice:
        made = VirtualDevice.__new__(VirtualDevice)
        made.__init_handle_by_constructor__(
            _ffi_api.VirtualDevice, kind, number, target, memory_scope
        )
        return made

    @staticmethod
    def of(device: Any) -> VirtualDevice:
        """The device as one: it may be one already, a `Device`, a name, or a type's number.

        Raises
        ------
        TypeError : it is none of these.
        """
        if isinstance(device, VirtualDevice):
            return device
        if isinstance(device, int) and not isinstance(device, bool):
            device = Device(device, 0)
        if not isinstance(device, (Device, str)):
            raise error.TypeError(
                "VirtualDevice: expected a VirtualDevice, a Device or its name, got "
                f"{type(device).__name__}"
            )
        return VirtualDevice(device)
