"""The analyzers of tvm.arith: simplification, bounds, congruences, proofs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import arith, tir

X, Y = tir.Var("x", "int32"), tir.Var("y", "int32")
A, B = tir.SizeVar("a", "int32"), tir.SizeVar("b", "int32")
RANGES = {X: (-9, 9), Y: (0, 15), A: (1, 6), B: (1, 6)}


def evaluate(expr, env):
    """Value of an expression, computed in Python's own integers."""
    if isinstance(expr, tir.IntImm):
        return int(expr.value)
    if isinstance(expr, tir.Var):
        return next(value for var, value in env if var.same_as(expr))
    if isinstance(expr, tir.Select):
        chosen = expr.true_value if evaluate(expr.condition, env) else expr.false_value
        return evaluate(chosen, env)
    a, b = evaluate(expr.a, env), evaluate(expr.b, env)
    return {
        tir.Add: lambda: a + b,
        tir.Sub: lambda: a - b,
        tir.Mul: lambda: a * b,
        tir.FloorDiv: lambda: a // b,
        tir.FloorMod: lambda: a % b,
        tir.Min: lambda: min(a, b),
        tir.Max: lambda: max(a, b),
        tir.LT: lambda: a < b,
        tir.LE: lambda: a <= b,
    }[type(expr)]()


def index_exprs():
    leaves = st.one_of(
        st.sampled_from([X, Y, A, B]), st.integers(-8, 8).map(lambda v: tir.IntImm("int32", v))
    )
    divisors = st.one_of(
        st.sampled_from([A, B]),
        st.integers(-6, 8).filter(bool).map(lambda v: tir.IntImm("int32", v)),
    )

    def extend(inner):
        pair = st.tuples(inner, inner)
        return st.one_of(
            pair.map(lambda p: tir.Add(*p)),
            pair.map(lambda p: tir.Sub(*p)),
            pair.map(lambda p: tir.Mul(*p)),
            pair.map(lambda p: tir.Min(*p)),
            pair.map(lambda p: tir.Max(*p)),
            st.tuples(inner, divisors).map(lambda p: tir.FloorDiv(*p)),
            st.tuples(inner, divisors).map(lambda p: tir.FloorMod(*p)),
            st.tuples(inner, inner, inner).map(
                lambda p: tir.Select(tir.LT(p[0], p[1]), p[1], p[2])
            ),
        )

    return st.recursive(leaves, extend, max_leaves=8)


def points():
    return st.tuples(*[st.integers(low, high) for low, high in RANGES.values()]).map(
        lambda values: list(zip(RANGES, values))
    )


def analyzer_with_ranges() -> arith.Analyzer:
    ana = arith.Analyzer()
    for var, (low, high) in RANGES.items():
        ana.update(var, arith.ConstIntBound(low, high), override=True)
    return ana


@settings(max_examples=60, deadline=None)
@given(expr=index_exprs(), samples=st.lists(points(), min_size=8, max_size=8))
def test_simplify_keeps_values_and_settles(expr, samples):
    ana = analyzer_with_ranges()
    short = ana.simplify(expr)
    bound = ana.const_int_bound(expr)
    for env in samples:
        value = evaluate(expr, env)
        assert evaluate(short, env) == value, f"{expr} became {short} at {env}"
        assert bound.min_value <= value <= bound.max_value, f"{expr} leaves {bound} at {env}"
    settled = ana.simplify(short)
    assert ana.simplify(settled).same_as(settled), f"{short} keeps changing: {settled}"


