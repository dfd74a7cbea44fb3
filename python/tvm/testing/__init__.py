"""Checks shared by tests."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

import numpy as np

__all__ = ["assert_allclose", "main"]

# Read when they are asked for: they need pytest or the compiler.
_ELSEWHERE = {
    "CompareBeforeAfter": "compare",
    "assert_prim_expr_equal": "numeric",
    "check_bool_expr_is_true": "numeric",
    "check_int_constraints_trans_consistency": "numeric",
    "check_numerical_grads": "numeric",
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module 'tvm.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)


def main() -> None:
    """Run the tests of the calling file, with the options of the command line, and leave."""
    pytest = importlib.import_module("pytest")
    caller = inspect.stack()[1].filename
    sys.exit(pytest.main([os.path.abspath(caller), *sys.argv[1:]]))


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
