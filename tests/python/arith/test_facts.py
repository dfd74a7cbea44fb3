"""What an Analyzer is told holds as long as it is stated, and no answer outlives it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import arith, tir
from tvm.ir import Range
from tvm.testing.index_exprs import ExprSampler, evaluate

X, Y = tir.Var("x", "int32"), tir.Var("y", "int32")
N = tir.SizeVar("n", "int32")


def bounds(analyzer, expr):
    found = analyzer.const_int_bound(expr)
    return found.min_value, found.max_value


@pytest.mark.parametrize(
    "before",
    [
        lambda a: a.bind(X, 3),
        lambda a: a.bind(X, Range(3, 4)),
        lambda a: a.bind(X, Range(0, 4)),
        lambda a: a.update(X, arith.ConstIntBound(3, 3)),
    ],
)
@pytest.mark.parametrize(
    "replace",
    [
        lambda a: a.bind(X, Range(0, 20), override=True),
        lambda a: a.update(X, arith.ConstIntBound(0, 19), override=True),
        lambda a: a.bind(X, tir.FloorMod(N, 20), override=True),
    ],
)
def test_an_override_replaces_every_kind_of_fact(before, replace):
    analyzer = arith.Analyzer()
    before(analyzer)
    analyzer.bind(Y, Range(0, X + 1))
    assert analyzer.can_prove(Y < 4)
    replace(analyzer)
    assert not analyzer.can_prove(X < 4)
    assert not analyzer.can_prove(Y < 4)
    assert bounds(analyzer, X) == (0, 19)
    assert bounds(analyzer, Y) == (0, 19)


def test_an_override_reaches_ranges_that_were_simplified_with_what_it_replaces():
    analyzer = arith.Analyzer()
    analyzer.bind(X, Range(0, 8))
    analyzer.bind(Y, Range(0, X // 8 + 4))
    assert bounds(analyzer, Y) == (0, 3)
    analyzer.bind(X, Range(0, 64), override=True)
    assert bounds(analyzer, Y) == (0, 10)


def test_a_size_is_never_below_one():
    with pytest.raises(ValueError, match=r"n is a SizeVar, which is at least 1"):
        arith.Analyzer().update(N, arith.ConstIntBound(-3, 0))


def test_a_range_without_use_still_replaces_the_one_before():
    analyzer = arith.Analyzer()
    analyzer.bind(X, Range(0, 4))
    analyzer.bind(X, Range(0, X), override=True)
    assert not analyzer.can_prove(X < 4)


def test_a_set_over_bound_variables_forgets_a_range_that_was_replaced():
    analyzer = arith.Analyzer()
    analyzer.bind(X, Range(0, 4))
    analyzer.update(X, arith.ConstIntBound(0, 100), override=True)
    assert not analyzer.can_prove(analyzer.int_set(X).max_value < 100)


def test_what_is_stated_inside_a_condition_outlives_the_condition_but_not_its_help():
    analyzer = arith.Analyzer()
    with analyzer.constraint_scope(X == 3):
        analyzer.bind(Y, Range(0, X))
        analyzer.update(N, arith.ConstIntBound(5, 9), override=True)
        assert analyzer.can_prove(Y < 3)
    assert analyzer.can_prove(Y < X)
    assert not analyzer.can_prove(Y < 3)
    assert bounds(analyzer, N) == (5, 9)


def test_an_override_inside_a_condition_keeps_the_condition():
    analyzer = arith.Analyzer()
    analyzer.update(X, arith.ConstIntBound(0, 3))
    with analyzer.constraint_scope(X < 2):
        analyzer.update(X, arith.ConstIntBound(-9, 9), override=True)
        assert bounds(analyzer, X) == (-9, 1)
    assert bounds(analyzer, X) == (-9, 9)


def test_conditions_end_in_any_order_and_once():
    analyzer = arith.Analyzer()
    outer, inner = analyzer.constraint_scope(X < 5), analyzer.constraint_scope(X + Y < 3)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert not analyzer.can_prove(X < 5)
    assert analyzer.can_prove(X + Y < 3)
    inner.__exit__(None, None, None)
    assert not analyzer.can_prove(X + Y < 3)


def test_one_scope_object_can_be_entered_twice():
    analyzer = arith.Analyzer()
    scope = analyzer.constraint_scope(X < 5)
    with scope:
        with scope:
            pass
        assert analyzer.can_prove(X < 5)
    assert not analyzer.can_prove(X < 5)


def test_a_variable_cannot_have_a_value_that_needs_it():
    analyzer = arith.Analyzer()
    with pytest.raises(ValueError, match="the value of x cannot depend on x"):
        analyzer.bind(X, X + 1)
    analyzer.bind(X, Y + 1)
    with pytest.raises(ValueError, match="the value of y cannot depend on y"):
        analyzer.bind(Y, X - 1)
    assert analyzer.can_prove_equal(X - Y, 1)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (lambda a: a.bind(X, 1.5), ValueError, "must be of type int32, got .* of type float32"),
        (lambda a: a.bind(X, (0, 3)), TypeError, r"Analyzer\.bind: argument 1: expected PrimExpr"),
        (lambda a: a.update("x", arith.ConstIntBound(0, 1)), TypeError, r"Analyzer\.update: "),
        (lambda a: a.constraint_scope(X + 1).__enter__(), ValueError, "must be boolean, got x"),
        (lambda a: a.constraint_scope(None).__enter__(), TypeError, r"constraint_scope: .*None"),
        (lambda a: a.can_prove(None), TypeError, r"Analyzer\.can_prove: .* got None"),
        (
            lambda a: a.bind(tir.Var("f", "float32"), Range(0, 3)),
            ValueError,
            "must be integers, got f of type float32",
        ),
    ],
)
def test_what_cannot_be_stated_is_refused(state, error, message):
    with pytest.raises(error, match=message):
        state(arith.Analyzer())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_answers_follow_facts_that_come_and_go(seed):
    rng = np.random.default_rng(seed)
    sampler = ExprSampler(rng, points=64)
    first, second, signed = sampler.loops[0], sampler.loops[1], sampler.signed
    analyzer = arith.Analyzer()
    asked = [sampler.integer(2) for _ in range(3)] + [sampler.condition(2) for _ in range(3)]
    stated = {}
    scopes = []

    def state() -> None:
        var = (first, second, signed)[rng.integers(3)]
        low, extent = int(rng.integers(-4, 4)), int(rng.choice([1, 2, 4, 9]))
        kind = rng.integers(3)
        if kind == 0 and var is not first:
            analyzer.bind(var, Range.from_min_extent(low, first), override=True)
            stated[var] = lambda at: (at[var] >= low) & (at[var] < low + at[first])
        elif kind == 1:
            analyzer.update(var, arith.ConstIntBound(low, low + extent - 1), override=True)
            stated[var] = lambda at: (at[var] >= low) & (at[var] < low + extent)
        else:
            analyzer.bind(var, Range.from_min_extent(low, extent), override=True)
            stated[var] = lambda at: (at[var] >= low) & (at[var] < low + extent)

    for _ in range(10):
        step = rng.integers(3)
        if step == 0:
            state()
        elif step == 1 and len(scopes) < 3:
            condition = sampler.condition(2)
            scope = analyzer.constraint_scope(condition.expr)
            scope.__enter__()
            scopes.append((condition, scope))
        elif scopes:
            scopes.pop()[1].__exit__(None, None, None)
        holds = np.ones(64, bool)
        for fact in stated.values():
            holds &= fact(sampler.values)
        for condition, _ in scopes:
            holds &= condition.values != 0
        for sample in asked:
            short = analyzer.simplify(sample.expr)
            found = np.broadcast_to(evaluate(short, sampler.values), (64,))
            assert np.all((found == sample.values)[holds]), f"{sample.expr} became {short}"
            bound = analyzer.const_int_bound(sample.expr)
            inside = (bound.min_value <= sample.values) & (sample.values <= bound.max_value)
            assert np.all(inside[holds]), f"{sample.expr} leaves {bound}"
