"""Operators that sum, compare or scan along axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import relax, topi
from tvm.ir import RelayExpr, TensorType, Type
from tvm.relax.op.precision import computed_in_float32

from ..expr import Call, Tuple, TupleWrapper
from . import elementwise as ew
from .registry import OpPattern, define, make
from .reshaping import numbers_or_expr, squeeze
from .shapes import normal_axis, product, tensor

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "logsumexp",
    "max",
    "mean",
    "mean_std",
    "mean_variance",
    "min",
    "prod",
    "std",
    "sum",
    "variance",
]

Axis = int | Sequence[int] | None


def _axes(where: str, rank: int, axis: Axis, exclude: bool) -> list[int]:
    if axis is None or (not isinstance(axis, int) and not len(axis) and not exclude):
        return list(range(rank))
    given = [axis] if isinstance(axis, int) else list(axis)
    axes = sorted({normal_axis(where, a, rank) for a in given})
    return [a for a in range(rank) if a not in axes] if exclude else axes


def _shape(data: TensorType, axes: Sequence[int], keepdims: bool) -> list[Any]:
    if keepdims:
        return [1 if k in axes else e for k, e in enumerate(data.shape)]
    return [e for k, e in enumerate(data.shape) if k not in axes]


def _define(name: str, compute: Any, dtype: str | None = None, **more: Any) -> None:
    where = f"relay.{name}"

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        data = tensor(where, types[0])
        axes = _axes(where, len(data.shape), s["axis"], s["exclude"])
        return TensorType(_shape(data, axes, s["keepdims"]), dtype or str(data.dtype))

    def run(
        x: Any, axis: Axis = None, keepdims: bool = False, exclude: bool = False, **settings: Any
    ) -> Any:
        axes = _axes(where, len(x.shape), axis, exclude)
        return compute(x, axes, keepdims, **settings) if axes else topi.identity(x)

    def lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
        axes = _axes(where, len(args[0].struct_info.shape.values), s["axis"], s["exclude"])
        return getattr(relax.op, name)(args[0], axes, s["keepdims"])

    settings = {"axis": None, "keepdims": False, "exclude": False, **more}
    define(
        name,
        run,
        OpPattern.COMM_REDUCE,
        settings=settings,
        rule=rule,
        num_inputs=1,
        lower=lower if name in ("sum", "mean", "max", "min", "prod") else None,
    )


def _position(compute: Any) -> Any:
    def run(x: Any, axes: list[int], keepdims: bool, select_last_index: bool = False) -> Any:
        axis = axes[0] if len(axes) == 1 else axes
        # Positions are those of elements, whatever these are, as in relax.
        return compute(x, axis, keepdims, select_last_index, from_infinity=True)

    return run


for _name in ("sum", "mean", "prod"):
    _define(_name, computed_in_float32(getattr(topi, _name)))
for _name in ("max", "min"):
    _define(_name, getattr(topi, _name))
for _name in ("all", "any"):
    _define(_name, getattr(topi, _name), "bool")
for _name in ("argmax", "argmin"):
    _define(_name, _position(getattr(topi, _name)), "int32", select_last_index=False)


def _reduce(
    name: str, data: RelayExpr, axis: Any, keepdims: bool, exclude: bool, **more: Any
) -> Call:
    axes = None if axis is None else numbers_or_expr(axis)
    return make(name, [data], axis=axes, keepdims=bool(keepdims), exclude=exclude, **more)


def sum(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Sum over axes: all of them, those given, or with `exclude` all but those."""
    return _reduce("sum", data, axis, keepdims, exclude)


