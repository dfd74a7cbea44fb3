"""Schedules by a few attempts, without a search: good enough to go on with."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import tvm
from tvm import tir
from tvm.ir import IRModule
from tvm.target import Target

from .builder import BuilderInput, LocalBuilder
from .candidate import MeasureCandidate
from .cost_model import RandomModel
from .database import MemoryDatabase
from .relax_integration import with_schedule
from .runner import LocalRunner, Runner, RunnerInput
from .tir_integration import checked_target
from .tune_context import TuneContext
from .utils import normalize_mod

__all__ = ["few_shot_tune"]

logger = logging.getLogger("tvm.meta_schedule")

# Attempts for each schedule that is wanted, until a function is left as it is.
_ATTEMPTS = 16


def _has_fixed_sizes(func: tir.PrimFunc) -> bool:
    extents = [e for buffer in func.buffer_map.values() for e in buffer.shape]
    return all(isinstance(extent, tir.IntImm) for extent in extents)


def _candidates(
    func: tir.PrimFunc, target: Target, name: str, count: int
) -> list[MeasureCandidate]:
    context = TuneContext(
        mod=normalize_mod(func),
        target=target,
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        task_name=name,
        rand_state=1,
    )
    context.pre_tuning(
        max_trials=count,
        num_trials_per_iter=count,
        design_spaces=None,
        database=MemoryDatabase(),
        cost_model=RandomModel(),
    )
    return context.generate_measure_candidates() or []


def _seconds(runner: Runner, path: str, candidate: MeasureCandidate, target: Target) -> float:
    """How long a candidate takes; infinitely long if it does not run."""
    device = str(target.kind.name)
    (future,) = runner.run([RunnerInput(path, device, candidate.args_info)])
    result = future.result()
    return float("inf") if result.run_secs is None else min(result.run_secs)


def few_shot_tune(
    func: tir.PrimFunc,
    target: Target,
    name: str = "main",
    valid_count: int = 1,
    benchmark: bool = False,
) -> tir.PrimFunc:
    """The function with one of a few schedules that the target's space gives at random.

    Parameters
    ----------
    valid_count : schedules that have to be compiled before one is taken.
    benchmark : take the fastest of them; else the last, without running any.

    Returns
    -------
    A function with the attribute ``tir.is_scheduled``; the given one where no schedule could be
    compiled, or where extents are symbolic.
    """
    if not _has_fixed_sizes(func):
        return func
    builder, runner = LocalBuilder(), LocalRunner()
    chosen: tir.Schedule | None = None
    best, valid = float("inf"), 0
    for candidate in _candidates(func, target, name, valid_count * _ATTEMPTS):
        (built,) = builder.build([BuilderInput(candidate.sch.mod, target)])
        if built.artifact_path is None:
            continue
        seconds = _seconds(runner, built.artifact_path, candidate, target) if benchmark else 0.0
        shutil.rmtree(Path(built.artifact_path).parent, ignore_errors=True)
        if not benchmark or seconds < best:
            best, chosen = seconds, candidate.sch
        valid += 1
        if valid == valid_count:
            break
    if chosen is None:
        logger.warning("FewShotTuning: no schedule of %s could be compiled", name)
        return func
    return with_schedule(func, chosen.mod["main"])


@tvm.register_func("relax.FewShotTuning")
def _few_shot(mod: IRModule, target: Target, valid_count: int, benchmark: bool) -> IRModule:
    target = checked_target(target)
    functions = {
        var: few_shot_tune(func, target, str(var.name_hint), int(valid_count), bool(benchmark))
        if isinstance(func, tir.PrimFunc) and not func.attrs.get("tir.is_scheduled", False)
        else func
        for var, func in mod.functions.items()
    }
    return mod.with_functions(functions)
