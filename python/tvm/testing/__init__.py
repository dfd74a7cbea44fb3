"""Checks shared by tests."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["assert_allclose"]


def assert_allclose(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True
) -> None:
    """Check that two arrays agree in shape and, element by element, in value.

    Parameters
    ----------
    verbose : whether the message has the values that differ.

    Raises
    ------
    AssertionError : they do not; the message has the largest differences.
    """
    actual, desired = (
        value.numpy() if hasattr(value, "numpy") else value for value in (actual, desired)
    )
    actual, desired = np.asarray(actual), np.asarray(desired)
    np.testing.assert_equal(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)
