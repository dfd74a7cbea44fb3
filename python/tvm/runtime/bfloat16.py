"""bfloat16, which NumPy lacks: its 16-bit patterns are the upper halves of those of float32."""

from __future__ import annotations

import numpy as np

__all__ = ["patterns_to_float32", "to_patterns"]


def patterns_to_float32(patterns: np.ndarray) -> np.ndarray:
    """The values of uint16 patterns, exactly."""
    return (patterns.astype("uint32") << 16).view("float32")


def to_patterns(values: np.ndarray) -> np.ndarray:
    """uint16 patterns of float32 values, rounded to nearest, ties to even."""
    values = np.asarray(values, "float32", order="C")
    bits = values.view("uint32")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    # The addition would carry a NaN's payload into the sign.
    return np.where(np.isnan(values), 0x7FC0, rounded).astype("uint16")
