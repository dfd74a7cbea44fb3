"""Passes written in Python that look at one function at a time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tvm._ffi
from tvm.ir.transform import Pass, pass_class

from . import _ffi_api

__all__ = ["PrimFuncPass", "prim_func_pass"]


@tvm._ffi.register_object("tir.PrimFuncPass")
class PrimFuncPass(Pass):
    """A pass made of a function over tensor programs, one at a time; see `prim_func_pass`."""


def prim_func_pass(
    pass_func: Callable[..., Any] | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """A pass from a function ``(PrimFunc, IRModule, PassContext) -> PrimFunc``; also a decorator.

    A result of None drops the function from the module. A class is also accepted: its instances
    are passes, made with the arguments of its constructor and run through its method
    ``transform_function``. Their other attributes are those of the class.

    Parameters
    ----------
    opt_level : a Sequential leaves the pass out below that level of the context; 0 if left out.
    name : by default that of the function.
    required : passes that a Sequential runs before.
    traceable : taken as in TVM; no pass leaves a trace.

    >>> @tvm.tir.transform.prim_func_pass(opt_level=0)
    ... def tag(func, mod, ctx):
    ...     return func.with_attr("tag", 1)
    """

    def make(func: Callable[..., Any]) -> Any:
        pass_name = str(name or getattr(func, "__name__", "prim_func_pass"))
        info = (opt_level or 0, pass_name, list(required or ()))
        if inspect.isclass(func):
            return pass_class(
                func, PrimFuncPass, "transform_function", _ffi_api.CreatePrimFuncPass, *info
            )
        return _ffi_api.CreatePrimFuncPass(func, *info)

    return make if pass_func is None else make(pass_func)
