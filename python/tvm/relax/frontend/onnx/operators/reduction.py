"""Reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from .registry import Node, operator, unsigned_as_int64
from .shapes import axes_of

__all__: list[str] = []

Reduce = Callable[[torch.Tensor, Sequence[int], bool], torch.Tensor]


def _reduction(name: str, reduce: Reduce) -> None:
    def compute(n: Node, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
        chosen = axes_of(n, x)
        if not chosen:
            if n.attr("noop_with_empty_axes", 0):
                return reduce(x.unsqueeze(0), [0], False)
            chosen = list(range(x.dim()))
        keep = bool(n.attr("keepdims", 1))
        return unsigned_as_int64(lambda t: reduce(t, chosen, keep))(x).to(x.dtype)

    operator(name)(compute)


def _sum(x: torch.Tensor, axes: Sequence[int], keep: bool) -> torch.Tensor:
    return torch.sum(x, list(axes), keepdim=keep) if axes else x


def _mean(x: torch.Tensor, axes: Sequence[int], keep: bool) -> torch.Tensor:
    if x.dtype.is_floating_point:
        return torch.mean(x, list(axes), keepdim=keep) if axes else x
    return _mean(x.to(torch.float64), axes, keep).to(x.dtype)


def _extreme(largest: bool) -> Reduce:
    def compute(x: torch.Tensor, axes: Sequence[int], keep: bool) -> torch.Tensor:
        if not axes:
            return x
        if x.dtype == torch.bool:
            return compute(x.to(torch.uint8), axes, keep).to(torch.bool)
        if any(x.shape[axis] == 0 for axis in axes):
            return _empty_extreme(x, axes, keep, largest)
        return (torch.amax if largest else torch.amin)(x, list(axes), keepdim=keep)

    return compute


def _empty_extreme(x: torch.Tensor, axes: Sequence[int], keep: bool, largest: bool) -> torch.Tensor:
    """The neutral element: of nothing, the largest is the least there is."""
    if x.dtype.is_floating_point:
        value = float("-inf") if largest else float("inf")
    else:
        value = torch.iinfo(x.dtype).min if largest else torch.iinfo(x.dtype).max
    shape = [1 if i in axes else e for i, e in enumerate(x.shape) if keep or i not in axes]
    return torch.full(shape, value, dtype=x.dtype)


def _prod(x: torch.Tensor, axes: Sequence[int], keep: bool) -> torch.Tensor:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdim=keep)
    return x


def _log_sum_exp(x: torch.Tensor, axes: Sequence[int], keep: bool) -> torch.Tensor:
    wide = x if x.dtype.is_floating_point else x.to(torch.float64)
    return torch.logsumexp(wide, list(axes), keepdim=keep) if axes else wide


_reduction("ReduceSum", _sum)
_reduction("ReduceMean", _mean)
_reduction("ReduceMax", _extreme(True))
_reduction("ReduceMin", _extreme(False))
_reduction("ReduceProd", _prod)
_reduction("ReduceL1", lambda x, axes, keep: _sum(torch.abs(x), axes, keep))
_reduction("ReduceL2", lambda x, axes, keep: torch.sqrt(_sum(x * x, axes, keep).to(_float(x))))
_reduction("ReduceLogSum", lambda x, axes, keep: torch.log(_sum(x, axes, keep).to(_float(x))))
_reduction("ReduceLogSumExp", _log_sum_exp)
_reduction("ReduceSumSquare", lambda x, axes, keep: _sum(x * x, axes, keep))


def _float(x: torch.Tensor) -> torch.dtype:
    return x.dtype if x.dtype.is_floating_point else torch.float64
