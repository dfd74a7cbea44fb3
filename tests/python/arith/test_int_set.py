"""Sets with symbolic ends, linear forms, and solving of conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import arith, te, tir
from tvm.testing.index_exprs import evaluate

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
        # One variable inside and outside of a maximum has one value.
        (tir.max(N, Y), tir.max(N, 0), tir.max(N, 5)),
        (tir.max(tir.min(Y, N - 1), 0), 0, tir.max(tir.min(N, 6) - 1, 0)),
    ],
)
def test_values_of_an_expression_over_intervals(expr, low, high):
    domains = {X: interval(N, N + 10), Y: interval(0, 5)}
    assert_interval(arith.eval_set(expr, domains), low, high)


def test_an_unknown_sign_leaves_both_ends():
    found = arith.eval_set(X * N, {X: interval(0, 5)})
    assert_interval(found, te.min(N, 0) * 5, te.max(N, 0) * 5)


@pytest.mark.parametrize(
    ("expr", "low", "high"),
    [
        (X * X, 0, 9),
        (X * Y, -12, 12),
        (tir.truncmod(Y, 10), 0, 4),
        (tir.truncmod(Y + 11, 10), 1, 5),
        (tir.truncmod(X, 2), -1, 1),
        (tir.if_then_else(N > 2, X, Y), -3, 4),
        (tir.if_then_else(N > 2, N, Y), te.min(N, 0), te.max(N, 4)),
    ],
)
def test_products_remainders_and_branches(expr, low, high):
    assert_interval(arith.eval_set(expr, {X: interval(-3, 3), Y: interval(0, 4)}), low, high)


@pytest.mark.parametrize(
    ("cond", "low", "high"),
    [
        (X < Y + 7, True, True),
        (X > Y + 3, False, False),
        (X < Y, False, True),
        (X + N <= N + 3, True, True),
        (tir.EQ(X, Y + 4), False, False),
        (tir.NE(X, Y + 4), True, True),
        (tir.all(X < 4, Y < 5, N > 0), False, True),
        (tir.any(N > 0, Y < 5), True, True),
        (tir.Not(Y < 5), False, False),
    ],
)
def test_sets_of_conditions(cond, low, high):
    found = arith.eval_set(cond, {X: interval(-3, 3), Y: interval(0, 4)})
    assert (bool(found.min_value), bool(found.max_value)) == (low, high)


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
    found = arith.detect_clip_bound(tvm.tir.all(X * 3 >= N, X * 4 + 1 < N), [X])
    assert_interval(interval(*found), (N + 2) // 3, (N - 2) // 4)
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


@pytest.mark.parametrize(
    "cond",
    [
        X + tir.Select(X > 3, 1, 0) <= 5,
        tir.truncdiv(X, 2) < N - X,
        X.astype("int8").astype("int32") > X,
    ],
)
def test_a_variable_inside_of_what_is_not_arithmetic_is_not_solved_for(cond):
    assert arith.deduce_bound(X, cond, {}, {}).is_nothing()


def test_deduced_bounds_keep_the_type_of_a_wider_operand():
    wide = tir.Var("wide", "int64")
    found = arith.deduce_bound(X, X.astype("int64") < wide, {}, {})
    assert found.max_value.dtype == "int64"
    assert arith.Analyzer().can_prove_equal(found.max_value, wide - 1)


def test_a_narrow_hint_does_not_narrow_what_a_condition_is_relaxed_over():
    found = arith.deduce_bound(X, X + tir.max(Y, 3) < 20, {Y: interval(0, 2)}, {Y: interval(0, 5)})
    assert int(found.max_value) == 14


@settings(max_examples=40, deadline=None)
@given(
    scale=st.integers(-4, 4).filter(bool),
    offset=st.integers(-9, 9),
    divisor=st.integers(1, 5),
    limit=st.integers(-9, 9),
    compare=st.sampled_from([tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ]),
    last=st.integers(0, 3),
)
def test_deduced_bounds_of_affine_conditions_are_tight(
    scale, offset, divisor, limit, compare, last
):
    cond = compare(tir.floordiv(X * scale + Y + offset, divisor), tir.IntImm("int32", limit))
    relaxed = {Y: interval(0, last)}
    found = arith.deduce_bound(X, cond, relaxed, relaxed)
    points = {X: np.arange(-90, 91)[:, None], Y: np.arange(last + 1)[None]}
    holds = np.flatnonzero(np.all(evaluate(cond, points) != 0, axis=1)) - 90
    if found.is_nothing():
        assert len(holds) == 0, cond
        return
    low = -90 if found.min_value.same_as(arith.neg_inf()) else int(found.min_value)
    high = 90 if found.max_value.same_as(arith.pos_inf()) else int(found.max_value)
    assert holds.tolist() == list(range(low, high + 1)), f"{cond}: {found}"


@settings(max_examples=40, deadline=None)
@given(
    parts=st.lists(
        st.tuples(
            st.sampled_from([tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ]),
            st.sampled_from([X, Y, X + N, N - Y, X - 3, 2 - Y, X * 3 - 1, N - Y * 2]),
            st.sampled_from([N, N * 2, N // 2, tir.IntImm("int32", 4)]),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_clip_bounds_are_equivalent_to_the_condition(parts):
    cond = tir.all(*[compare(a, b) for compare, a, b in parts])
    found = arith.detect_clip_bound(cond, [X, Y])
    assert len(found) == 4
    axis = np.arange(-9, 10)
    grid = np.meshgrid(axis, axis, axis, indexing="ij")
    points = dict(zip((X, Y, N), grid))
    inside = np.ones_like(grid[0], bool)
    for var, low, high in ((X, *found[:2]), (Y, *found[2:])):
        if low is not None:
            inside &= points[var] >= evaluate(low, points)
        if high is not None:
            inside &= points[var] <= evaluate(high, points)
    assert np.array_equal(inside, evaluate(cond, points) != 0), f"{cond}: {found}"


def test_the_set_of_a_vector_holds_all_lanes():
    lanes = tir.Ramp(X, 2, 4) + tir.Broadcast(N, 4)
    assert_interval(arith.IntSet.vector(lanes), X + N, X + N + 6)
    assert_interval(arith.eval_set(lanes, {X: interval(0, 3)}), N, N + 9)
    assert arith.IntSet.vector(tir.Ramp(X, 2, 4) * tir.Ramp(X, 2, 4)).is_everything()


def touched(body, buffer):
    return [(r.min, r.extent) for r in arith.domain_touched(body, buffer)]


def test_touched_domain_does_not_mention_variables_of_the_statement():
    data = tir.decl_buffer((64,), "int32", name="data")
    load = tir.BufferLoad(data, [Y])
    inside = tir.Let(Y, X + 1, load)
    loop = tir.For(X, 0, 8, tir.ForKind.SERIAL, tir.Evaluate(inside))
    assert touched(loop, data) == [(1, 8)]
    axis = tir.IterVar(tvm.ir.Range(0, 64), Y, tir.IterVar.DataPar)
    block = tir.Block([axis], [], [], "block", tir.Evaluate(load))
    realize = tir.BlockRealize([X * 2], True, block)
    loop = tir.For(X, 0, 8, tir.ForKind.SERIAL, realize)
    assert touched(loop, data) == [(0, 15)]


def test_touched_domain_is_all_where_the_index_is_read_from_what_is_written():
    data = tir.decl_buffer((64,), "int32", name="data")
    index = tir.decl_buffer((1,), "int32", name="index")
    body = tir.SeqStmt(
        [
            tir.BufferStore(index, X, [0]),
            tir.BufferStore(data, 0, [tir.BufferLoad(index, [0])]),
        ]
    )
    assert touched(tir.For(X, 0, 8, tir.ForKind.SERIAL, body), data) == [(0, 64)]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: arith.IntervalSet(0.5, 1), TypeError, "must be integers, got .* of type float32"),
        (lambda: arith.IntervalSet(None, 1), TypeError, "use neg_inf"),
        (lambda: arith.union_sets([interval(0, 1), None]), TypeError, "union_sets: set 1 is None"),
        (lambda: arith.union_sets(interval(0, 1)), TypeError, "expected Array"),
        (lambda: arith.eval_set(None, {}), TypeError, "eval_set: .* got None"),
        (lambda: arith.deduce_bound(X, X + 3, {}, {}), ValueError, "must be a boolean .* x \\+ 3"),
        (lambda: arith.detect_linear_equation(X, X), TypeError, "argument 1: expected Array"),
        (lambda: arith.detect_linear_equation(None, [X]), ValueError, "got None"),
        (lambda: arith.detect_clip_bound(None, [X]), ValueError, "got None"),
        (
            lambda: arith.domain_touched(None, tir.decl_buffer((1,))),
            ValueError,
            "needs a statement and a buffer",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@settings(max_examples=60, deadline=None)
@given(ends=st.lists(st.tuples(st.integers(-9, 9), st.integers(-1, 6)), max_size=5))
def test_union_lower_bound_holds_no_more_than_the_sets(ends):
    sets = [interval(low, low + length) for low, length in ends]
    found = arith.union_lower_bound(sets)
    members = {i for low, length in ends for i in range(low, low + length + 1)}
    if not members:
        assert found.is_nothing()
        return
    inside = set(range(int(found.min_value), int(found.max_value) + 1))
    assert inside <= members
    if len(members) == max(members) - min(members) + 1:
        assert inside == members


def test_union_lower_bound_joins_what_is_proved_to_meet():
    low, high = arith.neg_inf(), arith.pos_inf()
    whole = arith.union_lower_bound([interval(low, 0), interval(1, high)])
    assert whole.is_everything()
    assert_interval(arith.union_lower_bound([interval(N, N + 4), interval(N + 5, N + 9)]), N, N + 9)
    # Nothing is known of where the second one lies.
    assert_interval(arith.union_lower_bound([interval(0, 3), interval(X, X + 4)]), 0, 3)
    apart = arith.union_lower_bound([interval(0, 3), interval(5, high)])
    assert_interval(apart, 0, 3)
