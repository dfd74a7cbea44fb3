"""The same programs on the stackvm and on LLVM: random schedules, expressions, operators."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tvm
from testing_te import PROGRAMS, random_schedule
from testing_topi import evaluate, random_array
from tvm import te, tir, topi
from tvm.target import Target


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=129)  # Its indices were mixed up by a memo that outlived the expressions in it.
@settings(max_examples=15, deadline=None)
def test_random_schedules_compute_what_numpy_computes(name, seed):
    rng = random.Random(seed)
    program = PROGRAMS[name](rng)
    schedule = random_schedule(program, rng)
    tensors = [*program.inputs, *program.outputs]
    arrays = program.random_inputs(seed)
    expected = program.expected(arrays)
    results = [tvm.nd.array(np.full(e.shape, -77, e.dtype)) for e in expected]
    function = tvm.build(schedule, tensors, target="stackvm", name="f")
    function(*map(tvm.nd.array, arrays), *results)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result.numpy(), wanted, err_msg=f"{name}, seed {seed}")


def on_both(fn, *arrays):
    with Target("stackvm"):
        mine = evaluate(fn, *arrays)
    return mine, evaluate(fn, *arrays)


OPERATORS = {
    "relu": topi.nn.relu,
    "leaky_relu": lambda x: topi.nn.leaky_relu(x, 0.1),
    "sigmoid": topi.sigmoid,
    "tanh": topi.tanh,
    "exp": topi.exp,
    "erf": topi.erf,
    "floor": topi.floor,
    "round": topi.round,
    "sign": topi.sign,
    "clip": lambda x: topi.clip(x, -0.5, 0.5),
    "cast": lambda x: topi.cast(x, "int32"),
    "half": lambda x: topi.cast(topi.cast(x, "float16"), "float32"),
    "transpose": topi.transpose,
    "reshape": lambda x: topi.reshape(x, (8, 6)),
    "flip": lambda x: topi.flip(x, 1),
    "sum": lambda x: topi.sum(x, 1),
    "argmax": lambda x: topi.argmax(x, 1),
    "softmax": lambda x: topi.nn.softmax(x, -1),
    "log_softmax": lambda x: topi.nn.log_softmax(topi.reshape(x, (6, 8))),
    "concatenate": lambda x: topi.concatenate((x, x), 1),
    "strided_slice": lambda x: topi.strided_slice(x, [0, 1], [2, 4], [1, 2]),
    "pad": lambda x: topi.nn.pad(x, (1, 0, 0), (0, 2, 1)),
    "power": lambda x: topi.power(topi.exp(x), 1.5),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_agree_with_llvm(name):
    x = random_array(np.random.default_rng(0), 2, 4, 6)
    mine, compiled = on_both(OPERATORS[name], x)
    np.testing.assert_allclose(mine, compiled, rtol=2e-6, atol=1e-6)


def test_convolution_and_pooling_agree_with_llvm():
    rng = np.random.default_rng(0)
    x, w = random_array(rng, 1, 3, 8, 8), random_array(rng, 4, 3, 3, 3)
    mine, compiled = on_both(lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1, 1), x, w)
    np.testing.assert_allclose(mine, compiled, rtol=1e-5, atol=1e-5)
    pool = lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")  # noqa: E731
    mine, compiled = on_both(pool, x)
    np.testing.assert_array_equal(mine, compiled)


INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
INT_OPERATORS = {
    "floordiv": tir.floordiv,
    "floormod": tir.floormod,
    "truncdiv": tir.truncdiv,
    "truncmod": tir.truncmod,
    "min": tir.min,
    "max": tir.max,
    "and": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "shift": lambda a, b: (a >> (b & 3)) + (b & 7),
    "select": lambda a, b: tir.Select(a < b, a, b - b // 2),
    "lazy": lambda a, b: tir.if_then_else(tir.all(a > b, b > 0), a - b, b),
    "float": lambda a, b: (a.astype("float32") / b.astype("float32")).astype(a.dtype),
}


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", INTS)
def test_integer_operators_agree_with_llvm(dtype, lanes):
    rng = np.random.default_rng(0)
    low = 0 if dtype[0] == "u" else -60
    a = rng.integers(low, 60, 16).astype(dtype)
    b = rng.integers(1, 9, 16).astype(dtype)
    if dtype[0] != "u":
        b[::2] = -b[::2]
    for name, operator in INT_OPERATORS.items():
        if name == "lazy" and lanes > 1:
            continue
        results = []
        for target in ("stackvm", "llvm"):
            A, B = (te.placeholder((16,), dtype, name=n) for n in "AB")
            C = te.compute((16,), lambda i: operator(A[i], B[i]), name="C")  # noqa: B023
            s = te.create_schedule(C.op)
            if lanes > 1:
                s[C].vectorize(s[C].split(C.op.axis[0], factor=lanes)[1])
            c = tvm.nd.empty((16,), str(C.dtype))
            tvm.build(s, [A, B, C], target=target)(tvm.nd.array(a), tvm.nd.array(b), c)
            results.append(c.numpy())
        np.testing.assert_array_equal(*results, err_msg=f"{name} of {dtype}")
