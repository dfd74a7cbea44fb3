"""How well predicted scores order measured programs."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

__all__ = ["pair_accuracy", "peak_score", "spearman"]


def spearman(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Spearman's rank correlation, shape (n,) each; ties share their mean rank; NaN for n < 2."""
    if len(predicted) < 2:
        return float("nan")
    x, y = rankdata(predicted), rankdata(measured)
    x, y = x - x.mean(), y - y.mean()
    norm = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / norm) if norm > 0 else 0.0


def pair_accuracy(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Share of pairs that both arguments order the same way; 0.5 for fewer than two programs."""
    if len(predicted) < 2:
        return 0.5
    i, j = np.triu_indices(len(predicted), 1)
    return float(np.mean((predicted[i] > predicted[j]) == (measured[i] > measured[j])))


def peak_score(predicted: np.ndarray, measured: np.ndarray, k: int) -> float:
    """Best measured value among the k best predicted, over the best of all, averaged over 1..k.

    measured : throughputs > 0, shape (n,).
    """
    order = np.argsort(-np.asarray(predicted), kind="stable")[:k]
    running = np.maximum.accumulate(np.asarray(measured)[order])
    return float(np.mean(running / np.max(measured)))
