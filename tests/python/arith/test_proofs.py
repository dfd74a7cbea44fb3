"""What an Analyzer proves of conditions: scaled facts, alternatives, selections, congruences."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import arith, te, tir
from tvm.testing.index_exprs import ExprSampler, evaluate

x, y, z = tir.Var("x", "int32"), tir.Var("y", "int32"), tir.Var("z", "int32")
n, m = tir.SizeVar("n", "int32"), tir.SizeVar("m", "int32")
div, mod = te.floordiv, te.floormod

# What holds, and what follows of it.
PROOFS = [
    # A fact is taken off as often as needed.
    (x < div(n + 31, 32), te.min(n - x * 32, 32) > 0),
    (x < div(n + 3, 4), x * 4 < n + 3),
    (x * 4 - y >= 0, x * 8 >= y * 2),
    (tir.all(x * 4 >= n), x > 0),
    (tir.all(x < n, y < m), x * m + y < n * m),
    (tir.all(x >= 0, y >= 0, x <= n, y <= m), x * y <= n * m),
    # Both alternatives say it.
    (tir.any(x < 3, x < 9), x < 9),
    (tir.any(x < y, x < y - 1), x < y),
    (tir.any(tir.all(x < 3, y < 2), tir.EQ(x, 8)), x < 9),
    (tir.Not(tir.all(x > 3, x > 9)), x < 10),
    # An end that is excluded.
    (tir.all(tir.NE(x, 5), x <= 5), x < 5),
    (tir.all(x <= y, tir.NE(x, y)), x < y),
    # Of the multiples of a number.
    (tir.all(tir.EQ(mod(x, 4), 0), x > 0), x >= 4),
    (tir.all(tir.EQ(mod(x, 4), 3), x < 11), x <= 7),
    (tir.all(tir.EQ(mod(x, 4), 0), x > -4, x < 4), tir.EQ(x, 0)),
    # Each branch where it is selected.
    (tir.const(True, "bool"), tir.Select(x > 0, x, 0) >= 0),
    (tir.const(True, "bool"), tir.abs(x) >= x),
    (y > 2, tir.if_then_else(tir.all(x > y, x < 100), x - y, 4) > 0),
    (tir.const(True, "bool"), tir.EQ(mod(x, n * m) - mod(x, n), mod(div(x, n), m) * n)),
    (tir.const(True, "bool"), tir.bitwise_or(tir.bitwise_and(x, 3), 4) < 8),
    (tir.const(True, "bool"), tir.bitwise_xor(tir.bitwise_and(x, 5), 8) <= 15),
]


@pytest.mark.parametrize(("given", "claim"), PROOFS, ids=[str(claim) for _, claim in PROOFS])
def test_what_follows_is_proved(given, claim):
    analyzer = arith.Analyzer()
    with analyzer.constraint_scope(given):
        assert analyzer.can_prove(claim)


@pytest.mark.parametrize(
    ("given", "claim"),
    [
        (tir.any(x < 3, y < 9), x < 9),
        (tir.all(tir.NE(x, 4), x <= 5), x < 5),
        (tir.all(tir.EQ(mod(x, 4), 1), x > 0), x >= 4),
        (x <= n, x * y <= n * y),
        (tir.const(True, "bool"), tir.Select(x > -2, x, 0) >= 0),
    ],
)
def test_what_does_not_follow_is_not(given, claim):
    analyzer = arith.Analyzer()
    with analyzer.constraint_scope(given):
        assert not analyzer.can_prove(claim)
    assert not analyzer.can_prove(claim)


@pytest.mark.parametrize(
    ("expr", "low", "high"),
    [
        (div(x + 5, 3) - div(x, 3), 1, 2),
        (div(x, 4) * 2 - div(x, 2), -1, 0),
        (div(x + y, 6) - div(y, 6) - div(x, 6), 0, 1),
    ],
)
def test_bounds_of_sums_of_quotients(expr, low, high):
    bound = arith.Analyzer().const_int_bound(expr)
    assert (bound.min_value, bound.max_value) == (low, high)


@pytest.mark.parametrize("seed", range(20))
def test_conditions_never_prove_what_a_point_contradicts(seed):
    sampler = ExprSampler(np.random.default_rng(seed), points=400)
    for _ in range(40):
        given, other, claim = sampler.condition(3), sampler.condition(2), sampler.condition(2)
        cond, holds = tir.Or(given.expr, tir.Not(other.expr)), (given.values | (1 - other.values))
        analyzer = sampler.analyzer()
        with analyzer.constraint_scope(cond):
            short = analyzer.simplify(claim.expr)
        found = np.broadcast_to(evaluate(short, sampler.values), holds.shape)
        wrong = (found != claim.values) & (holds != 0)
        assert not wrong.any(), f"under {cond}, {claim.expr} became {short}"
