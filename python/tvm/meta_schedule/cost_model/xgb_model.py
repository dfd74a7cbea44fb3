"""Boosted trees over the stores of candidates."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tvm
from tvm.auto_scheduler.cost_model.xgb_model import XGBModel as StoreTrees
from tvm.runtime.files import write_atomically

from ..candidate import MeasureCandidate, RunnerResult
from ..feature_extractor import FeatureExtractor, PerStoreFeature
from .cost_model import CostModel

__all__ = ["FeatureGroup", "XGBModel"]

_FAILED = 1e10


@dataclass
class FeatureGroup:
    """Measured candidates of one module.

    Attributes
    ----------
    group_hash : of the module. features : a table [stores, columns] each. costs : mean seconds.
    min_cost : of the fastest.
    """

    group_hash: str
    features: list[np.ndarray]
    costs: np.ndarray

    @property
    def min_cost(self) -> float:
        return float(self.costs.min())

    def append(self, features: list[np.ndarray], costs: np.ndarray) -> None:
        """Add candidates."""
        self.features = [*self.features, *features]
        self.costs = np.append(self.costs, costs)


class XGBModel(CostModel):
    """Trees that predict the throughput of a candidate as the sum over its stores.

    The trees are those of `auto_scheduler.XGBModel`.

    Parameters
    ----------
    extractor : gives the stores; "per-store-feature" or an extractor.
    num_warmup_samples : with fewer measurements scores are random.
    adaptive_training : train anew only once a fifth more was measured.
    """

    def __init__(
        self,
        *,
        extractor: str | FeatureExtractor = "per-store-feature",
        num_warmup_samples: int = 100,
        adaptive_training: bool = True,
    ) -> None:
        if isinstance(extractor, str):
            if extractor != "per-store-feature":
                raise ValueError(
                    f"XGBModel: unknown extractor {extractor!r}; there is 'per-store-feature'"
                )
            extractor = PerStoreFeature()
        self.extractor = extractor
        self.num_warmup_samples = num_warmup_samples
        self.adaptive_training = adaptive_training
        self.data: dict[str, FeatureGroup] = {}
        self.data_size = 0
        self.last_train_size = 0
        self._trees: StoreTrees | None = None
        self._rng = np.random.default_rng(0)

    def update(
        self, context: Any, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        if len(candidates) != len(results):
            raise ValueError(f"XGBModel: {len(candidates)} candidates but {len(results)} results")
        if not candidates:
            return
        key = str(tvm.ir.structural_hash(context.mod) if context.mod is not None else 0)
        features = self._features(context, candidates)
        costs = np.array([float(np.mean(r.run_secs)) if r.run_secs else _FAILED for r in results])
        if key in self.data:
            self.data[key].append(features, costs)
        else:
            self.data[key] = FeatureGroup(key, features, costs)
        self.data_size += len(candidates)
        enough = not self.adaptive_training or self.data_size >= 1.2 * self.last_train_size
        if self.data_size >= self.num_warmup_samples and enough:
            self._train()

    def predict(self, context: Any, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        if self._trees is None or self.data_size < self.num_warmup_samples:
            return self._rng.random(len(candidates))
        features = self._features(context, candidates)
        scores = np.zeros(len(candidates))
        full = [i for i, rows in enumerate(features) if len(rows)]
        if full:
            scores[full] = self._trees.score([features[i] for i in full])
        return scores

    def _features(self, context: Any, candidates: Sequence[MeasureCandidate]) -> list[np.ndarray]:
        tables = self.extractor.extract_from(context, candidates)
        return [table.numpy().astype(np.float32) for table in tables]

    def _train(self) -> None:
        features: list[np.ndarray] = []
        labels: list[float] = []
        for group in self.data.values():
            best = group.min_cost
            for rows, cost in zip(group.features, group.costs):
                if len(rows):
                    features.append(rows)
                    # A module of which nothing takes time says nothing of its candidates.
                    labels.append(0.0 if cost >= _FAILED else best / cost if cost > 0 else 1.0)
        if not features:
            return
        self._trees = StoreTrees(verbose_eval=25)
        self._trees.fit(features, np.array(labels, dtype=np.float32))
        self.last_train_size = self.data_size

    def save(self, path: str) -> None:
        """Write the measurements, from which `load` trains the same trees; plain numbers only."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            names = {}
            for number, group in enumerate(self.data.values()):
                sizes = [len(rows) for rows in group.features]
                columns = max((rows.shape[1] for rows in group.features), default=0)
                names[group.group_hash] = {"sizes": sizes, "columns": columns}
                rows = [r for r in group.features if len(r)]
                data = np.concatenate(rows) if rows else np.zeros((0, columns), np.float32)
                archive.writestr(f"{number}.features", data.astype("<f4").tobytes())
                archive.writestr(f"{number}.costs", group.costs.astype("<f8").tobytes())
            head = {"kind": "tvm.meta_schedule.XGBModel", "groups": names, "size": self.data_size}
            archive.writestr("head.json", json.dumps(head))
        write_atomically(Path(path), stream.getvalue())

    def load(self, path: str) -> None:
        """Read what `save` wrote.

        Raises
        ------
        ValueError : the file is none of these.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                head = json.loads(archive.read("head.json"))
                if head["kind"] != "tvm.meta_schedule.XGBModel":
                    raise ValueError(f"it is a {head['kind']}")
                data = {}
                for number, (key, group) in enumerate(head["groups"].items()):
                    rows = np.frombuffer(archive.read(f"{number}.features"), "<f4")
                    table = rows.reshape(sum(group["sizes"]), group["columns"])
                    bounds = np.cumsum(group["sizes"])[:-1]
                    costs = np.frombuffer(archive.read(f"{number}.costs"), "<f8").copy()
                    data[key] = FeatureGroup(key, list(np.split(table, bounds)), costs)
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{path}: no measurements of an XGBModel ({error})") from error
        self.data, self.data_size = data, int(head["size"])
        self._trees = None
        if self.data_size >= self.num_warmup_samples:
            self._train()
