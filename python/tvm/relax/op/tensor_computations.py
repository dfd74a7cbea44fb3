"""Rows of the operator table for tensors in general: creation, selection, order, scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tvm import te, tir, topi

from .precision import computed_in_float32
from .registry import OpPattern, register

__all__ = ["position_of"]

_ELEMWISE, _BROADCAST, _INJECTIVE = OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE
_REDUCE, _OPAQUE = OpPattern.COMM_REDUCE, OpPattern.OPAQUE

Number = bool | int | float
Axes = int | Sequence[int] | None


def _where(
    condition: te.Tensor | Number, x: te.Tensor | Number, y: te.Tensor | Number
) -> te.Tensor:
    """``topi.where`` with a number for the condition, or for x or y, of the type of the other."""
    dtype = next(v.dtype for v in (x, y) if isinstance(v, te.Tensor))
    if not isinstance(condition, te.Tensor):
        condition = topi.full((), "bool", bool(condition))

    def as_tensor(value: te.Tensor | Number) -> te.Tensor:
        return value if isinstance(value, te.Tensor) else topi.full((), dtype, value)

    return topi.where(condition, as_tensor(x), as_tensor(y))


def _full(shape: Sequence[Any], value: Any, dtype: str | None = None) -> te.Tensor:
    """One value everywhere: a number, or a tensor without dimensions."""
    if not isinstance(value, te.Tensor):
        kind = dtype or "float32"
        whole = kind.startswith(("int", "uint"))
        return topi.full(shape, kind, int(value) if whole else value)
    kind = dtype or value.dtype
    return te.compute(
        tuple(shape), lambda *i: value().astype(kind), name="T_full", tag=topi.tag.INJECTIVE
    )


def _arange(start: Any, end: Any, step: Any, dtype: str) -> te.Tensor:
    """Numbers from start on, below end."""
    wide = "float64" if dtype.startswith(("float", "bfloat")) else "int64"
    if all(isinstance(v, (bool, int, float)) for v in (start, end, step)):
        count: Any = max(0, -int((start - end) // step))
    else:
        count = topi.utils.simplify(tir.floordiv(end - start + step - 1, step))
    first, gap = (
        v.astype(wide) if isinstance(v, tir.PrimExpr) else tir.const(v, wide) for v in (start, step)
    )
    return te.compute(
        (count,),
        lambda i: (first + i.astype(wide) * gap).astype(dtype),
        name="T_arange",
        tag=topi.tag.INJECTIVE,
    )


def _gather_elements(x: te.Tensor, indices: te.Tensor, axis: int = 0) -> te.Tensor:
    return topi.gather(x, axis, indices)


def _argsort(
    x: te.Tensor, axis: int = -1, descending: bool = False, dtype: str = "int32"
) -> te.Tensor:
    return topi.argsort(x, axis, not descending, dtype)


def _sort(x: te.Tensor, axis: int = -1, descending: bool = False) -> te.Tensor:
    return topi.sort(x, axis, not descending)


def _topk(
    x: te.Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
) -> Any:
    return topi.topk(x, k, axis, ret_type, not largest, dtype)


def _tile(x: te.Tensor, repeats: Sequence[int]) -> te.Tensor:
    return topi.tile(x, repeats)


def _flip(x: te.Tensor, axis: int | Sequence[int]) -> te.Tensor:
    axes = (axis,) if isinstance(axis, int) else axis
    at = topi.utils.normalize_axes(axes, len(x.shape))
    return te.compute(
        x.shape,
        lambda *i: x(*(x.shape[k] - 1 - v if k in at else v for k, v in enumerate(i))),
        name="T_flip",
        tag=topi.tag.INJECTIVE,
    )


def _as_strided(
    x: te.Tensor, shape: Sequence[int], strides: Sequence[int], offset: int
) -> te.Tensor:
    """Elements of x, laid out without gaps, at ``offset + sum(index * stride)``."""
    flat = topi.reshape(x, (-1,))

    def read(*i: Any) -> Any:
        place: Any = tir.const(offset, "int32")
        for index, stride in zip(i, strides):
            place = place + index * stride
        return flat(place)

    return te.compute(tuple(shape), read, name="T_as_strided", tag=topi.tag.INJECTIVE)


def _index_tensor(
    x: te.Tensor, indices: Sequence[te.Tensor], axes: Sequence[int], out_axis: int
) -> te.Tensor:
    """x[..., indices, ...] with index tensors, which broadcast, at some axes.

    The dimensions of the indices stand at ``out_axis`` of the result, the rest keep their order.
    Negative indices count from the end.
    """
    rank = len(x.shape)
    rest = [k for k in range(rank) if k not in axes]
    order = [*axes, *rest]
    taken = topi.adv_index(x if order == list(range(rank)) else topi.transpose(x, order), indices)
    if out_axis == 0:
        return taken
    lead = len(taken.shape) - len(rest)
    split = lead + out_axis
    return topi.transpose(
        taken, [*range(lead, split), *range(lead), *range(split, len(rest) + lead)]
    )


def _gather_nd(x: te.Tensor, indices: te.Tensor, batch_dims: int = 0) -> te.Tensor:
    """``topi.gather_nd`` with the index tuples along the last dimension."""
    rest = len(indices.shape) - 1
    return topi.gather_nd(x, topi.transpose(indices, [rest, *range(rest)]), batch_dims)


def _scatter_nd(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, reduction: str = "update"
) -> te.Tensor:
    """``topi.scatter_nd`` with the index tuples along the last dimension."""
    rest = len(indices.shape) - 1
    return topi.scatter_nd(data, topi.transpose(indices, [rest, *range(rest)]), updates, reduction)


def _diagonal(x: te.Tensor, offset: int, axis1: int, axis2: int) -> te.Tensor:
    """Elements whose index along axis2 is that along axis1 plus offset, as the last dimension."""
    rank = len(x.shape)
    first, second = axis1 % rank, axis2 % rank
    rows, columns = int(x.shape[first]), int(x.shape[second])
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    rest = [k for k in range(rank) if k not in (first, second)]

    def read(*i: Any) -> Any:
        at: dict[int, Any] = dict(zip(rest, i))
        at[first] = i[-1] + max(0, -offset)
        at[second] = i[-1] + max(0, offset)
        return x(*(at[k] for k in range(rank)))

    return te.compute(
        [*(x.shape[k] for k in rest), count], read, name="T_diagonal", tag=topi.tag.INJECTIVE
    )


def position_of(pick: Callable[..., te.Tensor]) -> Callable[..., te.Tensor]:
    """The te function of `argmax` or `argmin`, with the type of the positions as a setting."""

    def compute(
        x: te.Tensor, axis: int | None = None, keepdims: bool = False, dtype: str = "int64"
    ) -> te.Tensor:
        return topi.cast(pick(x, axis, keepdims), dtype)

    return compute


def _variance(
    x: te.Tensor, axis: Axes = None, keepdims: bool = False, correction: float = 0.0
) -> te.Tensor:
    """Mean of the squared differences from the mean, its divisor lessened by ``correction``."""
    axes = topi.utils.normalize_axes(axis, len(x.shape))
    difference = topi.subtract(x, topi.mean(x, axes, keepdims=True))
    total = topi.sum(topi.multiply(difference, difference), axes, keepdims)
    count = topi.utils.prod(topi.utils.get_const_tuple(x.shape)[k] for k in axes)
    samples = tir.const(count, x.dtype) if isinstance(count, int) else count.astype(x.dtype)
    if not correction:
        return topi.divide(total, samples)
    fewer = samples - tir.const(correction, x.dtype)
    return topi.divide(total, tir.max(fewer, tir.const(0, x.dtype)))


def _at_least(high: Any, low: Any, distance: int) -> Any:
    """That two indices are at least that far apart, without negative numbers."""
    if distance == 1:
        return low < high
    return low + distance <= high if distance > 0 else low <= high + -distance


def _triangle(keep_upper: bool) -> Callable[..., te.Tensor]:
    def compute(x: te.Tensor, k: int = 0, fill: float = 0.0) -> te.Tensor:
        """x with ``fill`` on one side of a diagonal of its last two dimensions."""
        value = tir.const(fill, x.dtype)

        def read(*i: Any) -> Any:
            low, high = (i[-2], i[-1]) if keep_upper else (i[-1], i[-2])
            return tir.Select(_at_least(high, low, k if keep_upper else -k), x(*i), value)

        return te.compute(x.shape, read, name="T_triangle", tag=topi.tag.ELEMWISE)

    return compute


for _name in ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil",
              "cos", "cosh", "expm1", "floor", "isfinite", "isinf", "isnan", "log10", "log1p",
              "log2", "logical_not", "round", "sign", "sin", "sinh", "tan", "trunc"):  # fmt: skip
    register(_name, getattr(topi, _name), _ELEMWISE)
register("tril", _triangle(keep_upper=False), _ELEMWISE)
register("triu", _triangle(keep_upper=True), _ELEMWISE)

for _name in ("atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "equal",
              "floor_divide", "floor_mod", "greater", "greater_equal", "hypot", "left_shift",
              "less", "less_equal", "logical_and", "logical_or", "logical_xor", "mod", "nextafter",
              "not_equal", "right_shift"):  # fmt: skip
    register(_name, getattr(topi, _name), _BROADCAST)
register("where", _where, _BROADCAST)

register("full", _full, _INJECTIVE)
register("arange", _arange, _INJECTIVE)
register("take", topi.take, _INJECTIVE)
register("gather_elements", _gather_elements, _INJECTIVE)
register("index_tensor", _index_tensor, _INJECTIVE)
register("gather_nd", _gather_nd, _INJECTIVE)
register("flip", _flip, _INJECTIVE)
register("tile", _tile, _INJECTIVE)
register("diagonal", _diagonal, _INJECTIVE)
register("as_strided", _as_strided, _INJECTIVE)
register("strided_set", topi.strided_set, _INJECTIVE)

register("scatter_elements", topi.scatter_elements, _OPAQUE, tunable=False)
register("scatter_nd", _scatter_nd, _OPAQUE, tunable=False)
register("linalg.lu_factor", topi.lu_factor, _OPAQUE, tunable=False)
register("linalg.lu_solve", topi.lu_solve, _OPAQUE, tunable=False)
register("linalg.solve_triangular", topi.solve_triangular, _OPAQUE, tunable=False)
register("linalg.cholesky", topi.cholesky, _OPAQUE, tunable=False)
register("cumsum", topi.cumsum, _OPAQUE, tunable=False)
register("cumprod", topi.cumprod, _OPAQUE, tunable=False)
register("cummax", topi.cummax, _OPAQUE, tunable=False)
register("cummin", topi.cummin, _OPAQUE, tunable=False)
register("logcumsumexp", topi.logcumsumexp, _OPAQUE, tunable=False)
register("sort", _sort, _OPAQUE, tunable=False)
register("argsort", _argsort, _OPAQUE, tunable=False)
register("searchsorted", topi.searchsorted, _OPAQUE, tunable=False)
register("topk", _topk, _OPAQUE, tunable=False)

register("prod", computed_in_float32(topi.prod), _REDUCE)
register("all", topi.all, _REDUCE)
register("any", topi.any, _REDUCE)
register("argmax", position_of(partial(topi.argmax, from_infinity=True)), _OPAQUE, tunable=False)
register("argmin", position_of(partial(topi.argmin, from_infinity=True)), _OPAQUE, tunable=False)
register("variance", computed_in_float32(_variance), _OPAQUE)
