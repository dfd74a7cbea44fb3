"""Boosted trees over the stores of candidates."""

from __future__ import annotations

import io
import json
import logging
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tvm
from tvm.auto_scheduler.cost_model.metric import peak_score
from tvm.auto_scheduler.cost_model.xgb_model import require_xgboost
from tvm.runtime.files import write_atomically

from ..candidate import MeasureCandidate, RunnerResult
from ..feature_extractor import FeatureExtractor, PerStoreFeature
from ..utils import cpu_count
from .cost_model import CostModel
from .program_bound import bound_cycles

__all__ = ["FeatureGroup", "PackSum", "XGBConfig", "XGBModel"]

logger = logging.getLogger("tvm.meta_schedule")

_FAILED = 1e10
_MAX_ROUNDS = 300


class XGBConfig(NamedTuple):
    """Parameters of the trees, see the documentation of xgboost.

    Attributes
    ----------
    nthread : cores to train on; by default half of them.
    """

    max_depth: int = 10
    gamma: float = 0.001
    min_child_weight: float = 0
    eta: float = 0.2
    seed: int = 43
    nthread: int | None = None
    tree_method: str = "auto"

    def to_dict(self) -> dict[str, Any]:
        """The parameters by name, as `xgboost.train` takes them."""
        threads = max(1, cpu_count() // 2) if self.nthread is None else self.nthread
        return {**self._asdict(), "nthread": threads}


class PackSum:
    """Rows of several programs, whose scores are sums over their rows.

    Parameters
    ----------
    xs : one table a program, shape (n_rows, n_columns).
    ys : normalised throughputs, shape (n_programs,); None where they are asked for.

    Attributes
    ----------
    dmatrix : the rows as xgboost takes them. ids : the program of each row.
    """

    def __init__(self, xs: Sequence[np.ndarray], ys: np.ndarray | None) -> None:
        self.ids = np.repeat(np.arange(len(xs)), [len(rows) for rows in xs])
        self.ys = np.zeros(len(xs)) if ys is None else np.asarray(ys, dtype=np.float64)
        self.dmatrix = require_xgboost().DMatrix(np.concatenate(list(xs)))
        if ys is not None:
            self.dmatrix.set_label(self.ys[self.ids])
            # Slow programs need not be told apart.
            self.dmatrix.set_weight(self.ys[self.ids])

    def predict_with_score(self, pred: np.ndarray) -> np.ndarray:
        """Scores of programs, shape (n_programs,), of predictions for rows."""
        return np.bincount(self.ids, weights=pred, minlength=len(self.ys))

    def obj_square_error(self, ys_pred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of half the weighted squared error of the scores, for each row."""
        error = (self.predict_with_score(ys_pred) - self.ys)[self.ids]
        weight = self.ys[self.ids]
        return error * weight, weight

    def rmse(self, ys_pred: np.ndarray) -> tuple[str, float]:
        """Name and value of the root of the mean squared error of the scores."""
        error = self.predict_with_score(ys_pred) - self.ys
        return "p-rmse", float(np.sqrt(np.mean(error**2)))

    def average_peak_score(self, ys_pred: np.ndarray, n: int) -> tuple[str, float]:
        """Name and value of how fast the best of the first 1, ..., n by score are, on average."""
        return f"a-peak@{n}", float(peak_score(self.predict_with_score(ys_pred), self.ys, n))


# An evaluation of predictions for the rows of a matrix.
Evaluation = Callable[[np.ndarray, Any], tuple[str, float]]


def _get_custom_call_back(
    early_stopping_rounds: int,
    verbose_eval: int,
    fevals: Sequence[Evaluation],
    evals: Sequence[tuple[Any, str]],
    focused_metric: str = "tr-p-rmse",
    cvfolds: Any = None,
) -> Any:
    """A callback that evaluates the trees after each round, on packs of rows, and stops early.

    Parameters
    ----------
    early_stopping_rounds : rounds without improvement after which training stops.
    verbose_eval : log the metrics every this many rounds; 0 never.
    fevals : the metrics. evals : matrices and the names that precede those of the metrics.
    focused_metric : the one that is to become small.
    cvfolds : folds of a cross validation, each with a booster and a matrix to evaluate, which take
        the place of the booster in training and of `evals`.
    """
    base: Any = require_xgboost().callback.TrainingCallback

    class Evaluate(base):
        def __init__(self) -> None:
            super().__init__()
            self.best, self.best_round = float("inf"), 0

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            runs = [(model, list(evals))]
            if cvfolds is not None:
                runs = [(fold.bst, [(fold.dtest, "te")]) for fold in cvfolds]
            found: dict[str, list[float]] = {}
            for booster, matrices in runs:
                for matrix, prefix in matrices:
                    values = booster.predict(matrix, output_margin=True)
                    for feval in fevals:
                        name, value = feval(values, matrix)
                        found.setdefault(f"{prefix}-{name}", []).append(value)
            means = {name: float(np.mean(values)) for name, values in found.items()}
            if verbose_eval and epoch % verbose_eval == 0:
                shown = "  ".join(f"{name}: {value:.6f}" for name, value in means.items())
                logger.debug("XGB iter: %3d  %s", epoch, shown)
            if means[focused_metric] < self.best:
                self.best, self.best_round = means[focused_metric], epoch
            return epoch - self.best_round >= early_stopping_rounds

        def after_training(self, model: Any) -> Any:
            return model[: self.best_round + 1] if cvfolds is None else model

    return Evaluate()


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


def _cost(result: RunnerResult) -> float:
    """Mean seconds; of what was stopped how long it ran, which is slow enough to tell it apart."""
    if result.run_secs:
        return float(np.mean(result.run_secs))
    return _FAILED if result.at_least is None else result.at_least


class XGBModel(CostModel):
    """Trees that predict the throughput of a candidate as the sum over its stores.

    Ansor (OSDI 2020), section 5.2.

    Parameters
    ----------
    extractor : gives the stores; "per-store-feature" or an extractor.
    config : parameters of the trees.
    num_warmup_samples : with fewer measurements scores are those of `prior`.
    early_stopping_rounds : trees without improvement after which training stops.
    verbose_eval : log the error every this many trees; 0 never.
    average_peak_n : of the metric `PackSum.average_peak_score`, which is logged.
    adaptive_training : train anew only once a fifth more was measured.
    prior : "bound" ranks by what a processor has to do for a program's loops at least, and on other
        devices at random; "random" ranks at random.
    num_tuning_cores, tree_method : take the place of `config.nthread` and `config.tree_method`.

    Raises
    ------
    ValueError : an unknown extractor or prior.
    """

    def __init__(
        self,
        *,
        extractor: str | FeatureExtractor = "per-store-feature",
        config: XGBConfig | None = None,
        num_warmup_samples: int = 32,
        early_stopping_rounds: int = 50,
        verbose_eval: int = 25,
        average_peak_n: int = 32,
        adaptive_training: bool = True,
        prior: str = "bound",
        num_tuning_cores: int | None = None,
        tree_method: str | None = None,
    ) -> None:
        if isinstance(extractor, str):
            if extractor != "per-store-feature":
                raise ValueError(
                    f"XGBModel: unknown extractor {extractor!r}; there is 'per-store-feature'"
                )
            extractor = PerStoreFeature()
        if prior not in ("bound", "random"):
            raise ValueError(f"XGBModel: unknown prior {prior!r}; there are 'bound' and 'random'")
        self.prior = prior
        config = config or XGBConfig()
        if num_tuning_cores is not None:
            config = config._replace(nthread=num_tuning_cores)
        if tree_method is not None:
            config = config._replace(tree_method=tree_method)
        self.extractor, self.config = extractor, config
        self.early_stopping_rounds, self.verbose_eval = early_stopping_rounds, verbose_eval
        self.average_peak_n = average_peak_n
        self.num_warmup_samples = num_warmup_samples
        self.adaptive_training = adaptive_training
        self.data: dict[str, FeatureGroup] = {}
        self.data_size = 0
        self.last_train_size = 0
        self.booster: Any = None
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
        costs = np.array([_cost(result) for result in results])
        if key in self.data:
            self.data[key].append(features, costs)
        else:
            self.data[key] = FeatureGroup(key, features, costs)
        self.data_size += len(candidates)
        enough = not self.adaptive_training or self.data_size >= 1.2 * self.last_train_size
        if self.data_size >= self.num_warmup_samples and enough:
            self._train()

    def predict(self, context: Any, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        if not self.trained:
            return self._from_prior(context, candidates)
        features = self._features(context, candidates)
        scores = np.zeros(len(candidates))
        full = [i for i, rows in enumerate(features) if len(rows)]
        if full:
            packs = PackSum([features[i] for i in full], None)
            values = self.booster.predict(packs.dmatrix, output_margin=True)
            scores[full] = packs.predict_with_score(values)
        return scores

    @property
    def trained(self) -> bool:
        return self.booster is not None and self.data_size >= self.num_warmup_samples

    def _from_prior(self, context: Any, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        cycles = bound_cycles(context, candidates) if self.prior == "bound" else None
        return self._rng.random(len(candidates)) if cycles is None else 1e6 / cycles

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
        packs = PackSum(features, np.array(labels))
        if not packs.ys.any():
            return

        def peak(ys_pred: np.ndarray, matrix: Any) -> tuple[str, float]:
            return packs.average_peak_score(ys_pred, self.average_peak_n)

        self.booster = require_xgboost().train(
            # A program is the sum of its stores, so a store starts at nothing.
            {**self.config.to_dict(), "base_score": 0.0, "disable_default_eval_metric": 1},
            packs.dmatrix,
            num_boost_round=_MAX_ROUNDS,
            obj=lambda ys_pred, matrix: packs.obj_square_error(ys_pred),
            callbacks=[
                _get_custom_call_back(
                    early_stopping_rounds=self.early_stopping_rounds,
                    verbose_eval=self.verbose_eval,
                    fevals=[lambda ys_pred, matrix: packs.rmse(ys_pred), peak],
                    evals=[(packs.dmatrix, "tr")],
                )
            ],
        )
        self.last_train_size = self.data_size

    def save(self, path: str) -> None:
        """Write measurements and trees; plain numbers only."""
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
            if self.booster is not None:
                archive.writestr("trees.ubj", bytes(self.booster.save_raw("ubj")))
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
                trees = archive.read("trees.ubj") if "trees.ubj" in archive.namelist() else None
            booster = None
            if trees is not None:
                booster = require_xgboost().Booster()
                booster.load_model(bytearray(trees))
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{path}: no measurements of an XGBModel ({error})") from error
        self.data, self.data_size = data, int(head["size"])
        self.booster, self.last_train_size = booster, self.data_size
