"""Searching for modules of tensor programs."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.ir import IRModule
from tvm.target import Target

from .database import Database
from .tune import tune_tasks
from .tune_context import TuneContext
from .utils import normalize_mod

__all__ = ["compile_tir", "tune_tir"]


def checked_target(target: str | Target) -> Target:
    """A target that says how many cores it has: those of this machine where none are given."""
    target = target if isinstance(target, Target) else Target(target)
    if str(target.kind.name) == "llvm" and "num-cores" not in target.attrs:
        return target.with_machine()
    return target


def tune_tir(
    mod: IRModule | tir.PrimFunc,
    target: str | Target,
    work_dir: str,
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    num_tuning_cores: int | str = "physical",
    seed: int | None = None,
    module_equality: str = "structural",
    task_name: str = "main",
) -> Database:
    """Search schedules of a module; every function of it is a task.

    Parameters
    ----------
    mod : module of tensor programs, or one.
    target : what it is compiled for; of this machine unless it says how many cores it has.
    work_dir : made if need be; holds the database and messages. A second run goes on from it.
    max_trials_global : measurements.
    space : "post-order-apply", a space generator, or a function of a schedule.
    strategy : "evolutionary", "replay-trace", "replay-func", "felix", or a strategy.
    seed : makes sampling repeat.

    The others are those of `tune_tasks`.

    Returns
    -------
    The database, for `compile_tir`.

    Raises
    ------
    ValueError : there is no function, or a name is unknown.
    """
    target = checked_target(target)
    if isinstance(mod, tir.PrimFunc):
        mod = normalize_mod(mod)
    names = [var.name_hint for var, f in mod.functions.items() if isinstance(f, tir.PrimFunc)]
    if not names:
        raise ValueError("tune_tir: the module has no tensor program")
    if names == ["main"]:
        modules = {task_name: mod}
    else:
        modules = {name: normalize_mod(mod[name]) for name in names}
    tasks = [
        TuneContext(
            module,
            target=target,
            space_generator=space.clone() if hasattr(space, "clone") else space,
            search_strategy=strategy.clone() if hasattr(strategy, "clone") else strategy,
            task_name=name,
            rand_state=-1 if seed is None else seed,
            num_threads=num_tuning_cores,
        )
        for name, module in modules.items()
    ]
    return tune_tasks(
        tasks=tasks,
        task_weights=[1.0] * len(tasks),
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


def compile_tir(
    database: Database, mod: IRModule | tir.PrimFunc, target: str | Target
) -> tir.Schedule | None:
    """The fastest schedule on record for a module; None if there is none."""
    target = target if isinstance(target, Target) else Target(target)
    return database.query_schedule(normalize_mod(mod), target)
