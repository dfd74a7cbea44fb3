"""Sums, means, extremes and other functions of many elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import const

from ..arguments import Arguments, converter

__all__: list[str] = []


def _reduced(a: Arguments, name: str, data: RelayExpr, **settings: Any) -> RelayExpr:
    axes = a.axes()
    if not a.rank("self"):
        # One element: PyTorch has it as a vector of one where a dimension is named.
        data, axes = a.emit(op.reshape(data, (1,))), [0]
    keepdims = bool(a.get("keepdim", False)) and a.rank("self") > 0
    return op.make_call(name, data, axis=axes, keepdims=keepdims, **settings)


@converter("mean.dim", "mean.default")
def _mean(a: Arguments) -> RelayExpr:
    return _reduced(a, "mean", a.operand("self"))


@converter("sum.dim_IntList", "sum.default")
def _sum(a: Arguments) -> RelayExpr:
    return _reduced(a, "sum", a.operand("self"))


@converter("prod.default", "prod.dim_int")
def _prod(a: Arguments) -> RelayExpr:
    return _reduced(a, "prod", a.operand("self"))


@converter("amax.default", "max.default")
def _amax(a: Arguments) -> RelayExpr:
    return _extreme(a, "max")


@converter("amin.default", "min.default")
def _amin(a: Arguments) -> RelayExpr:
    return _extreme(a, "min")


def _extreme(a: Arguments, name: str) -> RelayExpr:
    if a.dtype("self") != "bool":
        return _reduced(a, name, a["self"])
    return _reduced(a, "any" if name == "max" else "all", a["self"])


@converter("max.other")
def _max_other(a: Arguments) -> RelayExpr:
    return op.maximum(a.operand("self"), a.operand("other"))


@converter("min.other")
def _min_other(a: Arguments) -> RelayExpr:
    return op.minimum(a.operand("self"), a.operand("other"))


@converter("max.dim", "min.dim")
def _extreme_with_index(a: Arguments) -> list[RelayExpr]:
    name = "max" if a.name == "max" else "min"
    results: list[Any] = [_extreme(a, name), None]
    if a.reads_result(1):
        results[1] = _position(a, f"arg{name}")
    return results


def _position(a: Arguments, name: str) -> RelayExpr:
    data = a["self"]
    if a.dtype("self") == "bool":
        data = a.emit(op.astype(data, "int8"))
    axis = None if a["dim"] is None else a.axis()
    if not a.rank("self"):
        data, axis = a.emit(op.reshape(data, (1,))), 0
    keepdims = bool(a.get("keepdim", False)) and a.rank("self") > 0
    return op.make_call(name, data, axis=axis, keepdims=keepdims, dtype="int64")


@converter("argmax.default", "argmin.default")
def _argmax(a: Arguments) -> RelayExpr:
    return _position(a, "argmax" if "argmax" in a.name else "argmin")


@converter(
    "any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims",
    "_is_any_true.default", "_is_all_true.default",
)  # fmt: skip
def _quantifier(a: Arguments) -> RelayExpr:
    name = "any" if "any" in a.name else "all"
    return _reduced(a, name, a.operand("self", "bool"))


def _spread(a: Arguments) -> RelayExpr:
    """Variance; PyTorch's divisor is the count less one unless told otherwise."""
    correction: Any = a.get("correction", 1)
    if correction is None:
        correction = 1
    if a.get("unbiased") is not None:
        correction = int(bool(a["unbiased"]))
    axes, shape = a.axes(), a.shape("self")
    count = math.prod(shape if axes is None else [shape[k] for k in axes])
    a.refuse_unless(count > correction, "of so few elements that it is not a number")
    return _reduced(a, "variance", a["self"], correction=float(correction))


@converter("var.default", "var.dim", "var.correction")
def _var(a: Arguments) -> RelayExpr:
    return _spread(a)


@converter("std.default", "std.dim", "std.correction")
def _std(a: Arguments) -> RelayExpr:
    return op.sqrt(a.emit(_spread(a)))


@converter("var_mean.default", "var_mean.dim", "var_mean.correction")
def _var_mean(a: Arguments) -> list[RelayExpr]:
    return [_spread(a), _reduced(a, "mean", a["self"])]


@converter("softmax.int", "_softmax.default", "special_softmax.default")
def _softmax(a: Arguments) -> RelayExpr:
    if not a.rank("self"):
        return a.tensor(1, (), a.result_dtype)
    return op.nn.softmax(a.operand("self"), a.axis())


@converter("_safe_softmax.default")
def _safe_softmax(a: Arguments) -> RelayExpr:
    return op.make_call("nn.masked_softmax", a.operand("self"), axis=a.axis())


@converter("log_softmax.int", "_log_softmax.default")
def _log_softmax(a: Arguments) -> RelayExpr:
    if not a.rank("self"):
        return a.tensor(0, (), a.result_dtype)
    return op.nn.log_softmax(a.operand("self"), a.axis())


