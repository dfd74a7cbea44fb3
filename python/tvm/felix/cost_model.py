"""The cost models that a search may use, their training data and their metrics.

They live in `tvm.auto_scheduler.cost_model`, as the other search policies use them, too.
"""

from tvm.auto_scheduler.cost_model.dataset import DatasetBuilder
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.auto_scheduler.cost_model.metric import evaluate

__all__ = ["DatasetBuilder", "LatencyModel", "MLPModelPLWrapper", "evaluate"]
