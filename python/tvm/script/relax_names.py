"""The names of the dialect of graphs, and what they are to Python."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from tvm import relax
from tvm.ir import PrimExpr, RelayExpr
from tvm.relax import ExternFunc
from tvm.relax import const as const
from tvm.relax.op import *  # noqa: F403
from tvm.relax.op.calls import print as print
from tvm.runtime import cpu as cpu
from tvm.runtime import cuda as cuda
from tvm.runtime import device as device
from tvm.runtime import metal as metal
from tvm.runtime import opencl as opencl
from tvm.runtime import rocm as rocm
from tvm.runtime import vulkan as vulkan

from . import relax_dist as dist  # noqa: F401
from .relax_devices import hint_on_device as hint_on_device
from .relax_devices import to_vdevice as to_vdevice
from .relax_dist import DTensor as DTensor
from .relax_dist import device_mesh as device_mesh
from .relax_types import Callable as Callable
from .relax_types import Object as Object
from .relax_types import Prim as Prim
from .relax_types import Shape as Shape
from .relax_types import Tensor as Tensor
from .relax_types import Tuple as Tuple
from .relax_types import info_of


def call_packed(func: Any, *args: Any, sinfo_args: Any = None, **attrs: Any) -> relax.Call:
    """A call of a function of the runtime, which may have effects.

    Parameters
    ----------
    sinfo_args : what it gives.
    """
    callee = ExternFunc(func) if isinstance(func, builtins.str) else func
    infos = _info_list(sinfo_args)
    return relax.Call(callee, [value(arg) for arg in args], attrs or None, infos)


def value(item: Any) -> RelayExpr:
    """A graph value: tuples and lists are tuples, numbers constants."""
    if isinstance(item, RelayExpr):
        return item
    if isinstance(item, PrimExpr):
        return relax.PrimValue(item)
    if isinstance(item, (builtins.tuple, list)):
        return relax.Tuple([value(field) for field in item])
    if isinstance(item, builtins.str):
        return relax.StringImm(item)
    return const(item)


def _info_list(infos: Any) -> list[Any]:
    if infos is None:
        return []
    given = infos if isinstance(infos, (builtins.tuple, list)) else [infos]
    return [info_of(info) for info in given]


def prim_value(value: PrimExpr | int | float) -> relax.PrimValue:
    """A scalar of the host as a value."""
    return relax.PrimValue(value)


def str(value: Any) -> relax.StringImm:
    """A text as a value."""
    return relax.StringImm(value)


def dtype(value: Any) -> relax.DataTypeImm:
    """An element type as a value."""
    return relax.DataTypeImm(value)


def shape(value: Sequence[Any]) -> relax.ShapeExpr:
    """A shape as a value."""
    return relax.ShapeExpr(list(value))


def tuple(*fields: Any) -> relax.Tuple:
    """A tuple of values."""
    return relax.Tuple([value(field) for field in fields])


class Cast:
    """What ``R.match_cast`` gives: a value and what is known of it, to be bound to a name."""

    def __init__(self, value: RelayExpr, struct_info: relax.StructInfo) -> None:
        self.value = value
        self.struct_info = struct_info


def match_cast(value: RelayExpr, struct_info: Any) -> Cast:
    """A value of which more is known than can be told before it runs."""
    return Cast(value, info_of(struct_info))
