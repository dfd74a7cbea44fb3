"""Text values."""

from __future__ import annotations

__all__ = ["String"]

# Strings cross the border as Python's own.
String = str
