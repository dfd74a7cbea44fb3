"""What is known of a program before any was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.auto_scheduler import _ffi_api
from tvm.target import Target

from ..candidate import MeasureCandidate
from ..feature_extractor.feature_extractor import loops_of

__all__ = ["bound_cycles"]


def bound_cycles(context: Any, candidates: Sequence[MeasureCandidate]) -> np.ndarray | None:
    """Cycles that programs take on their processor at least, float64 of shape (n_candidates,).

    The bound follows from the loops alone (`src/auto_scheduler/program_bound.cc`): multiply-adds in
    vectors that are whole, loads and stores of what does not stay in registers, chains of sums, and
    lines that cross into each cache. It says which programs are hopeless; of good ones it knows
    little.

    Returns
    -------
    None for targets that are no processors.
    """
    target = context.target if context.target is not None else Target("llvm")
    if "cpu" not in target.keys:
        return None
    with target:
        functions = [loops_of(candidate.sch.mod) for candidate in candidates]
    cycles: np.ndarray = _ffi_api.BoundCyclesFromPrimFuncs(functions, target).numpy()
    return cycles
