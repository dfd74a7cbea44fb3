"""Congruences, against all values of the variables."""

import itertools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tvm
from tvm import arith, te, tir


def number_of(expr, values):
    bound = tir.stmt_functor.substitute(expr, {v: tir.const(x, v.dtype) for v, x in values.items()})
    return int(arith.Analyzer().simplify(bound))


x, y = te.var("x"), te.var("y")


@pytest.mark.parametrize(
    ("expr", "coeff", "base"),
    [
        (x * 6 + y * 4, 2, 0),
        ((x * 4 + 2) * (y * 6 + 1), 4, 2),
        (tir.floormod(x * 128 + y * 4, 256), 4, 0),
        (tir.floordiv(x * 4 + 2, 2), 2, 1),
        ((x * 4 + 2) >> 1, 2, 1),
        (tir.truncdiv(x * 8, 4), 2, 0),
        (te.max(x * 3 + 1, y * 9 + 4), 3, 1),
        (tir.Select(x > 0, x * 3 + 1, y * 9 + 4), 3, 1),
        ((x * 16 + y * 4) & 31, 4, 0),
        (tir.Let(x, y * 10, x + 1), 10, 1),
        ((x * 3 + 1).astype("int64"), 3, 1),
    ],
)
def test_congruences_of_operators(expr, coeff, base):
    found = arith.Analyzer().modular_set(expr)
    assert (found.coeff, found.base) == (coeff, base)


def test_a_cast_to_unsigned_keeps_only_what_wrapping_around_keeps():
    found = arith.Analyzer().modular_set((x * 12).astype("uint32"))
    assert (found.coeff, found.base) == (4, 0)


def test_floats_give_back_integers_that_their_mantissa_holds():
    small = te.var("small", "int8")
    analyzer = arith.Analyzer()
    found = analyzer.modular_set((small * 3 + 1).astype("float32").astype("int32"))
    assert (found.coeff, found.base) == (3, 1)
    assert analyzer.modular_set((x * 3 + 1).astype("float32").astype("int32")).coeff == 1


def test_conditions_on_remainders_hold_as_long_as_their_scope():
    analyzer = arith.Analyzer()
    with analyzer.constraint_scope(tir.truncmod(x, 4) == 1):
        with analyzer.constraint_scope(tir.floormod(x, 6) == 3):
            found = analyzer.modular_set(x)
            assert (found.coeff, found.base) == (12, 9)
            assert int(analyzer.simplify(x % 12)) == 9
        assert analyzer.modular_set(x).coeff == 4
    assert analyzer.modular_set(x).coeff == 1


@given(st.lists(st.tuples(st.integers(2, 9), st.integers(-9, 9)), min_size=1, max_size=4))
def test_conditions_combine_as_the_chinese_remainders(parts):
    analyzer = arith.Analyzer()
    exits = [analyzer.constraint_scope((x + shift) % divisor == 0) for divisor, shift in parts]
    solutions = [
        k for k in range(-2600, 2600) if all((k + shift) % divisor == 0 for divisor, shift in parts)
    ]
    for scope in exits:
        scope.__enter__()
    found = analyzer.modular_set(x)
    if solutions:
        assert all((k - found.base) % found.coeff == 0 for k in solutions)
        assert found.coeff == np.lcm.reduce([divisor for divisor, _ in parts])
    for scope in reversed(exits):
        scope.__exit__(None, None, None)
    assert analyzer.modular_set(x).coeff == 1


_LEAVES = st.sampled_from([x, y]) | st.integers(-6, 6).map(lambda v: tir.const(v, "int32"))


def _operator(children):
    positive = st.integers(1, 6).map(lambda v: tir.const(v, "int32"))
    pair = st.tuples(children, children)
    return st.one_of(
        pair.map(lambda p: p[0] + p[1]),
        pair.map(lambda p: p[0] - p[1]),
        pair.map(lambda p: p[0] * p[1]),
        pair.map(lambda p: te.min(*p)),
        pair.map(lambda p: tir.Select(x < y, p[0], p[1])),
        st.tuples(children, positive).map(lambda p: tir.floordiv(*p)),
        st.tuples(children, positive).map(lambda p: tir.floormod(*p)),
        st.tuples(children, positive).map(lambda p: tir.truncdiv(*p)),
        st.tuples(children, positive).map(lambda p: tir.truncmod(*p)),
        st.tuples(children, st.sampled_from([1, 3, 7])).map(lambda p: p[0] & p[1]),
    )


