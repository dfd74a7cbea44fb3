"""Sums, extrema and their positions along dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir

from . import tag
from .broadcast import divide
from .utils import (
    Extent,
    equal_const_int,
    get_const_tuple,
    is_constant,
    normalize_axes,
    ravel_index,
    same_extent,
)
from .utils import (
    prod as _product,
)

__all__ = ["all", "any", "argmax", "argmin", "collapse_sum", "max", "mean", "min", "prod", "sum"]

Axis = int | Sequence[int] | None

_reduce_all = te.comm_reducer(lambda x, y: tir.all(x, y), lambda _: tir.const(True), name="all")
_reduce_any = te.comm_reducer(lambda x, y: tir.any(x, y), lambda _: tir.const(False), name="any")

_WITH_INFINITY = ("float16", "float32", "float64", "bfloat16")


def _worst(dtype: str, largest: bool, from_infinity: bool) -> Any:
    """What no element of a type is worse than, where the largest or the smallest is asked for."""
    if from_infinity and dtype in _WITH_INFINITY:
        return tir.const(float("-inf") if largest else float("inf"), dtype)
    return tir.min_value(dtype) if largest else tir.max_value(dtype)


_max_of_all = te.comm_reducer(
    lambda x, y: tir.max(x, y), lambda dtype: _worst(dtype, True, True), name="max"
)
_min_of_all = te.comm_reducer(
    lambda x, y: tir.min(x, y), lambda dtype: _worst(dtype, False, True), name="min"
)


class _Plan:
    """Which dimensions a reduction drops, its loops, and where each element is read."""

    def __init__(self, x: te.Tensor, axis: Axis, keepdims: bool) -> None:
        self.shape = get_const_tuple(x.shape)
        self.axes = normalize_axes(axis, len(self.shape))
        self.loops = [te.reduce_axis((0, self.shape[k]), name=f"k{k}") for k in self.axes]
        self.kept = [k for k in range(len(self.shape)) if keepdims or k not in self.axes]
        self.out: list[Extent] = [1 if k in self.axes else self.shape[k] for k in self.kept]

    def position(self, indices: Sequence[Any]) -> list[Any]:
        position: list[Any] = [None] * len(self.shape)
        for k, index in zip(self.kept, indices):
            position[k] = index
        for k, loop in zip(self.axes, self.loops):
            position[k] = loop
        return position


def _reduce(
    x: te.Tensor, axis: Axis, keepdims: bool, reducer: Callable[..., Any], name: str
) -> te.Tensor:
    plan = _Plan(x, axis, keepdims)
    if not plan.axes:
        return te.compute(plan.shape, lambda *i: x(*i), name=f"T_{name}", tag=tag.ELEMWISE)
    return te.compute(
        plan.out,
        lambda *i: reducer(x(*plan.position(i)), axis=plan.loops),
        name=f"T_{name}",
        tag=tag.COMM_REDUCE,
    )


def sum(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Sum over the given dimensions, or over all for None."""
    return _reduce(data, axis, keepdims, te.sum, "sum")


