"""Gradient search over the knobs of a template.

As in Felix (Zhao et al., ASPLOS 2024) a differentiable model is descended over tile sizes that
may take any positive value, and where the descent ends is rounded to a point of the space. A
template is anybody's Python, which cannot be run with variables for sizes; so the model reads
the knobs, not symbolic features of the program.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tvm.auto_scheduler.cost_model.torch_mode import with_gradients

from ..measure import MeasureInput, MeasureResult
from ..task.space import ConfigSpace, SplitSpace
from ..task.task import Task
from ..utils import throughput
from .model_based_tuner import CostModel, ModelBasedTuner, ModelOptimizer

__all__ = ["FelixTuner"]

_MEMBERS, _HIDDEN = 4, 64
_EPOCHS, _LEARNING_RATE = 120, 1e-2
# Throughputs span orders of magnitude; below this share of the best all are equally bad.
_FLOOR = 1e-3


class _Columns:
    """The knobs of a space as numbers: log2 of tile sizes, and a column for each other choice."""

    def __init__(self, space: ConfigSpace) -> None:
        self.space = space
        self.tables: list[np.ndarray] = []
        self.continuous: list[bool] = []
        for knob in space.space_map.values():
            if isinstance(knob, SplitSpace):
                sizes = [entity.size[1:] for entity in knob]
                table = np.log2(np.maximum(np.array(sizes, dtype=float), 1.0))
                table /= max(np.log2(max(knob.product, 2)), 1.0)
            else:
                table = np.eye(len(knob))
            self.tables.append(table.astype(np.float32))
            self.continuous.append(isinstance(knob, SplitSpace))
        self.width = sum(table.shape[1] for table in self.tables)

    def encode(self, indices: Sequence[int]) -> torch.Tensor:
        """One row a point."""
        rows = [
            np.concatenate(
                [table[choice] for table, choice in zip(self.tables, knob)] or [np.zeros(1)]
            )
            for knob in map(self.space.point2knob, indices)
        ]
        return torch.tensor(np.array(rows, dtype=np.float32))

    def movable(self) -> torch.Tensor:
        """1 where a column may take any value."""
        parts = [
            np.full(table.shape[1], float(free))
            for table, free in zip(self.tables, self.continuous)
        ]
        return torch.tensor(np.concatenate(parts).astype(np.float32))

    def nearest(self, row: np.ndarray) -> int:
        """The point whose knobs are closest."""
        knob, begin = [], 0
        for table in self.tables:
            end = begin + table.shape[1]
            knob.append(int(np.argmin(((table - row[begin:end]) ** 2).sum(axis=1))))
            begin = end
        return self.space.knob2point(knob)


class EnsembleModel(CostModel):
    """A few small networks over knobs; where they disagree nothing was measured nearby.

    Parameters
    ----------
    space : of the task.
    seed : of their weights.
    """

    @with_gradients()
    def __init__(self, space: ConfigSpace, seed: int = 0) -> None:
        self.columns = _Columns(space)
        generator = torch.Generator().manual_seed(seed)
        widths = [self.columns.width, _HIDDEN, _HIDDEN, 1]
        self._weights: list[torch.Tensor] = []
        for fan_in, fan_out in itertools.pairwise(widths):
            weight = torch.randn(_MEMBERS, fan_in, fan_out, generator=generator) / fan_in**0.5
            self._weights += [weight, torch.zeros(_MEMBERS, 1, fan_out)]
        for weight in self._weights:
            weight.requires_grad_(True)

    def _outputs(self, rows: torch.Tensor) -> torch.Tensor:
        """What each network says of rows [members or 1, points, columns]: [members, points]."""
        *hidden, (weight, bias) = zip(self._weights[::2], self._weights[1::2])
        for layer, shift in hidden:
            rows = nn.functional.silu(rows @ layer + shift)
        return (rows @ weight + bias)[..., 0]

    @with_gradients()
    def fit(self, xs: Any, ys: Any, plan_size: int) -> None:
        throughputs = np.asarray(ys, dtype=float)
        top = max(float(throughputs.max()), 1e-30)
        labels = torch.tensor(np.log2(np.maximum(throughputs / top, _FLOOR)), dtype=torch.float32)
        rows = self.columns.encode([int(x) for x in xs])
        # A mistake about a good program costs more than one about a bad program.
        weights = torch.tensor(throughputs / top + 0.05, dtype=torch.float32)
        # Each network sees a sample of its own, so that they differ where little is known.
        generator = torch.Generator().manual_seed(len(labels))
        picked = torch.randint(len(labels), (_MEMBERS, len(labels)), generator=generator)
        optimizer = torch.optim.Adam(self._weights, lr=_LEARNING_RATE, weight_decay=1e-4)
        for _ in range(_EPOCHS):
            optimizer.zero_grad()
            error = (self._outputs(rows[picked]) - labels[picked]) ** 2
            (weights[picked] * error).mean().backward()
            optimizer.step()

    def optimistic(self, rows: torch.Tensor) -> torch.Tensor:
        """Mean over the networks and one deviation, log2 of the share of the best."""
        values = self._outputs(rows[None])
        return values.mean(0) + values.std(0)

    def predict(self, xs: Any, output_margin: bool = False) -> np.ndarray:
        with torch.no_grad():
            return self.optimistic(self.columns.encode([int(x) for x in xs])).numpy()

    def fit_log(
        self,
        records: Iterable[tuple[MeasureInput, MeasureResult]],
        plan_size: int,
        min_seed_records: int = 500,
    ) -> bool:
        pairs = [
            (int(inp.config.index), throughput(1.0, result))
            for inp, result in records
            if self.columns.space.is_index_valid(int(inp.config.index))
        ]
        if len(pairs) < max(min_seed_records, 1):
            return False
        self.fit([x for x, _ in pairs], [y for _, y in pairs], plan_size)
        return True

    def load_basemodel(self, base_model: CostModel) -> None:
        if not isinstance(base_model, EnsembleModel):
            raise TypeError(f"FelixTuner: cannot build on a {type(base_model).__name__}")
        self._weights = base_model._weights

    def spawn_base_model(self) -> EnsembleModel:
        return EnsembleModel(self.columns.space)


class GradientOptimizer(ModelOptimizer):
    """Adam from many starts, half of them random and half the best that the model knows.

    Parameters
    ----------
    n_steps, n_starts, learning_rate : of the descent; a unit is the whole axis in log2.
    """

    def __init__(self, n_steps: int = 40, n_starts: int = 32, learning_rate: float = 0.05) -> None:
        self.n_steps, self.n_starts, self.learning_rate = n_steps, n_starts, learning_rate

    @with_gradients()
    def find_maximums(self, model: CostModel, num: int, exclusive: set[int]) -> list[int]:
        if not isinstance(model, EnsembleModel):
            raise TypeError(f"GradientOptimizer: {type(model).__name__} has no gradient")
        space, columns = model.columns.space, model.columns
        pool = [int(index) for index in space.sample_ints(8 * self.n_starts)]
        by_score = [pool[i] for i in np.argsort(-model.predict(pool))]
        starts = by_score[: self.n_starts // 2] + pool[: self.n_starts // 2]
        rows = columns.encode(starts).requires_grad_(True)
        movable = columns.movable()
        visited: list[int] = []
        optimizer = torch.optim.Adam([rows], lr=self.learning_rate)
        for step in range(self.n_steps):
            optimizer.zero_grad()
            (-model.optimistic(rows)).sum().backward()
            rows.grad.mul_(movable)  # type: ignore[union-attr]
            optimizer.step()
            with torch.no_grad():
                rows.clamp_(0.0, 1.0)
            if step % 10 == 9:
                visited.extend(columns.nearest(row) for row in rows.detach().numpy())
        found = {i for i in [*visited, *by_score] if i not in exclusive and space.is_index_valid(i)}
        ordered = sorted(found)
        if not ordered:
            return []
        scores = model.predict(ordered)
        return [ordered[i] for i in np.argsort(-scores)[:num]]


class FelixTuner(ModelBasedTuner):
    """Descends a differentiable model over the tile sizes of a template.

    Parameters
    ----------
    task : what is tuned.
    plan_size : points picked at once.
    """

    def __init__(self, task: Task, plan_size: int = 16) -> None:
        if task.config_space is None:
            raise ValueError(f"FelixTuner: the task {task.name} has no space")
        super().__init__(task, EnsembleModel(task.config_space), GradientOptimizer(), plan_size)
