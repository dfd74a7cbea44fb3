"""Functions of tensor programs: parameters, attributes, result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import error, tir
from tvm.ir.function import attribute_value

from ..base import IRBuilder
from .buffers import type_of
from .frames import PrimFuncFrame

__all__ = ["arg", "func_attr", "func_name", "func_ret", "prim_func"]


def prim_func(is_private: bool = False, implicit_root: bool = True) -> PrimFuncFrame:
    """A function, for a ``with``.

    Parameters
    ----------
    is_private : it gets no global symbol.
    implicit_root : a block around the function's blocks goes without saying.
    """
    return PrimFuncFrame(is_private, implicit_root)


def _function(what: str) -> PrimFuncFrame:
    frame = IRBuilder.current().find(PrimFuncFrame)
    if frame is None:
        raise error.ValueError(f"{what} belongs to a function; open `with T.prim_func():` around")
    return frame


def arg(name: str, obj: Any) -> Any:
    """A parameter: a variable, or a buffer, which comes as a handle of its own."""
    frame = _function("T.arg")
    if isinstance(obj, tir.Buffer):
        # TVM calls such a handle after the buffer; nothing else has the name.
        handle = tir.Var(f"{name}_handle", "handle")
        frame.params.append(handle)
        frame.buffer_map[handle] = obj
    elif isinstance(obj, tir.Var):
        frame.params.append(obj)
    else:
        raise error.TypeError(
            f"parameter `{name}` is a T.Buffer, T.handle or a number such as T.int32, not {obj!r}"
        )
    return IRBuilder.name(name, obj)


def func_name(name: str) -> None:
    """The name of the function."""
    frame = _function("T.func_name")
    if frame.name is not None:
        raise error.ValueError(f"the function has the name `{frame.name}` already")
    frame.name = name


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""
    frame = _function("T.func_attr")
    if frame.attrs is not None:
        raise error.ValueError("the attributes of the function are given twice")
    for name in attrs:
        if not isinstance(name, str):
            raise error.TypeError(f"T.func_attr: a text is needed here, not {name!r}")
    frame.attrs = {name: attribute_value(value) for name, value in attrs.items()}


def func_ret(ret_type: Any) -> None:
    """The type of the function's result; None for no result."""
    frame = _function("T.func_ret")
    if frame.ret_type is not None:
        raise error.ValueError("the type of the result is given twice")
    frame.ret_type = None if ret_type is None else type_of(ret_type)
