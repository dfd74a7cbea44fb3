"""Running sums and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir

from .loops import loop_nest
from .transform import reshape
from .utils import get_const_tuple, normalize_axis

__all__ = ["cumprod", "cumsum", "scanop"]


def scanop(
    data: te.Tensor,
    binop: Callable[[Any, Any], Any],
    identity_value: float,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Results of combining the elements up to each one along a dimension.

    Parameters
    ----------
    binop : combines the result so far with the next element.
    identity_value : what the result starts from.
    axis : None scans data as one long row.
    dtype : of the result; the data's by default.
    exclusive : leave out the element itself.
    """
    if axis is None:
        data, axis = reshape(data, (-1,)), 0
    shape = get_const_tuple(data.shape)
    at = normalize_axis(axis, len(shape))
    out_dtype = dtype or data.dtype
    start = tir.const(identity_value, out_dtype)

    def body(ins: Any, outs: Any) -> tir.Stmt:
        source, result = ins[0], outs[0]

        def step(*i: Any) -> tir.Stmt:
            first = i[at].equal(0)
            previous = [*i[:at], i[at] - 1, *i[at + 1 :]]
            so_far = tir.if_then_else(first, start, result[tuple(previous)])
            if exclusive:
                added = binop(so_far, source[tuple(previous)].astype(out_dtype))
                return tir.BufferStore(result, tir.if_then_else(first, start, added), i)
            return tir.BufferStore(result, binop(so_far, source[i].astype(out_dtype)), i)

        return loop_nest(shape, step, serial=[at])

    return te.extern([shape], [data], body, name=op_name, dtype=[out_dtype], tag="scan")


def cumsum(
    data: te.Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Running sum; arguments as in :func:`scanop`."""
    return scanop(data, lambda a, b: a + b, 0, "T_cumsum", axis, dtype, exclusive)


def cumprod(
    data: te.Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Running product; arguments as in :func:`scanop`."""
    return scanop(data, lambda a, b: a * b, 1, "T_cumprod", axis, dtype, exclusive)
