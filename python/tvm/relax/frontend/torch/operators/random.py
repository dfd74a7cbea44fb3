"""Random numbers: of PyTorch's distributions, drawn by another generator than PyTorch's."""

from __future__ import annotations

from typing import Any

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import TupleGetItem

from ..arguments import Arguments, random_converter

__all__: list[str] = []


def _uniform(a: Arguments, shape: Any = None, dtype: str | None = None) -> RelayExpr:
    extents = a.result_shape if shape is None else shape
    return a.emit(op.random.uniform(*a.next_stream(), extents, dtype or a.result_dtype))


def _exponential(a: Arguments, shape: Any = None, dtype: str | None = None) -> RelayExpr:
    """Numbers of mean 1, all above 0."""
    kind = dtype or a.result_dtype
    # 1 - u is above 0 where u is below 1.
    rest = a.emit(op.subtract(a.cast(1, kind), _uniform(a, shape, kind)))
    return a.emit(op.negative(a.call("log", rest)))


@random_converter("rand.default", "rand_like.default")
def _rand(a: Arguments) -> RelayExpr:
    return _uniform(a)


@random_converter("uniform.default")
def _uniform_between(a: Arguments) -> RelayExpr:
    low, high = float(a["from"]), float(a["to"])
    scaled = a.emit(op.multiply(_uniform(a), a.cast(high - low, a.result_dtype)))
    return op.add(scaled, a.cast(low, a.result_dtype))


@random_converter("randn.default", "randn_like.default")
def _randn(a: Arguments) -> RelayExpr:
    return op.random.normal(*a.next_stream(), a.result_shape, a.result_dtype)


@random_converter("normal.default", "normal_functional.default", "normal.Tensor_Tensor",
                  "normal.Tensor_float", "normal.float_Tensor", "normal.float_float")  # fmt: skip
def _normal(a: Arguments) -> RelayExpr:
    deviation = a.emit(op.multiply(a.emit(_randn(a)), a.operand("std")))
    return op.add(deviation, a.operand("mean"))


@random_converter("exponential.default")
def _exponential_of_rate(a: Arguments) -> RelayExpr:
    return op.divide(_exponential(a), a.cast(float(a["lambd"]), a.result_dtype))


@random_converter("randint.default", "randint.low", "randint_like.default",
                  "randint_like.low_dtype")  # fmt: skip
def _randint(a: Arguments) -> RelayExpr:
    low, high = int(a.get("low", 0)), int(a["high"])
    whole = a.result_dtype.startswith(("int", "uint", "bool"))
    drawn = op.random.integers(
        *a.next_stream(), a.result_shape, low, high, a.result_dtype if whole else "int64"
    )
    return drawn if whole else op.astype(a.emit(drawn), a.result_dtype)


@random_converter("bernoulli.default", "bernoulli.p", "bernoulli.float", "bernoulli.Tensor")
def _bernoulli(a: Arguments) -> RelayExpr:
    chance = a["p"] if a.get("p") is not None else a["self"]
    # Compared in the type of the chances, which results that are integers do not have.
    kind = str(chance.struct_info.dtype) if isinstance(chance, RelayExpr) else "float32"
    drawn = a.call("less", _uniform(a, dtype=kind), a.cast(chance, kind))
    return op.astype(drawn, a.result_dtype)


@random_converter("randperm.default")
def _randperm(a: Arguments) -> RelayExpr:
    """The order of random numbers, of so many bits that hardly any two are equal."""
    keys = a.emit(
        op.random.integers(*a.next_stream(), a.result_shape, -(2**63), 2**63 - 1, "int64")
    )
    return op.argsort(keys, 0, False, a.result_dtype)


@random_converter("multinomial.default")
def _multinomial(a: Arguments) -> RelayExpr:
    shape = a.shape("self")
    count, kind = int(a["num_samples"]), a.dtype("self")
    axis = len(shape) - 1
    if a["replacement"]:
        # Where a random part of the sum falls among the sums up to each class.
        sums = a.call("cumsum", a["self"], axis=axis)
        total = a.emit(op.strided_slice(sums, [axis], [shape[-1] - 1], [shape[-1]]))
        parts = a.emit(op.multiply(_uniform(a, dtype=kind), total))
        return a.call("searchsorted", sums, parts, right=True, out_dtype="int64")
    # Of exponential times at these rates, the first ones are a draw without replacement; the
    # reciprocals are compared, because a chance of 0 is a time without end.
    rates = a.emit(op.divide(a["self"], _exponential_above_zero(a, shape, kind)))
    both = a.emit(op.topk(rates, count, axis, largest=True, dtype="int64"))
    return TupleGetItem(both, 1)


def _exponential_above_zero(a: Arguments, shape: Any, kind: str) -> RelayExpr:
    least = {"float64": 2.0**-54, "float32": 2.0**-25}.get(kind, 2.0**-12)
    return a.emit(op.maximum(_exponential(a, shape, kind), a.cast(least, kind)))
