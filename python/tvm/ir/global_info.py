"""What a module says that is no function: above all, the devices that its tensors live on."""

from __future__ import annotations

from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api

__all__ = ["DummyGlobalInfo", "GlobalInfo", "VDevice"]


@tvm._ffi.register_object("GlobalInfo")
class GlobalInfo(Object):
    """Base of the kinds of global information; ``==`` compares structure."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalInfo) and tvm.ir.structural_equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tvm.ir.structural_hash(self)


@tvm._ffi.register_object("DummyGlobalInfo")
class DummyGlobalInfo(GlobalInfo):
    """Says nothing; for tests."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.DummyGlobalInfo)


@tvm._ffi.register_object("VDevice")
class VDevice(GlobalInfo):
    """A device that tensors live on.

    Parameters
    ----------
    target : a Target, or its text or table; None for any.
    vdevice_id : number among the devices of that target.
    memory_scope : memory of the device, "global" for its main one.
    """

    def __init__(
        self, target: Any = None, vdevice_id: int = 0, memory_scope: str = "global"
    ) -> None:
        if isinstance(target, (str, dict)):
            # Targets stand above this room; their constructor is in the registry.
            target = tvm.get_global_func("target.Target")(target, None)
        self.__init_handle_by_constructor__(_ffi_api.VDevice, target, vdevice_id, memory_scope)
