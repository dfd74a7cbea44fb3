"""Borders of a constant value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import const_shape

__all__ = ["pad"]


def pad(
    data: te.Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    pad_value: float = 0.0,
    name: str = "pad",
) -> te.Tensor:
    """data with a border, or data itself when every border is 0.

    Parameters
    ----------
    pad_before, pad_after : elements added in front of and behind each dimension, none negative;
        without pad_after both sides get pad_before.
    pad_value : what the border holds.
    """
    shape = const_shape(data.shape)
    before = tuple(pad_before)
    after = before if pad_after is None else tuple(pad_after)
    if len(before) != len(shape) or len(after) != len(shape) or min(before + after, default=0) < 0:
        raise ValueError(
            f"topi.nn.pad: needs {len(shape)} sizes before and after, none negative; got {before} "
            f"and {after}"
        )
    if not any(before) and not any(after):
        return data
    fill = tir.const(pad_value, data.dtype)

    def read(*indices: tir.Var) -> tir.PrimExpr:
        inside: list[Any] = []
        position: list[Any] = []
        for index, low, high, extent in zip(indices, before, after, shape):
            if low:
                inside.append(index >= low)
            if high:
                inside.append(index < low + extent)
            position.append(index - low if low else index)
        return tir.if_then_else(tir.all(*inside), data(*position), fill)

    out = [low + extent + high for low, extent, high in zip(before, shape, after)]
    return te.compute(out, read, name=name, tag=tag.PAD)
