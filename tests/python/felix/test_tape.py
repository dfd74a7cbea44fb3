"""Tapes: storage, native evaluation and gradients, simplification."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_sketches import make_task, sketches_of
from tvm.felix import _ffi_api
from tvm.felix import tape as tape_module
from tvm.felix.ffi import get_feature_pack
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


SMOOTH = (TapeOp.ADD, TapeOp.SUB, TapeOp.MUL, TapeOp.MUL_ADD, TapeOp.MIX, TapeOp.STEP)
KINKED = (TapeOp.MIN, TapeOp.MAX, TapeOp.SELECT, TapeOp.LT, TapeOp.LE, TapeOp.AND, TapeOp.NOT)
ROUNDED = (TapeOp.FLOOR, TapeOp.CEIL, TapeOp.ABS)
ARITY = {TapeOp.SELECT: 3, TapeOp.MIX: 3, TapeOp.MUL_ADD: 3} | dict.fromkeys(
    (TapeOp.STEP, TapeOp.NOT, TapeOp.ABS, TapeOp.CEIL, TapeOp.FLOOR), 1
)


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
            builder.entry(draw(st.sampled_from((TapeOp.LOG, TapeOp.LOG_SIZE, TapeOp.SQRT))), a)
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


def first_sketch(name, target="llvm"):
    task = make_task(name, target)
    return task, *_ffi_api.GenerateCodeForState(task, sketches_of(task)[0][0], True, "felix")


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
    simple = tape.simplify().tape
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
    simple = builder.tape(difference).simplify().tape
    # ln(n 2^k) - ln(n) is k ln 2.
    assert sorted(simple.ops.numpy()) == [TapeOp.REAL_CONST, TapeOp.VAR, TapeOp.MUL]


def test_a_result_is_remembered_by_content(monkeypatch):
    def product(name="x", upper=9.0, factor=0.1):
        variable = TapeVar(name, False, 0.0, upper)
        builder = Builder([variable])
        x = builder.var(0)
        scaled = builder.entry(TapeOp.MUL, x, builder.number(float(factor)))
        return builder.tape(builder.entry(TapeOp.MUL, x, scaled))

    asked = []
    simplify = tape_module._ffi_api.SimplifyTape
    monkeypatch.setattr(
        tape_module._ffi_api,
        "SimplifyTape",
        lambda *arguments: asked.append(1) or simplify(*arguments),
    )
    monkeypatch.setattr(tape_module, "_SIMPLIFIED", {})
    monkeypatch.setattr(tape_module, "_MAX_SIMPLIFIED", 5)
    first = product().simplify()
    assert product().simplify() is first and len(asked) == 1
    others = [product("y"), product(upper=8.0), product(factor=np.nextafter(0.1, 1))]
    for other in others:
        assert other.simplify() is not first
    assert product().simplify(iterations=1) is not first
    assert product().simplify() is first and len(asked) == 5
    # The least recently used goes first.
    product("z").simplify()
    assert product().simplify() is first and len(asked) == 6
    others[0].simplify()
    assert len(asked) == 7


def test_numbers_and_shared_nodes_reach_the_simplifier_as_they_are():
    """Text of six digits, or an expression that is written out, would lose both."""
    builder = Builder([TapeVar("x", False, 1.0, 2.0)])
    root, one = builder.var(0), builder.number(1)
    exact = [0.1, 0.1 + 1e-10]
    products = [builder.entry(TapeOp.MUL, root, builder.number(number)) for number in exact]
    for _ in range(60):  # written out it would have 2^60 leaves
        more = builder.entry(TapeOp.ADD, root, one)
        root = builder.entry(TapeOp.SQRT, builder.entry(TapeOp.MUL, root, more))
    tape = builder.tape(root, *products)
    simple = tape.simplify().tape
    assert len(simple) <= len(tape)
    points = np.linspace(1.0, 2.0, 7)[:, None]
    np.testing.assert_allclose(simple.forward(points), tape.forward(points), rtol=1e-12)
    numbers = simple.payload.numpy()[simple.ops.numpy() == TapeOp.REAL_CONST].view(np.float64)
    assert set(exact) <= set(numbers)


@pytest.mark.parametrize(
    ("operation", "terms", "largest"),
    [
        (None, [(1e-13, 0.0), (3e-13, 0.0)], 2.0),
        (None, [(1.0, 1e-13), (1.0, 2e-13), (1.0, 0.0)], 1e-13),
        (None, [(1.0, 1e7), (1.0, 1.1e7), (1e7, 0.0), (1.1e7, 0.0)], 2.0),
        (TapeOp.EXP, [(1e-13, 0.0), (1.0001e-13, 0.0)], 1e13),
        (TapeOp.EXP, [(1e-7, 0.0), (1e-7 + 3e-13, 0.0)], 1e8),
        (TapeOp.EXP, [(9.0, -800.0), (4.5, -400.0), (4.5, 0.0)], 100.0),
    ],
)
def test_numbers_of_any_size_keep_their_digits(operation, terms, largest):
    """Linear forms a x + b and exponentials of them, which are compared with a resolution."""
    builder = Builder([TapeVar("x", False, 0.0, largest)])
    x = builder.var(0)
    roots = []
    for factor, constant in terms:
        scaled = builder.entry(TapeOp.MUL, builder.number(factor), x)
        sum_ = builder.entry(TapeOp.ADD, scaled, builder.number(constant))
        roots.append(sum_ if operation is None else builder.entry(operation, sum_))
    tape = builder.tape(*roots)
    points = np.linspace(0.01, 1.0, 64)[:, None] * largest
    expected = tape.forward(points)
    np.testing.assert_allclose(tape.simplify().tape.forward(points), expected, rtol=1e-9, atol=0)


_OF_ANY_MAGNITUDE = (
    (TapeOp.ADD, 2), (TapeOp.MUL, 2), (TapeOp.DIV, 2), (TapeOp.MIN, 2), (TapeOp.MAX, 2),
    (TapeOp.EXP, 1), (TapeOp.LOG_SIZE, 1), (TapeOp.SQRT, 1), (TapeOp.MUL_ADD, 3),
)  # fmt: skip


def test_simplification_keeps_values_of_any_magnitude():
    """Nothing here cancels, so that every root keeps nine digits."""
    rng = np.random.default_rng(1)
    n_compared = 0
    for _ in range(300):
        largest = 10.0 ** rng.uniform(-6, 6, 3)
        builder = Builder([TapeVar(f"x{i}", False, 0.0, largest[i]) for i in range(3)])
        entries = [builder.var(i) for i in range(3)]
        entries += [builder.number(float(10.0 ** rng.uniform(-14, 10))) for _ in range(2)]
        entries.append(builder.number(int(rng.integers(1, 9))))
        for _ in range(int(rng.integers(4, 30))):
            op, arity = _OF_ANY_MAGNITUDE[rng.integers(len(_OF_ANY_MAGNITUDE))]
            entries.append(builder.entry(op, *map(int, rng.choice(entries[-9:], arity))))
        points = rng.uniform(size=(16, 3)) * largest
        every = np.abs(builder.tape(*entries).forward(points))
        if not np.isfinite(every).all() or every.max() > 1e150 or every.min() < 1e-150:
            continue
        tape = builder.tape(*entries[-4:])
        expected = tape.forward(points)
        moved = tape.forward(points * (1 + 1e-13))
        steady = np.abs(moved - expected) < 1e-10 * expected
        found = tape.simplify().tape.forward(points)
        np.testing.assert_allclose(found[steady], expected[steady], rtol=1e-9, atol=0)
        n_compared += 1
    assert n_compared > 100


def test_a_constant_that_is_too_large_is_left_as_it_is():
    builder = Builder()
    power = builder.entry(TapeOp.EXP, builder.number(1000))
    tape = builder.tape(builder.entry(TapeOp.DIV, builder.var(0), power))
    assert tape.simplify().tape.forward(np.ones((1, len(VARIABLES)))) == 0.0


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


def test_saved_tape_reads_back():
    builder = Builder()
    tape = builder.tape(builder.entry(TapeOp.LOG, builder.var(0)))
    loaded = tvm.ir.load_json(tvm.ir.save_json(tape))
    assert loaded.variables == tape.variables
    tvm.ir.assert_structural_equal(loaded, tape)


def test_a_tape_read_from_json_is_checked():
    builder = Builder()
    tape = builder.tape(builder.entry(TapeOp.LOG, builder.var(0)))
    fields = {name: getattr(tape, name) for name in ("ops", "args", "payload", "var_names")}
    fields |= {name: getattr(tape, name) for name in ("var_lower", "var_upper", "var_integer")}
    with pytest.raises(ValueError, match="root 0 is entry 7 of 2"):
        tvm.ir.make_node("felix.Tape", roots=tvm.nd.array(np.array([7], np.int32)), **fields)


def test_every_value_and_derivative_of_the_table_is_that_of_its_operation():
    points = np.array([[2.0, 3.0, -0.5], [0.25, 0.25, 4.0], [0.5, 2.0, 0.0]])
    a, b, c = points.T
    expected = {
        "ADD": a + b,
        "MUL_ADD": a * b + c,
        "MIX": a * b + (1 - a) * c,
        "STEP": np.select([a >= 1, a > 0], [1.0, a * a * (3 - 2 * a)], 0.0),
        "LOG_SIZE": np.log1p(a),
        "EXP": np.exp(a),
        "LOG": np.log(a),
        "POW": a**b,
        "SQRT": np.sqrt(a),
        "DIV": a / b,
        "FLOOR_DIV": np.floor(a / b),
        "FLOOR_MOD": np.mod(a, b),
        "SMOOTH_FLOOR_DIV": [0.0, 3.0, 0.0],
        "MIN": np.minimum(a, b),
        "MAX": np.maximum(a, b),
        "SELECT": np.where(a != 0, b, c),
        "LE": (a <= b).astype(float),
        "NE": (a != b).astype(float),
        "OR": np.ones(3),
    }
    builder = Builder((TapeVar("a", False), TapeVar("b", False), TapeVar("c", False)))
    operands = [builder.var(i) for i in range(3)]
    roots = []
    for name in expected:
        op = TapeOp[name]
        arity = ARITY.get(op, 1 if name in ("LOG_SIZE", "EXP", "LOG", "SQRT") else 2)
        roots.append(builder.entry(op, *operands[:arity]))
    values = builder.tape(*roots).forward(points)
    for column, (name, value) in enumerate(expected.items()):
        np.testing.assert_allclose(values[:, column], value, rtol=1e-15, atol=0, err_msg=name)


@settings(max_examples=30, deadline=None)
@given(x=st.floats(-700, 700), y=st.floats(1e-300, 1e300))
def test_exponential_and_logarithm_are_within_units_in_the_last_place(x, y):
    builder = Builder((TapeVar("x", False), TapeVar("y", False)))
    exp = builder.entry(TapeOp.EXP, builder.var(0))
    log = builder.entry(TapeOp.LOG, builder.var(1))
    ((actual_exp, actual_log),) = builder.tape(exp, log).forward(np.array([[x, y]]))
    assert abs(actual_exp - np.exp(x)) <= 2 * np.spacing(np.exp(x))
    assert abs(actual_log - np.log(y)) <= 2 * np.spacing(abs(np.log(y)))


def test_logarithm_of_what_has_none_is_as_the_standard_says():
    builder = Builder((TapeVar("x", False),))
    log = builder.entry(TapeOp.LOG, builder.var(0))
    points = np.array([[0.0], [-1.0], [np.inf], [np.nan], [5e-324], [1.0]])
    values = builder.tape(log).forward(points)[:, 0]
    np.testing.assert_allclose(values[[0, 2, 4, 5]], [-np.inf, np.inf, np.log(5e-324), 0.0])
    assert np.isnan(values[[1, 3]]).all()


def test_sizes_of_a_pack_are_taken_from_each_other():
    # Three tile sizes of one loop and the trip count that is left, the relation q * sp0 * sp1 = 24.
    builder = Builder(tuple(TapeVar(name, False, 0, 3) for name in ("a2", "b2", "b3")))
    a2, b2, b3 = (builder.var(i) for i in range(3))
    ln2, ln3, ln24 = (builder.number(float(np.log(n))) for n in (2, 3, 24))
    a = builder.entry(TapeOp.MUL, ln2, a2)
    b = builder.entry(
        TapeOp.ADD, builder.entry(TapeOp.MUL, ln2, b2), builder.entry(TapeOp.MUL, ln3, b3)
    )
    both = builder.entry(TapeOp.ADD, a, b)
    left = builder.entry(TapeOp.SUB, ln24, both)
    tape = builder.tape(*(builder.entry(TapeOp.EXP, x) for x in (a, b, both, left)))
    simple, stop_reason, nodes = tape.simplify()
    codes = simple.ops.numpy().tolist()
    assert codes.count(TapeOp.EXP) == 2, "a product and a quotient need no exponential of their own"
    points = np.random.default_rng(0).uniform(0, 3, (20, 3))
    np.testing.assert_allclose(simple.forward(points), tape.forward(points), rtol=1e-12)
    assert stop_reason in ("saturated", "iteration limit") and nodes > 0


def test_limits_of_saturation_are_kept_and_reported():
    tape = get_feature_pack(*first_sketch("conv3x3"), iterations=0).tape
    _, stop_reason, nodes = tape.simplify(iterations=9, node_limit=4000)
    assert stop_reason == "node limit"
    assert nodes < 40000
    normal, stop_reason, nodes = tape.simplify(iterations=0)
    assert (stop_reason, nodes) == ("saturated", 0)
    assert len(normal) <= len(tape)
    with pytest.raises(ValueError, match="iterations must be >= 0, got -1"):
        tape.simplify(iterations=-1)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, "llvm") for name in ("conv3x3", "dense", "depthwise_stride2", "softmax")),
        ("softmax", "cuda -arch=sm_80"),
    ],
)
def test_saturated_packs_have_the_values_and_gradients_of_the_smoothed_ones(name, target):
    task, code, context = first_sketch(name, target)
    plain = get_feature_pack(task, code, context, iterations=0).tape
    saturated = get_feature_pack(task, code, context).tape
    again = get_feature_pack(task, code, context).tape
    tvm.ir.assert_structural_equal(saturated, again)
    assert len(saturated) < len(plain)
    rng = np.random.default_rng(3)
    lower, upper = plain.var_lower.numpy(), plain.var_upper.numpy()
    points = lower + rng.uniform(size=(50, len(upper))) * (upper - lower)
    points[::2] = np.round(points[::2])
    assert_close(saturated.forward(points), plain.forward(points), 1e-9)
    cotangents = rng.normal(size=(50, plain.n_roots))
    expected = plain.backward(points, cotangents)[1::2]
    error = np.abs(saturated.backward(points, cotangents)[1::2] - expected)
    # Slopes that are a thousandth of a point's steepest are right to nine digits, too.
    scale = np.maximum(np.abs(expected), 1e-3 * np.abs(expected).max(axis=1, keepdims=True))
    assert (error <= 1e-9 * scale).all()


@pytest.mark.parametrize(
    ("ops", "args", "payload", "roots", "reason"),
    [
        ([99], [[-1, -1, -1]], [0], [0], "operation code 99"),
        ([23], [[-1, -1, -1]], [0], [0], "operation code 23, which no operation has"),
        ([TapeOp.LOG], [[0, -1, -1]], [0], [0], "must be an earlier entry"),
        ([TapeOp.VAR], [[-1, -1, -1]], [7], [0], "variable 7 of 4"),
        ([TapeOp.VAR], [[-1, -1, -1]], [0], [3], "root 0 is entry 3 of 1"),
    ],
)
def test_malformed_tape_is_refused_by_entry(ops, args, payload, roots, reason):
    with pytest.raises(ValueError, match=reason):
        Tape(ops, args, payload, roots, VARIABLES)


def test_points_of_another_width_are_refused():
    builder = Builder()
    tape = builder.tape(builder.var(0))
    with pytest.raises(ValueError, match=r"points must have shape \(batch, 4\)"):
        tape.forward(np.ones((2, 3)))


def test_simplification_without_room_is_an_error_and_not_the_end():
    # A failed allocation ends a Rust program; the room is looked for beforehand.
    script = """
import resource
import numpy as np
from tvm.error import MemoryError as NoMemory
from tvm.felix.tape import Tape, TapeOp, TapeVar

ops, args = np.array([int(TapeOp.VAR), int(TapeOp.ADD)]), np.array([[-1] * 3, [0, 0, -1]])
tape = Tape(ops, args, np.zeros(2, "int64"), [1], [TapeVar("n", True, 1, 16)])
Tape(ops, args, np.zeros(2, "int64"), [1], [TapeVar("m", True, 1, 16)]).simplify()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 20), resource.RLIM_INFINITY))
try:
    tape.simplify()
except NoMemory as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
print(len(tape.simplify().tape))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no room for" in done.stdout and done.stdout.endswith("2\n")
