"""Shapes, paddings and axes in the forms the operators need.

An extent is a Python int, or an integer expression where the shape is symbolic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tvm import te, tir
from tvm.arith import Analyzer

from . import tag

__all__ = [
    "extents_of",
    "Extent",
    "as_int",
    "as_pads",
    "as_padding",
    "as_pair",
    "as_sizes",
    "ceil_div",
    "const_shape",
    "equal_const_int",
    "get_const_int",
    "get_const_tuple",
    "has_size",
    "is_constant",
    "largest",
    "normalize_axes",
    "normalize_axis",
    "prod",
    "quotient",
    "ravel_index",
    "same_extent",
    "simplify",
    "single_output",
    "smallest",
    "traverse_inline",
    "typical_extents",
    "typical_shape",
    "unravel_index",
]

Extent = Any  # int | tir.PrimExpr, but mypy knows no operators on PrimExpr.


_TYPICAL: ContextVar[int | None] = ContextVar("topi.typical_extent", default=None)


@contextmanager
def typical_extents(size: int = 512) -> Iterator[None]:
    """Inside, :func:`as_int` takes open extents for `size`.

    For schedules, which choose tiles by sizes but are right for any; a computation must not be
    described inside, since its shape would be that of this size.
    """
    token = _TYPICAL.set(size)
    try:
        yield
    finally:
        _TYPICAL.reset(token)


def typical_shape(shape: Iterable[Any]) -> tuple[Any, ...]:
    """A shape with numbers for its open extents, to estimate by; other items stay."""
    with typical_extents():
        return tuple(as_int(e) if isinstance(e, tir.PrimExpr) else e for e in shape)


def _typical(value: tir.PrimExpr, size: int) -> int:
    values = {var: tir.const(size, var.dtype) for var in tir.analysis.undefined_vars(value)}
    if isinstance(value, tir.Var):
        return size
    return max(1, int(simplify(tir.stmt_functor.substitute(value, values))))


def as_int(value: Any) -> int:
    """A Python int from an int or an ``IntImm``.

    Raises
    ------
    ValueError : the value is a symbolic expression.
    """
    if isinstance(value, int):
        return value
    literal = getattr(value, "value", None)
    if not isinstance(literal, int):
        typical = _TYPICAL.get()
        if typical is not None and isinstance(value, tir.PrimExpr):
            return _typical(value, typical)
        if hasattr(value, "__index__"):
            return int(value)
        raise ValueError(f"topi: expected a constant size, got {value}; use a fixed shape")
    return literal


def is_constant(value: Any) -> bool:
    """Whether the extent is a number."""
    return not isinstance(value, tir.PrimExpr) or isinstance(value, tir.IntImm)


def has_size(value: Any) -> bool:
    """Whether :func:`as_int` gives a number for an extent: itself, or a typical one.

    There is none for an extent that is read from a tensor.
    """
    return is_constant(value) or (_TYPICAL.get() is not None and not _is_read(value))


def _is_read(value: tir.PrimExpr) -> bool:
    found = False

    def look(node: Any) -> None:
        nonlocal found
        found = found or isinstance(node, (tir.ProducerLoad, tir.BufferLoad))

    tir.stmt_functor.post_order_visit(value, look)
    return found


def const_shape(shape: Iterable[Any]) -> tuple[int, ...]:
    """The shape as Python ints; ValueError where it is symbolic."""
    return tuple(as_int(extent) for extent in shape)


def get_const_int(value: Any) -> int:
    """The number a constant expression stands for, after simplification."""
    return as_int(simplify(value))


def get_const_tuple(shape: Iterable[Any]) -> tuple[Extent, ...]:
    """The shape with its constants as Python ints; symbolic extents stay expressions."""
    return tuple(as_int(e) if is_constant(e) else simplify(e) for e in shape)


def extents_of(tensor: te.Tensor, layout: str, where: str) -> dict[str, Extent]:
    """Extent of each letter of the layout."""
    shape = get_const_tuple(tensor.shape)
    if len(shape) != len(layout):
        raise ValueError(f"topi.nn.{where}: layout {layout} does not fit the shape {shape}")
    return dict(zip(layout, shape))


def equal_const_int(value: Any, number: int) -> bool:
    """Whether the extent is known to be the number."""
    return is_constant(value) and as_int(value) == number


def simplify(value: Extent) -> Extent:
    """The extent in its shortest form: an int wherever it is constant."""
    if not isinstance(value, tir.PrimExpr):
        return value
    short = Analyzer().simplify(value)
    return as_int(short) if isinstance(short, tir.IntImm) else short


def same_extent(a: Extent, b: Extent) -> bool:
    """Whether two extents are known to be equal."""
    if is_constant(a) and is_constant(b):
        return as_int(a) == as_int(b)
    return bool(Analyzer().can_prove_equal(tir.convert(a), tir.convert(b)))


def prod(extents: Iterable[Extent]) -> Extent:
    """Product of extents, 1 for none."""
    return math.prod(extents)


def ceil_div(a: Extent, b: Extent) -> Extent:
    """a / b rounded up, simplified."""
    return simplify((a + b - 1) // b)


def largest(a: Extent, b: Extent) -> Extent:
    """The larger extent, simplified."""
    if is_constant(a) and is_constant(b):
        return max(as_int(a), as_int(b))
    return simplify(tir.max(a, b))


def smallest(a: Extent, b: Extent) -> Extent:
    """The smaller extent, simplified."""
    if is_constant(a) and is_constant(b):
        return min(as_int(a), as_int(b))
    return simplify(tir.min(a, b))


def as_sizes(value: Any, rank: int) -> tuple[Extent, ...]:
    """One size per dimension: ``3`` is (3, 3) for rank 2, ``(1, 2)`` is itself.

    Raises
    ------
    ValueError : neither one number nor as many as there are dimensions.
    """
    if isinstance(value, (int, tir.PrimExpr)):
        value = (value,)
    sizes = get_const_tuple(value)
    if len(sizes) not in (1, rank):
        raise ValueError(f"topi: expected 1 or {rank} numbers, one per dimension; got {sizes}")
    return sizes * rank if len(sizes) == 1 else sizes


def as_pads(padding: Any, rank: int, kernel: Sequence[Extent] | None = None) -> tuple[Extent, ...]:
    """Padding in front of every dimension, then behind every dimension.

    Parameters
    ----------
    padding : one size, one per dimension (both sides alike), two per dimension (all in front,
        then all behind), "VALID" for none, or "SAME" for what keeps the size at stride 1, with the
        odd cell behind.
    kernel : extents of the dilated kernel; only "SAME" needs it.

    Raises
    ------
    ValueError : another count of numbers, a negative one, or another word.
    """
    if isinstance(padding, str):
        if padding == "VALID":
            return (0,) * (2 * rank)
        if padding == "SAME" and kernel is not None:
            total = [extent - 1 for extent in kernel]
            before = [extent // 2 for extent in total]
            return (*before, *(simplify(t - b) for t, b in zip(total, before)))
        raise ValueError(f"topi: padding is sizes, 'SAME' or 'VALID', got {padding!r}")
    sizes = (padding,) if isinstance(padding, (int, tir.PrimExpr)) else tuple(padding)
    sizes = get_const_tuple(sizes)
    if len(sizes) == 1:
        sizes = sizes * (2 * rank)
    elif len(sizes) == rank:
        sizes = sizes * 2
    if len(sizes) != 2 * rank or any(is_constant(s) and s < 0 for s in sizes):
        one_each = {1: "(width,)", 2: "(height, width)", 3: "(depth, height, width)"}.get(rank)
        raise ValueError(
            f"topi: padding is one size, {one_each} or {2 * rank} sizes, all in front and then all "
            f"behind (top, left, bottom, right), none negative; got {padding}"
        )
    return sizes


def as_pair(value: int | Sequence[int]) -> tuple[int, int]:
    """``3`` is (3, 3), ``(1, 2)`` is itself."""
    first, second = const_shape(as_sizes(value, 2))
    return first, second


def as_padding(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) from one number, (height, width) or all four."""
    top, left, bottom, right = const_shape(as_pads(padding, 2))
    return top, left, bottom, right


