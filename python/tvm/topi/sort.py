"""Sorting, and what is built on an order: the largest elements, positions, distinct elements."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from . import tag
from .creation import arange, full, zeros
from .indexing import take
from .scan import cumsum
from .scatter import scatter, scatter_add, scatter_elements
from .utils import as_int, get_const_tuple, is_constant, normalize_axis, prod, simplify

__all__ = ["argsort", "searchsorted", "sort", "topk", "unique"]


def _address(buffer: Any) -> Any:
    """Address of a buffer's first element."""
    first = buffer[tuple(tir.const(0, "int32") for _ in buffer.shape)]
    return tir.call_intrin("handle", "tir.address_of", first)


def _rows(data: te.Tensor, axis: int) -> tuple[int, list[Any]]:
    """The axis from the front, and (outer, extent, inner) around it."""
    shape = get_const_tuple(data.shape)
    at = normalize_axis(axis, len(shape))
    return at, [simplify(prod(shape[:at])), shape[at], simplify(prod(shape[at + 1 :]))]


def sort(data: te.Tensor, axis: int = -1, is_ascend: bool = True) -> te.Tensor:
    """data sorted along one dimension.

    NaN counts as larger than every number, as in PyTorch.
    """
    _, rows = _rows(data, axis)
    return te.extern(
        [data.shape],
        [data],
        lambda ins, outs: tir.call_packed(
            "tvm.contrib.sort.sort",
            _address(ins[0]),
            data.dtype,
            _address(outs[0]),
            *rows,
            tir.const(bool(is_ascend), "bool"),
        ),
        name="T_sort",
        dtype=[data.dtype],
        tag="sort",
    )


def argsort(
    data: te.Tensor, axis: int = -1, is_ascend: bool = True, dtype: str = "int32"
) -> te.Tensor:
    """Positions that sort data along one dimension; equal elements keep their order.

    Parameters
    ----------
    dtype : of the positions: int32, int64, float32 or float64.
    """
    _, rows = _rows(data, axis)
    return te.extern(
        [data.shape],
        [data],
        lambda ins, outs: tir.call_packed(
            "tvm.contrib.sort.argsort",
            _address(ins[0]),
            data.dtype,
            _address(outs[0]),
            dtype,
            *rows,
            tir.const(bool(is_ascend), "bool"),
        ),
        name="T_argsort",
        dtype=[dtype],
        tag="argsort",
    )


