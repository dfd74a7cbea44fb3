"""Tensors made of numbers, shapes and positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from . import tag, utils
from .utils import Extent, as_int, get_const_tuple, is_constant, largest, prod, simplify

__all__ = [
    "arange",
    "elemwise_sum",
    "full",
    "full_like",
    "matrix_set_diag",
    "meshgrid",
    "ndarray_size",
    "ones",
    "ones_like",
    "shape",
    "tril",
    "trilu",
    "triu",
    "unravel_index",
    "zeros",
    "zeros_like",
]


def full(shape: Sequence[Extent], dtype: str, fill_value: Any) -> te.Tensor:
    """A tensor of one value: a number or an expression."""
    is_expr = isinstance(fill_value, tir.PrimExpr)
    value = fill_value.astype(dtype) if is_expr else tir.const(fill_value, dtype)
    return te.compute(tuple(shape), lambda *i: value, name="T_full", tag=tag.ELEMWISE)


def full_like(x: te.Tensor, fill_value: Any) -> te.Tensor:
    """A tensor of one value with the shape and type of x."""
    return full(get_const_tuple(x.shape), x.dtype, fill_value)


def zeros(shape: Sequence[Extent], dtype: str = "float32") -> te.Tensor:
    """A tensor of zeros."""
    return full(shape, dtype, 0)


def ones(shape: Sequence[Extent], dtype: str = "float32") -> te.Tensor:
    """A tensor of ones."""
    return full(shape, dtype, 1)


def zeros_like(x: te.Tensor) -> te.Tensor:
    """Zeros with the shape and type of x."""
    return full_like(x, 0)


def ones_like(x: te.Tensor) -> te.Tensor:
    """Ones with the shape and type of x."""
    return full_like(x, 1)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> te.Tensor:
    """start, start + step, ... in front of stop; with one argument, 0 .. start - 1.

    Parameters
    ----------
    start, stop, step : numbers, or integer expressions.
    """
    if stop is None:
        start, stop = 0, start
    if all(is_constant(v) for v in (start, stop, step)):
        start, stop, step = (
            as_int(v) if isinstance(v, tir.IntImm) else v for v in (start, stop, step)
        )
        if step == 0:
            raise ValueError("topi.arange: step must not be 0")
        count: Extent = max(0, math.ceil((stop - start) / step))
    else:
        count = simplify(largest((stop - start + step - 1) // step, 0))
    is_real = dtype.startswith(("float", "bfloat"))

    def as_dtype(value: Any) -> Any:
        return value.astype(dtype) if isinstance(value, tir.PrimExpr) else tir.const(value, dtype)

    if not is_real and any(isinstance(v, float) and v != int(v) for v in (start, step)):
        raise ValueError(
            f"topi.arange: {start} and {step} are no whole numbers, but {dtype} is asked"
        )
    return te.compute(
        (count,),
        lambda i: as_dtype(start) + i.astype(dtype) * as_dtype(step),
        name="T_arange",
        tag=tag.INJECTIVE,
    )


def meshgrid(a_tuple: Sequence[te.Tensor], indexing: str = "ij") -> list[te.Tensor]:
    """Coordinates of a grid, one tensor for each dimension.

    Parameters
    ----------
    a_tuple : vectors or scalars, one for each dimension.
    indexing : "ij" for dimensions in order, "xy" with the first two exchanged.
    """
    if indexing not in ("ij", "xy"):
        raise ValueError(f"topi.meshgrid: indexing is 'ij' or 'xy', got {indexing!r}")
    extents = [get_const_tuple(t.shape)[0] if t.shape else 1 for t in a_tuple]
    order = list(range(len(a_tuple)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    out = [extents[k] for k in order]

    def grid(k: int) -> te.Tensor:
        source, at = a_tuple[k], order.index(k)
        return te.compute(
            out,
            lambda *i: source(i[at]) if source.shape else source(),
            name="T_meshgrid",
            tag=tag.INJECTIVE,
        )

    return [grid(k) for k in range(len(a_tuple))]


def elemwise_sum(xs: Sequence[te.Tensor]) -> te.Tensor:
    """Sum of tensors of one shape."""
    if not xs:
        raise ValueError("topi.elemwise_sum: needs at least one tensor")

    def body(*i: Any) -> Any:
        value = xs[0](*i)
        for x in xs[1:]:
            value = value + x(*i)
        return value

    return te.compute(xs[0].shape, body, name="T_elemwise_sum", tag=tag.ELEMWISE)


def shape(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """The extents of array as a vector."""
    extents = [tir.convert(extent) for extent in array.shape]

    def body(i: Any) -> Any:
        value: Any = tir.const(0, dtype)
        for k, extent in enumerate(extents):
            value = tir.Select(i.equal(k), extent.astype(dtype), value)
        return value

    return te.compute((len(extents),), body, name="T_shape", tag=tag.INJECTIVE)


def ndarray_size(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """The number of elements of array, as a tensor without dimensions."""
    count = tir.convert(simplify(prod(get_const_tuple(array.shape))))
    return te.compute((), lambda: count.astype(dtype), name="T_ndarray_size", tag=tag.INJECTIVE)


def unravel_index(indices: te.Tensor, shape: Sequence[Extent] | te.Tensor) -> te.Tensor:
    """Row-major positions as index tuples, (dimensions, ...) in the type of indices.

    Parameters
    ----------
    shape : extents, or a vector of them.
    """
    own = get_const_tuple(indices.shape)
    extents: list[Any]
    if isinstance(shape, te.Tensor):
        rank = as_int(shape.shape[0])
        extents = [shape(k).astype(indices.dtype) for k in range(rank)]
    else:
        extents = list(get_const_tuple(shape))
        rank = len(extents)

    def body(*i: Any) -> Any:
        digits = utils.unravel_index(indices(*i[1:]), extents)
        value = tir.const(0, indices.dtype)
        for k, digit in enumerate(digits):
            value = tir.Select(i[0].equal(k), digit.astype(indices.dtype), value)
        return value

    return te.compute((rank, *own), body, name="T_unravel_index", tag=tag.INJECTIVE)


def trilu(data: te.Tensor, k: Any, upper: bool) -> te.Tensor:
    """The upper or lower triangle of each matrix, zeros elsewhere.

    Parameters
    ----------
    data : (..., rows, columns).
    k : diagonal the triangle ends at: 0 the main one, positive above it; a number, an expression
        or a tensor without dimensions.
    """

    def body(*i: Any) -> Any:
        diagonal = k().astype("int32") if isinstance(k, te.Tensor) else k
        inside = i[-1] - i[-2] >= diagonal if upper else i[-1] - i[-2] <= diagonal
        return tir.Select(inside, data(*i), tir.const(0, data.dtype))

    return te.compute(data.shape, body, name="T_trilu", tag=tag.ELEMWISE)


def tril(data: te.Tensor, k: Any = 0) -> te.Tensor:
    """The lower triangle of each matrix; see :func:`trilu`."""
    return trilu(data, k, False)


def triu(data: te.Tensor, k: Any = 0) -> te.Tensor:
    """The upper triangle of each matrix; see :func:`trilu`."""
    return trilu(data, k, True)


def matrix_set_diag(
    data: te.Tensor,
    diagonal: te.Tensor,
    k: int | tuple[int, int] = 0,
    align: str = "RIGHT_LEFT",
) -> te.Tensor:
    """data with diagonals of its matrices replaced.

    Parameters
    ----------
    data : (..., rows, columns).
    diagonal : (..., length) for one diagonal; (..., count, length) for those from k[0] to k[1],
        the highest first, shorter ones padded to the longest.
    k : the diagonal, 0 the main one and positive above it, or the lowest and the highest.
    align : on which side diagonals above and below the main one stand in their padded row.
    """
    sides = align.split("_")
    if len(sides) != 2 or not set(sides) <= {"LEFT", "RIGHT"}:
        raise ValueError(
            "topi.matrix_set_diag: align is two of LEFT and RIGHT joined by _, such as RIGHT_LEFT; "
            f"got {align!r}"
        )
    low, high = (k, k) if isinstance(k, int) else (as_int(k[0]), as_int(k[1]))
    rows, columns = get_const_tuple(data.shape)[-2:]
    is_one = len(diagonal.shape) == len(data.shape) - 1
    if low > high or (is_one and low != high):
        raise ValueError(
            f"topi.matrix_set_diag: diagonals {low} to {high} do not fit a diagonal tensor of "
            f"{len(diagonal.shape)} dimensions"
        )
    row_length = get_const_tuple(diagonal.shape)[-1]
    right_above, right_below = (side == "RIGHT" for side in sides)

    def body(*i: Any) -> Any:
        *lead, row, column = i
        offset = column - row
        position = tir.min(row, column)
        if not is_one:
            length = tir.min(rows + tir.min(offset, 0), columns - tir.max(offset, 0))
            shift = tir.convert(row_length) - length
            on_right = tir.any(
                tir.all(offset >= 0, tir.const(right_above, "bool")),
                tir.all(offset <= 0, tir.const(right_below, "bool")),
            )
            position = position + tir.Select(on_right, shift, tir.const(0, "int32"))
        which = [] if is_one else [high - offset]
        inside = tir.all(offset >= low, offset <= high)
        return tir.if_then_else(inside, diagonal(*lead, *which, position), data(*i))

    return te.compute(data.shape, body, name="T_matrix_set_diag", tag=tag.INJECTIVE)
