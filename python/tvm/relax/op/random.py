"""Random numbers as functions of a seed, a tensor of one int64, and of the number of the stream.

Two calls with one seed and stream give the same numbers, as graphs want it: what is computed twice
may be computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import topi
from tvm.ir import RelayExpr

from ..expr import Call
from .base import make_call
from .registry import OpPattern, register

__all__ = ["integers", "normal", "uniform"]


def uniform(seed: RelayExpr, stream: int, shape: Sequence[int], dtype: str = "float32") -> Call:
    """Floats from 0 on, below 1, see :func:`tvm.topi.random.random_uniform`."""
    return _drawn("random.uniform", seed, stream, shape, dtype=dtype)


def normal(seed: RelayExpr, stream: int, shape: Sequence[int], dtype: str = "float32") -> Call:
    """Floats of mean 0 and variance 1, see :func:`tvm.topi.random.random_normal`."""
    return _drawn("random.normal", seed, stream, shape, dtype=dtype)


def integers(
    seed: RelayExpr,
    stream: int,
    shape: Sequence[int],
    low: int,
    high: int,
    dtype: str = "int64",
) -> Call:
    """Integers from `low` on, below `high`, see :func:`tvm.topi.random.random_integers`."""
    return _drawn("random.integers", seed, stream, shape, low=low, high=high, dtype=dtype)


def _drawn(name: str, seed: RelayExpr, stream: int, shape: Sequence[int], **settings: Any) -> Call:
    extents = [int(extent) for extent in shape]
    return make_call(name, seed, stream=stream, shape=extents, **settings)


register("random.uniform", topi.random.random_uniform, OpPattern.INJECTIVE)
register("random.normal", topi.random.random_normal, OpPattern.INJECTIVE)
register("random.integers", topi.random.random_integers, OpPattern.INJECTIVE)
