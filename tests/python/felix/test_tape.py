"""Tapes: storage, native evaluation and gradients, simplification."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm.felix.tape import Tape, TapeOp, TapeVar, TorchExprRunner, torch_function

VARIABLES = (
    TapeVar("n", True, 1, 16),
    TapeVar("k", True, 0, 6),
    TapeVar("x", False, 0.25, 4.0),
    TapeVar("y", False, -2.0, 2.0),
)


class Builder:
    """Appends entries; each method gives the new entry's index."""

    def __init__(self, variables=VARIABLES):
        self.ops, self.args, self.payload = [], [], []
        self.variables = variables

    def entry(self, op, *args, payload=0):
        self.ops.append(int(op))
        self.args.append([*args, *[-1] * (3 - len(args))])
        self.payload.append(payload)
        return len(self.ops) - 1

    def var(self, index):
        return self.entry(TapeOp.VAR, payload=index)

    def number(self, value):
        if isinstance(value, int):
            return self.entry(TapeOp.INT_CONST, payload=value)
        return self.entry(TapeOp.REAL_CONST, payload=int(np.float64(value).view(np.int64)))

    def tape(self, *roots):
        return Tape(
            np.array(self.ops), np.array(self.args), np.array(self.payload), roots, self.variables
        )


SMOOTH = (TapeOp.ADD, TapeOp.SUB, TapeOp.MUL, TapeOp.SIGMOID, TapeOp.HUMP)
KINKED = (TapeOp.MIN, TapeOp.MAX, TapeOp.SELECT, TapeOp.LT, TapeOp.LE, TapeOp.AND, TapeOp.NOT)
ROUNDED = (TapeOp.FLOOR, TapeOp.CEIL, TapeOp.ABS)
ARITY = {TapeOp.SELECT: 3, TapeOp.SIGMOID: 1, TapeOp.HUMP: 1, TapeOp.NOT: 1, TapeOp.ABS: 1} | {
    TapeOp.FLOOR: 1,
    TapeOp.CEIL: 1,
}


@st.composite
def tapes(draw, ops=SMOOTH + KINKED):
    """Random tapes that are finite at every point in the ranges."""
    builder = Builder()
    for index in range(len(VARIABLES)):
        builder.var(index)
    for value in (1, 2, 0.5):
        builder.number(value)
    # Positive quantities, on which logarithms, roots and quotients are safe.
    positive = [0, 2, 4, 5, 6]
    for _ in range(draw(st.integers(4, 24))):
        kind = draw(st.integers(0, 4))
        if kind == 0:
            a, b = draw(st.sampled_from(positive)), draw(st.sampled_from(positive))
            op = draw(st.sampled_from((TapeOp.MIN, TapeOp.MAX, TapeOp.DIV)))
            positive.append(builder.entry(op, a, b))
        elif kind == 1:
            a = draw(st.sampled_from(positive))
            builder.entry(draw(st.sampled_from((TapeOp.LOG, TapeOp.SQRT))), a)
        elif kind == 2:
            positive.append(builder.entry(TapeOp.POW, 5, draw(st.sampled_from((1, 2, 3)))))
        else:
            op = draw(st.sampled_from(ops))
            size = len(builder.ops)
            arity = ARITY.get(op, 2)
            args = [draw(st.integers(max(0, size - 10), size - 1)) for _ in range(arity)]
            builder.entry(op, *args)
    last = len(builder.ops) - 1
    return builder.tape(last, last - 1, last - 2)


def random_points(rng, count):
    columns = []
    for variable in VARIABLES:
        values = rng.uniform(variable.lower, variable.upper, count)
        columns.append(np.round(values) if variable.is_integer else values)
    return np.stack(columns, axis=1)


def assert_close(actual, expected, tolerance):
    scale = np.maximum(np.abs(expected), 1.0)
    np.testing.assert_array_less(np.abs(actual - expected) / scale, tolerance)


@settings(max_examples=40, deadline=None)
@given(tape=tapes(SMOOTH + KINKED + ROUNDED), seed=st.integers(0, 1000))
def test_native_values_equal_the_reference(tape, seed):
    # 37 points end in the middle of a block.
    points = random_points(np.random.default_rng(seed), 37)
    expected = TorchExprRunner(tape)(torch.from_numpy(points)).numpy()
    if not np.isfinite(expected).all() or np.abs(expected).max() > 1e12:
        return
    assert_close(tape.forward(points), expected, 1e-9)


@settings(max_examples=40, deadline=None)
@given(tape=tapes(), seed=st.integers(0, 1000))
def test_native_gradients_equal_those_of_torch(tape, seed):
    rng = np.random.default_rng(seed)
    points = torch.from_numpy(random_points(rng, 5)).requires_grad_()
    cotangents = torch.from_numpy(rng.normal(size=(5, 3)))
    values = TorchExprRunner(tape)(points)
    if not torch.isfinite(values).all() or values.abs().max() > 1e9:
        return
    if values.requires_grad:
        (expected,) = torch.autograd.grad(values, points, cotangents, allow_unused=True)
    else:
        expected = None
    expected = torch.zeros_like(points) if expected is None else expected
    if not torch.isfinite(expected).all() or expected.abs().max() > 1e9:
        return
    actual = tape.backward(points.detach().numpy(), cotangents.numpy())
    assert_close(actual, expected.numpy(), 1e-6)


