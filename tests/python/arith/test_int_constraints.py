"""Linear systems over integers have the solutions that trying all values finds."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import arith, tir
from tvm.ir import Range, structural_equal

LOW, HIGH = -4, 5
COEFFICIENTS = st.integers(-3, 3)


def variables(count):
    return [tir.Var(f"x{k}", "int32") for k in range(count)]


def number(expr, values):
    replaced = tir.stmt_functor.substitute(
        tvm.runtime.convert(expr), {var: tir.const(value, "int32") for var, value in values.items()}
    )
    return int(arith.Analyzer().simplify(replaced))


def solutions(names, relations):
    """All points of the box for which the relations hold."""
    found = set()
    for point in product(range(LOW, HIGH), repeat=len(names)):
        values = dict(zip(names, point, strict=True))
        if all(number(relation, values) for relation in relations):
            found.add(point)
    return found


@st.composite
def systems(draw, kinds):
    names = variables(draw(st.integers(1, 2)))
    relations = []
    for _ in range(draw(st.integers(1, 3))):
        terms = [draw(COEFFICIENTS) * name for name in names]
        left = sum(terms, tir.const(draw(st.integers(-6, 6)), "int32"))
        relations.append(draw(st.sampled_from(kinds))(left, tir.const(0, "int32")))
    return names, relations


@given(systems([tir.EQ, tir.EQ, tir.LE, tir.GT]))
@settings(max_examples=25, deadline=None)
def test_solved_equations_have_the_same_solutions(system):
    names, relations = system
    ranges = {name: Range(LOW, HIGH) for name in names}
    solved = arith.solve_linear_equations(relations, names, ranges)
    wanted = solutions(names, relations)
    if not solved.src_to_dst:
        assert not wanted
        return
    found = set()
    fresh = list(solved.dst.variables)
    for point in product(range(-40, 41), repeat=len(fresh)) if len(fresh) < 2 else ():
        values = dict(zip(fresh, point, strict=True))
        inside = all(
            0
            <= value - number(solved.dst.ranges[var].min, values)
            < number(solved.dst.ranges[var].extent, values)
            for var, value in values.items()
            if var in solved.dst.ranges
        )
        if inside and all(number(relation, values) for relation in solved.dst.relations):
            found.add(tuple(number(solved.src_to_dst[name], values) for name in names))
    if len(fresh) < 2:
        box = {point for point in found if all(LOW <= value < HIGH for value in point)}
        assert box == wanted, f"{relations}: {solved.dst} {solved.src_to_dst}"
    for point in wanted:
        values = dict(zip(names, point, strict=True))
        there = {var: number(solved.dst_to_src[var], values) for var in fresh}
        assert tuple(number(solved.src_to_dst[name], there) for name in names) == point


@given(systems([tir.LE, tir.GE, tir.LT, tir.GT]))
@settings(max_examples=25, deadline=None)
def test_solved_inequalities_have_the_same_solutions(system):
    names, relations = system
    ranges = {name: Range(LOW, HIGH) for name in names}
    wanted = solutions(names, relations)
    solved = arith.solve_linear_inequalities(relations, names, ranges)
    if not solved.variables:
        assert not wanted
        return
    found = set()
    for point in product(range(LOW - 2, HIGH + 2), repeat=len(names)):
        values = dict(zip(names, point, strict=True))
        inside = all(
            0 <= values[var] - number(bound.min, values) < number(bound.extent, values)
            for var, bound in solved.ranges.items()
        )
        if inside and all(number(relation, values) for relation in solved.relations):
            found.add(point)
    assert found == wanted, f"{relations}: {solved}"


@given(systems([tir.LE, tir.GE, tir.LT, tir.GT]))
@settings(max_examples=25, deadline=None)
def test_inequalities_as_conditions_have_the_same_solutions(system):
    names, relations = system
    conditions = arith._ffi_api.SolveInequalitiesAsCondition(
        names, {name: Range(LOW, HIGH) for name in names}, relations
    )
    found = {
        point
        for point in product(range(LOW - 2, HIGH + 2), repeat=len(names))
        if all(number(c, dict(zip(names, point, strict=True))) for c in conditions)
    }
    assert found == solutions(names, relations), f"{relations}: {conditions}"


def test_bounds_that_follow_from_others_are_no_conditions():
    x, y = variables(2)
    found = arith._ffi_api.SolveInequalitiesAsCondition(
        [x, y], {x: Range(-100, 100), y: Range(0, 10)}, [x + y <= 20, x - y >= 10]
    )
    wanted = [x >= y + 10, x <= 20 - y, y >= 0, y <= 5]
    assert len(found) == len(wanted)
    assert all(structural_equal(*pair) for pair in zip(found, wanted, strict=True))


def test_an_equation_leaves_one_variable_less():
    x, y, z = variables(3)
    solved = arith.solve_linear_equations([tir.EQ(x + y + z, 15), tir.EQ(x + y, 10)], [x, y, z])
    (n,) = solved.dst.variables
    assert structural_equal(solved.src_to_dst[z], tir.const(5, "int32"))
    total = arith.Analyzer().simplify(solved.src_to_dst[x] + solved.src_to_dst[y])
    assert structural_equal(total, tir.const(10, "int32"))


def test_contradictions_have_no_solution():
    x, y = variables(2)
    solved = arith.solve_linear_equations(
        [tir.EQ(x + y, 0), tir.EQ(x - y, 0), tir.EQ(x, 5)], [x, y]
    )
    assert not list(solved.dst.variables)
    assert not int(solved.dst.relations[0])
    assert not int(arith.solve_linear_inequalities([x > 3, x < 2], [x]).relations[0])


def test_ranges_begin_at_zero_where_that_is_asked_for():
    x, y = variables(2)
    solved = arith.solve_linear_inequalities(
        [x + y <= 20, x - y >= 10],
        [x, y],
        {x: Range(-100, 100), y: Range(0, 10)},
        deskew_range=True,
    )
    assert [int(bound.extent) for bound in solved.dst.ranges.values()] in ([11, 6], [6, 11])
    assert all(int(bound.min) == 0 for bound in solved.dst.ranges.values())


def test_relations_are_conditions():
    x = tir.Var("x", "int32")
    with pytest.raises(ValueError, match="relations are conditions, got x"):
        arith.IntConstraints([x], {}, [x])


def test_the_best_range_is_the_shortest():
    n = tir.Var("n")
    bounds = arith.IntGroupBounds(2, [0, 3], [], [n, n + 4])
    best = bounds.find_best_range()
    assert int(best.min) == 2 and str(best.extent) == "n // 2 - 1"
    exact = arith.IntGroupBounds(1, [0], [5], [9]).find_best_range()
    assert (int(exact.min), int(exact.extent)) == (5, 1)
    assert arith.IntGroupBounds(1, [0], [], []).find_best_range() is None
    known = arith.IntGroupBounds(1, [0], [], [n, 10]).find_best_range({n: Range(0, 4)})
    assert str(known.extent) == "n + 1"


def test_a_length_that_is_given_makes_a_range():
    x, n = tir.Var("x", "int32"), tir.Var("n", "int32")
    solved = arith.solve_linear_inequalities([x > 3, x < n], [x])
    assert int(solved.ranges[x].min) == 4
    tvm.ir.assert_structural_equal(solved.ranges[x].extent, n - 4)
    # Without a last value there is no range, also where the type has one.
    assert not arith.solve_linear_inequalities([x > 3], [x]).ranges
    length = tvm.tir.Cast("int32", tvm.tir.exp(tir.Var("f", "float32")))
    solved = arith.solve_linear_inequalities([x > 3, x < length], [x])
    assert not solved.ranges and len(solved.relations) == 3
