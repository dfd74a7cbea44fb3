"""From a graph module to an executable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import error, tir
from tvm.ir import IRModule
from tvm.runtime import Device, Module
from tvm.runtime.relax_vm import Executable
from tvm.target import Target
from tvm.transform import Pass

from .analysis import check_well_formed
from .compile_fused import ScheduleSource, compile_fused, current_schedules, fused_kernels
from .compile_programs import (
    compile_programs,
    has_fixed_sizes,
    has_known_shapes,
    in_dataflow_blocks,
    is_list_of_kernels,
)
from .dps_packed import lower_dps_packed
from .expr import Function
from .open_kernels import with_open_kernels
from .open_sizes import OpenExecutable, has_open_sizes
from .pipeline import get_pipeline
from .transform import BindParams, OptimizeForInference
from .transform.attach_extern import EXTERN_MODULES
from .transform.attach_symbol import with_symbols

__all__ = ["build", "compile", "lower_kernels"]


def build(
    mod: IRModule,
    target: Target | str = "llvm",
    schedules: ScheduleSource = None,
    *,
    params: Mapping[str, Any] | None = None,
    pipeline: str | Pass | None = "default_build",
    exec_mode: str = "bytecode",
) -> Executable:
    """Compile every graph function of a module.

    Functions that take and give tensors and call operators and kernels one after the other become
    lists of fused kernels over memory planned beforehand. Where symbolic extents of their
    parameters are open, each choice of sizes is compiled when it comes first. All other functions
    become programs, which allocate as they run: those with branches, calls of each other, tuples,
    shapes, numbers, functions and objects as values, and shapes that follow from values.

    Parameters
    ----------
    mod : a module of graph functions. One that has not been fused goes through
        ``transform.OptimizeForInference`` first, or through ``transform.LegalizeOps`` if it becomes
        programs.
    target : what to compile for.
    schedules : schedules by group: a function that returns None for a group it has none for, or a
        mapping from ``FusedGroup.key``; by default that of the innermost ``schedules_from``. The
        other groups get what ``topi.schedule_for`` knows.
    params : values of parameters of ``main`` by name, which become constants.
    pipeline : a pass, or the name of one (:func:`get_pipeline`), that the module goes through
        before; the default one is part of compiling, and None is the same.
    exec_mode : "bytecode" or "compiled", which are one here: a list of calls.

    Returns
    -------
    An executable for :class:`VirtualMachine`.

    Raises
    ------
    ValueError : the module is not well formed, an extent has no value, an operator has no kernel,
        a schedule does not fit its group, or an option has another value.
    """
    if exec_mode not in ("bytecode", "compiled"):
        raise error.ValueError(
            f'relax.build: exec_mode must be "bytecode" or "compiled", got {exec_mode!r}'
        )
    target = target if isinstance(target, Target) else Target(target)
    if params:
        mod = BindParams("main", dict(params))(mod)
    if isinstance(pipeline, Pass):
        mod = pipeline(mod)
    elif pipeline not in (None, "default_build"):
        mod = get_pipeline(pipeline)(mod)
    linked = mod.attrs.get(EXTERN_MODULES, None) if mod.attrs is not None else None
    executable = _compiled(mod, target, schedules)
    for module in linked or ():
        executable.link(module)
    return executable


def _fused(mod: IRModule) -> IRModule:
    """A list of kernels of fixed sizes as the groups that become one kernel each."""
    mod = OptimizeForInference()(lower_dps_packed(in_dataflow_blocks(mod)))
    return with_symbols(mod)


def lower_kernels(
    mod: IRModule, target: Target, schedules: ScheduleSource = None
) -> dict[str, tir.PrimFunc]:
    """The kernels that :func:`build` compiles for a graph of fixed shapes, by name.

    Parameters
    ----------
    schedules : see :func:`build`.

    Raises
    ------
    ValueError : the module has other functions than such graphs.
    """
    check_well_formed(mod)
    if not (is_list_of_kernels(mod) and has_fixed_sizes(mod)):
        raise error.ValueError("relax: kernels are lowered of graphs of tensors of fixed shape")
    return fused_kernels(_fused(mod), target, schedules)[0]


def _compiled(mod: IRModule, target: Target, schedules: ScheduleSource) -> Executable:
    check_well_formed(mod)
    is_processor = target.get_target_device_type() == Device.kDLCPU
    if is_list_of_kernels(mod):
        if has_fixed_sizes(mod):
            return compile_fused(_fused(mod), target, schedules)
        if is_processor and has_known_shapes(mod):
            mod = OptimizeForInference()(in_dataflow_blocks(mod))
            return compile_programs(with_open_kernels(mod, target), target)
        if has_open_sizes(mod):
            source = current_schedules() if schedules is None else schedules
            return OpenExecutable(
                mod,
                lambda fixed: _compiled(fixed, target, source),
                lambda: compile_programs(mod, target),
            )
    return compile_programs(mod, target)


def compile(
    mod: IRModule | tir.PrimFunc,
    target: Target | str | None = None,
    *,
    relax_pipeline: str | Pass | None = "default_build",
) -> Executable | Module:
    """Compile a module: graph functions by :func:`build`, only tensor programs by ``tvm.build``.

    Parameters
    ----------
    target : what to compile for; by default the current target, else "llvm".
    relax_pipeline : see `pipeline` of :func:`build`.

    Returns
    -------
    An executable of graph functions, else a module of kernels.

    Raises
    ------
    ValueError : what is wrong with the module or the target, as these functions say.
    """
    chosen = target if target is not None else Target.current() or "llvm"
    functions = mod.functions.values() if isinstance(mod, IRModule) else ()
    if any(isinstance(func, Function) for func in functions):
        return build(mod, chosen, pipeline=relax_pipeline)
    return tvm.build(mod, target=chosen)
