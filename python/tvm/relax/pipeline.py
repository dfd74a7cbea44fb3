"""Sequences of passes by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import error
from tvm.ir import IRModule
from tvm.transform import Pass, PassContext, module_pass

from .open_sizes import has_open_sizes
from .transform import OptimizeForInference

__all__ = ["get_pipeline", "register_pipeline"]

_PIPELINES: dict[str, Callable[..., Pass]] = {}


def register_pipeline(name: str) -> Callable[[Callable[..., Pass]], Callable[..., Pass]]:
    """Decorator: give a function that makes a pass a name for :func:`get_pipeline`.

    Raises
    ------
    ValueError : the name is taken.
    """
    if name in _PIPELINES:
        raise error.ValueError(f"Pipeline {name} has already been registered")

    def register(func: Callable[..., Pass]) -> Callable[..., Pass]:
        _PIPELINES[name] = func
        return func

    return register


def get_pipeline(name: str = "zero", **kwargs: Any) -> Pass:
    """The pass of a name.

    Parameters
    ----------
    name : "zero" and "default_build" are what ``relax.build`` does before it compiles kernels:
        folding, layouts and fusion. Programs of symbolic sizes stay as they are, since each choice
        of sizes goes through it when it is compiled.
    kwargs : arguments of the function that makes it.

    Raises
    ------
    ValueError : there is none of this name; the message lists the known ones.
    """
    if name not in _PIPELINES:
        raise error.ValueError(
            f"Unknown pre-built pipeline {name}, candidates are {sorted(_PIPELINES)}"
        )
    return _PIPELINES[name](**kwargs)


@register_pipeline("default_build")
@register_pipeline("zero")
def _zero() -> Pass:
    @module_pass(opt_level=0, name="relax.pipeline.zero")
    def zero(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod if has_open_sizes(mod) else OptimizeForInference()(mod)

    return zero
