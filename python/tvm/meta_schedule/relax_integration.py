"""Searching for the tensor programs that a relax module calls."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import relax, tir
from tvm.ir import IRModule
from tvm.runtime import NDArray
from tvm.target import Target

from .database import Database, JSONDatabase
from .extracted_task import ExtractedTask
from .module_equality import equality_of
from .tir_integration import checked_target, tune_tir
from .tune import tune_tasks
from .tune_context import TuneContext
from .utils import normalize_mod

__all__ = [
    "apply_database",
    "compile_relax",
    "extract_tasks",
    "extracted_tasks_to_tune_contexts",
    "tune_relax",
    "with_schedule",
]

logger = logging.getLogger("tvm.meta_schedule")

Params = Mapping[str, NDArray | np.ndarray]


def _bound(mod: IRModule | relax.Function, params: Params | None) -> IRModule:
    if isinstance(mod, relax.Function):
        mod = IRModule({"main": mod})
    return relax.transform.BindParams("main", dict(params))(mod) if params else mod


def _calls(mod: IRModule) -> dict[str, int]:
    """How often graph functions call each tensor program, by its name."""
    counts: dict[str, int] = {}
    call_tir = tvm.ir.Op.get("relax.call_tir")

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call) and expr.op.same_as(call_tir):
            name = str(expr.args[0].name_hint)
            counts[name] = counts.get(name, 0) + 1

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return counts


def _is_scheduled(function: tir.PrimFunc) -> bool:
    return bool((function.attrs or {}).get("tir.is_scheduled", False))


def _without_name(mod: IRModule) -> IRModule:
    return IRModule({"main": mod["main"].without_attr("global_symbol")})


def extract_tasks(
    mod: IRModule | relax.Function,
    target: str | Target,
    params: Params | None = None,
    *,
    module_equality: str = "structural",
) -> list[ExtractedTask]:
    """The tensor programs that a module calls, each with how often it does.

    Parameters
    ----------
    mod : a module whose operators are calls of tensor programs, see `relax.transform.LegalizeOps`.
    params : values of parameters of ``main``, which become constants.
    module_equality : which programs are one task: "structural", "ignore-ndarray" or
        "anchor-block", see :func:`tvm.meta_schedule.module_equality.equality_of`.

    Returns
    -------
    Programs that differ, in the order of the module; those that are scheduled take no part.
    """
    target = target if isinstance(target, Target) else Target(target)
    mod = _bound(mod, params)
    calls = _calls(mod)
    equality = equality_of(module_equality)
    tasks: dict[int, list[ExtractedTask]] = {}
    for var, function in mod.functions.items():
        name = str(var.name_hint)
        if not isinstance(function, tir.PrimFunc) or name not in calls or _is_scheduled(function):
            continue
        module = normalize_mod(function)
        # Programs that are alike but for their names are one.
        plain = _without_name(module)
        alike = tasks.setdefault(equality.hash(plain), [])
        for task in alike:
            if equality.equal(_without_name(task.dispatched[0]), plain):
                task.weight += calls[name]
                break
        else:
            alike.append(ExtractedTask(name, module, target, [module], calls[name]))
    return [task for alike in tasks.values() for task in alike]


def extracted_tasks_to_tune_contexts(
    extracted_tasks: Sequence[ExtractedTask],
    work_dir: str,
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    seed: int | None = None,
    num_tuning_cores: int | str = "physical",
) -> tuple[list[TuneContext], list[float]]:
    """Tasks for `tune_tasks`, and how often a network calls each.

    Parameters
    ----------
    work_dir : taken from programs written for TVM; messages go where `tune_tasks` is told.

    The others are those of `tune_tir`.
    """
    seeds = random.Random(seed)
    contexts = [
        TuneContext(
            task.dispatched[0],
            target=task.target,
            space_generator=space.clone() if hasattr(space, "clone") else space,
            search_strategy=strategy.clone() if hasattr(strategy, "clone") else strategy,
            task_name=task.task_name,
            rand_state=-1 if seed is None else seeds.randrange(1, 2**30),
            num_threads=num_tuning_cores,
        )
        for task in extracted_tasks
    ]
    return contexts, [float(task.weight) for task in extracted_tasks]


def tune_relax(
    mod: IRModule | relax.Function,
    params: Params | None,
    target: str | Target,
    work_dir: str,
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    seed: int | None = None,
    num_tuning_cores: int | str = "physical",
    module_equality: str = "structural",
) -> Database:
    """Search schedules of the tensor programs that a module calls.

    Parameters
    ----------
    mod, params : see `extract_tasks`.
    op_names : parts of names; programs whose name has none of them are left out.

    The others are those of `tune_tir`.

    Returns
    -------
    The database, for `compile_relax`.

    Raises
    ------
    ValueError : the target has no core count, there is no program to tune, or a name is unknown.
    """
    tasks = extract_tasks(mod, checked_target(target), params, module_equality=module_equality)
    if op_names is not None:
        tasks = [task for task in tasks if any(name in task.task_name for name in op_names)]
    if not tasks:
        raise ValueError(
            "tune_relax: the module calls no tensor program that is to be tuned; "
            "relax.transform.LegalizeOps makes calls of operators"
        )
    contexts, weights = extracted_tasks_to_tune_contexts(
        tasks, work_dir, space, strategy, seed, num_tuning_cores
    )
    return tune_tasks(
        tasks=contexts,
        task_weights=weights,
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        num_trials_per_iter=num_trials_per_iter,
        builder=builder,
        runner=runner,
        database=database,
        cost_model=cost_model,
        measure_callbacks=measure_callbacks,
        task_scheduler=task_scheduler,
        module_equality=module_equality,
    )


def apply_database(
    mod: IRModule, database: Database, target: Target, enable_warning: bool = False
) -> IRModule:
    """The module with the fastest schedules on record for its tensor programs.

    Parameters
    ----------
    enable_warning : name the programs without a record.

    Returns
    -------
    Programs that got a schedule have the attribute ``tir.is_scheduled``; others stay as they are.
    """
    functions: dict[Any, Any] = {}
    for var, function in mod.functions.items():
        functions[var] = function
        if not isinstance(function, tir.PrimFunc) or _is_scheduled(function):
            continue
        found = database.query_ir_module(normalize_mod(function), target, str(var.name_hint))
        if found is None:
            if enable_warning:
                logger.warning("MetaScheduleApplyDatabase: no record of %s", var.name_hint)
            continue
        functions[var] = with_schedule(function, found["main"])
    return mod.with_functions(functions)


def with_schedule(function: tir.PrimFunc, scheduled: tir.PrimFunc) -> tir.PrimFunc:
    """A scheduled function with the attributes that it had before, marked as scheduled."""
    attrs = dict(function.attrs.items()) if function.attrs is not None else {}
    for key in list(dict(scheduled.attrs.items()) if scheduled.attrs is not None else {}):
        scheduled = scheduled.without_attr(str(key))
    for key, value in {**attrs, "tir.is_scheduled": True}.items():
        scheduled = scheduled.with_attr(str(key), value)
    return scheduled


def compile_relax(
    database: Database,
    mod: IRModule,
    target: str | Target,
    params: Params | None = None,
    enable_warning: bool = False,
) -> relax.Executable:
    """Compile a module with the fastest schedules on record.

    Parameters
    ----------
    mod, params : as `tune_relax` got them. enable_warning : name the programs without a record.
    """
    target = target if isinstance(target, Target) else Target(target)
    mod = apply_database(_bound(mod, params), database, target, enable_warning)
    return relax.build(mod, target)


@tvm.register_func("relax.MetaScheduleTuneIRMod")
def _tune_relax(
    mod: IRModule,
    params: Any,
    target: Target,
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None,
    op_names: Any,
) -> None:
    tune_relax(
        mod,
        {str(name): value for name, value in params.items()},
        target,
        str(work_dir),
        int(max_trials_global),
        max_trials_per_task=None if max_trials_per_task is None else int(max_trials_per_task),
        op_names=None if op_names is None else [str(name) for name in op_names],
    )


@tvm.register_func("relax.MetaScheduleTuneTIR")
def _tune_tir(mod: IRModule, target: Target, work_dir: str, max_trials_global: int) -> None:
    programs = {var: f for var, f in mod.functions.items() if isinstance(f, tir.PrimFunc)}
    tune_tir(IRModule(programs), target, str(work_dir), int(max_trials_global))


@tvm.register_func("relax.MetaScheduleApplyDatabase")
def _apply(mod: IRModule, target: Target, work_dir: str | None, enable_warning: bool) -> IRModule:
    database = Database.current()
    if work_dir is not None:
        database = JSONDatabase(work_dir=str(work_dir))
    if database is None:
        raise ValueError(
            "MetaScheduleApplyDatabase: there is no database; name the folder of one, or enter one "
            "by `with database:`"
        )
    return apply_database(mod, database, target, enable_warning)
