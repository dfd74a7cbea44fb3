"""Measured programs as training data: per-store features, labels, and where each came from."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from tvm.runtime.files import write_atomically
from tvm.target import Target

from .. import _ffi_api
from ..feature import get_per_store_features_from_measure_pairs
from ..measure_node import MAX_FLOAT, MeasureInput, MeasureResult
from ..measure_record import RecordReader

__all__ = ["ConfigMeta", "DatasetBuilder", "FeatureKind", "SegmentBatch", "throughput_label"]

logger = logging.getLogger(__name__)

_FORMAT = 2
# How files fail that were not written by `DatasetBuilder.save`; sizes may be those of no memory.
_UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    MemoryError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
)


def throughput_label(flop: float, seconds: float) -> float:
    """Natural logarithm of the throughput in GFLOP/s, the quantity the cost model predicts."""
    if not seconds > 0 or not flop > 0:
        raise ValueError(f"throughput_label: flop and seconds must be > 0, got {flop}, {seconds}")
    return float(np.log(flop / seconds / 1e9))


@dataclass(frozen=True)
class FeatureKind:
    """What the columns of feature rows are, so that a model is never asked about others.

    target : class of the targets that the programs are for, such as "cpu" or "gpu".
    version : stands for the names of the columns, their order, and what their values mean.
    """

    target: str
    version: str

    @classmethod
    def of(cls, target: str, columns: Sequence[str], meaning: int = 1) -> FeatureKind:
        """The kind of rows that have these columns.

        meaning : counts how often a column of the same name came to mean something else.
        """
        # Files of the first meaning have the names alone.
        parts = [*columns, *([] if meaning == 1 else [f"meaning {meaning}"])]
        return cls(target, hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12])


@dataclass(frozen=True)
class ConfigMeta:
    """Origin of one measured program."""

    task: str
    """Workload key of its task; rankings are only compared inside one task."""
    sketch: int
    """Number of the symbolic sketch it is a point of; -1 for a state of another search, and for a
    program that this version has no sketch of."""
    config: dict[str, int]
    seconds: float
    target: str = ""


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


def _check_ratio(where: str, train_ratio: float) -> None:
    if not 0.0 <= train_ratio <= 1.0:
        raise ValueError(f"{where}: train_ratio must be in [0, 1], got {train_ratio}")


def _inputs_digest(log: str | Path) -> str:
    """Digest of all that the features of a record file depend on."""
    digest = hashlib.sha256(f"{_FORMAT} {_ffi_api.PerStoreFeatureVersion()} ".encode())
    # What a record's target leaves open is a fact of the machine that reads it.
    digest.update(str(Target("llvm").with_machine()).encode())
    with open(log, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@dataclass
class DatasetBuilder:
    """Programs measured so far. `features`, `labels` and `conf_meta` always have equal lengths.

    `kind` says what the columns of the features are, None where nobody said.
    """

    features: list[np.ndarray] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    conf_meta: list[ConfigMeta] = field(default_factory=list)
    kind: FeatureKind | None = None

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

    def normalized_throughputs(self) -> np.ndarray:
        """Best seconds of each program's task and target over its own, shape (n_programs,)."""
        best: dict[tuple[str, str], float] = {}
        for meta in self.conf_meta:
            key = (meta.task, meta.target)
            best[key] = min(meta.seconds, best.get(key, meta.seconds))
        return np.array([best[(m.task, m.target)] / m.seconds for m in self.conf_meta])

    def groups(self) -> np.ndarray:
        """Equal numbers for programs of the same task and target, shape (n_programs,)."""
        numbers: dict[tuple[str, str], int] = {}
        return np.array(
            [numbers.setdefault((m.task, m.target), len(numbers)) for m in self.conf_meta],
            dtype=np.int64,
        )

    def split_by_task(
        self, train_ratio: float, rng: np.random.Generator
    ) -> tuple[DatasetBuilder, DatasetBuilder]:
        """Two data sets with no task in common, the first with about `train_ratio` of the tasks.

        Raises
        ------
        ValueError : `train_ratio` is not in [0, 1].
        """
        _check_ratio("split_by_task", train_ratio)
        tasks = sorted({meta.task for meta in self.conf_meta})
        rng.shuffle(tasks)
        train = set(tasks[: max(1, round(train_ratio * len(tasks)))])
        return self._divide([meta.task in train for meta in self.conf_meta])

    def split_within_task(
        self, train_ratio: float, rng: np.random.Generator
    ) -> tuple[DatasetBuilder, DatasetBuilder]:
        """Two data sets of the same tasks, the first with about `train_ratio` of each.

        Raises
        ------
        ValueError : `train_ratio` is not in [0, 1].
        """
        _check_ratio("split_within_task", train_ratio)
        groups = self.groups()
        chosen = np.zeros(len(self), dtype=bool)
        for group in np.unique(groups):
            members = rng.permutation(np.flatnonzero(groups == group))
            chosen[members[: max(1, round(train_ratio * len(members)))]] = True
        return self._divide(chosen.tolist())

    def split_by_target(
        self, train_ratio: float, rng: np.random.Generator
    ) -> tuple[DatasetBuilder, DatasetBuilder]:
        """Two data sets with no target in common, the first with about `train_ratio` of them.

        Raises
        ------
        ValueError : `train_ratio` is not in [0, 1].
        """
        _check_ratio("split_by_target", train_ratio)
        targets = sorted({meta.target for meta in self.conf_meta})
        rng.shuffle(targets)
        train = set(targets[: max(1, round(train_ratio * len(targets)))])
        return self._divide([meta.target in train for meta in self.conf_meta])

    def without_small_tasks(self, min_programs: int) -> DatasetBuilder:
        """The programs of tasks with at least `min_programs` of them."""
        groups = self.groups()
        counts = np.bincount(groups) if len(self) else groups
        return self.select([i for i, group in enumerate(groups) if counts[group] >= min_programs])

    def _divide(self, in_first: Sequence[bool]) -> tuple[DatasetBuilder, DatasetBuilder]:
        return (
            self.select([i for i, first in enumerate(in_first) if first]),
            self.select([i for i, first in enumerate(in_first) if not first]),
        )

    def select(self, indices: Sequence[int]) -> DatasetBuilder:
        """The programs of `indices` as a data set of their own."""
        return DatasetBuilder(
            [self.features[i] for i in indices],
            [self.labels[i] for i in indices],
            [self.conf_meta[i] for i in indices],
            self.kind,
        )

    def extend(self, other: DatasetBuilder) -> None:
        """Append all programs of `other`.

        Raises
        ------
        ValueError : their features are of another kind.
        """
        if len(self) and len(other) and self.kind != other.kind:
            raise ValueError(
                f"DatasetBuilder.extend: features of {other.kind} do not go with those of "
                f"{self.kind}"
            )
        if not len(self):
            self.kind = other.kind
        self.features += other.features
        self.labels += other.labels
        self.conf_meta += other.conf_meta

    def save(self, path: str | Path) -> None:
        """Write as a numpy archive of plain arrays and JSON text (nothing in it is pickled)."""
        counts = np.array([len(f) for f in self.features], dtype=np.int64)
        rows = np.concatenate(self.features) if self.features else np.zeros((0, 0), np.float32)
        meta = [[m.task, m.sketch, m.config, m.seconds, m.target] for m in self.conf_meta]
        archive = io.BytesIO()
        np.savez_compressed(
            archive,
            format=_FORMAT,
            features=rows,
            counts=counts,
            labels=np.array(self.labels, dtype=np.float64),
            meta=json.dumps(meta),
            kind=json.dumps(None if self.kind is None else [self.kind.target, self.kind.version]),
        )
        write_atomically(path, archive.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> DatasetBuilder:
        """Read what `save` wrote.

        Raises
        ------
        FileNotFoundError : there is no such file.
        ValueError : it is damaged, or has another format version.
        """
        if Path(path).is_file() and not zipfile.is_zipfile(path):
            raise ValueError(
                f"{path}: no data set written by DatasetBuilder, which is an archive of arrays; of "
                "records, scripts/train_cost_model.py felix_dataset makes one"
            )
        try:
            with np.load(path, allow_pickle=False) as archive:
                version = int(archive["format"])
                if version != _FORMAT:
                    raise ValueError(f"data set format {version}, expected {_FORMAT}")
                bounds = np.cumsum(archive["counts"])[:-1]
                features = np.split(archive["features"], bounds) if len(archive["counts"]) else []
                meta = [ConfigMeta(*entry) for entry in json.loads(str(archive["meta"]))]
                labels = archive["labels"].tolist()
                written = json.loads(str(archive["kind"]))
                kind = None if written is None else FeatureKind(*map(str, written))
        except _UNREADABLE as error:
            raise ValueError(f"{path}: no data set written by DatasetBuilder: {error}") from error
        if not len(features) == len(labels) == len(meta):
            raise ValueError(
                f"{path}: {len(features)} programs, {len(labels)} labels and {len(meta)} origins"
            )
        return cls(list(features), labels, meta, kind)

    @classmethod
    def from_logs(
        cls,
        logs: Sequence[str | Path],
        cache_folder: str | Path | None = ".dataset_cache",
        min_programs: int = 48,
    ) -> DatasetBuilder:
        """Per-store features of the valid programs of record files.

        Parameters
        ----------
        logs : record files; their workloads must be registered in this process.
        cache_folder : the features of each file are kept here, by what it holds and everything else
            that they depend on; None keeps nothing.
        min_programs : tasks with fewer programs are left out, since their best is not known.

        Raises
        ------
        ValueError : a record cannot be read; the message says which line.
        """
        whole = cls()
        for log in logs:
            part = None
            if cache_folder is not None:
                cached = Path(cache_folder) / f"{_inputs_digest(log)[:24]}.npz"
                if cached.exists():
                    try:
                        part = cls.load(cached)
                    except ValueError as error:
                        logger.warning("%s; the features are made again", error)
            if part is None:
                part = cls()
                part.add_measured(*RecordReader(log).read_lines())
                if cache_folder is not None:
                    Path(cache_folder).mkdir(parents=True, exist_ok=True)
                    part.save(cached)
            whole.extend(part)
        return whole.without_small_tasks(min_programs)

    def add_measured(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> int:
        """Add the valid ones of some measurements by their per-store features; returns how many."""
        features, _, _ = get_per_store_features_from_measure_pairs(inputs, results)
        before = len(self)
        for rows, measure_input, result in zip(features, inputs, results):
            if result.mean_cost >= MAX_FLOAT or not rows.any():
                continue
            task = measure_input.task
            meta = ConfigMeta(str(task.workload_key), -1, {}, result.mean_cost, str(task.target))
            self.add(rows, max(float(task.compute_dag.flop_ct), 1.0), meta)
        return len(self) - before