@settings(max_examples=40, deadline=None)
@given(tape=tapes(SMOOTH), seed=st.integers(0, 1000))
def test_gradients_equal_central_differences(tape, seed):
    rng = np.random.default_rng(seed)
    points = random_points(rng, 4)
    step = 1e-6
    values = tape.forward(points)
    if np.abs(values).max() > 1e4:
        return
    gradient = tape.backward(points, np.ones_like(values))
    if np.abs(gradient).max() > 1e4:
        return
    for column in range(points.shape[1]):
        ahead, behind = points.copy(), points.copy()
        ahead[:, column] += step
        behind[:, column] -= step
        right, left = tape.forward(ahead).sum(axis=1), tape.forward(behind).sum(axis=1)
        forward = (right - values.sum(axis=1)) / step
        backward = (values.sum(axis=1) - left) / step
        # Min and max have kinks: there the gradient only has to lie between the two slopes.
        low, high = np.minimum(forward, backward), np.maximum(forward, backward)
        slack = 1e-3 * np.maximum(1.0, np.abs(values).max())
        assert (gradient[:, column] >= low - slack).all()
        assert (gradient[:, column] <= high + slack).all()


@settings(max_examples=50, deadline=None)
@given(tape=tapes(), seed=st.integers(0, 1000))
def test_simplification_keeps_values_and_never_costs_entries_of_another_kind(tape, seed):
    points = random_points(np.random.default_rng(seed), 8)
    values = tape.forward(points)
    if not np.isfinite(values).all() or np.abs(values).max() > 1e9:
        return
    moved = points * (1 + 1e-12 * np.array([not v.is_integer for v in VARIABLES]))
    if np.abs(tape.forward(moved) - values).max() > 1e-6:
        return  # a comparison hangs on the last digit
    simple = tape.simplified()
    assert simple.variables == tape.variables
    near = np.abs(simple.forward(points) - values) <= 1e-9 * np.maximum(1.0, np.abs(values))
    assert near.all(), (values[~near], simple.forward(points)[~near])


def test_simplification_cancels_and_shares():
    builder = Builder()
    n, k = builder.var(0), builder.var(1)
    two = builder.number(2)
    first = builder.entry(TapeOp.POW, two, k)
    product = builder.entry(TapeOp.MUL, n, first)
    log = builder.entry(TapeOp.LOG, product)
    log_n = builder.entry(TapeOp.LOG, n)
    difference = builder.entry(TapeOp.SUB, log, log_n)
    simple = builder.tape(difference).simplified()
    # ln(n 2^k) - ln(n) is k ln 2.
    assert sorted(TapeOp(op) for op in simple.ops) == [TapeOp.REAL_CONST, TapeOp.VAR, TapeOp.MUL]


def test_subgradients_are_finite_where_a_branch_is_not_taken():
    builder = Builder()
    x, y = builder.var(2), builder.var(3)
    zero = builder.number(0)
    is_positive = builder.entry(TapeOp.LT, zero, y)
    log = builder.entry(TapeOp.LOG, y)
    chosen = builder.entry(TapeOp.SELECT, is_positive, log, x)
    tie = builder.entry(TapeOp.MAX, x, x)
    gradient = builder.tape(chosen, tie).backward(
        np.array([[1.0, 1.0, 0.5, 0.0]]), np.array([[1.0, 1.0]])
    )
    np.testing.assert_array_equal(gradient, [[0.0, 0.0, 2.0, 0.0]])


def test_integer_powers_are_exact():
    builder = Builder((TapeVar("k", True, 0, 40),))
    power = builder.entry(TapeOp.POW, builder.number(3), builder.var(0))
    values = builder.tape(power).forward(np.arange(30.0)[:, None])[:, 0]
    assert values.tolist() == [float(3**k) for k in range(30)]


def test_torch_function_keeps_dtype_and_differentiates():
    builder = Builder((TapeVar("x", False, 0, 4), TapeVar("y", False, 0, 4)))
    product = builder.entry(TapeOp.MUL, builder.var(0), builder.var(1))
    evaluate = torch_function(builder.tape(product))
    points = torch.tensor([[2.0, 3.0]], requires_grad=True)
    roots = evaluate(points)
    roots.sum().backward()
    assert roots.dtype == torch.float32
    assert roots.tolist() == [[6.0]]
    assert points.grad.tolist() == [[3.0, 2.0]]


def test_saved_tape_reads_back(tmp_path):
    builder = Builder()
    tape = builder.tape(builder.entry(TapeOp.LOG, builder.var(0)))
    tape.save(tmp_path / "tape")
    loaded = Tape.load(tmp_path / "tape")
    assert loaded.variables == tape.variables
    for name in ("ops", "args", "payload", "roots"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(tape, name))


@pytest.mark.parametrize(
    ("ops", "args", "payload", "roots", "reason"),
    [
        ([99], [[-1, -1, -1]], [0], [0], "operation code 99"),
        ([TapeOp.LOG], [[0, -1, -1]], [0], [0], "must be an earlier entry"),
        ([TapeOp.VAR], [[-1, -1, -1]], [7], [0], "variable 7 of 4"),
        ([TapeOp.VAR], [[-1, -1, -1]], [0], [3], "root 0 is entry 3 of 1"),
    ],
)
def test_malformed_tape_is_refused_by_entry(ops, args, payload, roots, reason):
    tape = Tape(ops, args, payload, roots, VARIABLES)
    with pytest.raises(ValueError, match=reason):
        tape.forward(np.ones((1, 4)))


def test_points_of_another_width_are_refused():
    builder = Builder()
    tape = builder.tape(builder.var(0))
    with pytest.raises(ValueError, match=r"points must have shape \(batch, 4\)"):
        tape.forward(np.ones((2, 3)))
