"""Passes written in Python that look at one function at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _ffi_api

__all__ = ["prim_func_pass"]


def prim_func_pass(
    pass_func: Callable[..., Any] | None = None,
    opt_level: int = 0,
    name: str | None = None,
    required: Sequence[str] = (),
) -> Any:
    """A pass from a function ``(PrimFunc, IRModule, PassContext) -> PrimFunc``; also a decorator.

    A result of None drops the function from the module.

    >>> @tvm.tir.transform.prim_func_pass(opt_level=0)
    ... def tag(func, mod, ctx):
    ...     return func.with_attr("tag", 1)
    """

    def make(func: Callable[..., Any]) -> Any:
        pass_name = name or getattr(func, "__name__", "prim_func_pass")
        return _ffi_api.CreatePrimFuncPass(func, opt_level, pass_name, list(required))

    return make if pass_func is None else make(pass_func)
