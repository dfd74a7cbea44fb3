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

from .relax_types import Callable as Callable
from .relax_types import Object as Object
from .relax_types import Prim as Prim
from .relax_types import Shape as Shape
from .relax_types import Tensor as Tensor
from .relax_types import Tuple as Tuple
from .relax_types import info_of


def call_tir(func: Any, args: Any, out_sinfo: Any, tir_vars: Any = None) -> relax.Call:
    """A call of a tensor function of the module; see ``relax.op.call_tir``."""
    return relax.op.call_tir(func, _values(args), _infos(out_sinfo), tir_vars)


def call_tir_with_grad(
    func: Any,
    args: Any,
    out_sinfo: Any,
    te_grad_name: str,
    te_grad_kwargs: Any = None,
    tir_vars: Any = None,
) -> relax.Call:
    """A call of a tensor function of the module that has a gradient."""
    return relax.op.call_tir_with_grad(
        func, _values(args), _infos(out_sinfo), te_grad_name, te_grad_kwargs, tir_vars
    )


def call_tir_inplace(
    func: Any, args: Any, inplace_indices: Any, out_sinfo: Any, tir_vars: Any = None
) -> relax.Call:
    """A call of a tensor function of the module that writes over arguments."""
    return relax.op.call_tir_inplace(
        func, _values(args), inplace_indices, _infos(out_sinfo), tir_vars
    )


def call_dps_packed(func: Any, args: Any, out_sinfo: Any) -> relax.Call:
    """A call of a function by name that writes into outputs."""
    return relax.op.call_dps_packed(func, _values(args), _infos(out_sinfo))


def call_packed(func: Any, *args: Any, sinfo_args: Any = None, **attrs: Any) -> relax.Call:
    """A call of a function of the runtime, which may have effects.

    Parameters
    ----------
    sinfo_args : what it gives.
    """
    callee = ExternFunc(func) if isinstance(func, builtins.str) else func
    infos = _info_list(sinfo_args)
    return relax.Call(callee, [value(arg) for arg in args], attrs or None, infos)


def call_pure_packed(func: Any, *args: Any, sinfo_args: Any) -> relax.Call:
    """A call of a function of the runtime that is known to have no effects."""
    return relax.op.call_pure_packed(
        func, *(value(arg) for arg in args), sinfo_args=_info_list(sinfo_args)
    )


def call_inplace_packed(func: Any, *args: Any, inplace_indices: Any, sinfo_args: Any) -> relax.Call:
    """A call of a function of the runtime that gives back arguments after writing over them."""
    return relax.op.call_inplace_packed(
        func, *(value(arg) for arg in args), inplace_indices=inplace_indices,
        sinfo_args=_info_list(sinfo_args),
    )  # fmt: skip


def call_builtin_with_ctx(func: Any, args: Any, *, sinfo_args: Any = None) -> relax.Call:
    """A call of a function that gets the virtual machine."""
    return relax.op.call_builtin_with_ctx(func, _values(args), sinfo_args=_info_list(sinfo_args))


def invoke_closure(closure: Any, args: Any, sinfo_args: Any) -> relax.Call:
    """A call of a closure."""
    return relax.op.invoke_closure(closure, _values(args), _info_list(sinfo_args))


def invoke_pure_closure(closure: Any, args: Any, sinfo_args: Any) -> relax.Call:
    """A call of a closure without effects."""
    return relax.op.invoke_pure_closure(closure, _values(args), _info_list(sinfo_args))


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


def _values(items: Any) -> Any:
    return [value(item) for item in items] if isinstance(items, (builtins.tuple, list)) else items


def _infos(infos: Any) -> Any:
    return (
        [info_of(i) for i in infos] if isinstance(infos, (builtins.tuple, list)) else info_of(infos)
    )


def _info_list(infos: Any) -> list[Any]:
    if infos is None:
        return []
    return _infos(list(infos) if isinstance(infos, (builtins.tuple, list)) else [infos])


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
