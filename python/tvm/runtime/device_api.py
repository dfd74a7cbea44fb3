"""Devices of one's own: memory managed by Python functions, under a name and number one chooses."""

from __future__ import annotations

import atexit
from abc import ABC, abstractmethod
from typing import Any

from . import _ffi_api
from .device import Device

__all__ = ["DeviceAPI", "register_device"]

# What DLPack leaves to extensions, and numbers far above those it has given out; the table of C++
# ends at 63.
_EXTENSION_DEVICE = ("ext_dev", 12)
_OWN_NUMBERS = range(32, 64)


class DeviceAPI(ABC):
    """Memory of one kind of device. Derive from it and pass an instance to `register_device`.

    Addresses are integers and mean something to the device only; zero is none. The C++ form is
    ``tvm::runtime::DeviceAPI`` in ``include/tvm/runtime/device_api.h``.
    """

    @abstractmethod
    def alloc(self, device: Device, nbytes: int, alignment: int) -> int:
        """Address of `nbytes` new bytes, a multiple of `alignment`; 0 when there is no room."""

    @abstractmethod
    def free(self, device: Device, address: int) -> None:
        """Give back what `alloc` returned."""

    @abstractmethod
    def copy(
        self, source: int, source_device: Device, target: int, target_device: Device, nbytes: int
    ) -> None:
        """Copy bytes; each end lies on this kind of device or on the cpu."""

    def sync(self, device: Device) -> None:
        """Wait for the work queued on the device; one that works at once has none."""
        return

    def attr(self, device: Device, kind: int) -> Any:
        """Value of a device attribute, None when unknown; attribute 0 is "does it exist"."""
        return True if kind == 0 else None


def register_device(name: str, number: int, api: DeviceAPI | None = None) -> None:
    """Make ``tvm.device(name)`` a device.

    Parameters
    ----------
    name : one word.
    number : DLPack device type from 32 to 63, which DLPack gives to nobody; or 12, its own for
        extension devices, under the name "ext_dev".
    api : its memory. Without it arrays cannot be made on the device until a library registers the
        C++ form for the number.

    Raises
    ------
    ValueError : the name or the number is taken or not valid.
    """
    if not name.isidentifier():
        raise ValueError(f'register_device: "{name}" is no name; use letters, digits and "_"')
    if (name, number) != _EXTENSION_DEVICE:
        if name in Device.STR2MASK or number in Device.MASK2STR:
            taken = Device.MASK2STR.get(number, name)
            raise ValueError(f'register_device: {name} = {number} is taken by device "{taken}"')
        if number not in _OWN_NUMBERS:
            raise ValueError(
                f"register_device: {name} = {number}: the number belongs to DLPack; take one from "
                f'{_OWN_NUMBERS[0]} to {_OWN_NUMBERS[-1]}, or 12 under the name "ext_dev"'
            )
    functions = {}
    if api is not None:
        # Arrays may outlive the interpreter, which `free` cannot.
        atexit.unregister(_ffi_api.EndPackedDevices)
        atexit.register(_ffi_api.EndPackedDevices)
        functions = {key: getattr(api, key) for key in ("alloc", "free", "copy", "sync", "attr")}
    _ffi_api.RegisterDevice(number, name, functions)
    Device.MASK2STR[number] = name
    Device.STR2MASK[name] = number
