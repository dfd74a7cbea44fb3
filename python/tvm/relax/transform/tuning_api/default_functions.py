"""What tuning passes do unless they know better: all decisions, measured, the fastest taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import error
from tvm.ir import IRModule
from tvm.runtime.relax_vm import VirtualMachine
from tvm.target import Target
from tvm.transform import Pass, PassContext, Sequential

from ...struct_info import TensorStructInfo, static_shape
from ...vm_build import build
from .database import TuningRecord
from .primitives import Knob, Trace

__all__ = [
    "default_consider_eval_passes",
    "default_evaluate",
    "default_generate_candidate",
    "select_best_candidate",
]

_FAILED = 1e10
"""Seconds of a module that cannot be built or run."""


def default_generate_candidate(
    knobs: Sequence[Knob], trace: Trace, eval_passes: Sequence[Pass] | None = None
) -> list[Trace]:
    """All combinations of decisions whose conditions hold, from a trace on.

    Parameters
    ----------
    eval_passes : what each candidate goes through, see `default_consider_eval_passes`.
    """
    candidates = [trace]
    for knob in knobs:
        longer = []
        for candidate in candidates:
            for decision, choice in knob.choices.items():
                if choice.check_constr(candidate.out_mod):
                    longer.append(candidate.copy())
                    longer[-1].add(knob, decision)
        candidates = longer
    return default_consider_eval_passes(candidates, eval_passes) if eval_passes else candidates


def default_consider_eval_passes(
    init_candidates: Sequence[Trace], eval_passes: Sequence[Pass] | None = None
) -> list[Trace]:
    """What passes make of each candidate: of tuning passes that is the best way to go on."""
    if not eval_passes:
        return list(init_candidates)
    context = PassContext.current()
    found: list[Trace] = []
    for candidate in init_candidates:
        context.push_trace(candidate.copy())
        Sequential(list(eval_passes))(candidate.out_mod)
        result = context.pop_trace()
        assert isinstance(result, Trace)
        found.append(result)
    return found


def default_evaluate(
    candidates: Sequence[Trace],
    target_str: str,
    ctx: PassContext | None = None,
    params: Mapping[str, Any] | None = None,
    measure: Callable[[IRModule, Target], list[float]] | None = None,
) -> None:
    """Measure candidates that were not measured before, and say so in them and in the context.

    Parameters
    ----------
    target_str : what to build for.
    params : constants for parameters of ``main``.
    measure : from a module to the seconds of some runs; by default ``main`` is built by
        ``relax.build`` and called with random tensors of the shapes that it takes.

    A module in the context's database is not run again; one that cannot be built or run counts as
    slower than any other.
    """
    context = PassContext.current() if ctx is None else ctx
    target = Target(target_str)
    database = context.get_tuning_api_database()
    for candidate in candidates:
        if candidate.perf != -1:
            continue
        context.inc_num_evals(1)
        mod = candidate.out_mod
        workload = None if database is None else database.commit_workload(mod)
        seconds = [] if workload is None else database.get_measurement_record(workload, target)
        if not seconds:
            try:
                seconds = measure(mod, target) if measure else _run(mod, target, params)
            except error.TVMError:
                seconds = [_FAILED]
            if database is not None:
                database.commit_measurement_record(workload, target, seconds)
        candidate.set_perf(float(np.mean(seconds)))
        if database is not None:
            start = database.commit_workload(candidate.in_mod)
            database.commit_tuning_record(start, target, TuningRecord(candidate, seconds))


def _run(mod: IRModule, target: Target, params: Mapping[str, Any] | None) -> list[float]:
    # Passes of the context are recorded; those of building are no decisions.
    with PassContext():
        executable = build(mod, target, params=params)
    device = tvm.device(target.kind.name)
    machine = VirtualMachine(executable, device)
    rng = np.random.default_rng(0)
    bound = set(params or ())
    inputs = []
    for param in mod["main"].params:
        if str(param.name_hint) in bound:
            continue
        info = param.struct_info
        if not isinstance(info, TensorStructInfo):
            raise error.ValueError(f"default_evaluate: main takes {param.name_hint}, no tensor")
        values = rng.integers(0, 2, static_shape(info)).astype(str(info.dtype))
        inputs.append(tvm.nd.array(values, device))
    timed = machine.time_evaluator("main", device, number=1, repeat=3, min_repeat_ms=5)(*inputs)
    return [float(value) for value in timed.results]


def select_best_candidate(candidates: Sequence[Trace]) -> Trace:
    """The fastest of those that were measured.

    Raises
    ------
    ValueError : none was.
    """
    measured = [candidate for candidate in candidates if candidate.perf != -1]
    if not measured:
        raise error.ValueError("select_best_candidate: none of the candidates was measured")
    return min(measured, key=lambda candidate: candidate.perf)
