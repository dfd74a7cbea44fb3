"""Gradient search inside one task: start points, descent, rounding, choice of what to measure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from .perf_func import Candidate, SketchPerfFunc, TaskPerfFunc, config_key
from .task_model import Belief, Observation

__all__ = ["ConfigInfo", "SearchSettings", "SingleTaskOptimizer", "TaskHistory"]


@dataclass(frozen=True)
class SearchSettings:
    """Constants of the gradient search; defaults follow Felix (ASPLOS 2024) where it gives any."""

    lr: float = 0.5
    lr_decay: float = 0.2
    lr_milestone: float = 0.3
    """Share of the steps after which the learning rate is multiplied by `lr_decay`."""
    penalty_ratio: float = 5.0
    """Norm of the constraint gradient relative to that of the cost, for points outside."""
    elite_share: float = 0.4
    """Share of the start points taken near the best measured schedules."""
    random_share: float = 0.0
    """Share of each measured batch drawn at random instead of by prediction; 1 for no descent."""
    n_considered: int = 256
    """Best candidates from which a batch is put together."""
    n_remembered: int = 256
    """Measured programs of a task that its model goes through; it takes their number cubed."""
    n_suggested: int = 2
    """Programs of a batch that are the best ones of tasks with equal structure."""
    curiosity: float = 1.0
    """Deviations by which a sketch's best prediction is raised when start points are shared out."""


# Sketches form the same features by different expressions; figures of float64 behind these differ.
_DECIMALS = 6


def _signature(features: np.ndarray) -> bytes:
    """Equal for programs that features do not tell apart: shape (n_stores, n_features)."""
    return (np.round(features, _DECIMALS) + 0.0).tobytes()


@dataclass
class ConfigInfo:
    """One schedule with its prediction and, once measured, its latency.

    `pred_perf` is ln(GFLOP/s), NaN for what was not chosen here but read from records.
    """

    sketch: int
    config: dict[str, int]
    pred_perf: float
    seconds: float | None = None
    error_no: int | None = None

    @property
    def key(self) -> tuple:
        """Identity inside the task."""
        return config_key(self.sketch, self.config)


@dataclass
class TaskHistory:
    """What was measured of one task, whoever proposed it."""

    measured: dict[tuple, ConfigInfo] = field(default_factory=dict, kw_only=True)
    least_lat_history: list[float] = field(default_factory=list, kw_only=True)
    """Best latency in seconds after each round; infinity while none is valid."""

    @property
    def best(self) -> ConfigInfo | None:
        """The fastest measured schedule, or None."""
        valid = [info for info in self.measured.values() if info.seconds is not None]
        return min(valid, key=lambda info: info.seconds or 0.0, default=None)

    def record(self, info: ConfigInfo) -> None:
        """Remember a measured schedule, or that it takes another time than was thought."""
        self.measured[info.key] = info

    def end_round(self) -> None:
        """Append the best latency so far to the history."""
        best = self.best
        self.least_lat_history.append(
            best.seconds if best is not None and best.seconds is not None else float("inf")
        )


