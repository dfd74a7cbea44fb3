"""Searching schedules for a network."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import auto_scheduler, autotvm
from tvm.autotvm.tuner import GATuner, GridSearchTuner, RandomTuner, XGBTuner
from tvm.target import Target

from .compiler import with_layout
from .errors import TVMCException
from .model import TVMCModel

__all__ = ["TUNERS", "tune"]

_Path = str | os.PathLike[str]

TUNERS = ("xgb", "xgb_knob", "xgb-rank", "ga", "random", "gridsearch")


def _tuner(kind: str, task: autotvm.Task) -> Any:
    if kind == "ga":
        return GATuner(task, pop_size=50)
    if kind == "random":
        return RandomTuner(task)
    if kind == "gridsearch":
        return GridSearchTuner(task)
    feature = "knob" if kind == "xgb_knob" else "itervar"
    return XGBTuner(task, loss_type="rank" if kind == "xgb-rank" else "reg", feature_type=feature)


def tune(
    tvmc_model: TVMCModel,
    target: Target | str,
    tuning_records: _Path | None = None,
    prior_records: _Path | None = None,
    enable_autoscheduler: bool = False,
    rpc_key: str | None = None,
    hostname: str | None = None,
    port: int = 9090,
    trials: int = 10000,
    target_host: Target | str | None = None,
    tuner: str = "xgb",
    min_repeat_ms: int | None = None,
    early_stopping: int | None = None,
    timeout: float = 10,
    repeat: int = 1,
    number: int = 10,
    parallel: int | None = None,
    include_simple_tasks: bool = False,
    desired_layout: str | None = None,
    enable_cpu_cache_flush: bool = False,
) -> str:
    """Search schedules for the kernels of a network.

    Parameters
    ----------
    tuning_records : file that what is measured is added to; by default
        `TVMCModel.default_tuning_records_path`.
    prior_records : file of an earlier search, from which this one learns.
    enable_autoscheduler : search programs that auto_scheduler derives, instead of the templates of
        AutoTVM.
    rpc_key, hostname, port : measure on devices of this key that a tracker gives out.
    trials : programs to measure. AutoTVM gives each task the same part of them.
    target_host : target of the code that launches kernels.
    tuner : of AutoTVM: "xgb", "xgb_knob", "xgb-rank", "ga", "random" or "gridsearch".
    min_repeat_ms : least time of a measurement; by default 1000 on GPUs, else 0.
    early_stopping : programs without a better one after which the search of a task ends.
    timeout : seconds that a candidate may take.
    repeat, number : measurements of a program, and runs that each is the mean of.
    parallel : builders at once; by default one a core.
    include_simple_tasks : of auto_scheduler: kernels without a sum, too.
    desired_layout : of convolutions, such as "NHWC".
    enable_cpu_cache_flush : evict the caches before each measurement.

    Returns
    -------
    The file of records, for `compile`.

    Raises
    ------
    TVMCException : an option is not known, or there is nothing to tune.
    RPCError : the tracker is not there, or has no such device.
    """
    if tuner not in TUNERS:
        raise TVMCException(f'tune: tuner "{tuner}" is not one of {", ".join(TUNERS)}')
    if hostname is not None and rpc_key is None:
        raise TVMCException("tune: a tracker gives out devices by their key; name an rpc_key")
    if prior_records is not None and not Path(prior_records).is_file():
        raise TVMCException(f"tune: there is no file of prior records {prior_records}")
    chosen = Target(target, target_host) if target_host else Target(target)
    mod = with_layout(tvmc_model.mod, desired_layout)
    records = str(tuning_records or tvmc_model.default_tuning_records_path())
    if min_repeat_ms is None:
        min_repeat_ms = 1000 if "gpu" in chosen.keys else 0
    timing: dict[str, Any] = {
        "number": number,
        "repeat": repeat,
        "timeout": timeout,
        "min_repeat_ms": min_repeat_ms,
        "enable_cpu_cache_flush": enable_cpu_cache_flush,
    }
    if hostname is not None:
        timing |= {"key": rpc_key, "host": hostname, "port": port}
    prior = None if prior_records is None else str(prior_records)
    search = _Search(records, prior, trials, early_stopping, timing, parallel)
    network = (mod["main"], tvmc_model.params, chosen)
    if enable_autoscheduler:
        programs, weights = auto_scheduler.extract_tasks(
            *network, include_simple_tasks=include_simple_tasks
        )
        _check(programs)
        _tune_programs(programs, weights, search)
    else:
        templates = autotvm.task.extract_from_program(network[0], target=chosen, params=network[1])
        _check(templates)
        _tune_templates(templates, search, tuner)
    return records


@dataclass(frozen=True)
class _Search:
    """What both tuners are told; see `tune`. `timing` are arguments of a runner."""

    records: str
    prior_records: str | None
    trials: int
    early_stopping: int | None
    timing: dict[str, Any]
    parallel: int | None


def _check(tasks: Any) -> None:
    if not tasks:
        raise TVMCException("tune: the network has no kernel that could be tuned for this target")


def _tune_programs(tasks: Any, weights: Any, search: _Search) -> None:
    Runner = auto_scheduler.RPCRunner if "key" in search.timing else auto_scheduler.LocalRunner
    builders: dict[str, Any] = {}
    if search.parallel is not None:
        builders["n_parallel"] = search.parallel
    options = auto_scheduler.TuningOptions(
        num_measure_trials=search.trials,
        early_stopping=search.early_stopping,
        builder=auto_scheduler.LocalBuilder(**builders),
        runner=Runner(**search.timing),
        measure_callbacks=[auto_scheduler.RecordToFile(search.records)],
    )
    auto_scheduler.TaskScheduler(tasks, weights, load_log_file=search.prior_records).tune(options)


def _tune_templates(tasks: Any, search: _Search, kind: str) -> None:
    Runner = autotvm.RPCRunner if "key" in search.timing else autotvm.LocalRunner
    option = autotvm.measure_option(
        builder=autotvm.LocalBuilder(n_parallel=search.parallel), runner=Runner(**search.timing)
    )
    each = max(1, search.trials // len(tasks))
    for position, task in enumerate(tasks, 1):
        tuner = _tuner(kind, task)
        if search.prior_records is not None and isinstance(tuner, XGBTuner):
            tuner.load_history(autotvm.record.load_from_file(search.prior_records))
        count = min(each, len(task.config_space))
        prefix = f"[Task {position:2d}/{len(tasks):2d}] "
        tuner.tune(
            n_trial=count,
            early_stopping=search.early_stopping,
            measure_option=option,
            callbacks=[
                autotvm.callback.progress_bar(count, prefix=prefix),
                autotvm.callback.log_to_file(search.records),
            ],
        )
