"""Running a search over tasks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import builder as builders
from . import cost_model as models
from . import runner as runners
from . import task_scheduler as schedulers
from .database import Database
from .measure_callback import MeasureCallback
from .profiler import Profiler

__all__ = ["tune_tasks"]


def tune_tasks(
    *,
    tasks: Sequence[Any],
    task_weights: Sequence[float],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    module_equality: str = "structural",
) -> Database:
    """Search for tasks.

    Parameters
    ----------
    tasks, task_weights : `TuneContext` each, and how often a network runs it.
    work_dir : made if need be; holds the database, and messages in ``logs``, which are also printed
        unless the program has set up Python's `logging`.
    max_trials_global, max_trials_per_task, num_trials_per_iter : measurements in all, of a task (by
        default as many), and in a batch.
    builder, runner, database, cost_model, measure_callbacks, task_scheduler : parts or their names.

    Returns
    -------
    The database.

    Raises
    ------
    ValueError : there is no task, or a name is unknown.
    """
    if not tasks:
        raise ValueError("tune_tasks: there is no task")
    folder = Path(work_dir)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    if isinstance(database, str):
        options: dict[str, Any] = {"module_equality": module_equality}
        if database == "json":
            options["work_dir"] = folder
        database = Database.create(database, **options)
    if isinstance(measure_callbacks, str):
        measure_callbacks = MeasureCallback.create(measure_callbacks)
    elif isinstance(measure_callbacks, MeasureCallback):
        measure_callbacks = [measure_callbacks]
    builder = builders.create(builder) if isinstance(builder, str) else builder
    runner = runners.create(runner) if isinstance(runner, str) else runner
    logs = folder / "logs"
    log = logging.getLogger("tvm.meta_schedule")
    handlers: list[logging.Handler] = [
        logging.FileHandler(logs / "tvm.meta_schedule.log", encoding="utf-8")
    ]
    if not log.hasHandlers():
        # A program that has its own logging shows messages as it wants; others see them here.
        handlers.append(logging.StreamHandler(sys.stdout))
    before = log.level
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s [%(levelname)s] %(message)s"))
        log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        log.info("Logging directory: %s", logs)
        for name, part in (("LocalBuilder", builder), ("LocalRunner", runner)):
            if type(part).__name__ == name:
                log.info("%s: max_workers = %d", name, getattr(part, "max_workers", 1))
        with Profiler.timeit("TuneTasks"):
            schedulers.create(task_scheduler).tune(
                tasks,
                task_weights,
                max_trials_global=max_trials_global,
                max_trials_per_task=max_trials_per_task or max_trials_global,
                num_trials_per_iter=num_trials_per_iter,
                builder=builder,
                runner=runner,
                measure_callbacks=measure_callbacks,
                database=database,
                cost_model=models.create(cost_model),
            )
    finally:
        log.setLevel(before)
        for handler in handlers:
            log.removeHandler(handler)
            handler.close()
    return database
