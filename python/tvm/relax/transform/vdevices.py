"""On which devices the tensors of a module live."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import IRModule, RelayExpr, VDevice

from .. import op
from ..expr import Call, Function, Tuple, TupleGetItem, Var, VarBinding, dict_attrs
from ..expr_functor import PyExprMutator, PyExprVisitor
from ..op.registry import get_op
from ..struct_info import FuncStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from .graph_pass import graph_pass

__all__ = ["RealizeVDevice", "UpdateVDevice"]

_HINT, _COPY = "relax.hint_on_device", "relax.to_vdevice"


def _name(value: RelayExpr) -> str:
    """The name of the operator that a value calls; empty for others."""
    if isinstance(value, Call) and isinstance(value.op, type(get_op("add"))):
        return str(value.op.name)
    return ""


def _on(info: StructInfo, device: VDevice) -> StructInfo:
    """Struct info of the same value on a device."""
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo([_on(field, device) for field in info.fields])
    if not isinstance(info, TensorStructInfo):
        return info
    if info.shape is None:
        return TensorStructInfo(None, str(info.dtype), device, info.ndim)
    return TensorStructInfo(info.shape, str(info.dtype), device)


def _device_in(info: StructInfo | None) -> VDevice | None:
    """The device that struct info names, the first one of a tuple."""
    if isinstance(info, TupleStructInfo):
        return next(filter(None, map(_device_in, info.fields)), None)
    return info.vdevice if isinstance(info, TensorStructInfo) else None


def _vars_in(value: RelayExpr) -> list[Var]:
    if isinstance(value, Var):
        return [value]
    if isinstance(value, TupleGetItem):
        return _vars_in(value.tuple_value)
    parts = (
        value.fields if isinstance(value, Tuple) else value.args if isinstance(value, Call) else ()
    )
    return [var for part in parts for var in _vars_in(part)]


class _Groups:
    """Variables that live together, and where; what is known counts more than what is hinted at."""

    def __init__(self) -> None:
        self._parent: dict[Var, Var] = {}
        self._known: dict[Var, VDevice] = {}
        self._hinted: dict[Var, VDevice] = {}

    def root(self, var: Var) -> Var:
        while var in self._parent:
            var = self._parent[var]
        return var

    def know(self, var: Var, device: VDevice) -> None:
        other = self._known.setdefault(self.root(var), device)
        if other != device:
            raise error.ValueError(
                f"RealizeVDevice: {var.name_hint} lives on {device}, what it is computed with on "
                f"{other}; copy one of them by to_vdevice or hint_on_device"
            )

    def hint(self, var: Var, device: VDevice) -> None:
        self._hinted.setdefault(self.root(var), device)

    def join(self, var: Var, other: Var) -> None:
        one, two = self.root(var), self.root(other)
        if one == two:
            return
        self._parent[two] = one
        known, hinted = self._known.pop(two, None), self._hinted.pop(two, None)
        if known is not None:
            self.know(one, known)
        if hinted is not None:
            self.hint(one, hinted)

    def device(self, var: Var) -> VDevice | None:
        root = self.root(var)
        return self._known.get(root) or self._hinted.get(root)


class _Collector(PyExprVisitor):
    def __init__(self, devices: list[VDevice]) -> None:
        super().__init__()
        self._devices = devices
        self.groups = _Groups()

    def visit_var_def(self, var: Var) -> None:
        device = _device_in(var.struct_info)
        if device is not None:
            self.groups.know(var, device)
        super().visit_var_def(var)

    def visit_function_(self, func: Function) -> None:
        super().visit_function_(func)
        device = _device_in(func.ret_struct_info)
        result = func.body.body
        if device is not None and isinstance(result, Var):
            self.groups.know(result, device)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        super().visit_var_binding_(binding)
        name = _name(binding.value)
        if name == _HINT:
            device = hinted_device(binding.value, self._devices)
            self.groups.know(binding.var, device)
            for var in _vars_in(binding.value.args[0]):
                self.groups.hint(var, device)
        elif name != _COPY:
            for var in _vars_in(binding.value):
                if not isinstance(var.struct_info, FuncStructInfo):
                    self.groups.join(binding.var, var)


def hinted_device(call: Call, devices: list[VDevice]) -> VDevice:
    """The device of the module that a call of hint_on_device speaks of.

    Raises
    ------
    ValueError : the module has none of this kind and number.
    """
    given = call.attrs.get("dst_vdevice", None)
    if given is not None:
        return given
    kind, number = int(call.attrs["device_type"]), int(call.attrs["index"])
    for device in devices:
        if device.target is None or int(device.vdevice_id) != number:
            continue
        if device.target.get_target_device_type() == kind:
            return device
    raise error.ValueError(
        f"RealizeVDevice: the module lists no device of type {kind} with number {number}; add it "
        'to the "vdevice" of its global infos'
    )


class _Updater(PyExprMutator):
    """Writes devices into what is known of variables, and copies where devices differ."""

    def __init__(self, mod: IRModule, groups: _Groups, devices: list[VDevice]) -> None:
        super().__init__(mod)
        self._groups = groups
        self._devices = devices

    def visit_var_def(self, var: Var) -> Var:
        device = self._groups.device(var)
        if device is None or var.struct_info is None or _device_in(var.struct_info) == device:
            return super().visit_var_def(var)
        info = _on(var.struct_info, device)
        if info.same_as(var.struct_info):
            return var
        new = type(var)(str(var.name_hint), info)
        self.set_var_remap(var, new)
        return new

    def visit_var_binding_(self, binding: VarBinding) -> None:
        device = self._groups.device(binding.var)
        value = self.visit_expr(binding.value)
        if device is not None and isinstance(value, Call) and len(value.sinfo_args):
            infos = [_on(info, device) for info in value.sinfo_args]
            value = self.builder_.normalize(Call(value.op, value.args, value.attrs, infos))
        self.reemit_binding(binding, value)

    def visit_call_(self, call: Call) -> RelayExpr:
        if _name(call) != _HINT:
            return super().visit_call_(call)
        operand = self.visit_expr(call.args[0])
        device = hinted_device(call, self._devices)
        if _device_in(operand.struct_info) == device:
            return operand
        return op.to_vdevice(operand, device)

    def visit_function_(self, func: Function) -> RelayExpr:
        new = super().visit_function_(func)
        if new.same_as(func):
            return func
        # What it gives follows from its body, where devices are known now.
        device = _device_in(new.body.struct_info)
        info = new.ret_struct_info if device is None else _on(new.ret_struct_info, device)
        return Function(new.params, new.body, info, new.is_pure, new.attrs)


def _devices_of(mod: IRModule) -> list[VDevice]:
    return [info for info in dict(mod.global_infos).get("vdevice", ()) if isinstance(info, VDevice)]


@graph_pass("RealizeVDevice")
def RealizeVDevice(mod: IRModule) -> IRModule:
    """The module whose tensors say on which device they live, as far as that follows.

    What an operator reads and gives lives in one place, except for those that copy. Annotations and
    results of `hint_on_device` say where; what a hint reads is taken to live there too unless
    something else says otherwise. The hint becomes a copy (`to_vdevice`) if it does not, and
    nothing if it does. Modules that list no devices come back as they are.

    Raises
    ------
    ValueError : a value would have to live on two devices, or the module does not list one that a
        hint names.
    """
    devices = _devices_of(mod)
    if not devices:
        return mod
    functions: dict[Any, Any] = {}
    for gvar, func in mod.functions.items():
        functions[gvar] = func
        if isinstance(func, Function):
            collector = _Collector(devices)
            collector.visit_expr(func)
            functions[gvar] = _Updater(mod, collector.groups, devices).visit_expr(func)
    return mod.with_functions(functions)


class _Replacer(PyExprMutator):
    def __init__(self, mod: IRModule, old: VDevice, new: VDevice) -> None:
        super().__init__(mod)
        self._old, self._new = old, new

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        if isinstance(info, TupleStructInfo):
            fields = [self.visit_struct_info(field) for field in info.fields]
            same = all(a.same_as(b) for a, b in zip(fields, info.fields))
            return info if same else TupleStructInfo(fields)
        if isinstance(info, TensorStructInfo) and info.vdevice == self._old:
            return _on(info, self._new)
        return super().visit_struct_info(info)

    def visit_call_(self, call: Call) -> RelayExpr:
        new = super().visit_call_(call)
        attrs = dict(new.attrs.items())
        if self._old not in attrs.values():
            return new
        attrs = {key: self._new if value == self._old else value for key, value in attrs.items()}
        return Call(new.op, new.args, dict_attrs(attrs), new.sinfo_args)


@graph_pass("UpdateVDevice")
def UpdateVDevice(mod: IRModule, new_vdevice: VDevice, index: int) -> IRModule:
    """The module with another device in the place of one that it lists.

    Parameters
    ----------
    index : place in the "vdevice" of the module's global infos.

    Raises
    ------
    IndexError : the module lists fewer devices.
    """
    devices = _devices_of(mod)
    if not 0 <= index < len(devices):
        raise error.IndexError(
            f"UpdateVDevice: {index} of the {len(devices)} devices of the module"
        )
    old = devices[index]
    devices[index] = new_vdevice
    replacer = _Replacer(mod, old, new_vdevice)
    result = mod.with_functions({
        gvar: replacer.visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    })  # fmt: skip
    result.update_global_info("vdevice", devices)
    return result
