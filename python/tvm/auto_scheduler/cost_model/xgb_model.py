"""Cost model of boosted trees: the score of a program is the sum over its stores."""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm import te
from tvm.runtime.files import write_atomically
from tvm.runtime.threading import usable_cores

from .. import _ffi_api
from ..feature import FeatureCache, get_per_store_features_from_measure_pairs
from ..loop_state import State, StateObject
from ..measure_node import MAX_FLOAT, MeasureInput, MeasureResult
from ..search_task import SearchTask
from .cost_model import PythonBasedModel
from .metric import peak_score

__all__ = ["XGBModel"]

logger = logging.getLogger("auto_scheduler")

# Value of Stage.compute_at.
_INLINED = 1
_FILE_KIND = "tvm.auto_scheduler.XGBModel"
_MAX_ROUNDS, _PATIENCE = 10000, 50
# Trees that are added to a model that fits older measurements already.
_MORE_ROUNDS = 200
# A model is trained anew once its data has grown by this factor, so that trees fitted to the first
# few programs do not stay for ever.
_GROWTH = 1.5
# With fewer new programs than this share of the last training set adaptive training waits.
_ADAPTIVE_SHARE = 0.2


def require_xgboost(user: str = "XGBModel") -> Any:
    """The module xgboost.

    Raises
    ------
    ModuleNotFoundError : it is not installed; the message names who needs it, and the extra.
    """
    try:
        return importlib.import_module("xgboost")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{user} needs xgboost; install the extra: pip install 'tvm[xgboost]'",
            name="xgboost",
        ) from error


