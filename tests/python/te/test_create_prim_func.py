"""Functions of blocks made from tensors."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import floats
from tvm import te, tir, topi


def matmul(n=16):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")
    return A, B, C


def relu(X):
    return te.compute(X.shape, lambda i, j: te.max(X[i, j], 0.0), name="relu")


def run(func, *arrays):
    given = [tvm.nd.array(a) for a in arrays]
    tvm.build(func, target="llvm")(*given)
    return [g.numpy() for g in given]


def test_a_reduction_is_one_block_with_an_init():
    text = repr(te.create_prim_func(list(matmul(128)))).split("\n", 3)[3]
    assert text.split("\n") == [
        '    # with T.block("root"):',
        "    for i, j, k in T.grid(128, 128, 128):",
        '        with T.block("matmul"):',
        '            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])',
        "            T.reads(A[v_i, v_k], B[v_k, v_j])",
        "            T.writes(matmul[v_i, v_j])",
        "            with T.init():",
        "                matmul[v_i, v_j] = T.float32(0.0)",
        "            matmul[v_i, v_j] = matmul[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]",
    ]


def test_tensors_not_given_are_allocated():
    A, B, C = matmul(128)
    D = relu(C)
    hidden = te.create_prim_func([A, B, D])
    assert "matmul = T.alloc_buffer((128, 128))" in str(hidden)
    given = te.create_prim_func([A, B, C, D])
    assert "alloc_buffer" not in str(given)
    assert len(given.params) == 4


@pytest.mark.parametrize("show", [False, True])
def test_matmul_and_relu_run_compiled(show):
    A, B, C = matmul()
    D = relu(C)
    a, b = floats(16, 16), floats(16, 16)
    args, arrays = ([A, B, D], [a, b]) if not show else ([A, B, C, D], [a, b, np.zeros_like(a)])
    out = run(te.create_prim_func(args), *arrays, np.zeros_like(a))[-1]
    np.testing.assert_allclose(out, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


def test_several_results_are_computed_before_any_is_stored():
    X = te.placeholder((5, 9), name="X")
    pair = te.comm_reducer(
        lambda x, y: (
            tir.Select(x[1] >= y[1], x[0], y[0]),
            tir.Select(x[1] >= y[1], x[1], y[1]),
        ),
        lambda i, v: (tir.const(-1, i), te.min_value(v)),
        name="argmax",
    )
    k = te.reduce_axis((0, 9), name="k")
    index, value = te.compute((5,), lambda i: pair((k, X[i, k]), axis=k), name="best")
    x = floats(5, 9)
    func = te.create_prim_func([X, index, value])
    result = run(func, x, np.zeros(5, "int32"), np.zeros(5, "float32"))
    np.testing.assert_array_equal(result[1], x.argmax(axis=1))
    np.testing.assert_array_equal(result[2], x.max(axis=1))


def test_softmax_runs_compiled():
    X = te.placeholder((6, 10), name="X")
    Y = topi.nn.softmax(X)
    x = floats(6, 10)
    out = run(te.create_prim_func([X, Y]), x, np.zeros_like(x))[-1]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_padded_convolution_runs_compiled():
    X, W = te.placeholder((1, 6, 6, 3), name="X"), te.placeholder((3, 3, 3, 4), name="W")
    Y = topi.nn.relu(topi.nn.conv2d_nhwc(X, W, 1, 1, 1))
    x, w = floats(1, 6, 6, 3), floats(3, 3, 3, 4)
    out = run(te.create_prim_func([X, W, Y]), x, w, np.zeros((1, 6, 6, 4), "float32"))[-1]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(
        np.einsum("nhwc,co->nhwo", padded[:, r : r + 6, s : s + 6], w[r, s])
        for r in range(3)
        for s in range(3)
    )
    np.testing.assert_allclose(out, np.maximum(want, 0), rtol=1e-4, atol=1e-4)


def test_layout_free_inputs_are_listed_by_position():
    X, W = te.placeholder((2, 8), name="X"), te.placeholder((4, 8), name="W")
    func = te.create_prim_func([X, W, topi.nn.dense(X, W)])
    assert [int(i) for i in func.attrs["layout_free_buffers"]] == [1]
    assert bool(func.attrs["tir.noalias"])
    assert '"T_matmul_NT"' in str(func)


def test_an_extern_operation_is_an_opaque_block():
    A = te.placeholder((8,), name="A")

    def body(ins, outs):
        i = tir.Var("i", "int32")
        return tir.For(i, 0, 8, 0, tir.BufferStore(outs[0], ins[0][i] * 3.0, [i]))

    B = te.extern((8,), [A], body, name="triple", dtype="float32")
    func = te.create_prim_func([A, B])
    assert 'T.block("triple")' in str(func)
    a = floats(8)
    np.testing.assert_allclose(run(func, a, np.zeros(8, "float32"))[-1], a * 3, rtol=1e-6)


def test_equal_names_of_operations_give_different_blocks():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="step")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="step")
    text = str(te.create_prim_func([A, C]))
    assert 'T.block("step")' in text
    assert 'T.block("step_1")' in text


def test_a_missing_input_is_named():
    A, B, C = matmul()
    with pytest.raises(ValueError, match="the input B is read but is no argument"):
        te.create_prim_func([A, C])


def test_a_tensor_given_twice_is_refused():
    A, B, C = matmul()
    with pytest.raises(ValueError, match="tensor A is an argument twice"):
        te.create_prim_func([A, A, B, C])


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="expected tensors, got int"):
        te.create_prim_func([1])
