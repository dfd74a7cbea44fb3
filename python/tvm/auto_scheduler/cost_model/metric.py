"""How well predicted scores match measured programs: order, level, and the best ones found."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

__all__ = [
    "METRICS",
    "LEVELS",
    "evaluate",
    "log_error",
    "pair_accuracy",
    "peak_score",
    "r_squared",
    "random_baseline",
    "rmse",
    "spearman",
    "spearman_top",
    "top_k_recall",
]


def rmse(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Root of the mean squared error, shape (n,) each."""
    return float(np.sqrt(np.mean((np.asarray(predicted) - np.asarray(measured)) ** 2)))


def r_squared(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Share of the variance of `measured` that is explained; 1 is perfect, NaN without variance."""
    measured = np.asarray(measured, dtype=np.float64)
    total = np.sum((measured - measured.mean()) ** 2)
    if total == 0:
        return float("nan")
    return float(1 - np.sum((np.asarray(predicted) - measured) ** 2) / total)


def log_error(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Mean of |ln(predicted / measured)|, shape (n,) each; what is below 1e-6 counts as that."""
    logs = [np.log(np.maximum(values, 1e-6)) for values in (predicted, measured)]
    return float(np.mean(np.abs(logs[0] - logs[1])))


def spearman(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Spearman's rank correlation, shape (n,) each; ties share their mean rank; NaN for n < 2."""
    if len(predicted) < 2:
        return float("nan")
    # Here, since every process that measures would import it, which takes longer than all of TVM.
    from scipy.stats import rankdata

    x, y = rankdata(predicted), rankdata(measured)
    x, y = x - x.mean(), y - y.mean()
    norm = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / norm) if norm > 0 else 0.0


def spearman_top(
    predicted: np.ndarray, measured: np.ndarray, share: float = 0.1, least: int = 8
) -> float:
    """Spearman's rank correlation among the best measured programs alone, where a search chooses.

    share : of the programs that count as the best; at least `least` of them are taken.
    """
    count = max(math.ceil(share * len(measured)), least)
    best = np.argsort(-np.asarray(measured), kind="stable")[:count]
    return spearman(np.asarray(predicted)[best], np.asarray(measured)[best])


def pair_accuracy(predicted: np.ndarray, measured: np.ndarray) -> float:
    """Share of the pairs of different `measured` that both arguments order the same way.

    A pair of equal predictions counts half, so that a constant is worth what chance is. 0.5 where
    there is no such pair.
    """
    i, j = np.triu_indices(len(predicted), 1)

    def order(values: np.ndarray) -> np.ndarray:
        # No signs of differences: that of two -inf, the score of what is no program, is NaN.
        return (values[i] > values[j]).astype(int) - (values[i] < values[j])

    guess, truth = order(predicted), order(measured)
    ordered = truth != 0
    if not ordered.any():
        return 0.5
    return float(np.mean((1 + guess[ordered] * truth[ordered]) / 2))


def top_k_recall(predicted: np.ndarray, measured: np.ndarray, k: int) -> float:
    """Share of the k best measured programs that are among the k best predicted ones."""
    k = min(k, len(predicted))
    best = set(np.argsort(-np.asarray(measured), kind="stable")[:k].tolist())
    chosen = set(np.argsort(-np.asarray(predicted), kind="stable")[:k].tolist())
    return len(best & chosen) / k


def peak_score(predicted: np.ndarray, measured: np.ndarray, k: int) -> float:
    """Best measured value among the k best predicted, over the best of all, averaged over 1..k.

    measured : throughputs > 0, shape (n,).
    """
    order = np.argsort(-np.asarray(predicted), kind="stable")[:k]
    running = np.maximum.accumulate(np.asarray(measured)[order])
    return float(np.mean(running / np.max(measured)))


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "rmse": rmse,
    "r2": r_squared,
    "log_error": log_error,
    "spearman": spearman,
    "spearman_top": spearman_top,
    "pair_accuracy": pair_accuracy,
    "top_8_recall": lambda predicted, measured: top_k_recall(predicted, measured, 8),
    "peak_score@1": lambda predicted, measured: peak_score(predicted, measured, 1),
    "peak_score@5": lambda predicted, measured: peak_score(predicted, measured, 5),
}
# Those that compare values and not their order alone.
LEVELS = ("rmse", "r2", "log_error")


def evaluate(
    predicted: np.ndarray,
    measured: np.ndarray,
    groups: np.ndarray | None = None,
    levels: bool = True,
) -> dict[str, float]:
    """All metrics, each averaged over the groups of at least two programs that have it.

    Parameters
    ----------
    predicted : shape (n,); higher is better.
    measured : throughputs, >= 0, shape (n,).
    groups : shape (n,); programs are compared inside a group (a task) only.
    levels : whether predictions are throughputs, too. The metrics in LEVELS are left out where they
        are scores that order programs and nothing else.

    Raises
    ------
    ValueError : the lengths differ, or a value is NaN, which has no place in any order.
    """
    predicted, measured = np.asarray(predicted), np.asarray(measured)
    if predicted.shape != measured.shape or (groups is not None and len(groups) != len(measured)):
        raise ValueError(
            f"evaluate: {len(predicted)} predictions and {len(measured)} measurements"
            f"{'' if groups is None else f' of {len(groups)} groups'}; there must be one of each a "
            "program"
        )
    for name, values in (("prediction", predicted), ("measurement", measured)):
        if np.isnan(values).any():
            raise ValueError(f"evaluate: {name} {int(np.isnan(values).argmax())} is NaN")
    groups = np.zeros(len(predicted), dtype=int) if groups is None else np.asarray(groups)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    members = [rows for rows in members if len(rows) >= 2 and measured[rows].max() > 0]
    means = {}
    for name, metric in METRICS.items():
        if levels or name not in LEVELS:
            values = np.array([metric(predicted[rows], measured[rows]) for rows in members])
            values = values[~np.isnan(values)]
            means[name] = float(values.mean()) if len(values) else float("nan")
    return means


def random_baseline(
    measured: np.ndarray, groups: np.ndarray | None = None, repeats: int = 10, seed: int = 0
) -> dict[str, float]:
    """What `evaluate` gives for scores drawn uniformly from [0, 1), mean of `repeats` draws."""
    rng = np.random.default_rng(seed)
    draws = [evaluate(rng.random(len(measured)), measured, groups) for _ in range(repeats)]
    return {name: float(np.mean([draw[name] for draw in draws])) for name in METRICS}
