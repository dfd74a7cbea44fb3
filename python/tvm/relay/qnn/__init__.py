"""Quantised operators, whose integers stand for (q - zero point) * scale."""

from . import op, transform

__all__ = ["op", "transform"]
