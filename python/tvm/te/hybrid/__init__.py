"""Loop programs in a subset of Python, run as they are or turned into te operations."""

from __future__ import annotations

from .module import HybridModule, build
from .script import script

__all__ = ["HybridModule", "build", "script"]
