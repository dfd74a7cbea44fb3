"""Pre-training of the cost model: random programs to measure, data sets from records, training."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pytorch_lightning.loggers import TensorBoardLogger
from tqdm import tqdm

from tvm.auto_scheduler.cost_model.dataset import DatasetBuilder
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.target.machine import host_cpu

from .optim import Optimizer
from .policy import FelixPolicy
from .search import SearchSettings
from .sym_task import SymTaskAndInstances

__all__ = ["dataset_from_records", "filter_latency", "measure_programs", "train_mlp"]

logger = logging.getLogger(__name__)

# Programs of a task that are kept for replay, at least.
_REPLAYED_OF_TASK = 8
# Learning rate of a model that was trained before: less than half of a new one's, so that it keeps
# what it knows.
_FURTHER_RATE = 3e-4


def measure_programs(
    tasks: Sequence[SymTaskAndInstances],
    per_task: int,
    records: str | Path,
    *,
    guided: float = 0.5,
    seed: int = 0,
    batch: int = 16,
    progress: bool = True,
) -> int:
    """Measure up to `per_task` valid schedules of each task; appends to `records`.

    A share `guided` of them are what a search measures that starts without a model, canonical
    points first, and the rest are drawn at random: a model that saw random programs alone does not
    tell the good ones apart. Records that the file already holds count, so an interrupted
    collection goes on where it stopped. Returns the number of programs measured by this call.

    Raises
    ------
    ValueError : there are no tasks, `per_task` is below 1, `guided` is no share, or programs for
        the target cannot run here.
    """
    if per_task < 1:
        raise ValueError(f"measure_programs: per_task must be >= 1, got {per_task}")
    if not 0.0 <= guided <= 1.0:
        raise ValueError(f"measure_programs: guided must be in [0, 1], got {guided}")
    settings = SearchSettings(random_share=1.0 - guided)
    optimizer = Optimizer(tasks, LatencyModel(), seed=seed, settings=settings)
    optimizer.require_device()
    session = optimizer.session
    session.records = Path(records)
    if session.records.exists():
        optimizer.restore(records)
    before = session.n_measure
    with (
        session,
        tqdm(
            total=per_task * len(optimizer.tasks),
            disable=None if progress else True,
            unit="prog",
        ) as bar,
    ):
        bar.update(min(before, bar.total))
        session.on_result.append(lambda *_: bar.update(1))
        # Programs without a symbolic sketch have no features that the model is trained on.
        for task in optimizer.tasks:
            policy = task.policy
            if not isinstance(policy, FelixPolicy):
                continue
            while (missing := per_task - len(policy.search_state.measured)) > 0:
                if not session.round(policy, min(batch, missing)):
                    break
    return session.n_measure - before


def dataset_from_records(
    tasks: Sequence[SymTaskAndInstances], records: str | Path
) -> DatasetBuilder:
    """Features and labels of all valid records that belong to the tasks."""
    optimizer = Optimizer(tasks, LatencyModel())
    used = optimizer.restore(records)
    logger.info("%d of the records in %s belong to the tasks", used, records)
    return optimizer.data_builder


def filter_latency(
    data: DatasetBuilder, min_seconds: float = 0.0, max_seconds: float = math.inf
) -> DatasetBuilder:
    """The programs whose latency lies in [min_seconds, max_seconds]."""
    return data.select(
        [i for i, m in enumerate(data.conf_meta) if min_seconds <= m.seconds <= max_seconds]
    )


def train_mlp(
    data: DatasetBuilder,
    model: LatencyModel,
    output: str | Path,
    *,
    train_ratio: float = 0.9,
    epochs: int = 200,
    seed: int = 0,
    replay: int = 0,
    log_folder: str | Path | None = None,
    progress: bool = True,
) -> dict[str, float]:
    """Train `model` on most of the tasks, validate on the rest, and write the best weights.

    Parameters
    ----------
    data : measured programs of at least two tasks.
    model : one without weights yet, whose inputs are standardised on the training part, or a
        trained one, which is trained further in smaller steps.
    output : checkpoint in the format of `LatencyModel.save`.
    train_ratio : share of the tasks used for training, in (0, 1).
    epochs : passes over the training part.
    replay : number of programs of the training part that are kept beside the checkpoint, to be
        mixed into further training; the fastest and as many others.
    log_folder : of the TensorBoard log; None writes none.

    Returns
    -------
    Validation loss and metrics of the written weights; the model's `card` has them, too.

    Raises
    ------
    ValueError : the split leaves one side without programs, or `epochs` or `replay` are no counts.
    """
    if epochs < 1 or replay < 0:
        raise ValueError(
            f"train_mlp: epochs must be >= 1 and replay >= 0, got {epochs} and {replay}"
        )
    train, validation = data.split_by_task(train_ratio, np.random.default_rng(seed))
    if not len(train) or not len(validation):
        raise ValueError(
            f"train_mlp: {len(data)} programs split by task into {len(train)} and "
            f"{len(validation)}; more tasks or another train_ratio (now {train_ratio}) are needed"
        )
    if data.kind is not None:
        model.expect(data.kind)
    model.ensure_built(train.features[0].shape[1])
    assert model.model is not None
    if not model.trained:
        whole = train.batch()
        model.model.standardise(whole.features, whole.labels)
    check = validation.batch()
    rng = np.random.default_rng(seed)
    log = None if log_folder is None else TensorBoardLogger(str(log_folder), name="cost_model")
    with tqdm(total=epochs, disable=None if progress else True, unit="epoch") as bar:

        def on_round(training_loss: float, loss: float) -> None:
            bar.update(1)
            bar.set_postfix_str(f"loss {training_loss:.4f}, on other tasks {loss:.4f}")
            if log is not None:
                log.log_metrics(
                    {"train_loss": training_loss, "val_loss": loss, **model.metrics(check)},
                    step=bar.n,
                )

        loss = model.descend(
            (train.minibatches(model.batch_size, rng) for _ in range(epochs)),
            check,
            lr=_FURTHER_RATE if model.trained else model.lr,
            on_round=on_round,
        )
    if log is not None:
        log.finalize("success")
    model.replay = _to_replay(train, replay, rng)
    metrics = {"val_loss": loss, **model.metrics(check)}
    model.card = {
        "processor": host_cpu()[0],
        "programs": len(train),
        "tasks": len(np.unique(train.groups())),
        "held_out_programs": len(validation),
        "held_out_tasks": len(np.unique(validation.groups())),
        **metrics,
    }
    model.save(output)
    return metrics


def _to_replay(data: DatasetBuilder, count: int, rng: np.random.Generator) -> DatasetBuilder:
    """About `count` programs, of each task equally many: half its fastest, half any others.

    One program of a task says nothing of the order inside it, so of many tasks only some are kept.
    """
    groups = data.groups()
    tasks = np.unique(groups)
    per_task = max(count // max(len(tasks), 1), min(count, _REPLAYED_OF_TASK))
    if per_task * len(tasks) > count:
        tasks = np.sort(rng.choice(tasks, count // per_task, replace=False)) if per_task else tasks
    chosen: list[int] = []
    for group in tasks:
        members = np.flatnonzero(groups == group)
        order = members[np.argsort([-data.labels[i] for i in members], kind="stable")]
        fastest, rest = order[: per_task // 2], order[per_task // 2 :]
        others = rng.choice(rest, min(per_task - len(fastest), len(rest)), replace=False)
        chosen += [int(i) for i in [*fastest, *others]]
    return data.select(chosen)