def topk(
    data: te.Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> Any:
    """The k largest elements along one dimension, or the smallest, in order.

    Parameters
    ----------
    k : how many; all for less than 1.
    ret_type : "both" values and positions, "values" or "indices".
    is_ascend : whether to take the smallest.
    dtype : of the positions: int32, int64, float32 or float64.

    Raises
    ------
    ValueError : more elements than there are, or another ret_type.
    """
    if ret_type not in ("both", "values", "indices"):
        raise ValueError(f"topi.topk: ret_type is 'both', 'values' or 'indices', got {ret_type!r}")
    at, rows = _rows(data, axis)
    count = as_int(k)
    if count < 1:
        count = rows[1]
    elif isinstance(rows[1], int) and count > rows[1]:
        raise ValueError(f"topi.topk: cannot take {count} of {rows[1]} elements")
    shape = get_const_tuple(data.shape)
    out_shape = (*shape[:at], count, *shape[at + 1 :])
    wanted = [ret_type in ("both", "values"), ret_type in ("both", "indices")]
    dtypes = [t for t, want in zip((data.dtype, dtype), wanted) if want]

    def body(ins: Any, outs: Any) -> Any:
        results = iter(outs)
        null = tir.reinterpret("handle", tir.const(0, "uint64"))
        places = [_address(next(results)) if want else null for want in wanted]
        return tir.call_packed(
            "tvm.contrib.sort.topk",
            _address(ins[0]),
            data.dtype,
            *places,
            dtype,
            *rows,
            count,
            tir.const(bool(is_ascend), "bool"),
        )

    outputs = te.extern(
        [out_shape] * len(dtypes), [data], body, name="T_topk", dtype=dtypes, tag="topk"
    )
    return list(outputs) if ret_type == "both" else outputs


def searchsorted(
    sorted_sequence: te.Tensor, values: te.Tensor, right: bool = False, out_dtype: str = "int64"
) -> te.Tensor:
    """Where to insert values so that a rising sequence stays in order.

    Parameters
    ----------
    sorted_sequence : (n,), or (..., n) with the leading dimensions of values.
    right : behind equal elements rather than in front of them.
    out_dtype : of the positions.
    """
    sequence, shape = get_const_tuple(sorted_sequence.shape), get_const_tuple(values.shape)
    extent = sequence[-1]
    if len(sequence) not in (1, len(shape)):
        raise ValueError(
            f"topi.searchsorted: a sequence of shape {sequence} does not fit values of {shape}"
        )
    longest = as_int(extent) if is_constant(extent) else 2**30
    step = 1
    while step * 2 <= longest:
        step *= 2
    position: te.Tensor = zeros(shape, "int32")
    # Binary search, a stage for each halving: so many elements are known to lie in front.
    while step:
        position = _advanced(sorted_sequence, values, position, step, right)
        step //= 2
    return te.compute(
        shape, lambda *i: position(*i).astype(out_dtype), name="T_searchsorted", tag=tag.ELEMWISE
    )


def _advanced(
    sequence: te.Tensor, values: te.Tensor, position: te.Tensor, step: int, right: bool
) -> te.Tensor:
    """The position moved over the next ``step`` elements where all lie in front of the value."""
    lead = len(sequence.shape) - 1
    extent = sequence.shape[-1]

    def body(*i: Any) -> Any:
        reached = position(*i) + step
        element = sequence(*i[:lead], tir.min(reached, extent) - 1)
        in_front = element <= values(*i) if right else element < values(*i)
        return tir.Select(tir.all(reached <= extent, in_front), reached, position(*i))

    return te.compute(values.shape, body, name="T_searchsorted_step", tag=tag.INJECTIVE)


def _distinct(data: te.Tensor, order: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    """Elements in order, and how many different ones lie in front of each."""
    ordered = take(data, order, mode="fast")
    starts = te.compute(
        data.shape,
        lambda i: tir.if_then_else(
            i.equal(0), 0, tir.Cast("int32", ordered(i) != ordered(tir.max(i - 1, 0)))
        ),
        name="T_unique_starts",
        tag=tag.INJECTIVE,
    )
    return ordered, cumsum(starts)


def unique(data: te.Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[te.Tensor]:
    """The different elements of a vector.

    Parameters
    ----------
    data : (n,).
    is_sorted : order the different elements by value; else by where they occur first.

    Returns
    -------
    The different elements; where each occurs first; for each element of data, which one it is;
    how many there are, (1,); and with return_counts, how often each occurs. All but the first are
    int32. The first, second and last have n places, those behind the count without meaning.
    """
    if len(data.shape) != 1:
        raise ValueError(f"topi.unique: data has one dimension, got {len(data.shape)}")
    (n,) = get_const_tuple(data.shape)
    order = argsort(data)
    _, rank = _distinct(data, order)
    count = te.compute((1,), lambda i: rank(n - 1) + 1, name="T_unique_count", tag=tag.INJECTIVE)
    nowhere = full((n,), "int32", n)
    first = scatter_elements(nowhere, rank, order, 0, "min")
    inverse = scatter(zeros((n,), "int32"), order, rank)
    if not is_sorted:
        # Places without an element keep the largest number and so stay behind.
        by_place = argsort(first)
        renumbered = scatter(zeros((n,), "int32"), by_place, arange(n, dtype="int32"))
        first = take(first, by_place, mode="fast")
        inverse = take(renumbered, inverse, mode="fast")
    elements = take(data, first)
    result = [elements, first, inverse, count]
    if return_counts:
        result.append(scatter_add(zeros((n,), "int32"), inverse, full((n,), "int32", 1)))
    return result