@given(st.recursive(_LEAVES, _operator, max_leaves=6))
def test_no_value_leaves_its_congruence(expr):
    found = arith.Analyzer().modular_set(expr)
    for values in itertools.product(range(-3, 4), repeat=2):
        value = number_of(expr, dict(zip((x, y), values)))
        if found.coeff == 0:
            assert value == found.base
        else:
            assert (value - found.base) % found.coeff == 0


@pytest.mark.parametrize("divisor", [3, 4, -6, 8])
def test_remainders_of_negative_numbers_are_numbers(divisor):
    for value in range(-30, 31):
        rest = tir.stmt_functor.substitute(tir.truncmod(x, divisor), {x: tir.const(value, x.dtype)})
        assert int(arith.Analyzer().simplify(rest)) == int(np.fmod(value, divisor))


def test_quotients_join_remainders_of_other_numbers():
    i0, i1 = te.var("i0", "int64"), te.var("i1", "int64")
    analyzer = arith.Analyzer()
    analyzer.bind(i0, tvm.ir.Range(0, 8))
    analyzer.bind(i1, tvm.ir.Range(0, 3))
    flat = i0 * 3 + i1
    digits = flat // 12 * 12 + flat % 12 // 4 * 4 + flat % 4
    assert tvm.ir.structural_equal(analyzer.simplify(digits), flat)


@given(
    st.integers(2, 6), st.integers(2, 6), st.integers(1, 5), st.integers(1, 5), st.integers(1, 9)
)
def test_digits_of_a_flat_index_keep_their_value(outer, inner, first, second, extent):
    analyzer = arith.Analyzer()
    analyzer.bind(x, tvm.ir.Range(0, outer))
    analyzer.bind(y, tvm.ir.Range(0, inner))
    flat = x * extent + y
    whole = first * second
    expr = flat // whole * whole + flat % whole // second * second + flat % second
    simple = analyzer.simplify(expr)
    for values in itertools.product(range(outer), range(inner)):
        known = dict(zip((x, y), values))
        assert number_of(simple, known) == operator.add(values[0] * extent, values[1])


@pytest.mark.parametrize(
    ("expr", "low", "high"),
    [
        (te.min(x, y), -9, 10),
        (te.max(x, y) * 2 + 1, 9, 23),
        (tir.truncdiv(x, y), -2, 2),
        (tir.truncdiv(x - 20, y), -7, 0),
        (x >> y, -1, 0),
    ],
)
def test_bounds_of_minima_and_rounded_quotients(expr, low, high):
    analyzer = arith.Analyzer()
    analyzer.bind(x, tvm.ir.Range(-9, 12))
    analyzer.bind(y, tvm.ir.Range(4, 11))
    bound = analyzer.const_int_bound(expr)
    assert (bound.min_value, bound.max_value) == (low, high)


@pytest.mark.parametrize(
    ("expr", "simple"),
    [
        (tir.all(x > 1, x > 2), x > 2),
        (tir.any(x < 2, x < 3), x < 3),
        (te.min(te.min(x, 11), 10), te.min(x, 10)),
        (tir.truncdiv(x * 4, 4), x),
        (tir.truncmod(x * 10, 5), tir.const(0, "int32")),
        (tir.Let(x, y, x + 1), y + 1),
        (tir.Let(x, 3, x + y), y + 3),
    ],
)
def test_simpler_forms(expr, simple):
    analyzer = arith.Analyzer()
    assert tvm.ir.structural_equal(analyzer.simplify(expr), analyzer.simplify(simple))


def test_guards_stay_before_what_they_guard():
    buffer = tir.decl_buffer((8,), "int32")
    guarded = tir.all(x >= 0, buffer[x] > 2)
    assert isinstance(arith.Analyzer().simplify(guarded), tir.And)
