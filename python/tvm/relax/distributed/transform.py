"""Passes over tensors on several devices, in the order in which programs run them."""

from __future__ import annotations

from .lower import LegalizeRedistribute, LowerDistIR, LowerGlobalViewToLocalView
from .propagate import PropagateSharding

__all__ = [
    "LegalizeRedistribute",
    "LowerDistIR",
    "LowerGlobalViewToLocalView",
    "PropagateSharding",
]
