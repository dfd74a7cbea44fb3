"""How fast the programs of one task are believed to be, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.target import Target

__all__ = ["Belief", "MachineBound", "Observation", "TaskModel", "network_share"]

# Spread of ln(speed) around the bound before anything is measured, what a measurement is off by,
# and how far apart (in natural logarithms, over all coordinates) programs know of each other.
_AMPLITUDE = 0.35
_NOISE = 0.04
_LENGTH = 1.2
# How much a program of one sketch says of those of another.
_ACROSS_SKETCHES = 0.6
# A program that does not build or run counts as one so much slower than the bound lets expect.
_FAILURE = -2.0
# Share of the bound that programs reach before any of the task was measured.
_TYPICAL_SHARE = 0.75
# Share of the network in the belief, beside the bound, before the task's measurements say better:
# where it was trained on processors with registers of this width, and elsewhere. How many
# measurements that is worth.
_NETWORK_SHARE_AT_HOME = 0.6
_NETWORK_SHARE = 0.25
_NETWORK_PRIOR = 8.0


def network_share(network: LatencyModel, target: Target) -> float:
    """How much a network is believed, beside the bound, before a task was measured.

    What it learned of processors holds for others with vector registers of the same width: those
    have other tiles, and other things limit them. The programs kept for replay say which it knows.
    """
    machines = {meta.target for meta in network.replay.conf_meta if meta.target}
    known = {Target(machine).vector_width for machine in machines}
    return _NETWORK_SHARE_AT_HOME if target.vector_width in known else _NETWORK_SHARE


class MachineBound(Protocol):
    """The least time of programs on one machine, in units of its own."""

    def describe(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """ln of the time, and coordinates in which like programs are near.

        Parameters
        ----------
        features : shape (n, n_stores, n_columns).

        Returns
        -------
        Float64 of shapes (n,) and (n, n_coordinates).
        """

    def seconds(self, units: float) -> float:
        """Seconds of a number of units; infinite where that is not known."""


@dataclass(frozen=True)
class Observation:
    """One measured program: its sketch, features of shape (n_stores, n_columns), and ln(GFLOP/s).

    `score` is None where the program failed.
    """

    sketch: int
    features: np.ndarray
    score: float | None


@dataclass(frozen=True)
class Belief:
    """ln(GFLOP/s) of some programs: mean and standard deviation, each of shape (n,)."""

    mean: torch.Tensor
    deviation: torch.Tensor


class _Programs:
    """Programs with different numbers of stores, evaluated together where the numbers are equal."""

    def __init__(self, features: Sequence[np.ndarray]) -> None:
        self._count = len(features)
        by_stores: dict[int, list[int]] = {}
        for position, rows in enumerate(features):
            by_stores.setdefault(len(rows), []).append(position)
        self._groups = [
            (positions, torch.from_numpy(np.stack([features[i] for i in positions])))
            for positions in by_stores.values()
        ]

    def map(
        self, function: Callable[[torch.Tensor], tuple[torch.Tensor, ...]]
    ) -> tuple[torch.Tensor, ...]:
        """Results of a function of (n, n_stores, n_columns), in the programs' order."""
        order = torch.tensor([i for positions, _ in self._groups for i in positions])
        back = torch.empty(self._count, dtype=torch.int64)
        back[order] = torch.arange(self._count)
        parts = [function(features) for _, features in self._groups]
        return tuple(torch.cat(column)[back] for column in zip(*parts))


