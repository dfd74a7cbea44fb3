"""Tuners of templates."""

from importlib import import_module
from typing import Any

from . import callback
from .droplet_tuner import DropletTuner
from .ga_tuner import GATuner
from .index_based_tuner import GridSearchTuner, RandomTuner
from .tuner import Tuner
from .xgboost_tuner import XGBTuner

# PyTorch takes a second to import, and most tuners do without.
_LAZY = {"FelixTuner": "felix_tuner"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
