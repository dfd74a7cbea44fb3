"""Regions that loops touch, narrowed predicates and common parts of expressions."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tvm
from tvm import arith, te, tir
from tvm.ir import Range

i, j, n = te.var("i"), te.var("j"), te.var("n")


def ends(sets):
    return [(int(s.min_value), int(s.max_value)) for s in sets]


def touched(region, loops, predicate=None):
    """Elements of a region, by running the loops."""
    found = set()
    variables = list(loops)
    for values in itertools.product(*(range(int(loops[v].extent)) for v in variables)):
        known = {v: tir.const(x, "int32") for v, x in zip(variables, values)}

        def number(expr, known=known):
            return int(arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, known)))

        if predicate is not None and not number(predicate):
            continue
        starts = [number(r.min) for r in region]
        spans = [range(s, s + int(r.extent)) for s, r in zip(starts, region)]
        found.update(itertools.product(*spans))
    return found


def box(sets):
    return set(itertools.product(*(range(lo, hi + 1) for lo, hi in ends(sets))))


@given(
    st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), st.integers(1, 30)
)
def test_strict_regions_are_what_the_loops_touch(outer, inner, step, width, limit):
    loops = {i: Range(0, outer), j: Range(0, inner)}
    region = [Range.from_min_extent(i * step + j, width), Range.from_min_extent(j, 1)]
    for dims in (region[:1], region):
        for predicate in (True, i * step + j < limit, j < limit):
            found = arith.estimate_region_strict_bound(dims, loops, predicate)
            real = touched(dims, loops, None if predicate is True else predicate)
            if found is not None:
                assert box(found) == real
            assert real <= box(arith.estimate_region_upper_bound(dims, loops, predicate))


def test_regions_of_split_loops_follow_their_condition():
    loops = {i: Range(0, 4), j: Range(0, 4)}
    region = [Range.from_min_extent(i * 4 + j, 1)]
    assert ends(arith.estimate_region_lower_bound(region, loops, i * 4 + j < 14)) == [(0, 13)]
    assert ends(arith.estimate_region_strict_bound(region, loops)) == [(0, 15)]


def test_diagonals_and_gaps_are_no_boxes():
    loops = {i: Range(0, 4)}
    diagonal = [Range.from_min_extent(i, 1), Range.from_min_extent(i, 1)]
    assert arith.estimate_region_strict_bound(diagonal, loops) is None
    gaps = [Range.from_min_extent(i * 3, 2)]
    assert arith.estimate_region_strict_bound(gaps, loops) is None
    assert ends(arith.estimate_region_upper_bound(gaps, loops)) == [(0, 10)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (i + j < 16, i < 13),
        (i - j >= 2, i >= 5),
        (tir.all(i < n, j < 8), i < n),
        (tir.any(i < n, j < 2), i < n),
        (tir.Not(i + j < 4), i >= 4),
        (tir.EQ(i, j), tir.const(False, "bool")),
        (i * 2 + j > j, i > 0),
        (tir.likely(i + j < 16), tir.likely(i < 13)),
    ],
)
def test_predicates_without_a_variable(before, after):
    found = arith.narrow_predicate_expression(before, {j: Range(0, 4)})
    assert tvm.ir.structural_equal(found, arith.Analyzer().simplify(after)), found


@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(-5, 5), st.integers(0, 4))
def test_narrow_predicates_imply_the_wide_ones(a, b, c, kind):
    left = a * i + b * j
    before = [left < c, left <= c, left > c, tir.EQ(left, c), tir.NE(left, c)][kind]
    for predicate in (before, tir.Not(before), tir.all(before, i < 2), tir.any(before, i < 0)):
        narrow = arith.narrow_predicate_expression(predicate, {j: Range(0, 3)})

        def number(expr, **values):
            names = {v: tir.const(values[v.name], "int32") for v in (i, j) if v.name in values}
            return int(arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, names)))

        for x in range(-4, 5):
            if number(narrow, i=x):
                assert all(number(predicate, i=x, j=y) for y in range(3))


def test_common_parts_are_counted_by_their_first_occurrence():
    part = tir.floor((i + j).astype("float32") + 0.5)
    again = tir.floor((i + j).astype("float32") + 0.5)
    found = arith.detect_common_subexpr(part * 2.0 + again, 2)
    assert int(found[part]) == 2
    assert len(found) == 4
    assert not len(arith.detect_common_subexpr(part + again, 3))
    with pytest.raises(ValueError, match="at least 1"):
        arith.detect_common_subexpr(part, 0)


def test_extensions_are_kept_and_one_multiplies_conditions_out():
    analyzer = arith.Analyzer()
    mixed = tir.any(tir.all(i < n, j < n), n < 4)
    analyzer.enabled_extensions = arith.Extension.NoExtensions
    assert isinstance(analyzer.rewrite_simplify(mixed), tir.Or)
    analyzer.enabled_extensions = arith.Extension.ConvertBooleanToAndOfOrs
    simple = analyzer.rewrite_simplify(mixed)
    assert isinstance(simple, tir.And)
    for values in itertools.product(range(2, 6), repeat=3):
        known = {v: tir.const(x, "int32") for v, x in zip((i, j, n), values)}
        results = [
            int(arith.Analyzer().simplify(tir.stmt_functor.substitute(e, known)))
            for e in (mixed, simple)
        ]
        assert results[0] == results[1]


def test_unsigned_coefficients_are_signed():
    c = te.var("c", "uint32")
    found = arith.detect_linear_equation(tir.const(128, "uint32") - c, [c])
    assert [int(part) for part in found] == [-1, 128]


def test_nonlinear_parts_of_inequalities_stay_conditions():
    x, y, z = te.var("x"), te.var("y"), te.var("z")
    relations = [x <= 6, x >= 6, x - z * y >= 0, x - z * y <= 0]
    solved = arith.solve_linear_inequalities(relations, [x, y, z])
    assert (int(solved.ranges[x].min), int(solved.ranges[x].extent)) == (6, 1)
    assert tvm.ir.structural_equal(solved.relations[0], tir.EQ(x, z * y))
    assert len(solved.relations) == 3
