"""Questions about expressions, statements and functions."""

from __future__ import annotations

from . import analysis
from .analysis import *

__all__ = analysis.__all__
