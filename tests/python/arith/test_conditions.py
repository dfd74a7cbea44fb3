"""Conditions that are one, minima in comparisons and quotients, selections that meet in a sum."""

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.testing.index_exprs import evaluate

x, y, z = te.var("x"), te.var("y"), te.var("z")
b = te.var("b", "bool")
div, mod = te.floordiv, te.floormod

# What is simplified, and what it becomes.
U = te.var("u", "uint8")
CALL = tir.call_extern("int32", "effect")
FORMS = [
    (tir.And(x <= y, y <= x), x == y),
    (tir.And(x < y, x != y), x < y),
    (tir.And(x <= y, x != y), x < y),
    (tir.And(x <= y, y != x), x < y),
    (tir.And(x >= 0, x <= 0), x == 0),
    (tir.Or(x < y, x == y), x <= y),
    (tir.Or(x < y, y == x), x <= y),
    (tir.Or(x < y, y < x), x != y),
    (tir.Or(x == 1, x != 1), True),
    (tir.And(x == 1, x != 1), False),
    (tir.Or(b, tir.Not(b)), True),
    (tir.And(b, tir.Not(b)), False),
    (tir.Or(b, tir.And(b, x < 1)), b),
    (tir.And(b, tir.Or(b, x < 1)), b),
    (te.min(x, 11) < 10, x < 10),
    (te.max(x, 8) < 10, x < 10),
    (te.max(x, 10) < 10, False),
    (te.min(x, 8) < 10, True),
    (te.max(x, y) == x, y <= x),
    (te.min(x, y) == y, y <= x),
    (te.max(x, y) != x, x < y),
    (x - div(x, 3) * 3, mod(x, 3)),
    (div(x, 4) * 4 < x, tir.LT(0, mod(x, 4))),
    # An order is as strict as it was written, unless it is shorter the other way.
    (x > 0, tir.LT(0, x)),
    (x >= 1, tir.LE(1, x)),
    (x + 1 <= 5, x <= 4),
    (x + 1 < 5, x < 4),
    (x + 1 <= y, x < y),
    (x < y + 1, x <= y),
    (div(te.min(x * 6, y), 2), te.min(x * 3, div(y, 2))),
    (div(te.max(x, 10), 4), te.max(div(x, 4), 2)),
    (div(x + 2, 4) * 4 >= x, mod(x + 2, 4) <= 2),
    (te.max(x, y) < z, te.max(x, y) < z),
    (mod(x, 4) <= 0, tir.EQ(mod(x, 4), 0)),
    (tir.EQ(x * y, 0), tir.Or(tir.EQ(x, 0), tir.EQ(y, 0))),
    (tir.NE(x * y, 0), tir.And(tir.NE(x, 0), tir.NE(y, 0))),
    (tir.Not(tir.And(x < y, b)), tir.Or(y <= x, tir.Not(b))),
    (tir.Not(tir.Or(x < y, b)), tir.And(y <= x, tir.Not(b))),
    # Operands stand as their variables were met, numbers last.
    (te.min(x, y) * 4, te.min(x, y) * 4),
    (te.min(10, x), te.min(x, 10)),
    # Each operand of nested ones once.
    (te.max(te.max(x, 1), 10), te.max(x, 10)),
    (te.max(te.max(x, 4), te.max(y, 4)), te.max(te.max(x, y), 4)),
    (te.min(x, te.min(y, z)), te.min(te.min(x, y), z)),
    (te.max(te.min(x, y), te.min(z, x)), te.min(x, te.max(y, z))),
    (te.max(te.min(x, y), te.min(te.min(z, y), x)), te.min(x, y)),
    (te.min(div(x, 4), div(y, 4)), div(te.min(x, y), 4)),
    # Digits side by side.
    (mod(div(x, 4), 8) * 4 + mod(x, 4), mod(x, 32)),
    (mod(y + div(x, 4), 8) * 4 + mod(x, 4), mod(y * 4 + x, 32)),
    (te.truncdiv(x, 4) * 4 + te.truncmod(x, 4), x),
    # Bits of what is no data.
    (tir.bitwise_and(x, 7), mod(x, 8)),
    (tir.shift_left(tir.shift_right(x, 3), 3), div(x, 8) * 8),
    (tir.Select(b, x, y) + tir.Select(b, 1, 2), tir.Select(b, x + 1, y + 2)),
    (tir.Select(b, x, y) - x, tir.Select(b, 0, y - x)),
    (x - tir.Select(b, y, x), tir.Select(b, x - y, 0)),
    (tir.Select(b, True, False), b),
    (tir.Select(x < y, False, True), y <= x),
    (te.truncdiv(te.truncdiv(x, 3), 10), te.truncdiv(x, 30)),
    (tir.shift_right(x, 0), x),
    (tir.shift_left(tir.const(0), x), tir.const(0)),
    # No bits, all bits, and the same bits.
    (tir.bitwise_and(x, 0), tir.const(0)),
    (tir.bitwise_and(tir.const(0), x), tir.const(0)),
    (tir.bitwise_or(x, 0), x),
    (tir.bitwise_xor(tir.const(0), x), x),
    (tir.bitwise_and(x, -1), x),
    (tir.bitwise_or(x, -1), tir.const(-1)),
    (tir.bitwise_xor(x, -1), tir.bitwise_xor(x, -1)),
    (tir.bitwise_and(U, tir.const(255, "uint8")), U),
    (tir.bitwise_and(x, x), x),
    (tir.bitwise_or(x, x), x),
    (tir.bitwise_xor(U, U), tir.const(0, "uint8")),
    (tir.bitwise_not(tir.bitwise_not(x)), x),
    # What has an effect stays.
    (tir.bitwise_and(CALL, 0), tir.bitwise_and(CALL, 0)),
    (tir.bitwise_xor(CALL, CALL), tir.bitwise_xor(CALL, CALL)),
    (tir.Cast("int32", tir.Cast("int64", x)), x),
    (tir.max(tir.Ramp(x, 1, 4), tir.Broadcast(x, 4)), tir.Ramp(x, 1, 4)),
    (tir.min(tir.Ramp(x, 1, 4), tir.Broadcast(x, 4)), tir.Broadcast(x, 4)),
]


