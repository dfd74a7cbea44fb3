"""The range of numbers that integers stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm import error
from tvm.ir import RelayExpr

from ..analysis.variables import free_vars
from ..build_module import create_executor
from ..expr import Function, Tuple
from .config import QConfig

__all__ = [
    "activation_thresholds",
    "divergence_threshold",
    "percentile_threshold",
    "weight_threshold",
]

# Share of the absolute values of data that "percentile" has room for.
_SHARE = 0.99999

_BINS = 2048
# Thresholds are tried in steps of so many bins.
_STEP = 16


def weight_threshold(weight: np.ndarray, mode: str) -> float:
    """The largest absolute value that weights are given room for, 1 for weights that are all 0.

    Parameters
    ----------
    mode : "max", or "power2" for the next power of two.
    """
    largest = float(np.abs(weight).max(initial=0.0))
    if largest == 0:
        return 1.0
    return largest if mode == "max" else 2.0 ** math.ceil(math.log2(largest))


def divergence_threshold(histogram: np.ndarray, width: float, levels: int) -> float:
    """The threshold at which clipping and rounding change a distribution least.

    After Migacz, "8-bit inference with TensorRT" (GTC 2017): of the distribution that is clipped at
    a threshold, and that distribution in `levels` steps, the Kullback-Leibler divergence is least.

    Parameters
    ----------
    histogram : counts of absolute values, in bins of equal width from 0.
    width : of a bin.
    levels : positive integers that there are.
    """
    best, found = math.inf, len(histogram)
    for count in range(min(levels, len(histogram)), len(histogram) + 1, _STEP):
        reference = histogram[:count].astype(np.float64)
        outside = float(histogram[count:].sum())
        clipped = reference.copy()
        clipped[-1] += outside
        # Bins of one step share its counts, except those that nothing fell in.
        step = np.minimum(np.arange(count) * levels // count, levels - 1)
        filled = reference > 0
        totals = np.bincount(step, reference, levels)
        shares = np.bincount(step, filled, levels)
        rounded = np.where(filled, (totals / np.maximum(shares, 1))[step], 0.0)
        divergence = _divergence(clipped, rounded)
        if divergence < best:
            best, found = divergence, count
    return found * width


def percentile_threshold(arrays: Sequence[np.ndarray], share: float = _SHARE) -> float:
    """The absolute value that this share of all values does not exceed, 1 for values that are 0."""
    values = np.concatenate([np.abs(array).ravel() for array in arrays])
    place = min(int(share * values.size), values.size - 1)
    return float(np.partition(values, place)[place]) or 1.0


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    """KL(p || q) of counts; bins that only q lacks count as if they were nearly empty."""
    if not p.sum() or not q.sum():
        return math.inf
    p, q = p / p.sum(), q / q.sum()
    some = p > 0
    return float((p[some] * np.log(p[some] / np.maximum(q[some], 1e-12))).sum())


def activation_thresholds(
    values: Sequence[RelayExpr], dataset: Iterable[Mapping[str, Any]] | None, config: QConfig
) -> list[float]:
    """The largest absolute value of each tensor that integers have room for.

    Parameters
    ----------
    values : expressions of the network's inputs.
    dataset : inputs by name; needed with "kl_divergence" and "percentile".

    Raises
    ------
    ValueError : there is no dataset where one is needed.
    """
    if config.calibrate_mode == "global_scale":
        return [float(config.global_scale)] * len(values)
    batches = list(dataset or ())
    if not batches:
        raise error.ValueError(
            f'relay.quantize: calibrate_mode "{config.calibrate_mode}" needs a dataset of inputs '
            "by name"
        )
    levels = 2 ** (config.nbit_input - 1)
    chunk = config.calibrate_chunk_by if config.calibrate_chunk_by > 0 else max(len(values), 1)
    found: list[float] = []
    for start in range(0, len(values), chunk):
        part = values[start : start + chunk]
        samples = _collected(part, batches)
        if config.calibrate_mode == "percentile":
            found.extend(map(percentile_threshold, samples))
        else:
            found.extend(_threshold(arrays, levels) for arrays in samples)
    return found


def _collected(
    values: Sequence[RelayExpr], batches: Sequence[Mapping[str, Any]]
) -> list[list[np.ndarray]]:
    """The arrays that each expression is, for every batch."""
    whole = Tuple(list(values))
    params = free_vars(whole)
    run = create_executor("graph").evaluate(Function(params, whole))
    collected: list[list[np.ndarray]] = [[] for _ in values]
    for batch in batches:
        missing = [str(p.name_hint) for p in params if str(p.name_hint) not in batch]
        if missing:
            raise error.ValueError(f"relay.quantize: the dataset lacks inputs {missing}")
        results = run(*[batch[str(p.name_hint)] for p in params])
        for arrays, result in zip(collected, results):
            arrays.append(np.abs(result.numpy()))
    return collected


def _threshold(arrays: Sequence[np.ndarray], levels: int) -> float:
    largest = max(float(array.max(initial=0.0)) for array in arrays)
    if largest == 0:
        return 1.0
    histogram = sum(np.histogram(array, _BINS, (0.0, largest))[0] for array in arrays)
    return divergence_threshold(np.asarray(histogram), largest / _BINS, levels)
