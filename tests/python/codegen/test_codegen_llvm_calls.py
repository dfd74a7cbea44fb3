"""Intrinsics, foreign calls and hand-built statements in generated code."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


def build_function(params, buffers, body):
    func = tir.PrimFunc(params, body, buffer_map=dict(zip(params, buffers)))
    return tvm.build(func.with_attr("global_symbol", "f"), target="llvm", name="f")["f"]


def elementwise(values, body, dtype):
    n = len(values)
    A = te.placeholder((n,), str(values.dtype), name="A")
    B = te.compute((n,), lambda i: body(A[i]), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[0], factor=4)[1])
    result = tvm.nd.empty((n,), dtype)
    tvm.build(s, [A, B], target="llvm", name="f")["f"](tvm.nd.array(values), result)
    return result.numpy()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda x: x & 12, lambda a: a & 12),
        (lambda x: x | 12, lambda a: a | 12),
        (lambda x: x ^ 12, lambda a: a ^ 12),
        (lambda x: ~x, lambda a: ~a),
        (lambda x: x << 3, lambda a: a << 3),
        (lambda x: x >> 2, lambda a: a >> 2),
    ],
)
def test_bitwise_operators(body, expected):
    values = np.arange(-32, 32, dtype="int32")
    np.testing.assert_array_equal(elementwise(values, body, "int32"), expected(values))


def test_popcount_and_reinterpret():
    values = np.arange(64, dtype="int32") * 977
    counts = elementwise(values, tir.popcount, "int32")
    np.testing.assert_array_equal(counts, [int(v).bit_count() for v in values])
    bits = elementwise(values.astype("float32"), lambda x: tir.reinterpret("int32", x), "int32")
    np.testing.assert_array_equal(bits, values.astype("float32").view("int32"))


def test_isnan_picks_the_replacement():
    values = np.array([1, np.nan, 3, np.nan], "float32")
    got = elementwise(values, lambda x: tir.Select(tir.isnan(x), tir.const(0.0), x), "float32")
    np.testing.assert_array_equal(got, np.nan_to_num(values))


def test_a_c_function_is_called_once_per_element():
    values = np.linspace(-2, 2, 16, dtype="float64")
    got = elementwise(values, lambda x: tir.call_pure_extern("float64", "cbrt", x), "float64")
    np.testing.assert_allclose(got, np.cbrt(values), rtol=1e-14)


def test_a_while_loop_runs_until_its_condition_fails():
    out, handle = tir.decl_buffer((2,), "int32", "out"), tir.Var("out", "handle")
    step = tir.SeqStmt(
        [
            tir.BufferStore(out, tir.BufferLoad(out, [0]) + tir.BufferLoad(out, [1]), [0]),
            tir.BufferStore(out, tir.BufferLoad(out, [1]) + 1, [1]),
        ]
    )
    loop = tir.While(tir.BufferLoad(out, [1]) < 10, step)
    f = build_function([handle], [out], loop)
    array = tvm.nd.array(np.zeros(2, "int32"))
    f(array)
    assert array.numpy().tolist() == [45, 10]


def test_a_let_binds_a_value_once():
    a, out = tir.decl_buffer((8,), "float32", "a"), tir.decl_buffer((8,), "float32", "out")
    handles = [tir.Var("a", "handle"), tir.Var("out", "handle")]
    i, x = tir.Var("i", "int32"), tir.Var("x", "float32")
    value = tir.Let(x, tir.BufferLoad(a, [i]) + 1.0, x * x)
    loop = tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(out, value, [i]))
    f = build_function(handles, [a, out], loop)
    values, result = np.arange(8, dtype="float32"), tvm.nd.empty((8,), "float32")
    f(tvm.nd.array(values), result)
    np.testing.assert_array_equal(result.numpy(), (values + 1) ** 2)


def test_shuffle_picks_lanes():
    a, out = tir.decl_buffer((8,), "float32", "a"), tir.decl_buffer((4,), "float32", "out")
    handles = [tir.Var("a", "handle"), tir.Var("out", "handle")]
    vector = tir.BufferLoad(a, [tir.Ramp(0, 1, 8)])
    picked = tir.Shuffle([vector], [tir.IntImm("int32", k) for k in (7, 0, 3, 3)])
    f = build_function(handles, [a, out], tir.BufferStore(out, picked, [tir.Ramp(0, 1, 4)]))
    values, result = np.arange(8, dtype="float32"), tvm.nd.empty((4,), "float32")
    f(tvm.nd.array(values), result)
    assert result.numpy().tolist() == [7, 0, 3, 3]


def test_a_packed_function_is_called_and_its_error_arrives():
    @tvm.register_func("testing.scaled")
    def scaled(x, label):
        if x > 2:
            raise ValueError(f"{label} got {x}")
        return 10 * x

    out, handle = tir.decl_buffer((4,), "int32", "out"), tir.Var("out", "handle")
    i = tir.Var("i", "int32")
    call = tir.call_packed("testing.scaled", i, "the callback")
    store = tir.BufferStore(out, tir.Cast("int32", call), [i])
    array = tvm.nd.array(np.zeros(4, "int32"))
    first = build_function([handle], [out], tir.For(i, 0, 3, tir.ForKind.SERIAL, store))
    first(array)
    assert array.numpy().tolist() == [0, 10, 20, 0]
    every = build_function([handle], [out], tir.For(i, 0, 4, tir.ForKind.SERIAL, store))
    with pytest.raises(ValueError, match="the callback got 3"):
        every(array)


def test_prefetch_reaches_the_assembly_and_changes_nothing():
    A = te.placeholder((64, 16), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((16,), lambda j: te.sum(A[k, j], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].prefetch(A, k, 4)
    module = tvm.build(s, [A, B], target="llvm", name="f")
    assert "prefetch" in module.get_source("asm")
    values, result = np.ones((64, 16), "float32"), tvm.nd.empty((16,), "float32")
    module["f"](tvm.nd.array(values), result)
    np.testing.assert_array_equal(result.numpy(), 64)


def test_an_operator_without_code_is_named():
    values = np.ones(4, "int32")
    with pytest.raises((TypeError, ValueError), match="sqrt"):
        elementwise(values, lambda x: tir.call_intrin("int32", "tir.sqrt", x), "int32")
