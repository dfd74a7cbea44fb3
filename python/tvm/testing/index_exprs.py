"""Random index expressions together with their values, for checking simplification.

An expression is made along with its value at many sample points, so it never has to be evaluated
itself; only what is derived from it does, with `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm import arith, tir
from tvm.ir import IntImm, PrimExpr, Range

__all__ = ["ExprSampler", "Sampled", "evaluate"]

# Beyond this a product is not formed: index arithmetic is taken not to overflow 32 bits.
_LARGEST = 1 << 24


@dataclass(frozen=True)
class Sampled:
    """An expression and its values: int64, shape (points,); comparisons are 0 and 1."""

    expr: PrimExpr
    values: np.ndarray


class ExprSampler:
    """Makes expressions over a few variables of known ranges.

    Parameters
    ----------
    rng : source of all choices.
    points : number of sample points, drawn from the variables' ranges.
    dtype : type of all expressions.

    Attributes
    ----------
    loops : variables that run over ``[0, extent)``.
    signed : a variable of both signs, in [-9, 9].
    sizes : SizeVars, of which only the sign is known.
    """

    def __init__(self, rng: np.random.Generator, points: int = 16, dtype: str = "int32") -> None:
        self._rng = rng
        self._dtype = dtype
        self.extents = [int(e) for e in rng.choice([2, 3, 4, 7, 8, 16, 28], size=3)]
        self.loops = [tir.Var(f"i{n}", dtype) for n in range(3)]
        self.signed = tir.Var("s", dtype)
        self.sizes = [tir.SizeVar(name, dtype) for name in "ab"]
        self.values: dict[Any, np.ndarray] = {
            var: rng.integers(0, extent, points) for var, extent in zip(self.loops, self.extents)
        }
        self.values[self.signed] = rng.integers(-9, 10, points)
        for size in self.sizes:
            self.values[size] = rng.integers(1, 9, points)
        self._leaves = [Sampled(var, values) for var, values in self.values.items()]

    def analyzer(self) -> arith.Analyzer:
        """An analyzer that knows the ranges of the variables."""
        analyzer = arith.Analyzer()
        for var, extent in zip(self.loops, self.extents):
            analyzer.bind(var, Range(0, extent))
        analyzer.update(self.signed, arith.ConstIntBound(-9, 9))
        return analyzer

    def constant(self, low: int, high: int) -> Sampled:
        """A literal from `low` to `high`, both included."""
        return self._literal(int(self._rng.integers(low, high + 1)))

    def leaf(self) -> Sampled:
        """A variable, or sometimes a literal."""
        if self._rng.random() < 0.25:
            return self.constant(-9, 17)
        return self._leaves[self._rng.integers(len(self._leaves))]

    def integer(self, depth: int) -> Sampled:
        """An expression of any operators, nested up to `depth`."""
        if depth <= 0 or self._rng.random() < 0.1:
            return self.leaf()
        make = _INTEGER_RULES[self._rng.integers(len(_INTEGER_RULES))]
        return make(self, depth - 1)

    def condition(self, depth: int) -> Sampled:
        """A comparison, or a combination of comparisons."""
        if depth > 1 and self._rng.random() < 0.3:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            node, func = _LOGIC[self._rng.integers(len(_LOGIC))]
        else:
            a, b = self.integer(depth - 1), self.integer(depth - 1)
            node, func = _COMPARISONS[self._rng.integers(len(_COMPARISONS))]
        return Sampled(node(a.expr, b.expr), func(a.values, b.values).astype("int64"))

    def affine(self) -> Sampled:
        """A sum of variables times literals or sizes, as index computations have."""
        total = self.constant(-4, 20)
        for leaf in self._leaves[: int(self._rng.integers(2, 6))]:
            scale = self.constant(-3, 64) if self._rng.random() < 0.7 else self._size()
            total = self._binary(tir.Add, np.add, total, self._product(leaf, scale))
        return total

    def layout(self) -> Sampled:
        """A flattened loop nest, taken apart again by quotients and remainders."""
        index = self._literal(0)
        for loop, extent in zip(self._leaves, self.extents):
            index = self._binary(tir.Add, np.add, self._product(index, self._literal(extent)), loop)
        for _ in range(int(self._rng.integers(1, 4))):
            divisor = self._literal(int(self._rng.choice([2, 3, 4, 7, 8, 12, 16, 28, 56])))
            kind = self._rng.integers(4)
            if kind == 0:
                index = self._binary(tir.FloorDiv, np.floor_divide, index, divisor)
            elif kind == 1:
                index = self._binary(tir.FloorMod, np.mod, index, divisor)
            elif kind == 2:
                index = self._binary(
                    tir.Add, np.add, self._product(index, divisor), self.constant(0, 30)
                )
            else:
                high = self._binary(tir.FloorDiv, np.floor_divide, index, divisor)
                low = self._binary(tir.FloorMod, np.mod, index, divisor)
                index = self._binary(tir.Add, np.add, self._product(high, divisor), low)
        return index

    def _literal(self, value: int) -> Sampled:
        points = len(self.values[self.signed])
        return Sampled(IntImm(self._dtype, value), np.full(points, value, "int64"))

    def _size(self) -> Sampled:
        size = self.sizes[self._rng.integers(len(self.sizes))]
        return Sampled(size, self.values[size])

    def _divisor(self) -> Sampled:
        if self._rng.random() < 0.3:
            return self._size()
        value = int(self._rng.integers(1, 17))
        return self._literal(-value if self._rng.random() < 0.15 else value)

    def _binary(
        self,
        node: Callable[..., PrimExpr],
        func: Callable[..., np.ndarray],
        a: Sampled,
        b: Sampled,
    ) -> Sampled:
        return Sampled(node(a.expr, b.expr), func(a.values, b.values))

    def _product(self, a: Sampled, b: Sampled) -> Sampled:
        if np.abs(a.values).max() * np.abs(b.values).max() > _LARGEST:
            return self._binary(tir.Add, np.add, a, b)
        return self._binary(tir.Mul, np.multiply, a, b)

    def _select(self, depth: int) -> Sampled:
        condition = self.condition(depth)
        a, b = self.integer(depth), self.integer(depth)
        return Sampled(
            tir.Select(condition.expr, a.expr, b.expr),
            np.where(condition.values != 0, a.values, b.values),
        )


def _truncated_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def _truncated_remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - b * _truncated_quotient(a, b)


_ARITHMETIC: dict[type, Callable[..., np.ndarray]] = {
    tir.Add: np.add,
    tir.Sub: np.subtract,
    tir.Min: np.minimum,
    tir.Max: np.maximum,
}
_DIVISIONS: dict[type, Callable[..., np.ndarray]] = {
    tir.FloorDiv: np.floor_divide,
    tir.FloorMod: np.mod,
    tir.Div: _truncated_quotient,
    tir.Mod: _truncated_remainder,
}
_COMPARISONS: list[tuple[Any, Callable[..., np.ndarray]]] = [
    (tir.LT, np.less),
    (tir.LE, np.less_equal),
    (tir.GT, np.greater),
    (tir.GE, np.greater_equal),
    (tir.EQ, np.equal),
    (tir.NE, np.not_equal),
]
_LOGIC: list[tuple[Any, Callable[..., np.ndarray]]] = [
    (tir.And, np.logical_and),
    (tir.Or, np.logical_or),
]


def _integer_rules() -> list[Callable[[ExprSampler, int], Sampled]]:
    def arithmetic(node: Any, func: Any) -> Callable[[ExprSampler, int], Sampled]:
        return lambda s, depth: s._binary(node, func, s.integer(depth), s.integer(depth))

    def division(node: Any, func: Any) -> Callable[[ExprSampler, int], Sampled]:
        return lambda s, depth: s._binary(node, func, s.integer(depth), s._divisor())

    rules = [arithmetic(*item) for item in _ARITHMETIC.items()]
    rules += [division(*item) for item in _DIVISIONS.items()]
    rules += [
        lambda s, depth: s._product(s.integer(depth), s.integer(depth)),
        lambda s, depth: s._product(s.integer(depth), s.constant(-4, 16)),
        ExprSampler._select,
    ]
    return rules


_INTEGER_RULES = _integer_rules()
_BINARY: dict[type, Callable[..., np.ndarray]] = {
    **_ARITHMETIC,
    **_DIVISIONS,
    **dict(_COMPARISONS),
    **dict(_LOGIC),
    tir.Mul: np.multiply,
}


def evaluate(expr: PrimExpr, values: Mapping[Any, np.ndarray]) -> np.ndarray:
    """Values of an integer or boolean expression at all points.

    Raises
    ------
    ValueError : the expression holds something else than integer arithmetic.
    """
    if isinstance(expr, IntImm):
        return np.int64(expr.value)  # type: ignore[return-value]
    if isinstance(expr, tir.Var):
        return values[expr]
    func = _BINARY.get(type(expr))
    if func is not None:
        return np.asarray(func(evaluate(expr.a, values), evaluate(expr.b, values)), "int64")
    if isinstance(expr, tir.Select):
        chosen = (expr.condition, expr.true_value, expr.false_value)
        condition, a, b = (evaluate(part, values) for part in chosen)
        return np.where(condition != 0, a, b)
    if isinstance(expr, tir.Not):
        return np.asarray(evaluate(expr.a, values) == 0, "int64")
    if isinstance(expr, tir.Cast):
        return evaluate(expr.value, values)
    raise ValueError(f"evaluate: cannot compute {type(expr).__name__}: {expr}")