@settings(max_examples=40, deadline=None)
@given(left=index_exprs(), right=index_exprs(), samples=st.lists(points(), min_size=6, max_size=6))
def test_a_proof_is_never_wrong(left, right, samples):
    ana = analyzer_with_ranges()
    less = ana.can_prove(tir.LT(left, right))
    not_less = ana.can_prove(tir.LE(right, left))
    for env in samples:
        holds = evaluate(left, env) < evaluate(right, env)
        assert not (less and not holds) and not (not_less and holds), f"{left} < {right} at {env}"


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (lambda: (A - 1) * B + (B - 1) + 1, lambda: A * B),
        (lambda: (X * A * B) // (A * B), lambda: X),
        (lambda: tir.floordiv(X * 4 + 3, 4), lambda: X),
        (lambda: tir.floormod(X * 8 + 5, 4), lambda: tir.IntImm("int32", 1)),
        (lambda: tir.floordiv(X, 4) * 4 + tir.floormod(X, 4), lambda: X),
        (lambda: tir.min(A * B, B), lambda: B),
        (lambda: tir.max(X + 2, X - 1), lambda: X + 2),
        # One more on a side could overflow, and the operands may be data.
        (lambda: X >= A, lambda: A <= X),
        (lambda: X + 1 > A, lambda: A <= X),
        (lambda: X - A < 0, lambda: tir.LT(X, A)),
        # The division goes to the number, whichever side it is on.
        (lambda: (X * 256 + Y) // 10 // 10 < 100, lambda: X * 256 + Y < 10000),
        (lambda: X // 3 <= 4, lambda: X <= 14),
        (lambda: X // 3 > -2, lambda: tir.LT(-4, X)),
        (lambda: X // 3 >= 2, lambda: tir.LE(6, X)),
        (lambda: tir.floordiv(tir.floordiv(X, 3), 5), lambda: tir.floordiv(X, 15)),
    ],
)
def test_simplify_reaches_the_short_form(expr, expected):
    tvm.ir.assert_structural_equal(arith.Analyzer().simplify(expr()), expected(), True)


def test_comparisons_forget_what_cannot_decide_them():
    """Y is less than a step of X, so whole steps decide."""
    analyzer = arith.Analyzer()
    analyzer.bind(Y, tvm.ir.Range(0, 16))
    for condition, expected in [
        (X * 16 + Y < 64, X < 4),
        (X * 16 + Y < 49, X * 16 + Y < 49),
        (X * 16 + Y >= 64, tir.LE(4, X)),
        (X * 32 + Y + 3 < 64, X < 2),
        (X * 64 + A * 32 + Y <= 63, X * 2 + A <= 1),
    ]:
        tvm.ir.assert_structural_equal(analyzer.simplify(condition), expected, True)
    lanes = tir.Ramp(X * 16, 1, 16)
    within = analyzer.simplify(tir.LT(lanes, tir.Broadcast(tir.const(64, "int32"), 16)))
    tvm.ir.assert_structural_equal(within, tir.Broadcast(X < 4, 16), True)


def test_places_in_fused_loops_of_three_dimensions_are_joined():
    """What is taken apart into (c, h, w) for an image of 56 x 56 is one distance again."""
    analyzer = arith.Analyzer()
    analyzer.bind(Y, tvm.ir.Range(0, 64))
    for fused in (X, X * 64 + Y, X * 64 + A * 8):
        row = tir.floordiv(fused, 56)
        place = tir.floordiv(row, 56) * 3136 + tir.floormod(row, 56) * 56 + tir.floormod(fused, 56)
        assert analyzer.can_prove_equal(place, fused)
        tvm.ir.assert_structural_equal(analyzer.simplify(place), analyzer.simplify(fused), True)


def test_ranges_with_symbolic_ends_prove_bounds_of_fused_indices():
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    ana = arith.Analyzer()
    ana.bind(i, tvm.ir.Range(0, A))
    ana.bind(j, tvm.ir.Range(0, B))
    assert ana.can_prove(i * B + j < A * B)
    assert ana.can_prove_equal((i * B + j) // B, i)
    assert not ana.can_prove(i * B + j < A * B - 1)


def test_a_condition_holds_inside_its_scope_only():
    ana = arith.Analyzer()
    with ana.constraint_scope(X < 5):
        assert ana.can_prove(X * 2 < 9)
    assert not ana.can_prove(X * 2 < 9)


def test_congruences_follow_multiplication_and_addition():
    ana = arith.Analyzer()
    ana.update(X, arith.ModularSet(4, 1))
    known = ana.modular_set(X * 3 + 2)
    assert (known.coeff, known.base) == (12, 5)
    assert int(ana.simplify(tir.floormod(X * 2, 8))) == 2


def test_contradicting_bounds_are_refused():
    ana = arith.Analyzer()
    ana.update(X, arith.ConstIntBound(0, 3))
    with pytest.raises(ValueError, match="already has the bounds"):
        ana.update(X, arith.ConstIntBound(5, 9))
    ana.update(X, arith.ConstIntBound(5, 9), override=True)
    assert ana.const_int_bound(X).min_value == 5


def test_update_refuses_other_kinds_of_facts():
    with pytest.raises(TypeError, match="use bind for ranges"):
        arith.Analyzer().update(X, 3)


def test_an_argument_of_the_wrong_type_names_the_method():
    analyzer = arith.Analyzer()
    with pytest.raises(
        TypeError, match=r"Analyzer\.simplify: argument 0: expected PrimExpr, got str"
    ):
        analyzer.simplify("x")
    with pytest.raises(TypeError, match=r"Analyzer\.bind: expected a Range or an expression for x"):
        analyzer.bind(tvm.tir.Var("x", "int32"), None)


def test_a_range_whose_end_its_type_does_not_hold_bounds_nothing():
    i, n = tir.Var("i", "int32"), tir.Var("n", "int32")
    analyzer = arith.Analyzer()
    analyzer.bind(i, tvm.ir.Range(0, n * (1 << 20) * (1 << 12) * 5 + 1))
    assert analyzer.int_set(i).max_value.same_as(arith.pos_inf())


def test_terms_of_data_cancel_in_comparisons_but_do_not_change_sides():
    data = tir.decl_buffer((3,), "int32", name="data")
    a, b, c = (data[i] for i in range(3))
    simplify = arith.Analyzer().simplify
    assert tvm.ir.structural_equal(simplify(a + b < b + c), a < c)
    assert tvm.ir.structural_equal(simplify(a <= b), a <= b)
    # With c the least number, a < c + b would be another question.
    assert tvm.ir.structural_equal(simplify(a - b < c), a - b < c)