def mean(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Mean over axes, chosen as in `sum`."""
    return _reduce("mean", data, axis, keepdims, exclude)


def prod(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Product over axes, chosen as in `sum`."""
    return _reduce("prod", data, axis, keepdims, exclude)


def max(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Largest element over axes, chosen as in `sum`."""
    return _reduce("max", data, axis, keepdims, exclude)


def min(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Smallest element over axes, chosen as in `sum`."""
    return _reduce("min", data, axis, keepdims, exclude)


def all(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Whether all booleans over axes are true; axes as in `sum`."""
    return _reduce("all", data, axis, keepdims, exclude)


def any(data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False) -> Call:
    """Whether some boolean over axes is true; axes as in `sum`."""
    return _reduce("any", data, axis, keepdims, exclude)


def argmax(
    data: RelayExpr,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    select_last_index: bool = False,
) -> Call:
    """Place of the largest element, int32; of equal ones the first, or the last if asked for."""
    return _reduce("argmax", data, axis, keepdims, exclude, select_last_index=select_last_index)


def argmin(
    data: RelayExpr,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    select_last_index: bool = False,
) -> Call:
    """Place of the smallest element, int32; of equal ones the first, or the last if asked for."""
    return _reduce("argmin", data, axis, keepdims, exclude, select_last_index=select_last_index)


def _variance(
    x: Any,
    mean: Any,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> Any:
    axes = _axes("relay.variance", len(x.shape), axis, exclude)
    count: Any = 1
    for a in axes:
        count = count * x.shape[a]
    difference = topi.subtract(x, mean)
    total = topi.sum(topi.multiply(difference, difference), axes, keepdims)
    return topi.divide(total, count - 1 if unbiased else count)


def _variance_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.variance", types[0])
    axes = _axes("relay.variance", len(data.shape), s["axis"], s["exclude"])
    return TensorType(_shape(data, axes, s["keepdims"]), str(data.dtype))


define(
    "variance",
    computed_in_float32(_variance),
    OpPattern.COMM_REDUCE,
    num_inputs=2,
    rule=_variance_rule,
    settings={"axis": None, "keepdims": False, "exclude": False, "unbiased": False},
)


def _spread_out(
    data: RelayExpr,
    axis: Axis,
    keepdims: bool,
    exclude: bool,
    unbiased: bool,
    with_mean: RelayExpr | None,
) -> Call:
    center = mean(data, axis, True, exclude) if with_mean is None else with_mean
    axes = None if axis is None else numbers_or_expr(axis)
    return make(
        "variance", [data, center], axis=axes, keepdims=keepdims, exclude=exclude, unbiased=unbiased
    )


def variance(
    data: RelayExpr,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: RelayExpr | None = None,
) -> Call:
    """Mean square distance from the mean; `unbiased` divides by one less than the count."""
    return _spread_out(data, axis, keepdims, exclude, unbiased, with_mean)


def std(
    data: RelayExpr,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: RelayExpr | None = None,
) -> Call:
    """Square root of the variance."""
    return ew.sqrt(_spread_out(data, axis, keepdims, exclude, unbiased, with_mean))


def mean_variance(
    data: RelayExpr,
    axis: Axis = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> TupleWrapper:
    """Mean and variance."""
    center = mean(data, axis, True, exclude)
    spread = _spread_out(data, axis, keepdims, exclude, unbiased, center)
    result = center if keepdims else mean(data, axis, False, exclude)
    return TupleWrapper(Tuple((result, spread)), 2)


def mean_std(
    data: RelayExpr, axis: Axis = None, keepdims: bool = False, exclude: bool = False
) -> TupleWrapper:
    """Mean and standard deviation."""
    both = mean_variance(data, axis, keepdims, exclude).astuple()
    return TupleWrapper(Tuple((both.fields[0], ew.sqrt(both.fields[1]))), 2)


def logsumexp(data: RelayExpr, axis: Axis = None, keepdims: bool = False) -> Call:
    """Logarithm of the sum of exponentials, without overflow."""
    top = max(data, axis, True)
    total = ew.log(sum(ew.exp(ew.subtract(data, top)), axis, True))
    result = ew.add(top, total)
    return result if keepdims else squeeze(result, axis)


def _scan_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.cumsum", types[0])
    dtype = s["dtype"] or ("int32" if str(data.dtype) == "bool" else str(data.dtype))
    return TensorType([product(data.shape)] if s["axis"] is None else data.shape, dtype)


def _scan(compute: Any) -> Any:
    def run(x: Any, axis: int | None, dtype: str = "", exclusive: bool = False) -> Any:
        return compute(x, axis, dtype or None, exclusive)

    return run


for _name in ("cumsum", "cumprod"):
    define(
        _name,
        _scan(getattr(topi, _name)),
        OpPattern.OPAQUE,
        settings={"axis": None, "dtype": "", "exclusive": False},
        rule=_scan_rule,
        num_inputs=1,
    )


def cumsum(
    data: RelayExpr,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Call:
    """Sums of all elements up to each along an axis, or of the flattened tensor."""
    return make("cumsum", [data], axis=axis, dtype=dtype or "", exclusive=bool(exclusive))


def cumprod(
    data: RelayExpr,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Call:
    """Products of all elements up to each along an axis, or of the flattened tensor."""
    return make("cumprod", [data], axis=axis, dtype=dtype or "", exclusive=bool(exclusive))
