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