def prod(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Product over the given dimensions, or over all for None."""
    return _reduce(data, axis, keepdims, te.prod, "prod")


def max(
    data: te.Tensor, axis: Axis = None, keepdims: bool = False, *, from_infinity: bool = False
) -> te.Tensor:
    """Largest element over the given dimensions, or over all for None; NaN where one is.

    Parameters
    ----------
    from_infinity : begin at negative infinity, so that it is what elements give that are all
        that. Otherwise they give the smallest finite number, as in TVM.
    """
    return _reduce(data, axis, keepdims, _max_of_all if from_infinity else te.max, "max")


def min(
    data: te.Tensor, axis: Axis = None, keepdims: bool = False, *, from_infinity: bool = False
) -> te.Tensor:
    """Smallest element over the given dimensions, or over all for None; see :func:`max`."""
    return _reduce(data, axis, keepdims, _min_of_all if from_infinity else te.min, "min")


def all(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Whether every element of a bool tensor holds, over the given dimensions."""
    return _reduce(data, axis, keepdims, _reduce_all, "all")


def any(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Whether at least one element of a bool tensor holds, over the given dimensions."""
    return _reduce(data, axis, keepdims, _reduce_any, "any")


def mean(data: te.Tensor, axis: Axis = None, keepdims: bool = False) -> te.Tensor:
    """Arithmetic mean over the given dimensions, or over all for None."""
    plan = _Plan(data, axis, keepdims)
    count = _product(plan.shape[k] for k in plan.axes)
    return divide(sum(data, axis, keepdims), float(count) if is_constant(count) else count)


def _arg_reduce(
    x: te.Tensor,
    axis: Axis,
    keepdims: bool,
    select_last: bool,
    largest: bool,
    from_infinity: bool,
    name: str,
) -> te.Tensor:
    # NaN counts as beyond all numbers where infinities count as elements, as in NumPy.
    with_nan = from_infinity and str(x.dtype) in _WITH_INFINITY

    def better(a: Any, b: Any) -> Any:
        beats = a[1] > b[1] if largest else a[1] < b[1]
        equal = a[1] == b[1]
        if with_nan:
            beats = tir.any(beats, tir.all(tir.isnan(a[1]), tir.Not(tir.isnan(b[1]))))
            equal = tir.any(equal, tir.all(tir.isnan(a[1]), tir.isnan(b[1])))
        if select_last:
            return tir.any(beats, tir.all(equal, a[0] > b[0]))
        # Partial results may be combined in any order, so equal values compare their positions;
        # an identity's position, -1, loses to every other.
        first = tir.all(a[0] >= 0, tir.any(b[0] < 0, a[0] < b[0]))
        return tir.any(beats, tir.all(equal, first))

    def combine(a: Any, b: Any) -> tuple[Any, Any]:
        takes = better(a, b)
        return tir.Select(takes, a[0], b[0]), tir.Select(takes, a[1], b[1])

    def identity(index: str, value: str) -> tuple[Any, Any]:
        return tir.const(-1, index), _worst(value, largest, from_infinity)

    reducer = te.comm_reducer(combine, identity, name=name)
    plan = _Plan(x, axis, keepdims)
    reduced = [plan.shape[k] for k in plan.axes]

    def body(*indices: Any) -> Any:
        flat = ravel_index([loop.var for loop in plan.loops], reduced)
        return reducer((tir.convert(flat), x(*plan.position(indices))), axis=plan.loops)

    index, _ = te.compute(plan.out, body, name=f"T_{name}_pair", tag=tag.COMM_REDUCE_IDX)
    return te.compute(plan.out, lambda *i: index(*i), name=f"T_{name}", tag=tag.ELEMWISE)


def argmax(
    data: te.Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    select_last_index: bool = False,
    *,
    from_infinity: bool = False,
) -> te.Tensor:
    """Position of the largest element over the given dimensions, or over all for None; int32.

    Parameters
    ----------
    axis : of several, the position is row-major over them.
    select_last_index : of equal elements, take the last instead of the first.
    from_infinity : see :func:`max`; the first NaN is the largest then. Without it elements that are
        all negative infinity have the position -1, and NaN is no candidate, as in TVM.
    """
    return _arg_reduce(data, axis, keepdims, select_last_index, True, from_infinity, "argmax")


def argmin(
    data: te.Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    select_last_index: bool = False,
    *,
    from_infinity: bool = False,
) -> te.Tensor:
    """Position of the smallest element; arguments as in :func:`argmax`."""
    return _arg_reduce(data, axis, keepdims, select_last_index, False, from_infinity, "argmin")


def collapse_sum(x: te.Tensor, target_shape: Sequence[Extent]) -> te.Tensor:
    """Sum of x over the dimensions that broadcasting ``target_shape`` to its shape repeats.

    Raises
    ------
    ValueError : ``target_shape`` does not broadcast to the shape of x.
    """
    shape, target = get_const_tuple(x.shape), get_const_tuple(target_shape)
    leading = len(shape) - len(target)
    padded = (1,) * leading + target
    fits = leading >= 0 and not [
        k
        for k, extent in enumerate(padded)
        if not equal_const_int(extent, 1) and not same_extent(extent, shape[k])
    ]
    if not fits:
        raise ValueError(f"topi.collapse_sum: {target} does not broadcast to {shape}")
    summed = [
        k
        for k, extent in enumerate(padded)
        if equal_const_int(extent, 1) and not equal_const_int(shape[k], 1)
    ]
    loops = {k: te.reduce_axis((0, shape[k]), name=f"k{k}") for k in summed}

    def read(*indices: Any) -> Any:
        places = [*([0] * leading), *indices]
        return x(*(loops.get(k, place) for k, place in enumerate(places)))

    if not loops:
        return te.compute(target, read, name="T_collapse_sum", tag=tag.INJECTIVE)
    return te.compute(
        target,
        lambda *i: te.sum(read(*i), axis=list(loops.values())),
        name="T_sum",
        tag=tag.COMM_REDUCE,
    )
