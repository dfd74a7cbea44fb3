"""Sorting, and what is built on an order: the largest elements, positions, distinct elements."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from . import tag
from .creation import arange, full, zeros
from .gpu_order import sorted_by_threads
from .indexing import take
from .launch import is_for_gpu
from .loops import loop_nest
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
    at, rows = _rows(data, axis)
    shape = get_const_tuple(data.shape)

    def by_threads(ins: Any, outs: Any) -> tir.Stmt:
        return sorted_by_threads(
            ins[0],
            shape,
            at,
            bool(is_ascend),
            shape[at],
            lambda place, _, element: tir.BufferStore(outs[0], element, list(place)),
        )

    def by_library(ins: Any, outs: Any) -> Any:
        return tir.call_packed(
            "tvm.contrib.sort.sort",
            _address(ins[0]),
            data.dtype,
            _address(outs[0]),
            *rows,
            tir.const(bool(is_ascend), "bool"),
        )

    return te.extern(
        [data.shape],
        [data],
        by_threads if is_for_gpu() else by_library,
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
    at, rows = _rows(data, axis)
    shape = get_const_tuple(data.shape)

    def by_threads(ins: Any, outs: Any) -> tir.Stmt:
        return sorted_by_threads(
            ins[0],
            shape,
            at,
            bool(is_ascend),
            shape[at],
            lambda place, position, _: tir.BufferStore(
                outs[0], position.astype(dtype), list(place)
            ),
        )

    def by_library(ins: Any, outs: Any) -> Any:
        return tir.call_packed(
            "tvm.contrib.sort.argsort",
            _address(ins[0]),
            data.dtype,
            _address(outs[0]),
            dtype,
            *rows,
            tir.const(bool(is_ascend), "bool"),
        )

    return te.extern(
        [data.shape],
        [data],
        by_threads if is_for_gpu() else by_library,
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

    def by_threads(ins: Any, outs: Any) -> tir.Stmt:
        def write(place: Any, position: Any, element: Any) -> tir.Stmt:
            found = [element, position.astype(dtype)]
            return tir.stmt_seq(
                *(
                    tir.BufferStore(out, value, list(place))
                    for out, value in zip(outs, [v for v, want in zip(found, wanted) if want])
                )
            )

        return sorted_by_threads(ins[0], shape, at, bool(is_ascend), count, write)

    if is_for_gpu():
        body = by_threads
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
    lead = len(sequence) - 1

    def body(ins: Any, outs: Any) -> tir.Stmt:
        def one(*i: Any) -> tir.Stmt:
            ib = tir.ir_builder.create()
            ordered, wanted, found = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
            # So many elements are known to lie in front; each step may add as many.
            front = ib.allocate("int32", (1,), "front", scope="local")
            front[0] = tir.const(0, "int32")
            step = 1 << (longest.bit_length() - 1) if longest else 0
            while step:
                with ib.if_scope(front[0] + step <= extent):
                    place = (*i[:lead], front[0] + step - 1)
                    element, value = ordered[place], wanted[i]
                    with ib.if_scope(element <= value if right else element < value):
                        front[0] = front[0] + step
                step //= 2
            found[i] = front[0].astype(out_dtype)
            return ib.get()

        return loop_nest(shape, one)

    return te.extern(
        [shape],
        [sorted_sequence, values],
        body,
        name="T_searchsorted",
        dtype=[out_dtype],
        tag="searchsorted",
    )


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
