"""Templates with knobs: an operator's author says what may vary, a tuner finds what is fast.

Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018).
"""

from importlib import import_module
from typing import Any

from . import cuda, database, env, feature, graph_tuner, measure, task, tophub, tuner, utils, x86
from .env import GLOBAL_SCOPE
from .measure import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    create_measure_batch,
    measure_option,
)
from .task import (
    ApplyFixedConfig,
    ApplyGraphBest,
    ApplyHistoryBest,
    ConfigEntity,
    ConfigSpace,
    DispatchContext,
    FallbackContext,
    InstantiationError,
    get_config,
    register_topi_compute,
    register_topi_schedule,
    template,
)
from .tophub import context as tophub_context
from .tuner import callback

apply_history_best = ApplyHistoryBest
apply_graph_best = ApplyGraphBest


def __getattr__(name: str) -> Any:
    # A script of its own, too: `python -m tvm.autotvm.record`.
    if name == "record":
        return import_module(f"{__name__}.record")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
