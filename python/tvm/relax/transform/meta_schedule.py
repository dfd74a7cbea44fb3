"""Passes that search schedules of tensor programs, and that apply what was found.

The search is in a room above this one: it registers its functions, and the package on top loads it
when a pass needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import error, tir
from tvm.ir import IRModule
from tvm.runtime import NDArray
from tvm.runtime.params import named_arrays
from tvm.target import Target
from tvm.transform import Sequential

from .fuse_tir import FuseTIR
from .graph_pass import graph_pass
from .legalize_ops import LegalizeOps

__all__ = [
    "FewShotTuning",
    "MetaScheduleApplyDatabase",
    "MetaScheduleTuneIRMod",
    "MetaScheduleTuneTIR",
]


def _search(name: str) -> tuple[Any, Target]:
    tvm.get_global_func("relax.LoadMetaSchedule")()
    function = tvm.get_global_func(f"relax.{name}")
    target = Target.current()
    if target is None:
        raise error.ValueError(f"{name}: there is no target; run the pass inside of `with target:`")
    return function, target


def _with_programs(mod: IRModule) -> IRModule:
    """The module if it has tensor programs, else one that calls one for each of its groups."""
    if any(isinstance(func, tir.PrimFunc) for func in mod.functions.values()):
        return mod
    return Sequential([LegalizeOps(), FuseTIR()])(mod)


@graph_pass("MetaScheduleTuneIRMod")
def MetaScheduleTuneIRMod(
    mod: IRModule,
    params: Mapping[str, NDArray | np.ndarray],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
) -> IRModule:
    """The module as it was, after a search for the tensor programs that it calls.

    Parameters
    ----------
    params : values of parameters of ``main``. work_dir : the folder of the database.
    max_trials_global, max_trials_per_task : measurements in all, and of a program.
    op_names : parts of names; programs whose name has none of them are left out.

    Raises
    ------
    ValueError : there is no current target, or nothing to tune.
    """
    tune, target = _search("MetaScheduleTuneIRMod")
    values = named_arrays(params)
    names = None if op_names is None else list(op_names)
    tune(mod, values, target, work_dir, max_trials_global, max_trials_per_task, names)
    return mod


@graph_pass("MetaScheduleTuneTIR")
def MetaScheduleTuneTIR(mod: IRModule, work_dir: str, max_trials_global: int) -> IRModule:
    """The module as it was, after a search for each of its tensor programs, called or not.

    Of a module without tensor programs, those are meant that its operators, or its fused groups
    of operators, become.

    Raises
    ------
    ValueError : there is no current target, or no tensor program.
    """
    tune, target = _search("MetaScheduleTuneTIR")
    tune(_with_programs(mod), target, work_dir, max_trials_global)
    return mod


@graph_pass("MetaScheduleApplyDatabase")
def MetaScheduleApplyDatabase(
    mod: IRModule, work_dir: str | None = None, enable_warning: bool = False
) -> IRModule:
    """The module with the fastest schedules on record for its tensor programs.

    A module without tensor programs is lowered to them first, as `MetaScheduleTuneTIR` does.

    Parameters
    ----------
    work_dir : the folder of a database; by default the one entered by ``with database:``.
    enable_warning : log the programs without a record.

    Returns
    -------
    Programs that got a schedule have the attribute ``tir.is_scheduled``.

    Raises
    ------
    ValueError : there is no current target, or no database.
    """
    apply, target = _search("MetaScheduleApplyDatabase")
    return apply(_with_programs(mod), target, work_dir, enable_warning)


@graph_pass("FewShotTuning")
def FewShotTuning(mod: IRModule, valid_count: int = 1, benchmark: bool = False) -> IRModule:
    """The module with schedules for its tensor programs that a few random attempts gave.

    Parameters
    ----------
    valid_count : schedules of a program that have to be compiled before one is taken.
    benchmark : take the fastest of these; else the last, without running any.

    Returns
    -------
    Programs that got a schedule have the attribute ``tir.is_scheduled``; those of symbolic extents,
    and those that had it before, stay.

    Raises
    ------
    ValueError : there is no current target.
    """
    tune, target = _search("FewShotTuning")
    return tune(mod, target, valid_count, benchmark)
