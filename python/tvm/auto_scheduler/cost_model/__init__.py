"""Cost models: scores of programs that a search asks for instead of measuring."""

from __future__ import annotations

from .cost_model import CostModel, PythonBasedModel, RandomModel

__all__ = ["CostModel", "PythonBasedModel", "RandomModel"]