def normalize_axis(axis: int, ndim: int) -> int:
    """Axis counted from the front.

    Raises
    ------
    IndexError : the axis is out of [-ndim, ndim).
    """
    if not -ndim <= axis < ndim:
        raise IndexError(f"topi: axis {axis} is out of range for {ndim} dimensions")
    return axis % ndim


def normalize_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, sorted, without repetition; None means all."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis) if isinstance(axis, Iterable) else (axis,)
    return tuple(sorted({normalize_axis(as_int(a), ndim) for a in axes}))


def single_output(outs: te.Tensor | Sequence[te.Tensor], what: str) -> te.Tensor:
    """The tensor that a schedule of one result is for, which may come in a list.

    Raises
    ------
    ValueError : there are several, or none.
    """
    if isinstance(outs, te.Tensor):
        return outs
    if len(outs) != 1:
        raise ValueError(f"topi: {what} schedules one tensor, got {len(outs)}")
    return outs[0]


def ravel_index(indices: Sequence[Any], shape: Sequence[Extent]) -> Any:
    """Row-major position of an element."""
    flat: Any = 0
    for index, extent in zip(indices, shape):
        flat = flat * extent + index
    return flat


def unravel_index(flat: Any, shape: Sequence[Extent]) -> list[Any]:
    """Indices of the element at a row-major position; inverse of :func:`ravel_index`."""
    position: list[Any] = []
    for k, extent in enumerate(shape):
        stride = prod(shape[k + 1 :])
        step = flat if equal_const_int(stride, 1) else flat // stride
        # The leading digit needs no reduction: the whole index is in range already.
        position.append(step % extent if k else step)
    return position


def traverse_inline(
    schedule: te.Schedule, final_op: te.Operation, callback: Callable[[te.Operation], None]
) -> None:
    """Inline every injective stage in front of ``final_op`` and call back for each operation.

    ``callback`` gets each computation once, consumers first, to schedule those it knows.
    """
    seen: set[te.Operation] = set()
    outputs = set(schedule.outputs)

    def visit(op: te.Operation) -> None:
        if op in seen or not isinstance(op, (te.ComputeOp, te.ExternOp)):
            return
        seen.add(op)
        if tag.is_injective(str(op.tag)) and op not in outputs:
            schedule[op].compute_inline()
        for tensor in op.input_tensors:
            visit(tensor.op)
        callback(op)

    visit(final_op)


def quotient(total: tir.PrimExpr, count: Any) -> tir.PrimExpr:
    """A sum by a number of elements, in the sum's type; integers are rounded towards zero."""
    number = tir.const(count, total.dtype) if isinstance(count, int) else count.astype(total.dtype)
    return tir.truncdiv(total, number) if "int" in str(total.dtype) else total / number
