"""Passes written in Python that look at one function at a time."""

from __future__ import annotations

import functools
import inspect
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

    A result of None drops the function from the module. A class is also accepted: its instances
    are passes, made with the arguments of its constructor and run through its method
    ``transform_function``.

    >>> @tvm.tir.transform.prim_func_pass(opt_level=0)
    ... def tag(func, mod, ctx):
    ...     return func.with_attr("tag", 1)
    """

    def make(func: Callable[..., Any]) -> Any:
        pass_name = str(name or getattr(func, "__name__", "prim_func_pass"))
        if inspect.isclass(func):
            return _pass_class(func, opt_level, pass_name, list(required))
        return _ffi_api.CreatePrimFuncPass(func, opt_level, pass_name, list(required))

    return make if pass_func is None else make(pass_func)


def _pass_class(cls: type, opt_level: int, name: str, required: list[str]) -> Callable[..., Any]:
    """The constructor of `cls` wrapped so that it gives passes."""

    @functools.wraps(cls, updated=())
    def create(*args: Any, **kwargs: Any) -> Any:
        worker = cls(*args, **kwargs)

        def run(func: Any, mod: Any, ctx: Any) -> Any:
            return worker.transform_function(func, mod, ctx)

        return _ffi_api.CreatePrimFuncPass(run, opt_level, name, required)

    return create
