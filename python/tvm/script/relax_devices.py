"""Operators of graphs that name a device of the module."""

from __future__ import annotations

from typing import Any

from tvm import relax
from tvm.ir import RelayExpr, VDevice

from .ir_builder.ir import device_named

__all__ = ["hint_on_device", "to_vdevice"]


def to_vdevice(data: RelayExpr, dst_vdevice: VDevice | str) -> relax.Call:
    """A copy of a tensor on another device, which may be named as in ``R.Tensor``."""
    return relax.op.to_vdevice(data, _device(dst_vdevice))


def hint_on_device(
    data: RelayExpr, dst_vdevice: Any = None, device_type: int | None = None, index: int = 0
) -> relax.Call:
    """The tensor, of which passes are told on which device it had better live.

    Parameters
    ----------
    dst_vdevice : a device, or its name as in ``R.Tensor``; in its place may stand the next two.
    device_type, index : the number of a kind of devices, and of one among them.
    """
    return relax.op.hint_on_device(data, _device(dst_vdevice), device_type, index)


def _device(device: Any) -> Any:
    return device_named(device) if isinstance(device, str) else device
