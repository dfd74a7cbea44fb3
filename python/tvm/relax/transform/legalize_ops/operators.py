"""Computations of operators that fusion does not know, for their legalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir, topi

__all__ = ["TE_FUNCTIONS"]


def _filled(value: float) -> Callable[..., te.Tensor]:
    def compute(shape: Sequence[Any], dtype: str) -> te.Tensor:
        return topi.full(shape, dtype, tir.const(value, dtype))

    return compute


def _filled_like(value: float) -> Callable[..., te.Tensor]:
    def compute(data: te.Tensor, dtype: str | None = None) -> te.Tensor:
        own = dtype if dtype and dtype != "void" else str(data.dtype)
        return topi.full(data.shape, own, tir.const(value, own))

    return compute


def _full_like(data: te.Tensor, value: Any, dtype: str | None = None) -> te.Tensor:
    if isinstance(value, te.Tensor):
        own = dtype if dtype and dtype != "void" else str(value.dtype)
        return te.compute(data.shape, lambda *at: value().astype(own), name="T_full_like")
    own = dtype if dtype and dtype != "void" else str(data.dtype)
    return topi.full(data.shape, own, value)


def _repeat(data: te.Tensor, repeats: int, axis: int | None = None) -> te.Tensor:
    if axis is None:
        data, axis = topi.reshape(data, [topi.utils.prod(data.shape)]), 0
    return topi.repeat(data, repeats, axis)


def _std(data: te.Tensor, axis: Any = None, keepdims: bool = False) -> te.Tensor:
    count = 1
    axes = range(len(data.shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    for each in axes:
        count = count * data.shape[each]
    mean = topi.divide(topi.sum(data, axis, True), count)
    distance = topi.subtract(data, mean)
    squares = topi.sum(topi.multiply(distance, distance), axis, keepdims)
    return topi.sqrt(topi.divide(squares, count))


def _square(data: te.Tensor) -> te.Tensor:
    return topi.multiply(data, data)


def _fused_multiply_add(a: te.Tensor, b: te.Tensor, c: te.Tensor) -> te.Tensor:
    return topi.add(topi.multiply(a, b), c)


TE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relax.ones": _filled(1),
    "relax.zeros": _filled(0),
    "relax.ones_like": _filled_like(1),
    "relax.zeros_like": _filled_like(0),
    "relax.full_like": _full_like,
    "relax.repeat": _repeat,
    "relax.square": _square,
    "relax.std": _std,
    "relax.ewise_fma": _fused_multiply_add,
    "relax.collapse_sum_like": lambda data, like: topi.collapse_sum(data, like.shape),
    "relax.collapse_sum_to": topi.collapse_sum,
}
"""From te tensors and settings to the result, by the operator's full name."""
