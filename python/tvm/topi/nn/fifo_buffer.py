"""A window over the last elements of a stream."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import as_int, get_const_tuple, normalize_axis

__all__ = ["fifo_buffer"]


def fifo_buffer(data: te.Tensor, buffer: te.Tensor, axis: int) -> te.Tensor:
    """buffer with its oldest elements gone and data behind the rest.

    Parameters
    ----------
    data : the shape of `buffer`, but for `axis`, along which there may be fewer or more elements.

    Raises
    ------
    ValueError : the shapes differ elsewhere.
    """
    shape, new = get_const_tuple(buffer.shape), get_const_tuple(data.shape)
    at = normalize_axis(axis, len(shape))
    if len(shape) != len(new) or shape[:at] != new[:at] or shape[at + 1 :] != new[at + 1 :]:
        raise ValueError(
            f"topi.nn.fifo_buffer: data of {new} and a buffer of {shape} differ elsewhere than "
            f"along axis {at}"
        )
    held, added = as_int(shape[at]), as_int(new[at])

    def read(*indices: Any) -> Any:
        before, index, behind = indices[:at], indices[at], indices[at + 1 :]
        fresh = data(*before, index + added - held, *behind)
        if added >= held:
            return fresh
        old = buffer(*before, index + added, *behind)
        return tir.if_then_else(index < held - added, old, fresh)

    return te.compute(shape, read, name="T_fifo_buffer", tag=tag.INJECTIVE)
