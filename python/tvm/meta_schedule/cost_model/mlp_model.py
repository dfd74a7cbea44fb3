"""A multi-layer perceptron over the stores of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import tvm
from tvm.auto_scheduler.cost_model.dataset import ConfigMeta, DatasetBuilder, SegmentBatch
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.auto_scheduler.cost_model.torch_mode import one_torch_thread

from ..candidate import MeasureCandidate, RunnerResult
from ..feature_extractor import FeatureExtractor, PerStoreFeature
from .cost_model import CostModel

__all__ = ["MLPModel"]

# Candidates are compared inside of one module only, so any number of operations will do.
_FLOP = 1e9


class MLPModel(CostModel):
    """A multi-layer perceptron that scores a candidate by the sum over its stores.

    The network and its training are those of `tvm.auto_scheduler`'s `LatencyModel`. Candidates that
    failed teach nothing.

    Parameters
    ----------
    extractor : gives the stores.
    loss_func : see `LatencyModel`; "rank" orders the candidates of a module and nothing else.
    num_warmup_samples : with fewer measurements scores are random, unless a model was loaded.
    seed : of the initial weights, the shuffling, and the random scores.
    """

    def __init__(
        self,
        *,
        extractor: FeatureExtractor | None = None,
        loss_func: str = "rank",
        num_warmup_samples: int = 32,
        seed: int = 0,
    ) -> None:
        self.extractor = PerStoreFeature() if extractor is None else extractor
        self.network = LatencyModel(loss_func=loss_func, seed=seed)
        self.data = DatasetBuilder()
        self.num_warmup_samples = num_warmup_samples
        self._rng = np.random.default_rng(seed)

    @property
    def trained(self) -> bool:
        enough = len(self.data) >= self.num_warmup_samples
        return self.network.trained and (enough or self.network.pretrained_from is not None)

    def update(
        self, context: Any, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        if len(candidates) != len(results):
            raise ValueError(f"MLPModel: {len(candidates)} candidates but {len(results)} results")
        module = str(tvm.ir.structural_hash(context.mod) if context.mod is not None else 0)
        target = str(context.target)
        for rows, result in zip(self._features(context, candidates), results):
            seconds = float(np.mean(result.run_secs)) if result.run_secs else 0.0
            if seconds > 0 and len(rows):
                self.data.add(rows, _FLOP, ConfigMeta(module, -1, {}, seconds, target))
        if len(self.data) < 2 or len(self.data) < self.num_warmup_samples:
            return
        with one_torch_thread():
            self.network.train_self(self.data)

    def predict(self, context: Any, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        if not self.trained:
            return self._rng.random(len(candidates))
        features = self._features(context, candidates)
        full = [k for k, rows in enumerate(features) if len(rows)]
        scores = np.full(len(candidates), -np.inf)
        if full:
            rows = [features[k] for k in full]
            batch = SegmentBatch(
                torch.from_numpy(np.concatenate(rows)),
                torch.from_numpy(np.repeat(np.arange(len(rows)), [len(r) for r in rows])),
                torch.zeros(len(rows)),
                torch.zeros(len(rows), dtype=torch.int64),
            )
            with one_torch_thread():
                scores[full] = self.network.score(batch)
        return scores

    def _features(self, context: Any, candidates: Sequence[MeasureCandidate]) -> list[np.ndarray]:
        tables = self.extractor.extract_from(context, candidates)
        return [table.numpy().astype(np.float32) for table in tables]

    def save(self, path: str) -> None:
        """Write weights and settings; tensors and plain values only.

        Raises
        ------
        RuntimeError : nothing was learned yet, so that there are no weights.
        """
        self.network.save(path)

    def load(self, path: str) -> None:
        """Read what `save` wrote; scores are the model's from now on.

        Raises
        ------
        FileNotFoundError, ValueError : see `LatencyModel.load`.
        """
        self.network.load(path)
