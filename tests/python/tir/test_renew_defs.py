"""Copies of functions with definitions of their own."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir.stmt_functor import post_order_visit, renew_defs


@T.prim_func
def blocks(a: T.handle, B: T.Buffer((8, 8), "float32"), m: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "float32")
    C = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.float32(1)
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            row = T.match_buffer(B[vi, 0:8], (8,), "float32", strides=[T.int32()], offset_factor=1)
            for j in range(8):
                row[j] = C[vi, j] * T.Cast("float32", n + m)


@T.prim_func
def flat(a: T.handle("float32"), b: T.handle("float32")):
    A = T.decl_buffer((64,), "float32", data=a)
    B = T.decl_buffer((64,), "float32", data=b)
    thread = T.launch_thread("threadIdx.x", 8)
    C = T.allocate([8], "float32", "local")
    C_1 = T.Buffer((8,), "float32", data=C, scope="local")
    for i in range(8):
        twice: T.float32 = A[thread * 8 + i] * T.float32(2)
        C_1[i] = twice
        B[thread * 8 + i] = C_1[i]


def defined(func):
    """All variables and buffers of a function that uses nothing undefined."""
    found = [*func.params, *func.buffer_map.values()]

    def look(node):
        if isinstance(node, tir.Var):
            found.append(node)
        for name in ("buffer", "loop_var", "var", "buffer_var"):
            if isinstance(getattr(node, name, None), tir.Var | tir.Buffer):
                found.append(getattr(node, name))
        if isinstance(node, tir.Block):
            found.extend([*node.alloc_buffers, *(iv.var for iv in node.iter_vars)])
            found.extend(match.buffer for match in node.match_buffers)

    post_order_visit(func.body, look)
    shapes = [field for item in found if isinstance(item, tir.Buffer) for field in item.shape]
    data = [item.data for item in found if isinstance(item, tir.Buffer)]
    return {
        hash(item) for item in (*found, *shapes, *data) if isinstance(item, tir.Var | tir.Buffer)
    }


@pytest.mark.parametrize("func", [blocks, flat], ids=["blocks", "flat"])
def test_a_copy_is_equal_and_shares_no_definition(func):
    copied = renew_defs(func)
    tvm.ir.assert_structural_equal(copied, func)
    assert not defined(copied) & defined(func)


def test_what_is_not_defined_stays():
    outside, n = tir.decl_buffer((4,), name="outside"), tir.Var("n", "int32")
    func = tir.PrimFunc([], outside.vstore([n], 1.0))
    copied = renew_defs(func)
    assert copied.body.buffer.same_as(outside) and copied.body.indices[0].same_as(n)
