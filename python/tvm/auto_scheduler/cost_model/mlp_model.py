"""The multi-layer perceptron over Ansor's per-store features, as cost model of a search."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from .. import _ffi_api
from ..feature import DEFAULT_FEATURE_VEC_LEN, FeatureCache
from ..loop_state import State, StateObject
from ..measure_node import MeasureInput, MeasureResult
from ..search_task import SearchTask
from .cost_model import PythonBasedModel
from .dataset import DatasetBuilder, FeatureKind, SegmentBatch
from .latency_model import LatencyModel
from .torch_mode import one_torch_thread

__all__ = ["MLPModel"]


class MLPModel(PythonBasedModel):
    """Multi-layer perceptron over Ansor's per-store features, as cost model of a search.

    The network and its training are those of `LatencyModel`.

    Parameters
    ----------
    loss_func : see `LatencyModel`; "rank" orders programs inside a task and nothing else.
    num_warmup_sample : up to this many valid measurements scores are random; -1 trusts a loaded
        model at once.
    seed : of the initial weights, the shuffling, and the random scores.
    model_file : the model is saved here after each update.
    """

    def __init__(
        self,
        loss_func: str = "rank",
        num_warmup_sample: int = 32,
        seed: int = 0,
        model_file: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        self.network = LatencyModel(
            DEFAULT_FEATURE_VEC_LEN, loss_func=loss_func, lr=7e-4, seed=seed
        )
        self._expect_per_store_features()
        self.data = DatasetBuilder()
        self.num_warmup_sample = num_warmup_sample
        self.model_file = model_file
        self._cache = FeatureCache()
        self._rng = np.random.default_rng(seed)
        self._standardised = False

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from the valid ones of some measurements."""
        if self.data.add_measured(inputs, results) == 0 or len(self.data) < 2:
            return
        self._standardise(self.data)
        with one_torch_thread():
            self.network.train_self(self.data)
        if self.model_file is not None:
            self.save(self.model_file)

    def fit(self, data: DatasetBuilder, epochs: int = 50) -> None:
        """Train offline on a data set of per-store features, then trust the scores at once.

        Raises
        ------
        ValueError : `epochs`, passes over the data, is below 1.
        """
        if epochs < 1:
            raise ValueError(f"MLPModel.fit: epochs must be >= 1, got {epochs}")
        self._standardise(data)
        steps = epochs * max(1, len(data) // self.network.batch_size)
        self.network.train_self(data, n_steps=steps, lr=self.network.lr, patience=50)
        self.num_warmup_sample = -1

    def _standardise(self, data: DatasetBuilder) -> None:
        """Scale the inputs by the first programs that a new network sees."""
        if self._standardised or self.network.pretrained_from is not None:
            return
        whole = data.batch()
        assert self.network.model is not None
        self.network.model.standardise(whole.features, whole.labels)
        self._standardised = True

    def update_from_file(
        self, file_name: str | os.PathLike[str], n_lines: int | None = None
    ) -> None:
        """Learn from the first `n_lines` records of a file, by default from all."""
        from ..measure_record import RecordReader

        self.update(*RecordReader(Path(file_name)).read_lines(n_lines))

    def predict(self, task: SearchTask, states: Sequence[State | StateObject]) -> np.ndarray:
        """Scores of states, float64, shape (n_states,); -inf for what cannot be a program."""
        features = self._cache.get(task, states)
        if len(self.data) <= self.num_warmup_sample and self.network.pretrained_from is None:
            scores = self._rng.random(len(features))
        else:
            segments = np.repeat(np.arange(len(features)), [len(rows) for rows in features])
            batch = SegmentBatch(
                torch.from_numpy(np.concatenate(features)),
                torch.from_numpy(segments),
                torch.zeros(len(features)),
                torch.zeros(len(features), dtype=torch.int64),
            )
            with one_torch_thread():
                scores = self.network.score(batch)
        scores[[not rows.any() for rows in features]] = -np.inf
        return scores

    def save(self, file_name: str | os.PathLike[str]) -> None:
        """Write weights and settings; tensors and plain values only."""
        self.network.save(file_name)

    def _expect_per_store_features(self) -> None:
        version = f"per-store {_ffi_api.PerStoreFeatureVersion()}"
        self.network.expect(FeatureKind("any", version))

    def load(self, file_name: str | os.PathLike[str]) -> None:
        """Read what `save` wrote; scores are the model's from now on.

        Raises
        ------
        FileNotFoundError, ValueError : see `LatencyModel.load`.
        """
        self.network.load(file_name)
        self._expect_per_store_features()
