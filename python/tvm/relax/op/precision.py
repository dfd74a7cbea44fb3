"""In which type the computations of 16-bit floats multiply and add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, topi

__all__ = ["accumulated_in_float32", "computed_in_float32"]

_SHORT = ("float16", "bfloat16")
Compute = Callable[..., te.Tensor]


def computed_in_float32(compute: Compute) -> Compute:
    """The computation with 16-bit floats widened in front of it and rounded once behind it.

    For reductions and functions of several steps: a sum in float16 stops growing at 2048, and
    each rounding costs three digits.
    """

    def wrapped(x: te.Tensor, *args: Any, **settings: Any) -> te.Tensor:
        if x.dtype not in _SHORT:
            return compute(x, *args, **settings)
        wide = [
            topi.cast(a, "float32") if isinstance(a, te.Tensor) and a.dtype == x.dtype else a
            for a in args
        ]
        return topi.cast(compute(topi.cast(x, "float32"), *wide, **settings), x.dtype)

    return wrapped


def accumulated_in_float32(compute: Compute) -> Compute:
    """A product or convolution that takes ``out_dtype``: sums of 16-bit products in float32."""

    def wrapped(x: te.Tensor, weight: te.Tensor, **settings: Any) -> te.Tensor:
        if x.dtype not in _SHORT or settings.get("out_dtype"):
            return compute(x, weight, **settings)
        return topi.cast(compute(x, weight, **{**settings, "out_dtype": "float32"}), x.dtype)

    return wrapped
