"""Features of a schedule's loops for the cost models of templates.

Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018), section 3.2 and appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import te
from tvm.driver.build_module import schedule_to_module
from tvm.tir import Stmt

from . import _ffi_api

__all__ = [
    "ana_lower",
    "flatten_itervar_feature",
    "get_buffer_curve_sample_flatten",
    "get_itervar_feature",
    "get_itervar_feature_flatten",
]


def ana_lower(
    sch: te.Schedule, args: Sequence[te.Tensor], binds: Any = None, simple_mode: bool = True
) -> Stmt:
    """Loops of a schedule as scheduled, before any pass.

    Raises
    ------
    ValueError : `simple_mode` is False: there is only one way.
    """
    if not simple_mode:
        raise ValueError("ana_lower: features are read off the loops as scheduled (simple_mode)")
    return schedule_to_module(sch, args, binds=binds)["main"].body


def get_itervar_feature(
    sch: te.Schedule, args: Sequence[te.Tensor], take_log: bool = False
) -> list[list[list[Any]]]:
    """Features of each loop, in the order of the program.

    Returns
    -------
    For each loop rows ``["_itervar_", variable]``; ``["_attr_", length, depth, iterations with the
    loops around, iterations with the loops inside, one of eleven kinds]``; ``["_arith_", additions,
    multiplications, divisions]``; and for each access ``[buffer and number, stride, modulus,
    elements touched, times each, the same two of threads]``.
    """
    rows = _ffi_api.GetItervarFeature(ana_lower(sch, args), take_log)
    return [[list(item) for item in row] for row in rows]


def flatten_itervar_feature(fea: Sequence[Sequence[Sequence[Any]]]) -> np.ndarray:
    """The numbers of `get_itervar_feature` one after the other."""
    numbers = [value for row in fea for item in row[1:] for value in item[1:]]
    return np.array(numbers, dtype=np.float32)


def get_itervar_feature_flatten(
    sch: te.Schedule, args: Sequence[te.Tensor], take_log: bool = True
) -> np.ndarray:
    """As `flatten_itervar_feature` of `get_itervar_feature`, without the way through Python."""
    data = _ffi_api.GetItervarFeatureFlatten(ana_lower(sch, args), take_log)
    return np.frombuffer(bytes(data), dtype=np.float32)


def get_buffer_curve_sample_flatten(
    sch: te.Schedule, args: Sequence[te.Tensor], sample_n: int = 30
) -> np.ndarray:
    """Relations between what loops touch and how often, the same length for any number of loops.

    Parameters
    ----------
    sample_n : thresholds, each twice the one before.

    Returns
    -------
    `sample_n` pairs for each buffer and each of four curves (reuse over count, count over reuse,
    outer and inner iterations over count): the largest value left and right of each threshold.
    """
    data = _ffi_api.GetCurveSampleFeatureFlatten(ana_lower(sch, args), sample_n, True)
    return np.frombuffer(bytes(data), dtype=np.float32)
