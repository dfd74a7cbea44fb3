"""Simplification next to the least and greatest numbers of a type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import arith, te, tir

DATA = tir.decl_buffer((3,), "int8", name="data")
A, B, C = (DATA[i] for i in range(3))


def int8(value):
    return tir.IntImm("int8", value)


def evaluate(expr, loads, wrap):
    """Values in int64, or in int8 that wraps around; and where no operand left int8."""
    if isinstance(expr, tir.IntImm):
        return np.int64(expr.value), True
    if isinstance(expr, tir.BufferLoad):
        return loads[int(expr.indices[0])], True
    (a, fits_a), (b, fits_b) = (evaluate(e, loads, wrap) for e in (expr.a, expr.b))
    value = {
        tir.Add: np.add,
        tir.Sub: np.subtract,
        tir.Mul: np.multiply,
        tir.FloorDiv: np.floor_divide,
        tir.FloorMod: np.mod,
        tir.Min: np.minimum,
        tir.Max: np.maximum,
        tir.LT: np.less,
        tir.LE: np.less_equal,
    }[type(expr)](a, b)
    value = np.asarray(value, "int64")
    fits = (value >= -128) & (value <= 127) & fits_a & fits_b
    return (value + 128) % 256 - 128 if wrap else value, fits


def data_exprs():
    leaves = st.one_of(st.sampled_from([A, B, C]), st.integers(-9, 17).map(int8))
    divisors = st.integers(-7, 9).filter(bool).map(int8)

    def extend(inner):
        operators = [tir.Add, tir.Sub, tir.Sub, tir.Min, tir.Max]
        return st.one_of(
            st.tuples(st.sampled_from(operators), inner, inner).map(lambda t: t[0](t[1], t[2])),
            st.tuples(st.sampled_from([tir.FloorDiv, tir.FloorMod]), inner, divisors).map(
                lambda t: t[0](t[1], t[2])
            ),
        )

    return st.recursive(leaves, extend, max_leaves=6)


@settings(max_examples=50, deadline=None)
@given(
    left=data_exprs(),
    right=data_exprs(),
    compare=st.sampled_from([None, tir.LT, tir.LE]),
    seed=st.integers(0, 99),
)
def test_data_keeps_its_value_wherever_the_program_does_not_overflow(left, right, compare, seed):
    expr = left if compare is None else compare(left, right)
    rng = np.random.default_rng(seed)
    near_ends = rng.choice([-128, -127, -121, -1, 0, 6, 120, 126, 127], (3, 200))
    value, fits = evaluate(expr, near_ends, wrap=False)
    short = arith.Analyzer().simplify(expr)
    found, _ = evaluate(short, near_ends, wrap=True)
    assert np.all((found == value) | ~np.asarray(fits)), f"{expr} became {short}"


@pytest.mark.parametrize(
    "expr",
    [
        0 - tir.Max(A, B),
        int8(16) - tir.Max(A, int8(7)),
        tir.FloorMod(A - int8(8), int8(7)),
    ],
)
def test_operands_of_minima_and_quotients_of_data_do_not_change(expr):
    short = arith.Analyzer().simplify(expr)
    assert tvm.ir.structural_equal(short, expr), short


def test_a_variable_of_a_narrow_type_is_data_as_far_as_its_bounds_allow():
    x = tir.Var("x", "int8")
    expr = tir.FloorMod(x - int8(8), int8(7))
    analyzer = arith.Analyzer()
    assert tvm.ir.structural_equal(analyzer.simplify(expr), expr)
    analyzer.update(x, arith.ConstIntBound(0, 9))
    near = tir.FloorMod(x + int8(6), int8(7))
    assert tvm.ir.structural_equal(analyzer.simplify(expr), near)


def test_a_program_over_int8_runs_right_at_the_least_number():
    x = te.placeholder((2,), "int8", name="x")
    y = te.placeholder((2,), "int8", name="y")
    out = te.compute((2,), lambda i: tir.const(0, "int8") - te.max(x[i], y[i]))
    run = tvm.build(te.create_schedule(out.op), [x, y, out], "llvm")
    arrays = [np.array(v, "int8") for v in ([119, -128], [-128, 5])]
    result = tvm.nd.array(np.zeros(2, "int8"))
    run(*map(tvm.nd.array, arrays), result)
    assert result.numpy().tolist() == [-119, -5]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_sums_of_narrow_data_wrap_around_as_in_numpy(target):
    x = te.placeholder((4,), "int8", name="x")
    wide = te.compute((4,), lambda i: (x[i] + x[i]).astype("int32"))
    small = te.compute((4,), lambda i: ((x[i] + x[i]).astype("int32") < 5).astype("int32"))
    run = tvm.build(te.create_schedule([wide.op, small.op]), [x, wide, small], target)
    values = np.array([100, -100, 5, 127], "int8")
    results = [tvm.nd.array(np.zeros(4, "int32")) for _ in range(2)]
    run(tvm.nd.array(values), *results)
    expected = (values + values).astype("int32")
    assert np.array_equal(results[0].numpy(), expected)
    assert np.array_equal(results[1].numpy(), expected < 5)


@settings(max_examples=50, deadline=None)
@given(
    kind=st.sampled_from([tir.Add, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod]),
    low=st.sampled_from([-(2**63), -(2**63) + 1, -5, 2**62, 2**63 - 6]),
    width=st.integers(0, 5),
    other=st.sampled_from([-(2**63) + 1, -7, -1, 1, 3, 2**40, 2**63 - 1]),
)
def test_bounds_hold_next_to_the_ends_of_64_bits(kind, low, width, other):
    x = tir.Var("x", "int64")
    analyzer = arith.Analyzer()
    analyzer.update(x, arith.ConstIntBound(low, low + width))
    bound = analyzer.const_int_bound(kind(x, tir.IntImm("int64", other)))
    for value in range(low, low + width + 1):
        sign = 1 if (value < 0) == (other < 0) else -1
        truncated = sign * (abs(value) // abs(other))
        exact = {
            tir.Add: value + other,
            tir.Mul: value * other,
            tir.Div: truncated,
            tir.Mod: value - other * truncated,
            tir.FloorDiv: value // other,
            tir.FloorMod: value % other,
        }[kind]
        if -(2**63) <= exact < 2**63:
            assert bound.min_value <= exact <= bound.max_value


def test_a_cast_from_an_unsigned_type_of_64_bits_may_be_negative():
    x = tir.Var("x", "int64")
    assert arith.Analyzer().const_int_bound(x.astype("uint64").astype("int64")).min_value < 0


@pytest.mark.parametrize("kind", [tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod])
def test_a_division_by_zero_that_never_runs_stays(kind):
    x, zero = tir.Var("x", "int32"), tir.IntImm("int32", 0)
    analyzer = arith.Analyzer()
    analyzer.bind(x, 0)
    assert isinstance(analyzer.simplify(kind(tir.IntImm("int32", 5), x)), kind)
    lanes = kind(tir.Broadcast(zero, 4), tir.Broadcast(zero, 4))
    assert analyzer.simplify(lanes).dtype == "int32x4"
