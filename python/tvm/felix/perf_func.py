"""Predicted performance of a sketch and of a task as differentiable functions of the exponents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from tvm import auto_scheduler
from tvm.auto_scheduler.cost_model.dataset import FeatureKind
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.auto_scheduler.search_space import space_key

from .bound import ProcessorBound
from .canonical import canonical_configs
from .peak import peak_flops
from .sampling import Polytope, RandConfigMaker, distinct_rows
from .sketch import Sketch
from .tape import torch_function
from .task_model import TaskModel

__all__ = ["Candidate", "SketchPerfFunc", "TaskPerfFunc", "config_key"]

_VALID_TOLERANCE = 1e-6
# Gradient steps of a sketch after which its tape is simplified. That takes as long as it saves in
# some 1500 steps (benchmarks/tape.py, benchmarks/extraction.py), which most sketches never see.
_STEPS_WORTH_SIMPLIFYING = 1500


def config_key(sketch: int, config: Mapping[str, int]) -> tuple:
    """Hashable identity of a schedule inside its task."""
    return (sketch, *sorted(config.items()))


@dataclass(frozen=True)
class Candidate:
    """One integer point of one sketch with its predicted score (higher is better)."""

    sketch: int
    point: np.ndarray
    """float64 with integer values, shape (n_variables,); exponents in variable order."""
    score: float
    deviation: float = 0.0
    """How much the score may be off, in the same unit."""


class SketchPerfFunc:
    """Features, constraints and predicted score of one sketch over its free exponents.

    Points are float64 of shape (n_points, n_variables), columns in the order of `variables`.
    """

    def __init__(self, sketch: Sketch, model: TaskModel) -> None:
        self.sketch = sketch
        self.model = model
        pack = sketch.fetch_features()
        self.pack = pack
        self.variables: list[str] = pack.variables
        self.n_features = pack.n_features
        self._n_feature_roots = pack.n_stores * pack.n_features
        self._evaluate = torch_function(pack.tape)
        self._steps = 0
        matrix, offset = pack.linear_constraints()
        self.polytope = Polytope(matrix, offset)
        self.config_maker = RandConfigMaker(self.polytope, self._nonlinear_valid)
        self._moves = self._unit_moves(matrix)
        self._known_exponents: dict[tuple[str, int], list[int]] = {}
        names = [name for factors in pack.var_factors.values() for _, name in factors]
        self._column_of_variable = [names.index(name) for name in self.variables]

    def outputs(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Features (n, n_stores, n_features) and constraint values (n, n_linear + n_nonlinear).

        A constraint holds where its value is <= 0. Both are differentiable in `points`.
        """
        if points.requires_grad:
            self._steps += 1
            if self._steps == _STEPS_WORTH_SIMPLIFYING:
                self._evaluate = torch_function(self.pack.tape.simplify().tape)
        roots = self._evaluate(points)
        features = roots[:, : self._n_feature_roots]
        linear = points @ torch.from_numpy(self.polytope.matrix).to(points.dtype).T
        linear = linear + torch.from_numpy(self.polytope.offset).to(points.dtype)
        constraints = torch.cat([linear, roots[:, self._n_feature_roots :]], dim=1)
        return features.reshape(len(points), self.pack.n_stores, self.n_features), constraints

    def features(self, points: np.ndarray) -> np.ndarray:
        """float32, shape (n_points, n_stores, n_features)."""
        with torch.no_grad():
            return self.outputs(torch.from_numpy(points))[0].float().numpy()

    def scores(self, points: np.ndarray) -> np.ndarray:
        """Predicted scores: float64, shape (n_points,)."""
        return self.beliefs(points)[0]

    def beliefs(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predicted scores and their deviations: float64, shape (n_points,) each."""
        return self._beliefs_of(self.features(points))

    def canonical_beliefs(self) -> tuple[np.ndarray, np.ndarray]:
        """`beliefs` at the canonical points."""
        return self._beliefs_of(self._canonical_features)

    def _beliefs_of(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            belief = self.model.believe(self.sketch.index, torch.from_numpy(features))
        return belief.mean.numpy(), belief.deviation.numpy()

    @cached_property
    def _canonical_features(self) -> np.ndarray:
        return self.features(self.canonical)

    @cached_property
    def canonical(self) -> np.ndarray:
        """The valid ones of the sketch's canonical points: shape (n, n_variables).

        None of targets that are no processors.
        """
        target = self.sketch.parent_task.ansor_task.target
        if "cpu" not in target.keys:
            return np.zeros((0, len(self.variables)))
        lanes = max(int(target.vector_width) // 32, 1)
        configs = canonical_configs(self.sketch, lanes, int(target.num_vector_registers))
        points = []
        for config in configs:
            try:
                points.append(self.point(config))
            except ValueError:  # a value that the knob's primes do not give
                continue
        if not points:
            return np.zeros((0, len(self.variables)))
        distinct = distinct_rows(np.array(points))
        return distinct[self.config_maker.valid(distinct)]

    def config(self, point: np.ndarray) -> dict[str, int]:
        """Knob values at an integer point: each the product of its prime powers."""
        exponents = dict(zip(self.variables, point))
        return {
            knob: math.prod(prime ** int(round(exponents.get(name, 0))) for prime, name in factors)
            * self.pack.fixed_factor(knob)
            for knob, factors in self.pack.var_factors.items()
        }

    def point(self, config: Mapping[str, int]) -> np.ndarray:
        """Exponents of knob values; inverse of `config`.

        Raises
        ------
        ValueError : a knob is missing, or its value has a prime that the sketch does not allow.
        """
        exponents: list[int] = []
        for knob in self.pack.var_factors:
            if knob not in config:
                raise ValueError(f"sketch {self.sketch.index}: the configuration lacks {knob}")
            value = int(config[knob])
            if (knob, value) not in self._known_exponents:
                self._known_exponents[knob, value] = self._exponents(knob, value)
            exponents += self._known_exponents[knob, value]
        return np.array(exponents, dtype=np.float64)[self._column_of_variable]

    def _exponents(self, knob: str, value: int) -> list[int]:
        """Exponents of the primes of one knob, in the order of its factors."""
        rest, remainder = divmod(value, self.pack.fixed_factor(knob))
        exponents = []
        for prime, _ in self.pack.var_factors[knob]:
            exponents.append(0)
            while rest % prime == 0 and rest > 0:
                rest //= prime
                exponents[-1] += 1
        if rest != 1 or remainder:
            raise ValueError(
                f"sketch {self.sketch.index}: {knob}={value} is not a product of "
                f"{[prime for prime, _ in self.pack.var_factors[knob]]}"
            )
        return exponents

    def round(self, points: np.ndarray) -> np.ndarray:
        """Distinct valid integer points near the given real ones: shape (<= n, n_variables)."""
        rounded, valid = self.polytope.round(points)
        rounded = distinct_rows(rounded[valid] + 0.0)
        return rounded[self.config_maker.valid(rounded)] if len(rounded) else rounded

    def neighbours(self, points: np.ndarray) -> np.ndarray:
        """Distinct valid points one unit move away from any of `points`."""
        if not len(points) or not len(self._moves):
            return points[:0]
        moved = (points[:, None, :] + self._moves[None]).reshape(-1, points.shape[1])
        moved = distinct_rows(moved)
        return moved[self.config_maker.valid(moved)]

    def _nonlinear_valid(self, points: np.ndarray) -> np.ndarray:
        if self.pack.n_constraints == 0:
            return np.ones(len(points), dtype=bool)
        with torch.no_grad():
            roots = self._evaluate(torch.from_numpy(points))
        return (roots[:, self._n_feature_roots :] <= _VALID_TOLERANCE).all(dim=1).numpy()

    @staticmethod
    def _unit_moves(matrix: np.ndarray) -> np.ndarray:
        """One exponent up or down, or one unit moved between two exponents that share a sum."""
        n = matrix.shape[1]
        unit = np.eye(n)
        moves = [unit, -unit]
        for row in matrix:
            members = np.flatnonzero(row > 0)
            if 2 <= members.size <= 8 and (row[members] == row[members[0]]).all():
                moves += [(unit[i] - unit[j])[None] for i in members for j in members if i != j]
        return np.unique(np.concatenate(moves), axis=0) if n else np.zeros((0, 0))


def _task_model(sketches: Sequence[Sketch], flop: float, network: LatencyModel) -> TaskModel:
    if not sketches:
        return TaskModel(network, None, flop, math.inf)
    target = sketches[0].parent_task.ansor_task.target
    columns = auto_scheduler.feature_names(target, sketches[0].parent_task.search_space)
    if "cpu" not in target.keys:
        return TaskModel(network, None, flop, math.inf)
    lanes = max(int(target.vector_width) // 32, 1)
    bound = ProcessorBound(columns, target, lanes)
    return TaskModel(network, bound, flop, peak_flops(target))


class TaskPerfFunc:
    """All sketches of one task under one model of their speed.

    Sketches whose features cannot be formed or whose constraints cannot be met are left out and
    listed in `skipped` with the reason.
    """

    def __init__(
        self, sketches: Sequence[Sketch], flop: float, name: str, network: LatencyModel
    ) -> None:
        self.name = name
        self.flop = flop
        self.network = network
        self.skipped: dict[int, str] = {}
        self.sketch_funcs: dict[int, SketchPerfFunc] = {}
        self.model = _task_model(sketches, flop, network)
        for sketch in sketches:
            try:
                self.sketch_funcs[sketch.index] = SketchPerfFunc(sketch, self.model)
            except ValueError as error:
                self.skipped[sketch.index] = str(error)
        if not self.sketch_funcs:
            raise ValueError(
                f"task {name}: none of its {len(sketches)} sketches can be searched: {self.skipped}"
            )

    @property
    def feature_kind(self) -> FeatureKind:
        """What the columns of the features are."""
        function = next(iter(self.sketch_funcs.values()))
        task = function.sketch.parent_task
        names = list(map(str, function.pack.feature_names))
        return FeatureKind.of(space_key(task.ansor_task.target, task.search_space), names)

    @property
    def n_features(self) -> int:
        """Columns of a feature row, equal for all sketches."""
        return next(iter(self.sketch_funcs.values())).n_features

    def rounded_sorted_configs(
        self, trajectories: Mapping[int, np.ndarray], polish: int = 24
    ) -> list[Candidate]:
        """Valid integer candidates near the visited points, best predicted first.

        Parameters
        ----------
        trajectories : sketch index to visited points, shape (n_visited, n_variables).
        polish : the best this many points of each sketch are improved by unit moves while the
            prediction rises, because the optimum over integers need not be the nearest point.
        """
        candidates: list[Candidate] = []
        for index, visited in trajectories.items():
            function = self.sketch_funcs[index]
            points = function.round(visited)
            if not len(points):
                continue
            scores, deviations = function.beliefs(points)
            for _ in range(2):
                best = points[np.argsort(-scores, kind="stable")[:polish]]
                extra = function.neighbours(best)
                merged = distinct_rows(np.concatenate([points, extra]))
                if len(merged) == len(points):
                    break
                points = merged
                scores, deviations = function.beliefs(points)
            candidates += [
                Candidate(index, p, float(s), float(d))
                for p, s, d in zip(points, scores, deviations)
            ]
        return sorted(candidates, key=lambda c: -c.score)
