"""The tuner with boosted trees."""

from __future__ import annotations

from ..task.task import Task
from .model_based_tuner import ModelBasedTuner, ModelOptimizer
from .sa_model_optimizer import SimulatedAnnealingOptimizer
from .xgboost_cost_model import XGBoostCostModel

__all__ = ["XGBTuner"]


class XGBTuner(ModelBasedTuner):
    """Boosted trees say which points are fast, simulated annealing looks for them.

    Parameters
    ----------
    task : what is tuned.
    plan_size : points picked at once.
    feature_type, loss_type, num_threads : see `XGBoostCostModel`.
    optimizer : "sa", or a `ModelOptimizer`.
    diversity_filter_ratio : see `ModelBasedTuner`.
    log_interval : of annealing and training.

    Raises
    ------
    ValueError : an unknown name. ModuleNotFoundError : there is no xgboost.
    """

    def __init__(
        self,
        task: Task,
        plan_size: int = 64,
        feature_type: str = "itervar",
        loss_type: str = "reg",
        num_threads: int | None = None,
        optimizer: str | ModelOptimizer = "sa",
        diversity_filter_ratio: float | None = None,
        log_interval: int = 50,
    ) -> None:
        model = XGBoostCostModel(
            task, feature_type, loss_type, num_threads, log_interval=log_interval // 2
        )
        if optimizer == "sa":
            optimizer = SimulatedAnnealingOptimizer(task, log_interval=log_interval)
        elif not isinstance(optimizer, ModelOptimizer):
            raise ValueError(f"XGBTuner: optimizer is 'sa' or a ModelOptimizer, got {optimizer!r}")
        super().__init__(task, model, optimizer, plan_size, diversity_filter_ratio)