@converter("logsumexp.default")
def _logsumexp(a: Arguments) -> RelayExpr:
    axes = a.axes() if a.rank("self") else None
    largest = a.call("max", a.operand("self"), axis=axes, keepdims=True)
    # Infinity less infinity would be no number.
    nothing = a.emit(op.zeros_like(largest))
    largest = a.emit(op.where(a.emit(op.isinf(largest)), nothing, largest))
    power = a.emit(op.exp(a.emit(op.subtract(a.operand("self"), largest))))
    total = a.emit(op.log(a.emit(op.sum(power, axes, True))))
    return op.reshape(a.emit(op.add(total, largest)), a.result_shape)


@converter("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar")
def _vector_norm(a: Arguments) -> RelayExpr:
    order = a["ord"] if a.get("ord") is not None else a.get("p")
    return _norm(a, a.operand("self"), 2 if order is None else float(order),
                 lambda name, data: a.emit(_reduced(a, name, data)))  # fmt: skip


def _norm(
    a: Arguments, data: RelayExpr, order: float, reduce: Callable[[str, RelayExpr], RelayExpr]
) -> RelayExpr:
    """The p-norm, given how to reduce by an operator."""
    dtype = a.result_dtype
    if order == 2:
        return op.sqrt(reduce("sum", a.emit(op.multiply(data, data))))
    size = a.call("abs", data)
    if math.isinf(order):
        return reduce("max" if order > 0 else "min", size)
    if order == 1:
        return reduce("sum", size)
    if order == 0:
        there = a.call("not_equal", data, const(0, dtype))
        return reduce("sum", a.emit(op.astype(there, dtype)))
    power = a.emit(op.power(size, const(order, dtype)))
    return op.power(reduce("sum", power), const(1 / order, dtype))


@converter("_cdist_forward.default", "cdist.default")
def _cdist(a: Arguments) -> RelayExpr:
    *lead, rows, width = a.shape("x1")
    *other_lead, columns, _ = a.shape("x2")
    mode = a["compute_mode"]
    # As PyTorch decides: a product where there are many, unless it is told to or not to.
    by_product = mode == 1 or (mode in (None, 0) and max(rows, columns) > 25)
    if float(a["p"]) == 2 and by_product and lead == other_lead:
        return _distance_by_product(a)
    one = a.emit(op.reshape(a["x1"], (*lead, rows, 1, width)))
    two = a.emit(op.reshape(a["x2"], (*other_lead, 1, columns, width)))
    return _distance(a, a.emit(op.subtract(one, two)))


def _distance_by_product(a: Arguments) -> RelayExpr:
    """Euclidean distances from the squares of |x|, |y| and |x - y|."""
    *lead, rows, _ = a.shape("x1")
    columns = a.shape("x2")[-2]
    order = [*range(len(lead)), len(lead) + 1, len(lead)]
    crossed = a.emit(op.matmul(a["x1"], a.emit(op.permute_dims(a["x2"], order))))
    one, two = (
        a.emit(op.sum(a.emit(op.multiply(a[name], a[name])), [-1])) for name in ("x1", "x2")
    )
    lengths = a.emit(
        op.add(
            a.emit(op.reshape(one, (*lead, rows, 1))),
            a.emit(op.reshape(two, (*lead, 1, columns))),
        )
    )
    apart = a.emit(op.subtract(lengths, a.emit(op.multiply(a.cast(2, a.result_dtype), crossed))))
    return op.sqrt(a.emit(op.maximum(apart, a.cast(0, a.result_dtype))))


@converter("_pdist_forward.default", "pdist.default")
def _pdist(a: Arguments) -> RelayExpr:
    first, second = np.triu_indices(a.shape("self")[0], 1)
    one, two = (
        a.call("take", a["self"], const(index, "int64"), axis=0) for index in (first, second)
    )
    return _distance(a, a.emit(op.subtract(one, two)))


def _distance(a: Arguments, apart: RelayExpr) -> RelayExpr:
    return _norm(a, apart, float(a["p"]), lambda name, data: a.call(name, data, axis=[-1]))


@converter("histc.default")
def _histc(a: Arguments) -> RelayExpr:
    bins, low, high = int(a["bins"]), float(a["min"]), float(a["max"])
    dtype = a.result_dtype
    count = math.prod(a.shape("self"))
    data = a.emit(op.reshape(a["self"], (count, 1)))
    first, last, factor = const(low, dtype), const(high, dtype), const(bins, dtype)
    if low < high:
        factor = const(bins / (high - low), dtype)
    elif low == high:
        # The range of the data, or of width two where they are all equal.
        first, last = a.emit(op.min(data)), a.emit(op.max(data))
        equal = a.call("equal", first, last)
        half = a.call("where", equal, const(1, dtype), const(0, dtype))
        first, last = a.emit(op.subtract(first, half)), a.emit(op.add(last, half))
        factor = a.emit(op.divide(factor, a.emit(op.subtract(last, first))))
    shifted = a.emit(op.subtract(data, first))
    place = a.emit(op.floor(a.emit(op.multiply(shifted, factor))))
    # The upper end belongs to the last bin; what lies outside of the range to none.
    at_end = a.call("equal", data, last)
    place = a.call("where", at_end, const(bins - 1, dtype), place)
    found = a.call("equal", place, const(np.arange(bins), dtype))
    return op.sum(a.emit(op.astype(found, dtype)), [0])
