"""Modules under construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error
from tvm.ir import BaseFunc, DummyGlobalInfo, GlobalInfo, GlobalVar, IRModule, VDevice

from .base import IRBuilder, IRBuilderFrame

__all__ = [
    "IRModuleFrame",
    "decl_function",
    "def_function",
    "device_named",
    "dummy_global_info",
    "ir_module",
    "lookup_global_var",
    "lookup_vdevice",
    "module_attrs",
    "module_get_attr",
    "module_get_attrs",
    "module_global_infos",
    "module_set_attr",
    "vdevice",
]


class IRModuleFrame(IRBuilderFrame):
    """A module; functions that are finished inside of it become its functions."""

    def __init__(self) -> None:
        super().__init__()
        self.global_vars: dict[str, GlobalVar] = {}
        self.functions: dict[GlobalVar, BaseFunc] = {}
        self.attrs: dict[str, Any] = {}
        self.global_infos: dict[str, list[GlobalInfo]] = {}
        # Functions by the name the text has for them, which may differ from that in the module.
        self.aliases: dict[str, GlobalVar] = {}

    def closed(self) -> None:
        missing = [name for name, var in self.global_vars.items() if var not in self.functions]
        if missing:
            raise error.ValueError(f"ir_module: `{missing[0]}` is declared but not defined")
        functions = {var: self.functions[var] for var in self.global_vars.values()}
        IRBuilder.current().result = IRModule(
            functions, attrs=self.attrs, global_infos=self.global_infos
        )


def ir_module() -> IRModuleFrame:
    """A module, for a ``with``."""
    return IRModuleFrame()


def _module() -> IRModuleFrame:
    frame = IRBuilder.current().find(IRModuleFrame)
    if frame is None:
        raise error.ValueError("this belongs into a module; open `with I.ir_module():` around")
    return frame


def decl_function(name: str, signature: BaseFunc | None = None) -> GlobalVar:
    """Announce a function, so that others can call it.

    Raises
    ------
    ValueError : the module has a function of this name.
    """
    frame = _module()
    if name in frame.global_vars:
        raise error.ValueError(f"ir_module: there are two functions `{name}`")
    var = frame.global_vars[name] = GlobalVar(name)
    if signature is not None:
        frame.functions[var] = signature
    return var


def def_function(name: str, func: BaseFunc) -> GlobalVar:
    """Define a function, announced or not."""
    frame = _module()
    var = frame.global_vars.get(name) or decl_function(name)
    frame.functions[var] = func
    return var


def lookup_global_var(name: str) -> GlobalVar:
    """The variable of a function of the module.

    Raises
    ------
    ValueError : the module has no such function.
    """
    frame = _module()
    if name not in frame.global_vars:
        raise error.ValueError(f"ir_module: there is no function `{name}`")
    return frame.global_vars[name]


def module_attrs(attrs: Mapping[str, Any], allow_overwrite: bool = False) -> None:
    """Attributes of the module.

    Raises
    ------
    ValueError : an attribute is given twice, unless `allow_overwrite`.
    """
    frame = _module()
    for name, value in attrs.items():
        if name in frame.attrs and not allow_overwrite:
            raise error.ValueError(f"module_attrs: `{name}` is given twice")
        frame.attrs[name] = value


def module_get_attrs() -> dict[str, Any]:
    """The attributes that the module has so far."""
    return dict(_module().attrs)


def module_get_attr(attr_key: str) -> Any:
    """An attribute of the module, or None."""
    return _module().attrs.get(attr_key)


def module_set_attr(attr_key: str, attr_value: Any, allow_overwrite: bool = False) -> None:
    """Set an attribute of the module.

    Raises
    ------
    ValueError : there is one already, unless `allow_overwrite`.
    """
    module_attrs({attr_key: attr_value}, allow_overwrite)


def module_global_infos(global_infos: Mapping[str, Sequence[GlobalInfo]]) -> None:
    """What the module says beside its functions: "vdevice" lists its devices.

    Raises
    ------
    ValueError : it has been said already.
    """
    frame = _module()
    if frame.global_infos:
        raise error.ValueError("module_global_infos: a module says this once")
    frame.global_infos = {name: list(infos) for name, infos in global_infos.items()}


def dummy_global_info() -> DummyGlobalInfo:
    """A piece of global information that says nothing."""
    return DummyGlobalInfo()


def vdevice(target: Any = None, vdevice_id: int = 0, memory_scope: str = "global") -> VDevice:
    """A device that tensors live on; the parameters are those of `tvm.ir.VDevice`."""
    return VDevice(target, vdevice_id, memory_scope)


def lookup_vdevice(target_kind: str | None = None, device_index: int = -1) -> VDevice:
    """A device of the module.

    Parameters
    ----------
    target_kind : kind of its target; "vdevice" for any.
    device_index : number among the devices of that kind; the first one by default.

    Raises
    ------
    ValueError : the module has no such device; the message lists those it has.
    """
    devices = _module().global_infos.get("vdevice", [])
    kind = target_kind or "vdevice"
    found = [device for device in devices if kind in ("vdevice", _kind(device))]
    number = max(device_index, 0)
    if number < len(found):
        return found[number]
    known = ", ".join(_kind(device) for device in devices) or "none"
    raise error.ValueError(
        f"the module has no device `{kind}:{number}`; its devices are of the kinds: {known}"
    )


def _kind(device: VDevice) -> str:
    return "" if device.target is None else str(device.target.kind.name)


def device_named(text: str) -> VDevice | str:
    """The device of the module that is read that ``kind:number:scope`` names, of which number and
    scope may be left out; the text itself where no module lists devices."""
    frame = IRBuilder.current().find(IRModuleFrame) if IRBuilder.is_in_scope() else None
    if frame is None or "vdevice" not in frame.global_infos:
        return text
    kind, *rest = text.split(":")
    return lookup_vdevice(kind, int(rest[0]) if rest and rest[0] else 0)
