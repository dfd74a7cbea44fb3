"""The device that a program runs on, which is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import error
from tvm.ir import IRModule, RelayExpr
from tvm.ir.transform import PassContext
from tvm.target import Target, VirtualDevice, make_compilation_config

from ..expr import Call, ExprWithOp, Function
from ..expr_functor import post_order_visit
from ..transform.base import relay_functions
from ..transform.plan_devices import planned

__all__ = ["check_devices", "target_for", "target_of"]

_PLACES = ("virtual_device", "src_virtual_device", "dst_virtual_device")
_MARKS = ("on_device", "device_copy")


def _asked(expr: RelayExpr) -> list[tuple[str, VirtualDevice]]:
    """The devices that an expression names, with what names them."""
    found = []
    if isinstance(expr, (ExprWithOp, Function)) and expr.known_device_ is not None:
        name = getattr(expr, "name_hint", None) or type(expr).__name__
        found.append((str(name), expr.virtual_device_))
    if isinstance(expr, Call) and str(getattr(expr.op, "name", "")) in _MARKS:
        for place in _PLACES:
            device = (expr.attrs or {}).get(place)
            if device is not None:
                found.append((str(expr.op.name), device))
    return [(name, device) for name, device in found if device.device_type != -1]


def check_devices(mod: IRModule, target: Target) -> None:
    """Refuse what a program says of devices that code for the target does not run on.

    Raises
    ------
    ValueError : there is such a device.
    """
    kind = target.get_target_device_type()

    def look(expr: RelayExpr) -> None:
        for name, device in _asked(expr):
            if device.device_type != kind:
                asked = tvm.device(device.device_type, max(device.virtual_device_id, 0))
                raise error.ValueError(
                    f"relay: {name} asks for {asked}, and the program is compiled for "
                    f"{target.kind.name}: it runs on one device. Compile the parts by themselves, "
                    "and copy what one gives the other by NDArray.copyto"
                )

    for _, func in relay_functions(mod):
        post_order_visit(func, look)


def _choices(target: Any) -> list[Any]:
    """What may be given for a target, as a list; one entry for one target."""
    if isinstance(target, (list, tuple)):
        return list(target)
    if isinstance(target, Mapping) and not {"kind", "tag"} & set(target):
        return list(target.values())
    return [target]


def target_for(mod: IRModule, target: Any, host: Any = None) -> Target:
    """The target of the device that a program, whose types are known, runs on: of several, that of
    the device on which all of its values live.

    Raises
    ------
    ValueError : there is none, or values live on several devices.
    """
    if len(_choices(target)) < 2:
        return target_of(target, host)
    config = make_compilation_config(PassContext.current(), _choices(target), host)
    found: dict[int, str] = {}

    def look(expr: RelayExpr) -> None:
        for name, device in _asked(expr):
            found.setdefault(device.device_type, name)

    for _, func in relay_functions(planned(mod, config)):
        post_order_visit(func, look)
    if len(found) > 1:
        places = ", ".join(f"{name} on {tvm.device(kind, 0)}" for kind, name in found.items())
        raise error.ValueError(
            f"relay: values of the program live on several devices ({places}), and it runs on one. "
            "Compile the parts by themselves, and copy what one gives the other by NDArray.copyto"
        )
    default = config.default_primitive_virtual_device.device_type
    return config.find_primitive_target(next(iter(found), default))


def target_of(target: Any, host: Any = None) -> Target:
    """One target from what may be given for it: a name, a Target, or a table of devices.

    Parameters
    ----------
    host : what the host's part is compiled for; by default the target says it.

    Raises
    ------
    ValueError : none, or several.
    """
    choices = _choices(target)
    if len(choices) != 1:
        raise error.ValueError(f"relay.build: one target is built for, got {choices}")
    target = choices[0]
    if target is None:
        target = Target.current(allow_none=True)
        if target is None:
            raise error.ValueError('relay.build: give a target, such as "llvm"')
    target = target if isinstance(target, Target) else Target(target)
    return target if host is None else Target(target, host=host)
