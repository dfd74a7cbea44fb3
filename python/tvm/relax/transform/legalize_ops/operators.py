"""Computations of operators that fusion does not know, for their legalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir, topi

from ...op import op_spec
from ...op.tensor_computations import position_of
from . import moves, products

__all__ = ["SHAPE_ONLY", "TE_FUNCTIONS"]


def _filled(value: float) -> Callable[..., te.Tensor]:
    def compute(shape: Sequence[Any], dtype: str) -> te.Tensor:
        return topi.full(shape, dtype, tir.const(value, dtype))

    return compute


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
    "relax.ones_like": _filled(1),
    "relax.zeros_like": _filled(0),
    "relax.full_like": op_spec("relax.full").compute,
    "relax.reshape": moves.reshape,
    "relax.flatten": moves.flatten,
    "relax.repeat": moves.repeat,
    "relax.tile": moves.tile,
    "relax.flip": moves.flip,
    "relax.concat": moves.concat,
    "relax.take": moves.take,
    "relax.matmul": products.matmul,
    "relax.nn.conv1d": products.convolution(topi.nn.conv1d, "NCW"),
    "relax.nn.conv2d": products.convolution(topi.nn.conv2d, "NCHW"),
    "relax.nn.conv3d": products.convolution(topi.nn.conv3d, "NCDHW"),
    "relax.square": _square,
    "relax.std": _std,
    "relax.ewise_fma": _fused_multiply_add,
    "relax.collapse_sum_like": topi.collapse_sum,
    "relax.collapse_sum_to": topi.collapse_sum,
    # The same kernels as TVM's, which take infinity for the largest finite number and leave it to
    # the machine what becomes of NaN.
    "relax.maximum": topi.maximum,
    "relax.minimum": topi.minimum,
    "relax.max": topi.max,
    "relax.min": topi.min,
    "relax.argmax": position_of(topi.argmax),
    "relax.argmin": position_of(topi.argmin),
}
"""From te tensors and settings to the result, by the operator's full name."""

SHAPE_ONLY: dict[str, int] = {
    "relax.ones_like": 0,
    "relax.zeros_like": 0,
    "relax.full_like": 0,
    "relax.collapse_sum_like": 1,
}
"""The operand of which an operator takes the shape only, which its function gets in its place."""
