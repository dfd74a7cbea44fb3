"""Questions about expressions, statements and functions."""

from __future__ import annotations

from . import analysis, memcpy
from .analysis import *
from .memcpy import identify_memcpy

__all__ = [*analysis.__all__, "identify_memcpy"]
