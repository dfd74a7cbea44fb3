"""Cost models: what says before a measurement how fast a program will be.

`MLPModel`, data sets and their training need PyTorch, which is loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from .cost_model import CostModel, PythonBasedModel, RandomModel
from .xgb_model import XGBModel

_LAZY = {
    "DatasetBuilder": "dataset",
    "LatencyModel": "latency_model",
    "MLPModel": "mlp_model",
    "MLPModelPLWrapper": "lightning_model",
}

__all__ = ["CostModel", "PythonBasedModel", "RandomModel", "XGBModel", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
