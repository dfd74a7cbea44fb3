"""Orders of elements on GPUs: runs are sorted, then merged in pairs, by a thread for each element.

A pass over runs of `width` elements is a kernel. The place of an element in the run that two make
is its place in its own plus the number of elements of the other in front of it, which the thread
finds by halving (the merging of Hagerup and Rüb, "Optimal merging and sorting on the EREW PRAM",
1989, without its splitting into parts). Equal elements keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tir

from .launch import kernel
from .utils import Extent, as_int, is_constant, prod, unravel_index

__all__ = ["sorted_by_threads"]

# Runs of so many elements are made by comparing each with each.
_RUN = 32
# The longest rows whose extent is not known to a kernel's compiler.
_LONGEST = 2**29


@dataclass(frozen=True)
class _Rows:
    """Rows along one dimension of a buffer.

    Attributes
    ----------
    source : the buffer that is read.
    at : the dimension.
    """

    source: Any
    shape: Sequence[Extent]
    at: int
    is_ascend: bool

    @property
    def count(self) -> Any:
        return prod([*self.shape[: self.at], *self.shape[self.at + 1 :]])

    @property
    def extent(self) -> Any:
        return self.shape[self.at]

    def place(self, row: Any, i: Any) -> tuple[Any, ...]:
        others = [*self.shape[: self.at], *self.shape[self.at + 1 :]]
        where = unravel_index(row, others)
        return (*where[: self.at], i, *where[self.at :])

    def is_before(self, row: Any, one: Any, other: Any) -> Any:
        """Whether an element of a row must lie in front of another one of it."""
        a, b = self.source[self.place(row, one)], self.source[self.place(row, other)]
        if not self.is_ascend:
            a, b = b, a
        kind = str(a.dtype)
        if kind == "bool":
            return a.astype("int32") < b.astype("int32")
        if not kind.startswith(("float", "bfloat")):
            return a < b
        if kind == "bfloat16":
            a, b = a.astype("float32"), b.astype("float32")
        return tir.any(a < b, tir.all(tir.isnan(b), tir.Not(tir.isnan(a))))


def sorted_by_threads(
    source: Any,
    shape: Sequence[Extent],
    at: int,
    is_ascend: bool,
    count: Extent,
    write: Callable[[tuple[Any, ...], Any, Any], tir.Stmt],
) -> tir.Stmt:
    """Kernels that order rows.

    Parameters
    ----------
    source : the buffer with the elements, of `shape`.
    at : the dimension along which they are ordered; shorter than 2^29 elements.
    count : of the first elements in order that are wanted.
    write : from the place of a result, the position along the dimension of the element that
        belongs there, and that element, to the statement that stores what is wanted of it.
    """
    ib = tir.ir_builder.create()
    rows = _Rows(ib.buffer_ptr(source), shape, at, is_ascend)
    orders = [ib.allocate("int32", (rows.count * rows.extent,), f"order{k}") for k in range(2)]
    ib.emit(_runs(rows, orders[0]))
    if is_constant(rows.extent):
        width = _RUN
        while width < as_int(rows.extent):
            ib.emit(_merged(rows, width, *orders))
            orders.reverse()
            width *= 2
    else:
        width = _RUN
        while width < _LONGEST:
            # Two passes at a time leave the order in the same memory, however many there are.
            with ib.if_scope(width < rows.extent):
                ib.emit(_merged(rows, width, *orders))
                ib.emit(_merged(rows, 2 * width, *reversed(orders)))
            width *= 4

    def store(row: Any, i: Any) -> tir.Stmt:
        position = orders[0][row * rows.extent + i]
        return write(rows.place(row, i), position, rows.source[rows.place(row, position)])

    ib.emit(kernel([rows.count, count], store))
    return ib.get()


def _runs(rows: _Rows, order: Any) -> tir.Stmt:
    """The positions of each run's elements in their order."""

    def one(row: Any, i: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        start = i // _RUN * _RUN
        rank = ib.allocate("int32", (1,), "rank", scope="local")
        rank[0] = tir.const(0, "int32")
        with ib.for_range(0, _RUN) as k:
            other = start + k
            with ib.if_scope(tir.all(other < rows.extent, other != i)):
                in_front = tir.if_then_else(
                    other < i,
                    tir.Not(rows.is_before(row, i, other)),
                    rows.is_before(row, other, i),
                )
                with ib.if_scope(in_front):
                    rank[0] = rank[0] + 1
        ib.buffer_ptr(order.asobject())[row * rows.extent + start + rank[0]] = tir.Cast("int32", i)
        return ib.get()

    return kernel([rows.count, rows.extent], one)


def _merged(rows: _Rows, width: int, old: Any, new: Any) -> tir.Stmt:
    """Each two neighbouring runs of `width` elements as one."""

    def one(row: Any, i: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        first = row * rows.extent
        start = i // (2 * width) * (2 * width)
        middle, end = (tir.min(start + k * width, rows.extent) for k in (1, 2))
        is_left = i < middle
        # Open extents of graphs are int64, and so are places then; positions along a row fit in 32.
        index = str(tir.min(start, middle).dtype)
        low = ib.allocate(index, (1,), "low", scope="local")
        high = ib.allocate(index, (1,), "high", scope="local")
        position = ib.allocate("int32", (1,), "position", scope="local")
        position[0] = old[first + i]
        low[0] = tir.Select(is_left, middle, start)
        high[0] = tir.Select(is_left, end, middle)
        with ib.for_range(0, width.bit_length()), ib.if_scope(low[0] < high[0]):
            half = (low[0] + high[0]) // 2
            other = old[first + half]
            # Of equal elements, those of the left run lie in front.
            in_front = tir.if_then_else(
                is_left,
                rows.is_before(row, other, position[0]),
                tir.Not(rows.is_before(row, position[0], other)),
            )
            with ib.if_scope(in_front):
                low[0] = half + 1
            with ib.else_scope():
                high[0] = half
        # Those in front: i - start and low - middle of them, or i - middle and low - start.
        ib.buffer_ptr(new.asobject())[first + i + low[0] - middle] = position[0]
        return ib.get()

    return kernel([rows.count, rows.extent], one)
