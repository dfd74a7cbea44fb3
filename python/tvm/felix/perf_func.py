"""Predicted performance of a sketch and of a task as differentiable functions of the exponents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

import tvm
from tvm import DataType, auto_scheduler
from tvm.auto_scheduler.cost_model.dataset import FeatureKind
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.auto_scheduler.search_space import feature_version, learned_feature_names, space_key

from .bound import ProcessorBound
from .canonical import canonical_configs
from .features import TorchFeatures
from .gpu_bound import GpuBound, gpu_peak_flops
from .peak import peak_flops
from .sampling import distinct_rows
from .sketch import Sketch, Task
from .task_model import TaskModel, network_share

__all__ = ["Candidate", "SketchPerfFunc", "TaskPerfFunc", "config_key", "feature_kind"]


def config_key(sketch: int, config: Mapping[str, int]) -> tuple:
    """Hashable identity of a schedule inside its task."""
    return (sketch, *sorted(config.items()))


def feature_kind(task: Task) -> FeatureKind:
    """What the columns are that a cost model sees of a task's programs.

    Raises
    ------
    ValueError : the task's target has no such search space.
    """
    target = task.ansor_task.target
    columns = learned_feature_names(target, task.search_space)
    return FeatureKind.of(space_key(target, task.search_space), columns, feature_version())


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
    """Predicted score of one sketch over its free exponents.

    Points are float64 of shape (n_points, n_variables), columns in the order of the variables of
    `features`.

    Attributes
    ----------
    sketch : the sketch.
    features : its features and constraints as functions of points.
    model : what predicts from features.
    """

    def __init__(self, sketch: Sketch, model: TaskModel) -> None:
        self.sketch = sketch
        self.model = model
        self.features = TorchFeatures(sketch.fetch_features())
        self._moves = self._unit_moves(self.features.polytope.matrix)

    def cost_f(self, features: torch.Tensor) -> torch.Tensor:
        """What descent makes less, the negative predicted score: shape (n_points,).

        features : shape (n_points, n_stores, n_features), as `features` gives them.
        """
        return -self.model.believe(self.sketch.index, features).mean

    def make_measure_inputs(
        self, configs: Iterable[Mapping[str, int]]
    ) -> list[auto_scheduler.MeasureInput]:
        """The programs of configurations, ready to be measured and recorded.

        Raises
        ------
        ValueError : a knob is missing or unknown.
        """
        task = self.sketch.parent_task.ansor_task
        return [
            auto_scheduler.MeasureInput(task, self.sketch.state_from_config(config))
            for config in configs
        ]

    def program(self, config: Mapping[str, int]) -> int:
        """Hash of the lowered program of a configuration, in which loops of one trip are gone."""
        task = self.sketch.parent_task.ansor_task
        with task.target:
            lowered = tvm.lower(
                *task.compute_dag.apply_steps_from_state(self.sketch.state_from_config(config))
            )
        return int(tvm.ir.structural_hash(lowered["main"]))

    def scores(self, points: np.ndarray) -> np.ndarray:
        """Predicted scores: float64, shape (n_points,)."""
        return self.beliefs(points)[0]

    def beliefs(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predicted scores and their deviations: float64, shape (n_points,) each."""
        return self._beliefs_of(self.features.rows(points))

    def canonical_beliefs(self) -> tuple[np.ndarray, np.ndarray]:
        """`beliefs` at the canonical points."""
        return self._beliefs_of(self._canonical_features)

    def _beliefs_of(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            belief = self.model.believe(self.sketch.index, torch.from_numpy(features))
        return belief.mean.numpy(), belief.deviation.numpy()

    @cached_property
    def _canonical_features(self) -> np.ndarray:
        return self.features.rows(self.canonical)

    @cached_property
    def canonical(self) -> np.ndarray:
        """The valid ones of the sketch's canonical points: shape (n, n_variables).

        None of targets that are no processors.
        """
        target = self.sketch.parent_task.ansor_task.target
        if "cpu" not in target.keys:
            return np.zeros((0, len(self.features.variables)))
        lanes = max(int(target.vector_width) // 32, 1)
        configs = canonical_configs(self.sketch, lanes, int(target.num_vector_registers))
        points = []
        for config in configs:
            try:
                points.append(self.features.point(config))
            except ValueError:  # a value that the knob's primes do not give
                continue
        if not points:
            return np.zeros((0, len(self.features.variables)))
        distinct = distinct_rows(np.array(points))
        return distinct[self.features.config_maker.valid(distinct)]

    def round(self, points: np.ndarray) -> np.ndarray:
        """Distinct valid integer points near the given real ones: shape (<= n, n_variables)."""
        rounded, valid = self.features.polytope.round(points)
        rounded = distinct_rows(rounded[valid] + 0.0)
        return rounded[self.features.config_maker.valid(rounded)] if len(rounded) else rounded

    def neighbours(self, points: np.ndarray) -> np.ndarray:
        """Distinct valid points one unit move away from any of `points`."""
        if not len(points) or not len(self._moves):
            return points[:0]
        moved = (points[:, None, :] + self._moves[None]).reshape(-1, points.shape[1])
        moved = distinct_rows(moved)
        return moved[self.features.config_maker.valid(moved)]

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
    if "cpu" in target.keys:
        lanes = max(int(target.vector_width) // 32, 1)
        peak = peak_flops(target)
        bound = ProcessorBound(columns, target, lanes, peak)
        return TaskModel(network, bound, flop, peak, network_share(network, target))
    if "kernel_cycles" in columns:
        # Of other GPUs there is no data sheet: they count as the one that CUDA means by default.
        is_known = str(target.kind.name) == "cuda"
        peak = gpu_peak_flops(target, _tensor_core_bytes(sketches)) if is_known else math.inf
        return TaskModel(network, GpuBound(columns, target), flop, peak)
    return TaskModel(network, None, flop, math.inf)


def _tensor_core_bytes(sketches: Sequence[Sketch]) -> float | None:
    """Bytes of the least element of the task, None if no sketch uses tensor cores."""
    steps = (step for sketch in sketches for step in sketch.state.transform_steps)
    if not any(str(getattr(step, "pragma_type", "")).startswith("tensor_core") for step in steps):
        return None
    inputs = sketches[0].parent_task.ansor_task.compute_dag.tensors
    return min(float(DataType(tensor.dtype).bits) / 8 for tensor in inputs)


class TaskPerfFunc:
    """All sketches of one task under one model of their speed.

    Sketches whose features cannot be formed or whose constraints cannot be met are left out and
    listed in `skipped` with the reason.

    Attributes
    ----------
    flops : floating-point operations of one execution.
    perf_model : the learned latency model, which tasks share.
    model : what predicts of this task: the machine's bound, `perf_model`, and what was measured.
    sketch_funcs : index of the sketch to its function.
    """

    def __init__(
        self, sketches: Sequence[Sketch], flops: float, name: str, perf_model: LatencyModel
    ) -> None:
        self.name = name
        self.flops = flops
        self.perf_model = perf_model
        self.skipped: dict[int, str] = {}
        self.sketch_funcs: dict[int, SketchPerfFunc] = {}
        self.model = _task_model(sketches, flops, perf_model)
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
    def sym_task(self) -> Task:
        """The symbolic task whose sketches these are."""
        return next(iter(self.sketch_funcs.values())).sketch.parent_task

    @property
    def ansor_task(self) -> auto_scheduler.SearchTask:
        """The search task that is tuned."""
        return self.sym_task.ansor_task

    @property
    def sizes(self) -> Mapping[str, int]:
        """The value of each size of the symbolic task."""
        return self.sym_task.sizes

    @property
    def feature_kind(self) -> FeatureKind:
        """What the columns are that cost models learn from."""
        return feature_kind(self.sym_task)

    @property
    def n_features(self) -> int:
        """Columns of a feature row that cost models learn from, equal for all sketches.

        They are the first ones; the bound of the machine may have more behind them.
        """
        target = self.ansor_task.target
        return len(learned_feature_names(target, self.sym_task.search_space))

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