@pytest.mark.parametrize("before, after", FORMS, ids=[str(form[0]) for form in FORMS])
def test_forms(before, after):
    after = tir.const(after, "bool") if isinstance(after, bool) else after
    got = tvm.arith.Analyzer().simplify(before)
    tvm.ir.assert_structural_equal(got, after)


# All points of a small square.
POINTS = dict(zip((x, y), map(np.ravel, np.meshgrid(np.arange(-6, 7), np.arange(-6, 7)))))


def check_same_values(before):
    after = tvm.arith.Analyzer().simplify(before)
    same = evaluate(before, POINTS) == evaluate(after, POINTS)
    assert np.all(same), f"{before} became {after}"


@pytest.mark.parametrize("seed", range(4))
def test_pairs_of_comparisons_mean_what_they_were(seed):
    """Random conditions of comparisons, minima and remainders, at all points of a small square."""
    rng = np.random.default_rng(seed)

    def number():
        kind = rng.integers(6)
        u = [x, y][rng.integers(2)]
        c = int(rng.integers(-3, 4))
        if kind == 0:
            return te.min(u, c) if rng.integers(2) else te.max(u, [x, y][rng.integers(2)])
        if kind == 1:
            return div(te.min(x * 2 + c, y), int(rng.integers(2, 4)))
        if kind == 2:
            m = int(rng.integers(2, 5))
            return u - div(u + c, m) * m
        if kind == 3:
            return u * int(rng.integers(1, 3)) + c
        return u if kind == 4 else tir.const(c, "int32")

    def comparison():
        op = [tir.LT, tir.LE, tir.EQ, tir.NE, tir.GT, tir.GE][rng.integers(6)]
        p, q = number(), number()
        return op(p, q)

    for _ in range(60):
        first = comparison()
        second = comparison() if rng.integers(3) else tir.Not(first)
        before = (tir.And if rng.integers(2) else tir.Or)(first, second)
        check_same_values(before)


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_selections_mean_what_they_were(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        cond = x < int(rng.integers(-3, 4))
        terms = [x, y, tir.const(int(rng.integers(-3, 4)), "int32")]
        pick = lambda: terms[rng.integers(3)]  # noqa: B023, E731
        one = tir.Select(cond, pick(), pick())
        other = tir.Select(cond, pick(), pick()) if rng.integers(2) else pick()
        one, other = (one, other) if rng.integers(2) else (other, one)
        before = one + other if rng.integers(2) else one - other
        check_same_values(before)


def test_a_selection_that_guards_nothing_is_not_computed_apart():
    """A branch that another condition chooses stays where it is."""
    other = te.var("other", "bool")
    kept = tir.Select(b, x, y) + tir.Select(other, 1, 2)
    assert isinstance(tvm.arith.Analyzer().simplify(kept), tir.Add)


@pytest.mark.parametrize(
    "index", [tir.min(x, 9), tir.Select(x <= 9, x, 9), mod(x, 10)], ids=["min", "select", "mod"]
)
def test_an_index_stays_clamped_where_a_condition_beside_it_would_do(index):
    # Both sides of a conjunction and of a selection are computed, so the element must be there.
    data = tir.decl_buffer((10,), "float32")
    analyzer = tvm.arith.Analyzer()
    analyzer.bind(x, tvm.ir.Range(0, 100))
    within = tir.And(x <= 9, tir.BufferLoad(data, [index]) > tir.const(0, "float32"))
    tvm.ir.assert_structural_equal(analyzer.simplify(within), within)
    chosen = tir.Select(x <= 9, tir.BufferLoad(data, [index]), tir.const(0, "float32"))
    tvm.ir.assert_structural_equal(analyzer.simplify(chosen), chosen)
    plain = tir.if_then_else(x <= 9, tir.BufferLoad(data, [index]), tir.const(0, "float32"))
    assert analyzer.simplify(plain).args[1].indices[0].same_as(x)
