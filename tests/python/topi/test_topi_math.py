"""Elementwise operators, broadcasting, reductions, data movement and products."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from tvm import te, topi


def random_array(rng, *shape):
    """Standard normal float32."""
    return rng.standard_normal(shape).astype("float32")


def placeholders(*shapes):
    """A float32 placeholder for each shape."""
    return [te.placeholder(shape, name=f"x{i}") for i, shape in enumerate(shapes)]


RNG = np.random.default_rng(0)
X = random_array(RNG, 3, 5) * 3
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}

ELEMENTWISE = {
    "exp": (topi.exp, torch.exp),
    "tanh": (topi.tanh, torch.tanh),
    "sigmoid": (topi.sigmoid, torch.sigmoid),
    "erf": (topi.erf, torch.erf),
    "negative": (topi.negative, torch.neg),
    "relu": (topi.nn.relu, F.relu),
    "relu6": (topi.nn.relu6, F.relu6),
    "leaky_relu": (topi.nn.leaky_relu, F.leaky_relu),
    "hardswish": (topi.nn.hardswish, F.hardswish),
    "hardsigmoid": (topi.nn.hardsigmoid, F.hardsigmoid),
    "hardtanh": (topi.hardtanh, F.hardtanh),
    "silu": (topi.nn.silu, F.silu),
    "gelu": (topi.nn.gelu, F.gelu),
    "gelu_tanh": (
        lambda x: topi.nn.gelu(x, "tanh"),
        lambda x: F.gelu(x, approximate="tanh"),
    ),
    "clip": (lambda x: topi.clip(x, -1.5, 2.0), lambda x: x.clamp(-1.5, 2.0)),
    "clip_below": (lambda x: topi.clip(x, -1.5, float("inf")), lambda x: x.clamp(min=-1.5)),
    "softmax": (lambda x: topi.nn.softmax(x, 1), lambda x: x.softmax(1)),
    "softmax_rows": (lambda x: topi.nn.softmax(x, 0), lambda x: x.softmax(0)),
    "log_softmax": (topi.nn.log_softmax, lambda x: x.log_softmax(-1)),
    "sum": (lambda x: topi.sum(x, 0), lambda x: x.sum(0)),
    "sum_all": (topi.sum, torch.sum),
    "mean": (lambda x: topi.mean(x, 1, keepdims=True), lambda x: x.mean(1, keepdim=True)),
    "max": (lambda x: topi.max(x, -1), lambda x: x.amax(-1)),
    "min": (lambda x: topi.min(x, -1), lambda x: x.amin(-1)),
    "transpose": (topi.transpose, torch.t),
    "reshape": (lambda x: topi.reshape(x, (5, -1)), lambda x: x.reshape(5, -1)),
    "flatten": (topi.flatten, lambda x: x.flatten(1)),
    "expand_dims": (lambda x: topi.expand_dims(x, 1), lambda x: x.unsqueeze(1)),
    "slice": (lambda x: topi.strided_slice(x, (1, 0), (3, 5), (1, 2)), lambda x: x[1:3, 0:5:2]),
    "concat": (lambda x: topi.concatenate([x, x, x], 1), lambda x: torch.cat([x, x, x], 1)),
    "pad": (
        lambda x: topi.nn.pad(x, (1, 0), (0, 2), 4.0),
        lambda x: F.pad(x, (0, 2, 1, 0), value=4.0),
    ),
    "cast": (lambda x: topi.cast(x, "int32"), lambda x: x.int()),
    "add_number": (lambda x: topi.add(x, 2.5), lambda x: x + 2.5),
    "number_minus": (lambda x: topi.subtract(2.5, x), lambda x: 2.5 - x),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_operator_of_one_tensor_equals_torch(evaluate, name):
    ours, theirs = ELEMENTWISE[name]
    np.testing.assert_allclose(evaluate(ours, X), theirs(torch.from_numpy(X)).numpy(), **TOLERANCE)


@pytest.mark.parametrize("fn", [topi.sqrt, topi.log, topi.rsqrt])
def test_operator_on_positive_numbers_equals_numpy(evaluate, fn):
    reference = {"sqrt": np.sqrt, "log": np.log, "rsqrt": lambda v: 1 / np.sqrt(v)}
    positive = np.abs(X) + 0.1
    np.testing.assert_allclose(
        evaluate(fn, positive), reference[fn.__name__](positive), **TOLERANCE
    )


@st.composite
def broadcastable_shapes(draw):
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))

    def thin(rank):
        return tuple(draw(st.sampled_from([1, n])) for n in shape[len(shape) - rank :])

    return thin(len(shape)), thin(draw(st.integers(0, len(shape))))


@given(shapes=broadcastable_shapes(), which=st.sampled_from(["add", "subtract", "multiply"]))
@settings(max_examples=25, deadline=None)
def test_broadcasting_equals_numpy(evaluate, shapes, which):
    rng = np.random.default_rng(1)
    a, b = (random_array(rng, *shape) for shape in shapes)
    np.testing.assert_allclose(
        evaluate(getattr(topi, which), a, b), getattr(np, which)(a, b), **TOLERANCE
    )


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    cut=st.integers(0, 3),
)
@settings(max_examples=20, deadline=None)
def test_reshape_keeps_row_major_order(evaluate, shape, cut):
    cut = min(cut, len(shape))
    x = random_array(np.random.default_rng(2), *shape)
    target = (int(np.prod(shape[:cut])), -1)
    np.testing.assert_array_equal(evaluate(lambda t: topi.reshape(t, target), x), x.reshape(target))


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul_and_batch_matmul_equal_numpy(evaluate, transpose_a, transpose_b):
    rng = np.random.default_rng(3)
    a, b = random_array(rng, 2, 4, 6), random_array(rng, 1, 6, 5)
    expected = a @ b
    a = np.ascontiguousarray(a.swapaxes(1, 2)) if transpose_a else a
    b = np.ascontiguousarray(b.swapaxes(1, 2)) if transpose_b else b
    out = evaluate(lambda x, y: topi.nn.batch_matmul(x, y, transpose_a, transpose_b), a, b)
    np.testing.assert_allclose(out, expected, **TOLERANCE)
    out = evaluate(lambda x, y: topi.matmul(x, y, transpose_a, transpose_b), a[0], b[0])
    np.testing.assert_allclose(out, expected[0], **TOLERANCE)


def test_dense_multiplies_with_the_transposed_weight(evaluate):
    rng = np.random.default_rng(4)
    x, w, bias = random_array(rng, 2, 3, 6), random_array(rng, 5, 6), random_array(rng, 5)
    np.testing.assert_allclose(evaluate(topi.nn.dense, x, w, bias), x @ w.T + bias, **TOLERANCE)


def test_split_gives_consecutive_pieces(evaluate):
    (x,) = placeholders(X.shape)
    pieces = topi.split(x, (1, 4), axis=1)
    assert [[int(n) for n in p.shape] for p in pieces] == [[3, 1], [3, 4]]
    np.testing.assert_array_equal(evaluate(lambda t: topi.split(t, (1, 4), axis=1)[1], X), X[:, 1:])


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.reshape(x, (4, 4)), r"15 elements and does not fill \(4, 4\)"),
        (lambda x: topi.transpose(x, (0, 0)), "do not permute 2 dimensions"),
        (lambda x: topi.squeeze(x, 0), "has size 3, not 1"),
        (lambda x: topi.concatenate([x, topi.transpose(x)], 0), "differ outside dimension 0"),
        (lambda x: topi.add(x, topi.transpose(x)), "do not broadcast: 3 against 5"),
        (lambda x: topi.nn.gelu(x, "exact"), "'none' or 'tanh', got 'exact'"),
        (lambda x: topi.clip(x, 2.0, 1.0), "a_min 2.0 exceeds a_max 1.0"),
        (lambda x: topi.nn.matmul(x, x), "inner sizes differ, 5 and 3"),
    ],
)
def test_operator_refuses_arguments_that_do_not_fit(fn, message):
    with pytest.raises(ValueError, match=message):
        fn(te.placeholder((3, 5), name="x"))
