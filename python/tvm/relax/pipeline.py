"""Sequences of passes by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import error
from tvm.ir import IRModule
from tvm.target import Target
from tvm.transform import Pass, PassContext, Sequential, module_pass

from .compile_programs import has_fixed_sizes, is_list_of_kernels
from .transform import (
    MetaScheduleApplyDatabase,
    MetaScheduleTuneTIR,
    OptimizeForInference,
)

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
        folding, layouts and fusion. Modules stay as they are where that is for later, or not for
        them: those of symbolic sizes, and those whose functions become programs.
        "static_shape_tuning" does the same, searches the tensor programs that remain with
        MetaSchedule, and gives the module with the best schedules that were found.
    kwargs : arguments of the function that makes it. Of "static_shape_tuning": `total_trials`, the
        programs to measure; `target`; and `work_dir`, the folder of what was measured,
        "tuning_logs" if left out, from which a later search goes on.

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
        compiled_at_once = is_list_of_kernels(mod) and has_fixed_sizes(mod)
        return OptimizeForInference()(mod) if compiled_at_once else mod

    return zero


@register_pipeline("static_shape_tuning")
def _static_shape_tuning(
    total_trials: int, target: Target | str, work_dir: str = "tuning_logs"
) -> Pass:
    search = Sequential(
        [
            _zero(),
            MetaScheduleTuneTIR(work_dir, total_trials),
            MetaScheduleApplyDatabase(work_dir),
        ]
    )

    @module_pass(opt_level=0, name="relax.pipeline.static_shape_tuning")
    def static_shape_tuning(mod: IRModule, ctx: PassContext) -> IRModule:
        with target if isinstance(target, Target) else Target(target):
            return search(mod)

    return static_shape_tuning