class _Packs:
    """Rows of several programs, one program a pack, as xgboost sees them."""

    def __init__(
        self, features: Sequence[np.ndarray], throughputs: np.ndarray | None = None
    ) -> None:
        self.n_packs = len(features)
        self.of_row = np.repeat(np.arange(len(features)), [len(rows) for rows in features])
        self.throughputs = np.zeros(len(features)) if throughputs is None else throughputs
        self.matrix = require_xgboost().DMatrix(np.concatenate(features))
        if throughputs is not None:
            self.matrix.set_label(throughputs[self.of_row])
            # Slow programs need not be told apart.
            self.matrix.set_weight(throughputs[self.of_row])

    def sums(self, row_values: np.ndarray) -> np.ndarray:
        """Sum of each pack, shape (n_packs,)."""
        return np.bincount(self.of_row, weights=row_values, minlength=self.n_packs)

    def objective(self, row_values: np.ndarray, matrix: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of half the weighted squared error of the sums."""
        error = self.sums(row_values)[self.of_row] - matrix.get_label()
        weight = matrix.get_weight()
        return error * weight, weight

    def rmse(self, row_values: np.ndarray, matrix: Any) -> tuple[str, float]:
        """Root of the mean squared error of the sums."""
        error = self.sums(row_values) - self.throughputs
        return "p-rmse", float(np.sqrt(np.mean(error**2)))


class XGBModel(PythonBasedModel):
    """Boosted trees over per-store features (Ansor, OSDI 2020, section 5.2).

    The label of a program is its normalised throughput, the best cost of its task over its own.
    Unlike in Ansor's implementation a model that fits older measurements gets more trees instead of
    being trained anew each round, features of states are kept, and history is capped.

    Parameters
    ----------
    verbose_eval : log the training error every this many trees; 0 never.
    num_warmup_sample : up to this many measurements scores are random; -1 trusts the model at once.
    seed : of the trees.
    model_file : the model is saved here after each update.
    adaptive_training : skip updates that bring less than a fifth of new programs.
    max_history : programs trained on; beyond, the best of each task and the newest stay.

    Raises
    ------
    ModuleNotFoundError : xgboost is not installed.
    """

    def __init__(
        self,
        verbose_eval: int = 25,
        num_warmup_sample: int = 100,
        seed: int | None = None,
        model_file: str | Path | None = None,
        adaptive_training: bool = False,
        max_history: int = 8192,
    ) -> None:
        super().__init__()
        require_xgboost()
        seed = 43 if seed is None else seed
        self.xgb_params: dict[str, Any] = {
            "max_depth": 10,
            "gamma": 0.001,
            "min_child_weight": 0,
            "eta": 0.2,
            "nthread": max(1, usable_cores() // 2),
            "verbosity": 0,
            "seed": seed,
            "disable_default_eval_metric": 1,
            # A program is the sum of its stores, so a store starts at nothing.
            "base_score": 0.0,
        }
        self.verbose_eval = verbose_eval
        self.num_warmup_sample = num_warmup_sample
        self.model_file = None if model_file is None else Path(model_file)
        self.adaptive_training = adaptive_training
        self.max_history = max_history
        self.bst: Any = None
        self.inputs: list[MeasureInput] = []
        self.results: list[MeasureResult] = []
        self._features: list[np.ndarray] = []
        self._cache = FeatureCache()
        self._rng = np.random.default_rng(seed)
        self._trained_on = 0
        self._trained_anew_on = 0

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements, failed ones included.

        Raises
        ------
        ValueError : there are not as many results as inputs.
        """
        if len(inputs) != len(results):
            raise ValueError(f"XGBModel.update: {len(inputs)} inputs but {len(results)} results")
        if not inputs:
            return
        start = time.monotonic()
        self.inputs += inputs
        self.results += results
        self._features += get_per_store_features_from_measure_pairs(inputs, results)[0]
        self._forget()
        waiting = len(self.inputs) - self._trained_on
        if self.adaptive_training and waiting < self._trained_on * _ADAPTIVE_SHARE:
            return
        self._train(self._features, self._throughputs())
        logger.info("Time elapsed for training: %.2f s", time.monotonic() - start)
        # Nothing is learned while every measurement has failed.
        if self.model_file is not None and self.bst is not None:
            self.save(self.model_file)

    def update_from_file(self, file_name: str | Path, n_lines: int | None = None) -> None:
        """Learn from the first `n_lines` records of a file, by default from all."""
        from ..measure_record import RecordReader

        inputs, results = RecordReader(file_name).read_lines(n_lines)
        logger.info("XGBModel: loaded %d records from %s", len(inputs), file_name)
        self.update(inputs, results)

    def fit(
        self,
        features: Sequence[np.ndarray],
        throughputs: np.ndarray,
        validation: tuple[Sequence[np.ndarray], np.ndarray] | None = None,
        max_rounds: int = 300,
        patience: int = 100,
    ) -> None:
        """Train offline on a data set, for instance of `DatasetBuilder`.

        Parameters
        ----------
        features : one array a program, float32, shape (n_stores, n_columns).
        throughputs : normalised, in [0, 1], shape (n_programs,).
        validation : programs on which training stops; by default the training programs.
        max_rounds, patience : trees at most, and without improvement.
        """
        self.bst = None
        self._train(features, throughputs, validation, max_rounds, patience)
        self.num_warmup_sample = -1

    def score(self, features: Sequence[np.ndarray]) -> np.ndarray:
        """Scores of programs by their features, see `predict`."""
        return self._scores(features, self._row_scores(features))

    def predict(self, task: SearchTask, states: Sequence[State | StateObject]) -> np.ndarray:
        """Scores of states, float64, shape (n_states,); higher is better.

        Random while too little was measured; -inf for a state that cannot be a program.
        """
        return self.score(self._cache.get(task, states))

    def predict_stages(self, task: SearchTask, states: Sequence[State | StateObject]) -> np.ndarray:
        """Scores of states and of their stages.

        Returns
        -------
        float64: the n scores, then for each state the number of its stages and their scores.
        Inputs and inlined stages score 0.
        """
        features = self._cache.get(task, states)
        rows = self._row_scores(features)
        packed = list(self._scores(features, rows))
        for state, row_scores in zip(states, rows):
            stages = list(state.stages)
            computed = [
                i
                for i, stage in enumerate(stages)
                if isinstance(stage.op, te.ComputeOp) and int(stage.compute_at) != _INLINED
            ]
            scores = np.zeros(len(stages))
            # Stores come in the order of stages: producers before their readers.
            for i, score in zip(computed, row_scores):
                scores[i] = score
            packed += [float(len(stages)), *scores]
        return np.array(packed)

    def save(self, file_name: str | Path) -> None:
        """Write the trees; atomically, with a checksum. Nothing in the file is ever executed.

        Raises
        ------
        RuntimeError : there is no model yet.
        """
        if self.bst is None:
            raise RuntimeError("XGBModel.save: there is no model yet; update it with measurements")
        trees = bytes(self.bst.save_raw("ubj"))
        header = {
            "kind": _FILE_KIND,
            "features": int(_ffi_api.PerStoreFeatureVersion()),
            "sha256": hashlib.sha256(trees).hexdigest(),
        }
        write_atomically(file_name, json.dumps(header).encode() + b"\n" + trees)

    def load(self, file_name: str | Path) -> None:
        """Read what `save` wrote; scores are the model's from now on.

        Raises
        ------
        FileNotFoundError : there is no such file.
        ValueError : it is damaged, no such model, or for other features.
        """
        path = Path(file_name)
        if not path.exists():
            raise FileNotFoundError(f"XGBModel.load: {path} does not exist")
        text, _, trees = path.read_bytes().partition(b"\n")
        try:
            header = json.loads(text)
        except ValueError:
            header = None
        if not isinstance(header, dict) or header.get("kind") != _FILE_KIND:
            raise ValueError(f"XGBModel.load: {path} is no model written by XGBModel.save")
        if header.get("sha256") != hashlib.sha256(trees).hexdigest():
            raise ValueError(f"XGBModel.load: {path} is damaged: its checksum does not match")
        if header.get("features") != int(_ffi_api.PerStoreFeatureVersion()):
            raise ValueError(
                f"XGBModel.load: {path} is for version {header.get('features')} of the per-store "
                f"features, this is {_ffi_api.PerStoreFeatureVersion()}; train it again"
            )
        xgboost = require_xgboost()
        booster = xgboost.Booster()
        try:
            booster.load_model(bytearray(trees))
        except xgboost.core.XGBoostError as error:
            raise ValueError(f"XGBModel.load: {path} holds no trees: {error}") from error
        self.bst = booster
        self.num_warmup_sample = -1

    def _row_scores(self, features: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Score of each store; random in the warm-up, so that their sums lie in (0, 1)."""
        if not features:
            return []
        if self.bst is None or len(self.inputs) <= self.num_warmup_sample:
            return [self._rng.random() * np.full(len(rows), 1 / len(rows)) for rows in features]
        packs = _Packs(features)
        values = self.bst.predict(packs.matrix, output_margin=True)
        return np.split(values.astype(np.float64), np.cumsum([len(f) for f in features])[:-1])

    @staticmethod
    def _scores(features: Sequence[np.ndarray], row_scores: list[np.ndarray]) -> np.ndarray:
        scores = np.array([values.sum() for values in row_scores], dtype=np.float64)
        invalid = [not rows.any() for rows in features]
        scores[np.array(invalid, dtype=bool)] = -np.inf
        return scores

    def _keys(self) -> list[str]:
        return [f"{i.task.workload_key} {i.task.target}" for i in self.inputs]

    def _throughputs(self) -> np.ndarray:
        """Best cost of each program's task over its own; 0 for a failed one."""
        keys, costs = self._keys(), [result.mean_cost for result in self.results]
        best: dict[str, float] = {}
        for key, cost in zip(keys, costs):
            best[key] = min(cost, best.get(key, cost))
        return np.array(
            [0.0 if cost >= MAX_FLOAT else best[key] / cost for key, cost in zip(keys, costs)]
        )

    def _forget(self) -> None:
        """Keep history within its cap: half for the fastest programs, half for the newest."""
        excess = len(self.inputs) - self.max_history
        if excess <= 0:
            return
        half = self.max_history // 2
        old = np.arange(len(self.inputs) - (self.max_history - half))
        fastest = old[np.argsort(-self._throughputs()[old], kind="stable")[:half]]
        kept = sorted([*fastest, *range(len(old), len(self.inputs))])
        self.inputs = [self.inputs[i] for i in kept]
        self.results = [self.results[i] for i in kept]
        self._features = [self._features[i] for i in kept]

    def _train(
        self,
        features: Sequence[np.ndarray],
        throughputs: np.ndarray,
        validation: tuple[Sequence[np.ndarray], np.ndarray] | None = None,
        max_rounds: int = _MAX_ROUNDS,
        patience: int = _PATIENCE,
    ) -> None:
        # What gives no features teaches nothing.
        useful = [i for i, rows in enumerate(features) if rows.any()]
        if not useful or not throughputs[useful].any():
            return
        packs = _Packs([features[i] for i in useful], throughputs[useful])
        checked = packs if validation is None else _Packs(*validation)
        anew = self.bst is None or len(features) >= self._trained_anew_on * _GROWTH
        xgboost = require_xgboost()
        self.bst = xgboost.train(
            self.xgb_params,
            packs.matrix,
            num_boost_round=max_rounds if anew else _MORE_ROUNDS,
            obj=packs.objective,
            evals=[(checked.matrix, "check")],
            custom_metric=checked.rmse,
            callbacks=[xgboost.callback.EarlyStopping(rounds=patience, save_best=True)],
            xgb_model=None if anew else self.bst,
            verbose_eval=self.verbose_eval or False,
        )
        self._trained_on = len(features)
        if anew:
            self._trained_anew_on = len(features)
        values = checked.sums(self.bst.predict(checked.matrix, output_margin=True))
        logger.debug(
            "XGBModel: %d trees for %d programs, a-peak@8 %.4f",
            self.bst.num_boosted_rounds(),
            packs.n_packs,
            peak_score(values, checked.throughputs, 8),
        )
