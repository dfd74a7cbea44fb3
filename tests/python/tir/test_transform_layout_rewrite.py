"""Operands in the layouts that programs ask for."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import apply
from tvm import tir
from tvm.script import tir as T

X = np.arange(256, dtype="float32").reshape(16, 16) % 7
W = np.arange(256, dtype="float32").reshape(16, 16) % 5


@T.prim_func
def product(
    data: T.Buffer((16, 16), "float32"),
    weight: T.Buffer((16, 16), "float32"),
    out: T.Buffer((16, 16), "float32"),
):
    T.func_attr({"layout_free_buffers": [1]})
    P = T.alloc_buffer((4, 16, 4))
    for i, j in T.grid(16, 16):
        with T.block("layout_rewrite"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
            P[vi // 4, vj, vi % 4] = weight[vi, vj]
    for i, j, k in T.grid(16, 16, 16):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                out[vi, vj] = 0.0
            out[vi, vj] += data[vi, vk] * P[vk // 4, vj, vk % 4]


def run(func, *arrays):
    out = tvm.nd.empty((16, 16))
    tvm.build(func, target="llvm")(*map(tvm.nd.array, arrays), out)
    return out.numpy()


def test_callers_lay_an_operand_out():
    func = apply(tir.transform.RemoveWeightLayoutRewriteBlock(), product)
    assert [int(n) for n in func.buffer_map[func.params[1]].shape] == [4, 16, 4]
    packed = W.reshape(4, 4, 16).transpose(0, 2, 1).copy()
    np.testing.assert_array_equal(run(func, X, packed), X @ W)
    np.testing.assert_array_equal(run(product, X, W), X @ W)
    # The copy is gone, not only its block.
    assert str(tvm.lower(func)).count("for ") == 3


def test_an_operand_that_others_read_too_keeps_its_layout():
    body = product.body
    source = product.buffer_map[product.params[1]]
    other = tir.BufferStore(product.buffer_map[product.params[2]], source[0, 0], [0, 0])
    func = product.with_body(tir.SeqStmt([body, other]))
    assert apply(tir.transform.RemoveWeightLayoutRewriteBlock(), func).body.same_as(func.body)


@pytest.mark.parametrize("skip", [False, True])
def test_constants_are_laid_out_here(skip):
    data = tvm.nd.array(W)

    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        b = T.allocate_const(data, "float32", [16, 16])
        B = T.decl_buffer((16, 16), data=b)
        P = T.alloc_buffer((4, 16, 4))
        for i, j in T.grid(16, 16):
            with T.block("layout_rewrite"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                P[vi // 4, vj, vi % 4] = B[vi, vj]
        for i, j, k in T.grid(16, 16, 16):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * P[vk // 4, vj, vk % 4]

    func = apply(tir.transform.RemoveWeightLayoutRewriteBlock(skip), main)
    constants = []
    tir.stmt_functor.post_order_visit(
        func.body, lambda n: constants.append(n) if isinstance(n, tir.AllocateConst) else None
    )
    packed = W.reshape(4, 4, 16).transpose(0, 2, 1)
    expected = W.reshape(4, 16, 4) if skip else packed
    np.testing.assert_array_equal(constants[0].data.numpy(), expected)
    if not skip:
        np.testing.assert_array_equal(run(func, X), X @ W)


def test_buffers_take_the_layouts_of_an_attribute():
    a, b = tir.decl_buffer((4, 8), name="A"), tir.decl_buffer((4, 8), name="B")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    store = tir.BufferStore(b, a[i, j] * 2.0, [i, j])
    func = tir.PrimFunc([a, b], tir.For(i, 0, 4, 0, tir.For(j, 0, 8, 0, store)))
    maps = [
        tir.IndexMap.from_func(lambda i, j: [j, i]),
        tir.IndexMap.from_func(lambda j, i: [j // 2, i, j % 2]),
    ]
    func = func.with_attr("layout_transform_map", {a: maps})
    func = apply(tir.transform.ApplyLayoutTransforms(), func)
    assert "layout_transform_map" not in (func.attrs or {})
    assert [int(n) for n in func.buffer_map[func.params[0]].shape] == [4, 4, 2]
    x = np.arange(32, dtype="float32").reshape(4, 8)
    out = tvm.nd.empty((4, 8))
    packed = x.T.reshape(4, 2, 4).transpose(0, 2, 1).copy()
    tvm.build(func, target="llvm")(tvm.nd.array(packed), out)
    np.testing.assert_array_equal(out.numpy(), 2 * x)


def test_a_part_of_a_buffer_has_no_other_layout():
    a = tir.decl_buffer((8,), name="A")
    body = tir.BufferRealize(a, [tvm.ir.Range(2, 4)], True, tir.BufferStore(a, 1.0, [2]))
    func = tir.PrimFunc([], body).with_attr(
        "layout_transform_map", {a: [tir.IndexMap.from_func(lambda i: [i // 4, i % 4])]}
    )
    with pytest.raises(tvm.error.ValueError, match="a part of buffer A is realized"):
        apply(tir.transform.ApplyLayoutTransforms(), func)
