"""Sets with symbolic ends, linear forms, and solving of conditions."""

from __future__ import annotations

import pytest

import tvm
from tvm import arith, te, tir

X, Y, N = (tir.Var(name, "int32") for name in "xyn")
S = tir.SizeVar("s", "int32")


def interval(low, high):
    return arith.IntervalSet(low, high)


def assert_interval(found, low, high):
    ana = arith.Analyzer()
    assert ana.can_prove_equal(found.min_value, low), found
    assert ana.can_prove_equal(found.max_value, high), found


@pytest.mark.parametrize(
    ("expr", "low", "high"),
    [
        (X * 2 + Y, 2 * N, 2 * N + 25),
        (Y - X, -N - 10, -N + 5),
        (tir.floordiv(Y, 4), 0, 1),
        (tir.floormod(Y, 8), 0, 5),
        (tir.floormod(X, 4), 0, 3),
        (X * S, N * S, (N + 10) * S),
        (tir.min(X, N), N, N),
    ],
)
def test_values_of_an_expression_over_intervals(expr, low, high):
    domains = {X: interval(N, N + 10), Y: interval(0, 5)}
    assert_interval(arith.eval_set(expr, domains), low, high)


def test_an_unknown_sign_gives_an_unbounded_set():
    found = arith.eval_set(X * N, {X: interval(0, 5)})
    assert found.is_everything()


def test_union_and_intersection_use_what_is_known():
    both = [interval(N, N + 4), interval(N + 2, N + 9)]
    assert_interval(arith.union_sets(both), N, N + 9)
    assert_interval(arith.intersect_sets(both), N + 2, N + 4)
    assert arith.intersect_sets([interval(0, 3), interval(5, 9)]).is_nothing()


def test_linear_forms_have_one_coefficient_for_each_variable():
    ana = arith.Analyzer()
    form = arith.detect_linear_equation((X + Y * N) * 4 + 7, [X, Y])
    assert len(form) == 3
    for found, wanted in zip(form, [4, N * 4, 7]):
        assert ana.can_prove_equal(found, wanted)
    assert len(arith.detect_linear_equation(X * Y, [X, Y])) == 0


def test_clip_bounds_are_found_for_single_variables():
    found = arith.detect_clip_bound(tvm.tir.all(X >= N, X < N + 8), [X])
    assert_interval(interval(*found), N, N + 7)
    assert len(arith.detect_clip_bound(X + Y < 8, [X, Y])) == 0


@pytest.mark.parametrize(
    ("cond", "high"),
    [(X * 4 + 1 < N, (N - 2) // 4), (X + N <= 3, 3 - N), (X // 4 < N, N * 4 - 1)],
)
def test_deduced_bounds_imply_the_condition(cond, high):
    found = arith.deduce_bound(X, cond, {}, {})
    assert arith.Analyzer().can_prove_equal(found.max_value, high)


def test_deduced_bounds_hold_for_all_values_of_relaxed_variables():
    found = arith.deduce_bound(X, X + Y < 20, {Y: interval(0, 5)}, {Y: interval(0, 5)})
    assert int(found.max_value) == 14


def test_touched_domain_covers_all_accesses():
    data = te.placeholder((32,), name="data")
    out = te.compute((16,), lambda i: data[i * 2] + data[i * 2 + 1], name="out")
    func = tvm.lower(te.create_schedule(out.op), [data, out])["main"]
    loads = next(b for b in func.buffer_map.values() if str(b.name) == "data")
    seen = []

    def visit(node):
        if isinstance(node, tir.BufferLoad) and str(node.buffer.name) == "data":
            seen.append(node.buffer)

    tir.stmt_functor.post_order_visit(func.body, visit)
    (range_,) = arith.domain_touched(func.body, seen[0] if seen else loads)
    assert (int(range_.min), int(range_.extent)) == (0, 32)


def test_split_sizes_divide_exactly_inside_a_group():
    context = arith.VarContext()
    group = context.define_split_group(tir.IntImm("int32", 64), 2)
    outer, inner = context.split_sizes(64, group.vars[1])
    ana = arith.Analyzer()
    assert inner.same_as(group.vars[1])
    assert ana.can_prove_equal(outer, group.quotient * group.vars[0])
    product = context.simplify(group.quotient * group.vars[0] * group.vars[1])
    assert int(product) == 64


def test_a_split_group_needs_an_extent_without_loop_variables():
    with pytest.raises(ValueError, match="shape variables only"):
        arith.VarContext().define_split_group(X + 1, 2)
