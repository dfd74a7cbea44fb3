"""How well a model ranks points; `scores` and `truths` are one number a point, larger is better."""

from __future__ import annotations

import numpy as np

__all__ = ["average_recall"]


def average_recall(scores: np.ndarray, truths: np.ndarray, top: int) -> float:
    """Mean over n of the share of the truly best n among the n that a model ranks first."""
    by_score = np.argsort(-np.asarray(scores))
    by_truth = np.argsort(-np.asarray(truths))
    top = min(top, len(by_score))
    shares = [len(np.intersect1d(by_score[:n], by_truth[:n])) / n for n in range(1, top + 1)]
    return float(np.mean(shares)) if shares else 0.0
