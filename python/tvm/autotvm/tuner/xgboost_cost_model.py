"""Trees that predict how fast points are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tvm.auto_scheduler.cost_model.xgb_model import require_xgboost

from ..feature import get_buffer_curve_sample_flatten, get_itervar_feature_flatten
from ..measure import MeasureInput, MeasureResult
from ..task.space import ConfigEntity, InstantiationError
from ..task.task import Task
from ..utils import logger, throughput
from .metric import average_recall
from .model_based_tuner import CostModel

__all__ = ["XGBoostCostModel"]

_FEATURES = ("itervar", "knob", "curve")
_LOSSES = {"reg": "reg:squarederror", "rank": "rank:pairwise", "rank-binary": "rank:pairwise"}
_ROUNDS, _PATIENCE = 300, 20


class XGBoostCostModel(CostModel):
    """Gradient boosted trees over features of points.

    Parameters
    ----------
    task : whose points are predicted.
    feature_type : "itervar", features of each loop; "knob", the choices themselves; "curve",
        relations over all loops, which suit any loop structure.
    loss_type : "reg" for the throughput, "rank" for the order, "rank-binary" for which points
        belong to the best.
    num_threads : of training; None is all.
    log_interval : print the course of training every so many rounds; None prints nothing.
    upper_model : takes no part; a model of a task inside of a transfer keeps its features.

    Raises
    ------
    ValueError : an unknown feature or loss. ModuleNotFoundError : there is no xgboost.
    """

    def __init__(
        self,
        task: Task,
        feature_type: str = "itervar",
        loss_type: str = "reg",
        num_threads: int | None = None,
        log_interval: int | None = 25,
        upper_model: XGBoostCostModel | None = None,
    ) -> None:
        if feature_type not in _FEATURES:
            raise ValueError(
                f"XGBoostCostModel: unknown feature_type {feature_type!r}; there are {_FEATURES}"
            )
        if loss_type not in _LOSSES:
            raise ValueError(
                f"XGBoostCostModel: unknown loss_type {loss_type!r}; there are {tuple(_LOSSES)}"
            )
        if task.config_space is None:
            raise ValueError(f"XGBoostCostModel: the task {task.name} has no space")
        self._xgb = require_xgboost("XGBTuner")
        self.task = task
        self.space = task.config_space
        self.feature_type = feature_type
        self.loss_type = loss_type
        self.num_threads = num_threads
        self.log_interval = log_interval
        self.base_model: XGBoostCostModel | None = None
        self.bst: Any = None
        self._width = 0
        # Features of a point never change, and models that build on each other share them.
        self._cache: dict[int, np.ndarray] = {} if upper_model is None else upper_model._cache
        self.parameters = {
            "max_depth": 3,
            "gamma": 0.0001,
            "min_child_weight": 1,
            "subsample": 1.0,
            "eta": 0.3,
            "lambda": 1.0,
            "alpha": 0,
            "objective": _LOSSES[loss_type],
            "nthread": num_threads or 0,
            "verbosity": 0,
            # Ours is the recall; that of rankings takes whole numbers only.
            "disable_default_eval_metric": 1,
        }

    def fit(
        self, xs: Sequence[int] | np.ndarray, ys: Sequence[float] | np.ndarray, plan_size: int
    ) -> None:
        features = self._features([int(x) for x in xs])
        self._train(features, np.asarray(ys, dtype=float), plan_size)

    def fit_log(
        self,
        records: Iterable[tuple[MeasureInput, MeasureResult]],
        plan_size: int,
        min_seed_records: int = 500,
    ) -> bool:
        rows, scores = [], []
        for inp, result in records:
            row = self._feature_of(inp.task, inp.config)
            if row is None:
                continue
            flop = inp.task.flop if inp.task.flop is not None else self.task.flop
            rows.append(row)
            scores.append(throughput(float(flop or 0), result))
        if len(rows) < min_seed_records:
            logger.debug("%d records are fewer than %d", len(rows), min_seed_records)
            return False
        self._train(rows, np.array(scores), plan_size)
        return True

    def predict(self, xs: Sequence[int] | np.ndarray, output_margin: bool = False) -> np.ndarray:
        if self.bst is None:
            raise RuntimeError("XGBoostCostModel: predict before fit")
        rows = self._features([int(x) for x in xs])
        matrix = self._matrix(rows)
        if self.base_model is not None:
            matrix.set_base_margin(self.base_model._margin(rows))
        return self.bst.predict(matrix, output_margin=output_margin)

    def load_basemodel(self, base_model: CostModel) -> None:
        if not isinstance(base_model, XGBoostCostModel):
            raise TypeError(f"XGBoostCostModel: cannot build on a {type(base_model).__name__}")
        self.base_model = base_model
        base_model._cache = self._cache
        if self.bst is None:
            self.bst, self._width = base_model.bst, base_model._width

    def spawn_base_model(self) -> XGBoostCostModel:
        return XGBoostCostModel(
            self.task, self.feature_type, self.loss_type, self.num_threads, self.log_interval, self
        )

    def _train(self, rows: Sequence[np.ndarray], flops: np.ndarray, plan_size: int) -> None:
        top = float(flops.max()) if len(flops) else 0.0
        labels = flops / top if top > 0 else flops
        if self.loss_type == "rank-binary":
            labels = (flops >= np.sort(flops)[-min(plan_size, len(flops))]).astype(float)
        self._width = max([self._width, *(len(row) for row in rows)])
        matrix = self._matrix(rows)
        matrix.set_label(labels)
        if self.loss_type != "reg":
            matrix.set_group([len(rows)])
        if self.base_model is not None:
            matrix.set_base_margin(self.base_model._margin(rows))

        def recall(predicted: np.ndarray, _: Any) -> tuple[str, float]:
            return f"a-recall@{plan_size}", -average_recall(predicted, labels, plan_size)

        self.bst = self._xgb.train(
            self.parameters,
            matrix,
            num_boost_round=_ROUNDS,
            evals=[(matrix, "train")],
            custom_metric=recall,
            early_stopping_rounds=_PATIENCE,
            verbose_eval=False,
        )
        if self.log_interval:
            logger.debug("xgboost: %d programs, %d trees", len(rows), self.bst.num_boosted_rounds())

    def _margin(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """What this model and those that it builds on predict, before any link function."""
        matrix = self._matrix(rows)
        if self.base_model is not None:
            matrix.set_base_margin(self.base_model._margin(rows))
        return self.bst.predict(matrix, output_margin=True)

    def _matrix(self, rows: Sequence[np.ndarray]) -> Any:
        """Rows of one length: programs with fewer loops than those seen so far end with zeros."""
        table = np.zeros((len(rows), self._width), dtype=np.float32)
        for place, row in enumerate(rows):
            table[place, : min(len(row), self._width)] = row[: self._width]
        return self._xgb.DMatrix(table)

    def _features(self, indices: Sequence[int]) -> list[np.ndarray]:
        for index in indices:
            if index not in self._cache:
                row = self._feature_of(self.task, self.space.get(index))
                # A point that is none has no loops either; all zeros says so.
                self._cache[index] = np.zeros(1, np.float32) if row is None else row
        return [self._cache[index] for index in indices]

    def _feature_of(self, task: Task, config: ConfigEntity) -> np.ndarray | None:
        if self.feature_type == "knob":
            return config.get_flatten_feature()
        extract: Callable[..., np.ndarray] = (
            get_itervar_feature_flatten
            if self.feature_type == "itervar"
            else get_buffer_curve_sample_flatten
        )
        try:
            schedule, arguments = task.instantiate(config)
            rows = extract(schedule, arguments)
        except (InstantiationError, RuntimeError) as error:
            logger.debug("no features of %s: %s", config, error)
            return None
        if self.feature_type == "itervar":
            # Some choices, such as the depth of unrolling, leave no trace in the loops.
            rows = np.concatenate([config.get_flatten_feature(), rows])
        return rows
