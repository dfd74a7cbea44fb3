"""The learned latency model: a multi-layer perceptron over per-store features."""

from __future__ import annotations

import io
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from tvm.runtime.files import write_atomically

from .dataset import DatasetBuilder, FeatureKind, SegmentBatch
from .metric import evaluate
from .tensor_file import load_tensors
from .torch_mode import with_gradients

__all__ = ["LOSSES", "LatencyModel", "MLPCostModel"]

logger = logging.getLogger(__name__)

LOSSES = ("log_mse", "mse", "rank", "relative")

# Gradient steps between two looks at the programs that were held out.
_CHECK_EVERY = 20
# A loss that is lower by less has not improved.
_LEAST_GAIN = 1e-4
# Weight of the absolute error in the "relative" loss: enough to keep predictions of different
# tasks on one scale, too little to compete with the order inside a task, which the search uses.
_ABSOLUTE_WEIGHT = 0.1


class MLPCostModel(nn.Module):
    """Per-store encoder, sum over stores, two residual blocks, one output.

    The structure is that of Felix (ASPLOS 2024, section 4); inputs are standardised first, because
    log features of very different spread would otherwise need many steps to balance.
    """

    mean: torch.Tensor
    scale: torch.Tensor
    offset: torch.Tensor

    def __init__(self, n_features: int, hidden: int = 256) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))
        self.register_buffer("offset", torch.zeros(()))
        self.encoder = nn.Sequential(
            nn.Linear(n_features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU()) for _ in range(2)
        )
        self.decoder = nn.Linear(hidden, 1)

    def standardise(self, features: torch.Tensor, labels: torch.Tensor | None = None) -> None:
        """Take the input mean and spread (and the mean label) from sample data.

        features : shape (n_rows, n_features). Columns that do not vary keep scale 1.
        labels : shape (n,), or None to leave the output offset as it is.
        """
        self.mean.copy_(features.mean(0))
        spread = features.std(0, unbiased=False)
        self.scale.copy_(torch.where(spread > 1e-3, 1.0 / spread.clamp_min(1e-3), 1.0))
        if labels is not None:
            self.offset.copy_(labels.mean())

    def encode(self, features: torch.Tensor) -> torch.Tensor:
        """Per-store codes; features: shape (..., n_features)."""
        # Clamping keeps a search that leaves the region of the data from riding a linear
        # extrapolation to absurd scores.
        return self.encoder(((features - self.mean) * self.scale).clamp(-6.0, 6.0))

    def decode(self, pooled: torch.Tensor) -> torch.Tensor:
        """Prediction from summed codes: shape (..., hidden) to (...)."""
        for block in self.blocks:
            pooled = block(pooled) + pooled
        return self.decoder(pooled).squeeze(-1) + self.offset

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Programs with equal store counts: (n, n_stores, n_features) to (n,)."""
        return self.decode(self.encode(features).sum(-2))

    def forward_segments(self, batch: SegmentBatch) -> torch.Tensor:
        """Programs with unequal store counts: shape (n_programs,)."""
        codes = self.encode(batch.features)
        pooled = codes.new_zeros(len(batch.labels), codes.shape[1])
        return self.decode(pooled.index_add(0, batch.segments, codes))


class LatencyModel(nn.Module):
    """The cost model the search descends on, with its training.

    Predictions are scores, higher is better; for every loss but "rank" they estimate the natural
    logarithm of the throughput in GFLOP/s.

    Parameters
    ----------
    n_features : columns of a feature row; None takes it from the checkpoint or the first data.
    loss_func : "relative" (default; order and distances inside each task first, absolute level
        second), "log_mse", "mse" (on GFLOP/s) or "rank" (pairwise logistic inside a task).
    lr, wd : learning rate and weight decay of pre-training.
    batch_size : programs a step.
    pretrained : a checkpoint written by `save` or by scripts/train_cost_model.py, such as
        `tvm.felix.packaged_checkpoint()`; None starts from random weights, and the search then
        learns from its own measurements alone.
    seed : of the initial weights and the shuffling.

    Attributes
    ----------
    card : what is known of a trained model: of which programs and processor, and how well it ranks
        programs of tasks that it was not trained on. Numbers and texts; part of the checkpoint, and
        empty once it was trained further.
    """

    @with_gradients()
    def __init__(
        self,
        n_features: int | None = None,
        loss_func: str = "relative",
        lr: float = 7e-4,
        wd: float = 1e-6,
        batch_size: int = 128,
        pretrained: str | os.PathLike[str] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if loss_func not in LOSSES:
            raise ValueError(f"loss_func must be one of {', '.join(LOSSES)}; got {loss_func!r}")
        self.loss_func, self.lr, self.wd, self.batch_size = loss_func, lr, wd, batch_size
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self.replay = DatasetBuilder()
        self.card: dict[str, float | int | str] = {}
        self.kind: FeatureKind | None = None
        self.model: MLPCostModel | None = None
        self.trained = False
        self.pretrained_from: str | None = None
        if pretrained is not None:
            self.load(pretrained)
        if n_features is not None:
            self.ensure_built(n_features)

    @property
    def built(self) -> bool:
        """Whether the number of features is known and the weights exist."""
        return self.model is not None

    @property
    def n_features(self) -> int:
        """Columns of a row that the network takes; it must be built."""
        return int(self._network().mean.shape[0])

    def expect(self, kind: FeatureKind) -> None:
        """Say what the features are that the model will be asked about.

        Raises
        ------
        ValueError : its checkpoint was trained on others.
        """
        if self.kind == kind:
            return
        if self.pretrained_from is None:
            self.kind = kind
            return
        way_out = "leave it out, or train one with scripts/train_cost_model.py"
        if self.kind is not None and self.kind.target != kind.target:
            raise ValueError(
                f"cost model {self.pretrained_from} is for {self.kind.target} targets, the tasks "
                f"are for a {kind.target}: {way_out}"
            )
        raise ValueError(
            f"cost model {self.pretrained_from} has features of another version "
            f"({'unnamed' if self.kind is None else self.kind.version}, the tasks' are "
            f"{kind.version}): {way_out}"
        )

    @with_gradients()
    def ensure_built(self, n_features: int, sample: torch.Tensor | None = None) -> None:
        """Make the network for rows of `n_features`, or check that the present one takes them.

        sample : shape (n_rows, n_features), typical rows; standardises a new network's inputs.

        Raises
        ------
        ValueError : a loaded checkpoint expects another number of features.
        """
        if self.model is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self._seed)
                self.model = MLPCostModel(n_features)
            if sample is not None:
                self.model.standardise(sample)
            return
        expected = self.n_features
        if expected != n_features:
            raise ValueError(
                f"the cost model takes {expected} features a row but the tasks have {n_features}; "
                "its checkpoint is from another version: leave it out, or train again with "
                "scripts/train_cost_model.py"
            )

    def standardise(self, sample: torch.Tensor) -> None:
        """Take mean and spread of the inputs from rows of shape (n_rows, n_features).

        Of a model that was not trained yet; weights of another scale mean nothing.
        """
        self._network().standardise(sample)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Scores of programs with equal store counts: (n, n_stores, n_columns) to (n,).

        Of the columns the network takes the first ones, see `learned_feature_names`.
        """
        return self._network()(features[..., : self.n_features])

    def loss(self, batch: SegmentBatch) -> torch.Tensor:
        """Training loss of one batch, a scalar."""
        predicted = self._network().forward_segments(batch)
        if self.loss_func == "log_mse":
            return torch.mean((predicted - batch.labels) ** 2)
        if self.loss_func == "mse":
            return torch.mean((predicted.exp() - batch.labels.exp()) ** 2)
        if self.loss_func == "rank":
            return _rank_loss(predicted, batch)
        error = predicted - batch.labels
        within = error - _group_means(error, batch.groups)
        absolute = torch.mean(error**2)
        # Within a task the fast programs matter: the search only ever compares those.
        best = _group_max(batch.labels, batch.groups)
        weight = torch.exp(0.5 * (batch.labels - best))
        relative = torch.sum(weight * within**2) / weight.sum()
        return relative + _ABSOLUTE_WEIGHT * absolute + 0.3 * _rank_loss(predicted, batch)

    def score(self, batch: SegmentBatch) -> np.ndarray:
        """Scores of programs with unequal store counts, float64, shape (n_programs,)."""
        with torch.no_grad():
            return self._network().forward_segments(batch).double().numpy()

    def metrics(self, batch: SegmentBatch) -> dict[str, float]:
        """Means over tasks of what `metric.evaluate` has, of throughputs as shares of the best one
        measured of the task; of a model trained with "rank", what is about the order."""
        best = _group_max(batch.labels, batch.groups).double().numpy()
        levels = self.loss_func != "rank"
        predicted = self.score(batch)
        if levels:
            predicted = np.exp(predicted - best)
        measured = np.exp(batch.labels.double().numpy() - best)
        return evaluate(predicted, measured, batch.groups.numpy(), levels)

    def _optimizer(
        self, lr: float
    ) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau]:
        optimizer = torch.optim.Adam(self.parameters(), lr=lr, weight_decay=self.wd)
        return optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=5
        )

    @with_gradients()
    def descend(
        self,
        rounds: Iterable[Iterable[SegmentBatch]],
        check: SegmentBatch,
        *,
        lr: float,
        patience: int | None = None,
        on_round: Callable[[float, float], None] | None = None,
    ) -> float:
        """Train on rounds of batches, and keep the weights with the least loss on `check`.

        Parameters
        ----------
        rounds : `check` is looked at after each.
        lr : of Adam, which starts afresh; it halves when the loss on `check` stalls for long.
        patience : number of rounds without improvement that end the training; None for no end.
        on_round : called after each round with the mean loss of its batches and that on `check`.

        Returns
        -------
        The loss on `check` of the weights that were kept.
        """
        network = self._network()
        optimizer, schedule = self._optimizer(lr)
        best, best_state, stalled = self._loss_value(check), _copy_state(network), 0
        network.train()
        for batches in rounds:
            losses = []
            for batch in batches:
                optimizer.zero_grad(set_to_none=True)
                loss = self.loss(batch)
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimizer.step()
                losses.append(loss.item())
            value = self._loss_value(check)
            schedule.step(value)
            if on_round is not None:
                on_round(float(np.mean(losses)), value)
            if value < best - _LEAST_GAIN:
                best, best_state, stalled = value, _copy_state(network), 0
                continue
            stalled += 1
            if patience is not None and stalled >= patience:
                break
        network.load_state_dict(best_state)
        network.eval()
        self.trained = True
        return best

    @with_gradients()
    def train_self(
        self,
        data: DatasetBuilder,
        n_steps: int = 200,
        lr: float = 3e-4,
        hold_out: float = 0.1,
        patience: int = 5,
    ) -> float:
        """Train further on measurements of the running search, mixed with replayed older data.

        A share of the data is held out; training stops early when its loss has not improved for
        `patience` checks and the best weights are kept, so little data does not over-fit.

        Parameters
        ----------
        data : measurements; all of them, not only the newest.
        n_steps : upper limit of gradient steps.
        lr : of Adam, which starts afresh at each call.
        hold_out : share of `data` used for stopping, in [0, 1); of little data more, up to a third.
        patience : number of checks, one every 20 steps, without improvement.

        Returns
        -------
        Loss on the held-out programs (on the training programs where none is held out).
        """
        if len(data) < 2:
            raise ValueError(f"train_self needs at least 2 programs, got {len(data)}")
        if self.model is None:
            self.ensure_built(data.features[0].shape[1], torch.from_numpy(np.vstack(data.features)))
        network = self._network()
        if self.pretrained_from is None and float(network.offset) == 0.0:
            network.offset.fill_(float(np.mean(data.labels)))
        order = self._rng.permutation(len(data))
        # Few programs are held out in a larger share: the loss on less than eight says little.
        n_held = max(int(hold_out * len(data)), min(8, len(data) // 3)) if hold_out else 0
        held = data.select(order[:n_held].tolist()) if n_held else data
        training = data.select(order[n_held:].tolist())
        stream = self._mixed_batches(training)
        rounds = (
            itertools.islice(stream, min(_CHECK_EVERY, n_steps - done))
            for done in range(0, n_steps, _CHECK_EVERY)
        )
        self.card = {}  # of the model that there was
        return self.descend(rounds, held.batch(), lr=lr, patience=patience)

    def _mixed_batches(self, data: DatasetBuilder) -> Iterator[SegmentBatch]:
        """Endless batches of `data`, each filled up with up to a quarter of replayed programs."""
        while True:
            for start in range(0, len(data), self.batch_size):
                order = self._rng.permutation(len(data))[start : start + self.batch_size]
                part = data.select(order.tolist())
                if len(self.replay):
                    count = min(len(self.replay), max(1, len(part) // 4))
                    part.extend(
                        self.replay.select(
                            self._rng.choice(len(self.replay), count, replace=False).tolist()
                        )
                    )
                yield part.batch()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, input statistics and settings; tensors and plain values only.

        Programs to replay go into a file of their own beside it, see `load`.
        """
        network = self._network()
        if len(self.replay):
            self.replay.save(replay_file(path))
        state = {
            "kind": None if self.kind is None else [self.kind.target, self.kind.version],
            "n_features": self.n_features,
            "loss_func": self.loss_func,
            "lr": self.lr,
            "wd": self.wd,
            "batch_size": self.batch_size,
            "card": dict(self.card),
            "trained": self.trained,
            "weights": network.state_dict(),
        }
        # Where the disk is full, torch's own writer raises no OSError and names no file.
        packed = io.BytesIO()
        torch.save(state, packed)
        write_atomically(path, packed.getvalue())

    @with_gradients()
    def load(self, path: str | os.PathLike[str]) -> None:
        """Read what `save` wrote; nothing is unpickled beyond tensors and plain values.

        A data set beside it, named like `model.replay.npz` for `model.ckpt`, is mixed into further
        training, so that it does not forget what it was trained on.

        Raises
        ------
        FileNotFoundError : there is no such file.
        ValueError : it is not a cost-model checkpoint, or the data set beside it has features of
            another kind.
        """
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(f"cost model checkpoint {path} does not exist")
        foreign = f"{path} is not a cost-model checkpoint written by MLPModelPLWrapper"
        state = load_tensors(path, checksums=True)
        if not isinstance(state, dict) or not {"n_features", "weights"} <= state.keys():
            raise ValueError(foreign)
        before = self.model
        try:
            self.model = None
            self.ensure_built(int(state["n_features"]))
            self._network().load_state_dict(state["weights"])
            kind = None if state.get("kind") is None else FeatureKind(*map(str, state["kind"]))
        except (RuntimeError, TypeError, ValueError, AttributeError) as error:
            self.model = before
            raise ValueError(f"{foreign}: {str(error).splitlines()[0]}") from error
        self._network().eval()
        self.kind, self.pretrained_from = kind, path.name
        # A run that ended before its model learned anything saved it as it began.
        self.trained = bool(state.get("trained", True))
        self.card = dict(state.get("card", {}))
        replay = replay_file(path)
        self.replay = DatasetBuilder.load(replay) if replay.exists() else DatasetBuilder()
        if self.replay.kind not in (None, kind):
            raise ValueError(
                f"{replay} has features of another kind than the checkpoint beside it "
                f"({self.replay.kind} and {kind}); remove it, or train both again"
            )
        older = sum(meta.sketch < 0 for meta in self.replay.conf_meta)
        if older:
            logger.info(
                "%s: %d of its %d programs are points of no sketch of this version; it is their "
                "features that are learned from",
                replay.name,
                older,
                len(self.replay),
            )

    def _network(self) -> MLPCostModel:
        if self.model is None:
            raise RuntimeError(
                "the cost model has no weights yet: pass n_features, load a checkpoint, or train it"
            )
        return self.model

    def _loss_value(self, batch: SegmentBatch) -> float:
        with torch.no_grad():
            return self.loss(batch).item()


def replay_file(checkpoint: str | os.PathLike[str]) -> Path:
    """Where the programs are that training from a checkpoint replays."""
    return Path(checkpoint).with_suffix(".replay.npz")


def _copy_state(network: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def _group_means(values: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    size = int(groups.max()) + 1
    total = values.new_zeros(size).index_add(0, groups, values)
    count = values.new_zeros(size).index_add(0, groups, torch.ones_like(values))
    return (total / count.clamp_min(1.0))[groups]


def _group_max(values: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    size = int(groups.max()) + 1
    start = values.new_full((size,), -torch.inf)
    return start.scatter_reduce(0, groups, values, "amax")[groups]


def _rank_loss(predicted: torch.Tensor, batch: SegmentBatch) -> torch.Tensor:
    """Logistic loss over the ordered pairs of each task, averaged over those pairs only."""
    same = batch.groups[:, None] == batch.groups[None, :]
    faster = same & (batch.labels[:, None] > batch.labels[None, :])
    margin = predicted[:, None] - predicted[None, :]
    pairs = faster.sum()
    if pairs == 0:
        return predicted.sum() * 0.0
    return nn.functional.softplus(-margin)[faster].sum() / pairs
