"""Running sums and their like."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

from tvm import te, tir
from tvm.tir.builtin import tvm_storage_sync

from .launch import is_for_gpu, kernel, threads_of
from .transform import reshape
from .utils import Extent, as_int, get_const_tuple, is_constant, normalize_axis, prod, unravel_index

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp", "scanop"]

# Neighbours along the last dimension with results of their own so far: some vectors, which wait
# for each other less than for the step before, and stay in the first-level cache.
_BLOCK = 64

# On a GPU a row is shared by so many threads; neighbours from _BLOCK on have a thread each, since
# their loads lie beside each other.
_THREADS = 256


def _is_one(extent: Extent) -> bool:
    return is_constant(extent) and int(extent) == 1


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
    binop : combines the result so far with the next element. It has to be associative for a GPU,
        where parts of a row are combined by threads (Hillis and Steele, "Data parallel
        algorithms", 1986).
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

    *between, width = shape[at + 1 :] or (1,)
    block = width if is_constant(width) and int(width) <= _BLOCK else _BLOCK

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, result = (ib.buffer_ptr(buffers[0]) for buffers in (ins, outs))
        with contextlib.ExitStack() as loops:

            def loop(extent: Extent, kind: str = "serial") -> Any:
                return loops.enter_context(ib.for_range(0, extent, kind=kind))

            outer = [*shape[:at], *between, (width + block - 1) // block]
            several = [k for k, extent in enumerate(outer) if not _is_one(extent)] or [0]
            where = [
                loop(extent, "parallel" if k == several[0] else "serial")
                for k, extent in enumerate(outer)
            ]
            start = where.pop() * block
            so_far = ib.allocate(out_dtype, (block,), "so_far")
            with ib.for_range(0, block, kind="vectorize") as lane:
                so_far[lane] = tir.const(identity_value, out_dtype)
            i = loop(shape[at])
            lane = loop(tir.min(block, width - start), "vectorize")
            place = [*where[:at], i, *where[at:], start + lane][: len(shape)]
            total = binop(so_far[lane], source[tuple(place)].astype(out_dtype))
            if exclusive:
                result[tuple(place)] = so_far[lane]
                so_far[lane] = total
            else:
                so_far[lane] = total
                result[tuple(place)] = so_far[lane]
        return ib.get()

    def step(place: tuple[Any, ...], source: Any, result: Any, so_far: Any) -> None:
        total = binop(so_far[0], source[place].astype(out_dtype))
        if exclusive:
            result[place] = so_far[0]
            so_far[0] = total
        else:
            so_far[0] = total
            result[place] = so_far[0]

    def one_thread_each(ins: Any, outs: Any) -> tir.Stmt:
        """A thread for each of the neighbours, which goes along the dimension."""

        def row(*where: Any) -> tir.Stmt:
            ib = tir.ir_builder.create()
            source, result = (ib.buffer_ptr(buffers[0]) for buffers in (ins, outs))
            so_far = ib.allocate(out_dtype, (1,), "so_far", scope="local")
            so_far[0] = tir.const(identity_value, out_dtype)
            with ib.for_range(0, shape[at]) as i:
                step((*where[:at], i, *where[at:]), source, result, so_far)
            return ib.get()

        return kernel([*shape[:at], *shape[at + 1 :]], row)

    def one_block_each(ins: Any, outs: Any) -> tir.Stmt:
        """A block for each row: a part of it for each thread, whose totals the threads combine."""
        extent, others = shape[at], [*shape[:at], *shape[at + 1 :]]
        threads = _THREADS
        while is_constant(extent) and threads >= 2 * as_int(extent) and threads > 1:
            threads //= 2
        part = (extent + threads - 1) // threads
        ib = tir.ir_builder.create()
        source, result = (ib.buffer_ptr(buffers[0]) for buffers in (ins, outs))
        block, thread = threads_of(ib, prod(others), threads)
        where = unravel_index(block, others)
        so_far = ib.allocate(out_dtype, (1,), "so_far", scope="local")
        totals = ib.allocate(out_dtype, (2 * threads,), "totals", scope="shared")

        def along(visit: Callable[[tuple[Any, ...]], None]) -> None:
            with ib.for_range(0, part) as k:
                i = thread * part + k
                with ib.if_scope(i < extent):
                    visit((*where[:at], i, *where[at:]))

        def add(place: tuple[Any, ...]) -> None:
            so_far[0] = binop(so_far[0], source[place].astype(out_dtype))

        so_far[0] = tir.const(identity_value, out_dtype)
        along(add)
        totals[thread] = so_far[0]
        ib.emit(tvm_storage_sync("shared"))
        old, new, distance = 0, threads, 1
        while distance < threads:
            with ib.if_scope(thread >= distance):
                totals[new + thread] = binop(totals[old + thread - distance], totals[old + thread])
            with ib.else_scope():
                totals[new + thread] = totals[old + thread]
            ib.emit(tvm_storage_sync("shared"))
            old, new, distance = new, old, 2 * distance
        with ib.if_scope(thread == 0):
            so_far[0] = tir.const(identity_value, out_dtype)
        with ib.else_scope():
            so_far[0] = totals[old + thread - 1]
        along(lambda place: step(place, source, result, so_far))
        return ib.get()

    if is_for_gpu():
        neighbours = prod(shape[at + 1 :])
        wide = is_constant(neighbours) and as_int(neighbours) >= _BLOCK
        body = one_thread_each if wide else one_block_each
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


def cummax(data: te.Tensor, axis: int | None = None) -> te.Tensor:
    """The largest element up to each one; NaN from the first NaN on."""
    least = tir.min_value(data.dtype)
    return scanop(data, _larger, float("-inf") if _is_real(data) else int(least), "T_cummax", axis)


def cummin(data: te.Tensor, axis: int | None = None) -> te.Tensor:
    """The smallest element up to each one; NaN from the first NaN on."""
    most = tir.max_value(data.dtype)
    return scanop(data, _smaller, float("inf") if _is_real(data) else int(most), "T_cummin", axis)


def _is_real(data: te.Tensor) -> bool:
    return data.dtype.startswith(("float", "bfloat"))


def _larger(so_far: Any, element: Any) -> Any:
    return tir.Select(_or_nan(element >= so_far, element), element, so_far)


def _smaller(so_far: Any, element: Any) -> Any:
    return tir.Select(_or_nan(element <= so_far, element), element, so_far)


def _or_nan(condition: Any, element: Any) -> Any:
    if not str(element.dtype).startswith(("float", "bfloat")):
        return condition
    return tir.Or(condition, tir.isnan(element))


def logcumsumexp(data: te.Tensor, axis: int | None = None) -> te.Tensor:
    """The logarithm of the running sum of exponentials, formed without large numbers."""
    return scanop(data, _log_of_sum, float("-inf"), "T_logcumsumexp", axis)


def _log_of_sum(one: Any, other: Any) -> Any:
    large, small = tir.max(one, other), tir.min(one, other)
    total = large + tir.log1p(tir.exp(small - large))
    # Equal infinities have no difference.
    return tir.Select(one == other, one + tir.const(math.log(2), one.dtype), total)
