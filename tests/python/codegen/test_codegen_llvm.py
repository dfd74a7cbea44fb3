"""Generated code against numpy, one kind of expression or statement at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.target import Target

INTS = ["int8", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]


def run(arrays, shape, dtype, body, vectorize=0, parallel=False, target="llvm"):
    """Result of ``body(*tensors)(*indices)`` over a shape, compiled."""
    inputs = [te.placeholder(a.shape, str(a.dtype), name=f"A{i}") for i, a in enumerate(arrays)]
    out = te.compute(shape, lambda *i: body(*inputs)(*i), name="out")
    s = te.create_schedule(out.op)
    axes = list(out.op.axis)
    if vectorize:
        _, lane = s[out].split(axes[-1], factor=vectorize)
        s[out].vectorize(lane)
    if parallel:
        s[out].parallel(axes[0])
    f = tvm.build(s, [*inputs, out], target=target, name="f")["f"]
    result = tvm.nd.empty(shape, dtype)
    f(*[tvm.nd.array(a) for a in arrays], result)
    return result.numpy()


def sample(shape, dtype, seed=0, low=-50, high=50):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype("bool")
    values = rng.uniform(low, high, shape)
    return values.astype(dtype)


@pytest.mark.parametrize("vectorize", [0, 8])
@pytest.mark.parametrize("dtype", INTS + FLOATS)
def test_arithmetic_of_every_type(dtype, vectorize):
    a, b = sample((5, 16), dtype, 1, -5, 5), sample((5, 16), dtype, 2, -5, 5)
    got = run(
        [a, b],
        a.shape,
        dtype,
        lambda x, y: lambda i, j: x[i, j] * y[i, j] + x[i, j] - y[j % 5, i],
        vectorize=0 if vectorize == 0 else vectorize,
    )
    rows, columns = np.indices(a.shape)
    np.testing.assert_allclose(
        got.astype("float64"),
        (a * b + a - b[columns % 5, rows]).astype("float64"),
        rtol=1e-2 if dtype == "float16" else 1e-6,
        atol=2e-2 if dtype == "float16" else 1e-5,
    )


@pytest.mark.parametrize("vectorize", [0, 4])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integer_division_rounds_as_said(dtype, vectorize):
    a = sample((64,), dtype, 3)
    b = sample((64,), dtype, 4, 1, 9) * np.where(np.arange(64) % 2, 1, -1).astype(dtype)
    for op, expected in [
        (tir.floordiv, a // b),
        (tir.floormod, a % b),
        (tir.truncdiv, np.trunc(a / b).astype(dtype)),
        (tir.truncmod, np.fmod(a, b)),
    ]:
        got = run([a, b], a.shape, dtype, lambda x, y, op=op: lambda i: op(x[i], y[i]), vectorize)
        np.testing.assert_array_equal(got, expected, err_msg=op.__name__)


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 10])
@pytest.mark.parametrize("op", ["floordiv", "floormod"])
def test_division_of_an_index_that_may_be_negative(op, divisor):
    got = run([], (40,), "int32", lambda: lambda i: getattr(tir, op)(i - 20, divisor))
    index = np.arange(40) - 20
    np.testing.assert_array_equal(got, index // divisor if op == "floordiv" else index % divisor)


@pytest.mark.parametrize("vectorize", [0, 8])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32"])
def test_comparisons_minimum_and_selection(dtype, vectorize):
    a, b = sample((32,), dtype, 5, 0, 9), sample((32,), dtype, 6, 0, 9)
    b[::3] = a[::3]
    for op in ["__lt__", "__le__", "__gt__", "__ge__"]:
        got = run(
            [a, b],
            a.shape,
            "int32",
            lambda x, y, op=op: lambda i: tir.Select(getattr(x[i], op)(y[i]), 1, 0),
            vectorize,
        )
        np.testing.assert_array_equal(got, getattr(a, op)(b).astype("int32"), err_msg=op)
    got = run(
        [a, b],
        a.shape,
        dtype,
        lambda x, y: lambda i: tir.max(x[i], y[i]) - tir.min(x[i], y[i]),
        vectorize,
    )
    np.testing.assert_array_equal(got, np.maximum(a, b) - np.minimum(a, b))


def test_a_constant_bound_lets_nan_through():
    a = np.array([1.0, np.nan, -3.0], "float32")
    got = run([a], a.shape, "float32", lambda x: lambda i: tir.max(x[i], tir.const(0.0, "float32")))
    np.testing.assert_array_equal(got, np.maximum(a, 0))


@pytest.mark.parametrize("vectorize", [0, 8])
@pytest.mark.parametrize(
    "source", ["int8", "int32", "int64", "float16", "float32", "float64", "bool"]
)
@pytest.mark.parametrize("result", ["int8", "int32", "int64", "float16", "float32", "float64"])
def test_casts(source, result, vectorize):
    a = sample((16,), source, 7)
    got = run([a], a.shape, result, lambda x: lambda i: x[i].astype(result), vectorize)
    np.testing.assert_array_equal(got, a.astype(result))


def test_booleans_are_stored_as_bytes():
    a = sample((32,), "bool", 8)
    b = sample((32,), "bool", 9)
    got = run(
        [a, b],
        a.shape,
        "bool",
        lambda x, y: lambda i: tir.any(tir.all(x[i], tir.Not(y[i])), tir.all(y[i], tir.Not(x[i]))),
        8,
    )
    np.testing.assert_array_equal(got, a ^ b)


def test_a_choice_does_not_read_what_it_rejects():
    a = sample((8,), "float32", 10)
    got = run(
        [a],
        (12,),
        "float32",
        lambda x: lambda i: tir.if_then_else(tir.all(i >= 2, i < 10), x[i - 2], 7.0),
    )
    np.testing.assert_array_equal(got, np.pad(a, 2, constant_values=7))


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    stride=st.integers(1, 4),
    lanes=st.sampled_from([2, 3, 4, 8]),
    parallel=st.booleans(),
)
def test_strided_and_shifted_reads_of_any_shape(rows, columns, stride, lanes, parallel):
    columns *= lanes
    a = sample((rows + 2, columns * stride + 3), "float32", rows * 100 + columns)
    got = run(
        [a],
        (rows, columns),
        "float32",
        lambda x: lambda i, j: x[i + 1, j * stride + 2] + x[i, 0],
        lanes,
        parallel,
    )
    expected = a[1 : rows + 1, 2 : 2 + columns * stride : stride] + a[:rows, :1]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64])
def test_parallel_loops_do_every_iteration_once(rows):
    a = sample((rows, 8), "float32", rows)
    got = run([a], a.shape, "float32", lambda x: lambda i, j: x[i, j] * 3 + i, 8, parallel=True)
    np.testing.assert_allclose(got, a * 3 + np.arange(rows, dtype="float32")[:, None], atol=1e-5)


def test_large_intermediate_buffers_come_from_the_workspace():
    n = 1 << 16
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2, name="B")
    C = te.compute((n,), lambda i: B[n - 1 - i] + 1, name="C")
    f = tvm.build(te.create_schedule(C.op), [A, C], target="llvm", name="f")
    assert "TVMBackendAllocWorkspace" in f.get_source("ll")
    a, c = sample((n,), "float32"), tvm.nd.empty((n,), "float32")
    f["f"](tvm.nd.array(a), c)
    np.testing.assert_allclose(c.numpy(), a[::-1] * 2 + 1, rtol=1e-6)


def test_bfloat16_is_rounded_to_nearest_even():
    a = sample((64,), "float32", 11)
    got = run(
        [a],
        a.shape,
        "float32",
        lambda x: lambda i: (x[i].astype("bfloat16") + tir.const(0, "bfloat16")).astype("float32"),
        8,
    )
    bits = a.view("uint32").astype("uint64")
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype("uint32").view("float32")
    np.testing.assert_array_equal(got, rounded)


@pytest.mark.parametrize(
    ("cpu", "vector"), [("haswell", "<8 x float>"), ("skylake-avx512", "<16 x float>")]
)
def test_vectors_have_the_width_of_the_processor(cpu, vector):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    target = Target(f"llvm -mcpu={cpu} -mtriple=x86_64-unknown-linux-gnu")
    mod = tvm.driver.prepare(s, [A, B], target, "f")
    assert vector in tvm.get_global_func("target.EmitLLVM")(mod, target)


def test_the_same_program_gives_the_same_text():
    def text():
        A = te.placeholder((64,), name="A")
        B = te.compute((64,), lambda i: tir.exp(A[i]), name="B")
        mod = tvm.driver.prepare(te.create_schedule(B.op), [A, B], "llvm", "f")
        return tvm.get_global_func("target.EmitLLVM")(mod, Target("llvm"))

    assert text() == text()


@pytest.mark.parametrize("scope", ["nope", "wmma.matrix_a"])
def test_memory_that_processors_do_not_have_is_refused(scope):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    s.cache_read(A, scope, [B])
    with pytest.raises(ValueError, match=f'in scope "{scope}", which processors do not have'):
        tvm.build(s, [A, B], "llvm")


def test_functions_say_what_processor_they_are_for():
    @T.prim_func
    def fill(A: T.Buffer((4,), "float32")):
        A[0] = 1.0

    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake -mattr=+avx512f"
    text = tvm.build(fill, target).get_source("ll")
    assert '"target-cpu"="skylake"' in text
    assert "+avx512f" in text.split('"target-features"="')[1].split('"')[0].split(",")


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_assumptions_are_no_code(target):
    @T.prim_func
    def double(A: T.Buffer((4,), "float32"), n: T.int32):
        T.evaluate(T.assume(n >= 0))
        for i in range(4):
            T.evaluate(T.assume(A[i] > T.float32(0)))
            A[i] = A[i] * T.float32(2)

    a = tvm.nd.array(np.arange(1, 5, dtype="float32"))
    tvm.build(double, target)(a, 3)
    np.testing.assert_array_equal(a.numpy(), [2, 4, 6, 8])


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ("", "contract"),
        ("-fast-math", "fast"),
        ("-fast-math-reassoc -fast-math-nnan=1", "reassoc nnan contract"),
        ("-fast-math-arcp=0", "contract"),
    ],
)
def test_options_say_what_may_be_assumed_of_floats(options, flags):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 3.0 + 7.0 / A[i], name="B")
    module = tvm.build(te.create_schedule(B.op), [A, B], f"llvm {options}")
    text = module.get_source()
    for operation in ("fmul", "fadd", "fdiv"):
        assert f"{operation} {flags} " in text
    values = np.linspace(1, 2, 8, dtype="float32")
    result = tvm.nd.empty((8,))
    module(tvm.nd.array(values), result)
    np.testing.assert_allclose(result.numpy(), values * 3 + 7 / values, rtol=1e-6)
