"""Gaps between the elements of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import Extent, as_int, get_const_tuple, simplify

__all__ = ["dilate"]


def dilate(
    data: te.Tensor,
    strides: Sequence[int],
    dilation_value: float = 0.0,
    name: str = "DilatedInput",
) -> te.Tensor:
    """data with ``stride - 1`` cells of a value between neighbours of each dimension.

    Parameters
    ----------
    strides : one for each dimension, at least 1.
    """
    shape = get_const_tuple(data.shape)
    steps = [as_int(s) for s in strides]
    if len(steps) != len(shape) or min(steps, default=1) < 1:
        raise ValueError(
            f"topi.nn.dilate: needs {len(shape)} strides of at least 1, got {tuple(steps)}"
        )
    if all(step == 1 for step in steps):
        return data
    fill = tir.const(dilation_value, data.dtype)
    out: list[Extent] = [simplify((n - 1) * step + 1) for n, step in zip(shape, steps)]

    def read(*indices: Any) -> Any:
        on_grid = [(i % step).equal(0) for i, step in zip(indices, steps) if step != 1]
        position = [i if step == 1 else i // step for i, step in zip(indices, steps)]
        return tir.if_then_else(tir.all(*on_grid), data(*position), fill)

    return te.compute(out, read, name=name, tag=f"{tag.INJECTIVE},dilate")
