"""Tensors of random numbers, as external operations of te."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

__all__ = ["normal", "randint", "uniform"]


def randint(low: int, high: int, size: Sequence[Any], dtype: str = "int32") -> te.Tensor:
    """Integers from `low` to below `high`, drawn anew at each run.

    Raises
    ------
    ValueError : the element type is not an integer one.
    """
    if "int" not in dtype:
        raise ValueError(f"randint: expected an integer type, got {dtype}")
    return _drawn("randint", (int(low), int(high)), size, dtype)


def uniform(low: float, high: float, size: Sequence[Any]) -> te.Tensor:
    """float32 numbers from the interval between two numbers, drawn anew at each run."""
    return _drawn("uniform", (float(low), float(high)), size, "float32")


def normal(loc: float, scale: float, size: Sequence[Any]) -> te.Tensor:
    """float32 numbers of a normal distribution of this mean and deviation, drawn anew each run."""
    return _drawn("normal", (float(loc), float(scale)), size, "float32")


def _drawn(name: str, arguments: tuple[Any, Any], size: Sequence[Any], dtype: str) -> te.Tensor:
    return te.extern(
        size,
        [],
        lambda ins, outs: tir.call_packed(f"tvm.contrib.random.{name}", *arguments, outs[0]),
        dtype=dtype,
        name=name,
    )
