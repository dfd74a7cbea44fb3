"""From a graph module to an executable."""

from __future__ import annotations

from tvm import error
from tvm.ir import IRModule
from tvm.runtime.relax_vm import Executable
from tvm.target import Target

from .analysis import check_well_formed
from .compile_fused import ScheduleSource, compile_fused, current_schedules
from .dps_packed import lower_dps_packed
from .expr import Function
from .open_sizes import OpenExecutable, has_open_sizes
from .struct_info import ObjectStructInfo
from .transform import AttachGlobalSymbol, OptimizeForInference

__all__ = ["build"]


def _refuse_objects(mod: IRModule) -> None:
    """Raise where a function takes what is no tensor, shape or number."""
    for gvar, func in mod.functions.items():
        for param in func.params if isinstance(func, Function) else ():
            if isinstance(param.struct_info, ObjectStructInfo):
                raise error.ValueError(
                    f"relax.build: '{gvar.name_hint}' takes the object '{param.name_hint}'; "
                    "compiled functions take tensors, so hand the state on as tensors, or export "
                    "without debug=True"
                )


def build(
    mod: IRModule, target: Target | str = "llvm", schedules: ScheduleSource = None
) -> Executable:
    """Compile every graph function of a module.

    Parameters
    ----------
    mod : a module of graph functions. One that has not been fused goes through
        ``transform.OptimizeForInference`` first.
    target : what to compile for.
    schedules : schedules by group: a function that returns None for a group it has none for, or a
        mapping from ``FusedGroup.key``; by default that of the innermost ``schedules_from``. The
        other groups get what ``topi.schedule_for`` knows.

    Returns
    -------
    An executable for :class:`VirtualMachine`. Its functions take and return tensors of the shapes
    in the module; of symbolic ones, each choice of sizes is compiled when it comes first.

    Raises
    ------
    ValueError : the module is not well formed, a function takes objects such as caches, an extent
        is known only when the program runs, or a schedule does not fit its group.
    """
    target = target if isinstance(target, Target) else Target(target)
    check_well_formed(mod)
    _refuse_objects(mod)
    if has_open_sizes(mod):
        source = current_schedules() if schedules is None else schedules
        return OpenExecutable(mod, lambda fixed: build(fixed, target, source))
    mod = OptimizeForInference()(lower_dps_packed(mod))
    return compile_fused(AttachGlobalSymbol()(mod), target, schedules)
