"""Building programs by calls: what texts and decorators are read with."""

from __future__ import annotations

from . import ir, tir
from .base import IRBuilder, IRBuilderFrame

__all__ = ["IRBuilder", "IRBuilderFrame", "ir", "tir"]