class TaskModel:
    """Speed of a task's programs: the machine's bound, a learned share of it, what was measured.

    The mean lies between the bound (see ProcessorBound, GpuBound) and a trained network, nearer to
    the one that predicts this task's measurements better, and is moved by a Gaussian process over
    the bound's components through what is left. Near measured programs the belief follows them; far
    from all it falls back to bound and network, and says so by its deviation. No mean is above the
    machine's peak.

    Parameters
    ----------
    network : the cost model, trained on all tasks.
    bound : of the target's machine, None for targets and spaces without one. Then the network is
        believed, without a deviation.
    flop : floating-point operations of one run.
    peak : FLOP a second that the machine can do.
    network_share : of a trained network in the belief before the task was measured, in [0, 1]; see
        `network_share`.
    """

    def __init__(
        self,
        network: LatencyModel,
        bound: MachineBound | None,
        flop: float,
        peak: float,
        network_share: float = _NETWORK_SHARE,
    ) -> None:
        self.network = network
        self.bound = bound
        self._peak = math.log(peak / 1e9) if math.isfinite(peak) else math.inf
        self._work = math.log(max(flop, 1.0) / 1e9)
        self._offset = math.log(_TYPICAL_SHARE)
        unit = math.inf if bound is None else bound.seconds(1.0)
        if math.isfinite(unit):
            self._offset -= math.log(unit)
        self._network_share = network_share
        self._network_weight = network_share if network.trained else 0.0
        self._network_offset = 0.0
        self._sketches = torch.zeros(0, dtype=torch.int64)
        self._coordinates = torch.zeros(0, 0, dtype=torch.float64)
        self._factor = torch.zeros(0, 0, dtype=torch.float64)
        self._weights = torch.zeros(0, dtype=torch.float64)

    def fit(self, observations: Sequence[Observation]) -> None:
        """Take in everything that was measured of the task."""
        if self.bound is None or not observations:
            return
        with torch.no_grad():
            programs = _Programs([o.features for o in observations])
            slots, self._coordinates = programs.map(self.bound.describe)
            (network,) = programs.map(lambda features: (self._of_network(features),))
        self._sketches = torch.tensor([o.sketch for o in observations])
        measured = torch.tensor([o.score is not None for o in observations])
        residual = torch.tensor(
            [0.0 if o.score is None else o.score for o in observations], dtype=torch.float64
        )
        residual = residual - (self._work - slots)
        # Failures alone say where not to look, but nothing of the level of the rest.
        if measured.any():
            residual = self._fit_level(residual, network - (self._work - slots), measured)
        residual[~measured] = _FAILURE
        residual = residual.clamp(-3.0, 1.0)
        kernel = self._kernel(self._sketches, self._coordinates, self._sketches, self._coordinates)
        kernel = kernel + _NOISE**2 * torch.eye(len(kernel), dtype=torch.float64)
        self._factor = torch.linalg.cholesky(kernel)
        self._weights = torch.cholesky_solve(residual[:, None], self._factor)[:, 0]

    def _fit_level(
        self, residual: torch.Tensor, network: torch.Tensor, measured: torch.Tensor
    ) -> torch.Tensor:
        """Level of the bound and share of the network; what they leave of what was measured.

        Parameters
        ----------
        residual, network : what was measured, and what the network says, above the bound; shape
            (n,), of which those count that `measured` says.
        """
        # Slow programs say little of how near to the bound good ones come.
        self._offset = float(torch.quantile(residual[measured], 0.7))
        residual = residual - self._offset
        # Of the network its order counts: another machine's has another level.
        correction = network - self._offset
        self._network_offset = float(correction[measured].mean())
        learned = correction - self._network_offset
        spread = float(learned[measured].square().sum())
        prior = _NETWORK_PRIOR * max(float(learned[measured].square().mean()), 1e-6)
        share = self._network_share if self.network.trained else 0.0
        agreement = float((learned * residual)[measured].sum())
        weight = (agreement + prior * share) / (spread + prior)
        self._network_weight = min(max(weight, 0.0), 1.0)
        return residual - self._network_weight * learned

    def believe(self, sketch: int, features: torch.Tensor) -> Belief:
        """What is believed of programs of one sketch; features: (n, n_stores, n_columns).

        Differentiable in the features.
        """
        if self.bound is None:
            network = self._of_network(features)
            return Belief(network, torch.zeros_like(network))
        slots, coordinates = self.bound.describe(features)
        mean = self._work - slots + self._offset
        if self._network_weight > 0:
            correction = self._of_network(features) - mean - self._network_offset
            mean = mean + self._network_weight * correction
        variance = torch.full_like(mean, _AMPLITUDE**2)
        if len(self._weights):
            near = self._kernel(
                torch.tensor([sketch]), coordinates, self._sketches, self._coordinates
            )
            mean = mean + near @ self._weights
            solved = torch.linalg.solve_triangular(self._factor, near.T, upper=False)
            variance = (variance - solved.square().sum(0)).clamp_min(1e-6)
        if math.isfinite(self._peak):
            # Smooth, so that the order of what is near the peak is kept.
            mean = mean - torch.nn.functional.softplus(mean - self._peak, beta=16.0)
            mean = mean.clamp_max(self._peak)  # of what is rounded
        return Belief(mean, variance.sqrt())

    def choose(
        self,
        sketches: np.ndarray,
        features: Sequence[np.ndarray],
        beliefs: Belief,
        count: int,
    ) -> list[int]:
        """Positions of programs that together are worth measuring most, the best first.

        Each chosen program makes those near it less uncertain, so a batch is not full of
        neighbours; exploitation and exploration take turns (Desautels et al., "Parallelizing
        exploration-exploitation tradeoffs", JMLR 15, 2014).
        """
        mean = beliefs.mean.detach()
        if self.bound is None:
            return [int(i) for i in torch.argsort(-mean, stable=True)[:count]]
        with torch.no_grad():
            _, coordinates = _Programs(features).map(self.bound.describe)
            numbers = torch.from_numpy(np.asarray(sketches, dtype=np.int64))
            covariance = self._kernel(numbers, coordinates, numbers, coordinates)
            if len(self._weights):
                near = self._kernel(numbers, coordinates, self._sketches, self._coordinates)
                solved = torch.linalg.solve_triangular(self._factor, near.T, upper=False)
                covariance = covariance - solved.T @ solved
            chosen: list[int] = []
            open_ = torch.ones(len(mean), dtype=torch.bool)
            while len(chosen) < min(count, len(mean)):
                curiosity = 0.25 if len(chosen) % 2 == 0 else 1.0
                worth = mean + curiosity * covariance.diagonal().clamp_min(0.0).sqrt()
                # A twin of what is chosen has nothing left to find out.
                worth = worth - 0.5 * (covariance.diagonal() < (0.3 * _AMPLITUDE) ** 2) * bool(
                    chosen
                )
                worth[~open_] = -torch.inf
                best = int(torch.argmax(worth))
                chosen.append(best)
                open_[best] = False
                column = covariance[:, best].clone()
                covariance = covariance - torch.outer(column, column) / (
                    column[best].clamp_min(0.0) + _NOISE**2
                )
        return chosen

    def _of_network(self, features: torch.Tensor) -> torch.Tensor:
        if not self.network.built:
            return features.new_zeros(len(features)).double()
        return self.network(features.float()).double()

    @staticmethod
    def _kernel(
        sketches: torch.Tensor, points: torch.Tensor, others: torch.Tensor, at: torch.Tensor
    ) -> torch.Tensor:
        distance = torch.cdist(points, at).square()
        same = (sketches[:, None] == others[None, :]).double()
        share = _ACROSS_SKETCHES + (1 - _ACROSS_SKETCHES) * same
        return _AMPLITUDE**2 * share * torch.exp(-0.5 * distance / _LENGTH**2)