@dataclass
class SingleTaskOptimizer(TaskHistory):
    """Searches one task; knows everything measured for it, so nothing is measured twice.

    With equal seeds and equal measured latencies two instances choose equal configurations.
    """

    task_f: TaskPerfFunc
    rng: np.random.Generator
    settings: SearchSettings = field(default_factory=SearchSettings)
    _features: dict[tuple, np.ndarray] = field(default_factory=dict)
    """Features of measured schedules, each extracted once."""
    proposed: set[tuple] = field(default_factory=set)
    """Identities of all schedules that rounds have chosen."""
    _alike: dict[bytes, dict[tuple, ConfigInfo]] = field(default_factory=dict)
    """Schedules that were measured or chosen, by what their features have in common."""
    _programs: dict[tuple, int] = field(default_factory=dict)
    """Hashes of programs, of schedules that have features in common."""

    def optimize_round(
        self,
        n_seeds: int,
        n_steps: int,
        n_measure: int,
        suggested: Sequence[Candidate] = (),
    ) -> list[ConfigInfo]:
        """Up to `n_measure` schedules worth measuring, none chosen or measured before.

        The first round measures the best canonical points of the sketches. Later ones descend from
        those and from the best measured schedules, in the sketches that promise most.

        Parameters
        ----------
        n_seeds : start points of one sketch, of those that are worth a descent.
        n_steps : gradient steps from each.
        n_measure : size of the batch.
        suggested : schedules from elsewhere, best first, of which some are part of the batch.
        """
        ranked: list[Candidate] = []
        if self.n_random(n_measure) < n_measure:
            self.learn_from(self._remembered())
            ranked = self._candidates(n_seeds, n_steps)
        chosen = self.pick(ranked, n_measure, suggested)
        self.proposed.update(info.key for info in chosen)
        return chosen

    def _remembered(self) -> list[ConfigInfo]:
        """The newest and the best of what was measured."""
        half = self.settings.n_remembered // 2
        best = sorted(self.measured.values(), key=lambda info: info.seconds or math.inf)[:half]
        return list(
            {info.key: info for info in [*best, *list(self.measured.values())[-half:]]}.values()
        )

    def learn_from(self, infos: Sequence[ConfigInfo]) -> None:
        """Make the task's model believe what these measurements show, and nothing else."""
        for index, function in self.task_f.sketch_funcs.items():
            new = [i for i in infos if i.sketch == index and i.key not in self._features]
            if new:
                points = np.array([function.features.point(info.config) for info in new])
                for info, features in zip(new, function.features.rows(points)):
                    self._features[info.key] = features
                    self._alike.setdefault(_signature(features), {})[info.key] = info
        self.task_f.model.fit(
            [
                Observation(
                    info.sketch,
                    self._features[info.key],
                    None
                    if info.seconds is None
                    else math.log(self.task_f.flops / info.seconds / 1e9),
                )
                for info in infos
            ]
        )

    def _candidates(self, n_seeds: int, n_steps: int) -> list[Candidate]:
        """What the round may choose from, best predicted first."""
        pools: dict[int, np.ndarray] = {}
        promise: dict[int, float] = {}
        for index, function in self.task_f.sketch_funcs.items():
            pool = function.canonical
            if len(pool):
                scores, deviations = function.canonical_beliefs()
            else:
                pool = function.features.config_maker.make(2 * n_seeds, self.rng)
                if not len(pool):
                    continue
                scores, deviations = function.beliefs(pool)
            order = np.argsort(-scores, kind="stable")
            pools[index] = pool[order[: self.settings.n_considered]]
            promise[index] = float((scores + self.settings.curiosity * deviations).max())
        if self.measured or not any(
            len(function.canonical) for function in self.task_f.sketch_funcs.values()
        ):
            # Of the sketches the better half gets start points, and the best one most.
            best_first = sorted(promise, key=lambda index: -promise[index])
            for rank, index in enumerate(best_first[: (len(best_first) + 1) // 2]):
                function = self.task_f.sketch_funcs[index]
                start = self.start_points(function, max(n_seeds >> rank, 4))
                if len(start):
                    visited = self.descend(function, start, n_steps)
                    pools[index] = np.concatenate([pools[index], visited])
        return self.task_f.rounded_sorted_configs(pools)

    def n_random(self, n_measure: int) -> int:
        """How many of a batch are drawn at random."""
        return min(n_measure, round(self.settings.random_share * n_measure))

    def new(self, info: ConfigInfo) -> bool:
        """Whether a schedule was neither chosen nor measured."""
        return info.key not in self.measured and info.key not in self.proposed

    def is_other(self, info: ConfigInfo) -> bool:
        """Whether a schedule is new, and its program is none that was chosen or measured; if so, it
        counts as chosen from now on.

        Sketches come to the same program where the loops that they differ in run once, as parallel
        ones on one core do. Then the features are the same, too, so few programs are looked at.
        """
        if not self.new(info):
            return False
        function = self.task_f.sketch_funcs[info.sketch]
        row = function.features.rows(function.features.point(info.config)[None])[0]
        alike = self._alike.setdefault(_signature(row), {})
        if alike and self._program(info) in map(self._program, alike.values()):
            return False
        alike[info.key] = info
        return True

    def _program(self, info: ConfigInfo) -> int:
        if info.key not in self._programs:
            function = self.task_f.sketch_funcs[info.sketch]
            self._programs[info.key] = function.program(info.config)
        return self._programs[info.key]

    def start_points(self, function: SketchPerfFunc, n_seeds: int) -> np.ndarray:
        """Random and canonical points, and points near the best measured ones of this sketch."""
        index = function.sketch.index
        known = sorted(
            (i for i in self.measured.values() if i.sketch == index and i.seconds is not None),
            key=lambda info: info.seconds or 0.0,
        )
        n_elite = min(int(self.settings.elite_share * n_seeds), 8 * len(known))
        # Twice as many random points as needed are drawn and the better half by prediction kept:
        # evaluating a point costs far less than descending from it.
        pool = function.features.config_maker.make(n_seeds - n_elite, self.rng)
        canonical = function.canonical
        if len(canonical):
            scores, _ = function.canonical_beliefs()
            best = np.argsort(-scores, kind="stable")[: n_seeds - n_elite]
            pool = np.concatenate([pool, canonical[best]]) if len(pool) else canonical[best]
        if len(pool):
            keep = np.argsort(-function.scores(pool), kind="stable")[: n_seeds - n_elite]
            pool = pool[keep]
        if n_elite:
            elite = np.array([function.features.point(info.config) for info in known[:8]])
            picks = elite[np.arange(n_elite) % len(elite)]
            pool = np.concatenate([pool, picks + self.rng.normal(0.0, 0.5, picks.shape)])
        return pool

    def descend(self, function: SketchPerfFunc, start: np.ndarray, n_steps: int) -> np.ndarray:
        """All points visited by Adam from `start`: shape ((n_steps + 1) * n, n_variables)."""
        settings = self.settings
        points = torch.from_numpy(start.copy()).requires_grad_()
        visited = [start]
        if not start.shape[1]:
            return start
        optimizer = torch.optim.Adam([points], lr=settings.lr)
        schedule = torch.optim.lr_scheduler.MultiStepLR(
            optimizer, [max(1, int(settings.lr_milestone * n_steps))], settings.lr_decay
        )
        for _ in range(n_steps):
            self.optimize_step(function, points, optimizer)
            schedule.step()
            visited.append(points.detach().numpy().copy())
        return np.concatenate(visited)

    def optimize_step(
        self, function: SketchPerfFunc, points: torch.Tensor, optimizer: torch.optim.Optimizer
    ) -> float:
        """One step on -score plus the scaled constraint penalty; returns the summed cost."""
        features, constraints = function.features(points)
        cost = function.cost_f(features).sum()
        penalty = constraints.clamp_min(0.0).square().sum()
        (cost_grad,) = torch.autograd.grad(cost, points, retain_graph=True)
        (penalty_grad,) = torch.autograd.grad(penalty, points)
        cost_norm = cost_grad.norm(dim=1, keepdim=True)
        penalty_norm = penalty_grad.norm(dim=1, keepdim=True)
        # A point with no cost gradient must still be driven back inside.
        scale = torch.where(
            penalty_norm > 0,
            self.settings.penalty_ratio * cost_norm.clamp_min(1e-3) / penalty_norm.clamp_min(1e-12),
            torch.zeros_like(penalty_norm),
        )
        points.grad = torch.nan_to_num(cost_grad + scale * penalty_grad)
        optimizer.step()
        return cost.item()

    def pick(
        self, ranked: list[Candidate], n_measure: int, suggested: Sequence[Candidate] = ()
    ) -> list[ConfigInfo]:
        """The batch to measure: worth most together, see TaskModel.choose, plus a random share,
        plus some that are suggested."""
        n_chosen = n_measure - self.n_random(n_measure)
        chosen: dict[tuple, ConfigInfo] = {}

        def take(infos: Iterable[ConfigInfo], most: int) -> None:
            for info in infos:
                if len(chosen) >= most:
                    break
                if info.key not in chosen and self.is_other(info):
                    chosen[info.key] = info

        if n_chosen:
            take(map(self._info, suggested), min(self.settings.n_suggested, n_chosen))
            untried = self._untried(ranked)[: n_chosen // 2]
            take(untried, len(chosen) + len(untried))
        unseen = (c for c in ranked if self.new(info := self._info(c)) and info.key not in chosen)
        open_ = list(itertools.islice(unseen, self.settings.n_considered))
        features = self._features_of(open_) if len(chosen) < n_chosen else []
        # Where programs turn out to be the same, others take their place.
        while open_ and len(chosen) < n_chosen:
            beliefs = Belief(
                torch.tensor([c.score for c in open_], dtype=torch.float64),
                torch.tensor([c.deviation for c in open_], dtype=torch.float64),
            )
            sketches = np.array([c.sketch for c in open_])
            missing = n_chosen - len(chosen)
            best = self.task_f.model.choose(sketches, features, beliefs, missing)
            take((self._info(open_[i]) for i in best), n_chosen)
            left = [i for i in range(len(open_)) if i not in best]
            open_, features = [open_[i] for i in left], [features[i] for i in left]
        if len(chosen) < n_measure:
            take(map(self._info, self._random_candidates(n_measure)), n_measure)
        return list(chosen.values())

    def _untried(self, ranked: Sequence[Candidate]) -> list[ConfigInfo]:
        """The best guess of each sketch that nothing was measured of, where no bound of the machine
        says what to expect of it: what a new network thinks of sketches is arbitrary."""
        if self.task_f.model.bound is not None:
            return []
        tried = {info.sketch for info in self.measured.values()}
        firsts: dict[int, ConfigInfo] = {}
        for candidate in ranked:
            if candidate.sketch not in tried and candidate.sketch not in firsts:
                info = self._info(candidate)
                if self.new(info):
                    firsts[candidate.sketch] = info
        return list(firsts.values())

    def _features_of(self, candidates: list[Candidate]) -> list[np.ndarray]:
        found: dict[int, np.ndarray] = {}
        for index, function in self.task_f.sketch_funcs.items():
            positions = [i for i, c in enumerate(candidates) if c.sketch == index]
            if positions:
                points = np.array([candidates[i].point for i in positions])
                found.update(zip(positions, function.features.rows(points)))
        return [found[i] for i in range(len(candidates))]

    def _random_candidates(self, n: int) -> list[Candidate]:
        functions = list(self.task_f.sketch_funcs.items())
        counts = np.bincount(
            self.rng.integers(len(functions), size=2 * n), minlength=len(functions)
        )
        candidates = []
        for (index, function), count in zip(functions, counts):
            points = function.features.config_maker.make(int(count), self.rng)
            if not len(points):
                continue
            scores, deviations = function.beliefs(points)
            candidates += [
                Candidate(index, p, float(s), float(d))
                for p, s, d in zip(points, scores, deviations)
            ]
        order = self.rng.permutation(len(candidates))
        return [candidates[i] for i in order]

    def _info(self, candidate: Candidate) -> ConfigInfo:
        function = self.task_f.sketch_funcs[candidate.sketch]
        return ConfigInfo(
            candidate.sketch, function.features.config(candidate.point), candidate.score
        )
