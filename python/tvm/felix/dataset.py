"""Measured programs as training data: per-store features, labels, and where each came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

__all__ = ["ConfigMeta", "DatasetBuilder", "SegmentBatch", "throughput_label"]

_FORMAT = 1


def throughput_label(flop: float, seconds: float) -> float:
    """Natural logarithm of the throughput in GFLOP/s, the quantity the cost model predicts."""
    if not seconds > 0 or not flop > 0:
        raise ValueError(f"throughput_label: flop and seconds must be > 0, got {flop}, {seconds}")
    return float(np.log(flop / seconds / 1e9))


@dataclass(frozen=True)
class ConfigMeta:
    """Origin of one measured program."""

    task: str
    """Workload key of its task; rankings are only compared inside one task."""
    sketch: int
    config: dict[str, int]
    seconds: float


class SegmentBatch(NamedTuple):
    """Programs with different numbers of stores, packed one store a row.

    features : float32, shape (n_rows, n_features); n_rows = sum of the programs' store counts.
    segments : int64, shape (n_rows,); which program a row belongs to.
    labels : float32, shape (n_programs,); ln of GFLOP/s.
    groups : int64, shape (n_programs,); equal numbers mean the same task.
    """

    features: torch.Tensor
    segments: torch.Tensor
    labels: torch.Tensor
    groups: torch.Tensor


@dataclass
class DatasetBuilder:
    """Programs measured so far. `features`, `labels` and `conf_meta` always have equal lengths."""

    features: list[np.ndarray] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    conf_meta: list[ConfigMeta] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, features: np.ndarray, flop: float, meta: ConfigMeta) -> bool:
        """Add one program unless its features are not finite; returns whether it was added.

        Parameters
        ----------
        features : shape (n_stores, n_features).
        flop : floating-point operations of one run.
        meta : its origin; `meta.seconds` is the measured latency.
        """
        features = np.asarray(features, dtype=np.float32)
        if features.ndim != 2:
            raise ValueError(f"DatasetBuilder.add: features must be 2-D, got {features.shape}")
        if self.features and features.shape[1] != self.features[0].shape[1]:
            raise ValueError(
                f"DatasetBuilder.add: {features.shape[1]} features a row, but the data set holds "
                f"rows of {self.features[0].shape[1]}"
            )
        if not np.isfinite(features).all():
            return False
        self.features.append(features)
        self.labels.append(throughput_label(flop, meta.seconds))
        self.conf_meta.append(meta)
        return True

    def batch(self, indices: Sequence[int] | np.ndarray | None = None) -> SegmentBatch:
        """The programs of `indices` (default: all) as tensors."""
        chosen = range(len(self)) if indices is None else [int(i) for i in indices]
        rows = [self.features[i] for i in chosen]
        counts = torch.tensor([len(r) for r in rows], dtype=torch.int64)
        names = {m.task: n for n, m in enumerate({m.task: m for m in self.conf_meta}.values())}
        return SegmentBatch(
            features=torch.from_numpy(np.concatenate(rows)) if rows else torch.zeros(0, 0),
            segments=torch.repeat_interleave(torch.arange(len(rows)), counts),
            labels=torch.tensor([self.labels[i] for i in chosen], dtype=torch.float32),
            groups=torch.tensor([names[self.conf_meta[i].task] for i in chosen]),
        )

    def minibatches(
        self, size: int, rng: np.random.Generator, per_task: int = 32
    ) -> Iterator[SegmentBatch]:
        """One shuffled pass in batches of about `size` programs.

        Programs come in runs of up to `per_task` of one task, because losses and metrics that
        compare programs inside a task say nothing about a batch of unrelated ones.
        """
        by_task: dict[str, list[int]] = {}
        for i in rng.permutation(len(self)):
            by_task.setdefault(self.conf_meta[i].task, []).append(int(i))
        runs = [
            members[start : start + per_task]
            for members in by_task.values()
            for start in range(0, len(members), per_task)
        ]
        batch: list[int] = []
        for position in rng.permutation(len(runs)):
            batch += runs[position]
            if len(batch) >= size:
                yield self.batch(batch)
                batch = []
        if batch:
            yield self.batch(batch)

    def split_by_task(
        self, train_ratio: float, rng: np.random.Generator
    ) -> tuple[DatasetBuilder, DatasetBuilder]:
        """Two data sets with no task in common, the first with about `train_ratio` of the tasks."""
        tasks = sorted({meta.task for meta in self.conf_meta})
        rng.shuffle(tasks)
        train = set(tasks[: max(1, round(train_ratio * len(tasks)))])
        return (
            self.select([i for i, m in enumerate(self.conf_meta) if m.task in train]),
            self.select([i for i, m in enumerate(self.conf_meta) if m.task not in train]),
        )

    def select(self, indices: Sequence[int]) -> DatasetBuilder:
        """The programs of `indices` as a data set of their own."""
        return DatasetBuilder(
            [self.features[i] for i in indices],
            [self.labels[i] for i in indices],
            [self.conf_meta[i] for i in indices],
        )

    def extend(self, other: DatasetBuilder) -> None:
        """Append all programs of `other`."""
        self.features += other.features
        self.labels += other.labels
        self.conf_meta += other.conf_meta

    def save(self, path: str | Path) -> None:
        """Write as a numpy archive of plain arrays and JSON text (nothing in it is pickled)."""
        path = Path(path)
        counts = np.array([len(f) for f in self.features], dtype=np.int64)
        rows = np.concatenate(self.features) if self.features else np.zeros((0, 0), np.float32)
        meta = [[m.task, m.sketch, m.config, m.seconds] for m in self.conf_meta]
        temporary = path.with_name(path.name + ".partial.npz")
        np.savez_compressed(
            temporary,
            format=_FORMAT,
            features=rows,
            counts=counts,
            labels=np.array(self.labels, dtype=np.float64),
            meta=json.dumps(meta),
        )
        temporary.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> DatasetBuilder:
        """Read what `save` wrote.

        Raises
        ------
        ValueError : the file has another format version.
        """
        with np.load(path, allow_pickle=False) as archive:
            version = int(archive["format"])
            if version != _FORMAT:
                raise ValueError(f"{path}: data set format {version}, expected {_FORMAT}")
            bounds = np.cumsum(archive["counts"])[:-1]
            features = np.split(archive["features"], bounds) if len(archive["counts"]) else []
            meta = [ConfigMeta(*entry) for entry in json.loads(str(archive["meta"]))]
            return cls(list(features), archive["labels"].tolist(), meta)
