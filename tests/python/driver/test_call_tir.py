"""Functions of a module that call each other, made without the parser."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import tir


def test_a_function_calls_another_one():
    pointer = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    B = tir.decl_buffer((1,), "float32", "B", data=pointer)
    three = tir.PrimFunc([pointer], tir.DeclBuffer(B, B.vstore([0], 3.0)))
    A = tir.decl_buffer((4,), "float32", "A")
    callee = tvm.ir.GlobalVar("three")
    call = tir.call_tir(callee, tir.address_of(A[2]))
    assert call.dtype == "void" and call.op.same_as(callee)
    main = tir.PrimFunc([A], tir.Evaluate(call)).with_attr("global_symbol", "main")
    built = tvm.build(tvm.IRModule({callee: three, "main": main}), target="llvm")
    result = tvm.nd.array(np.zeros(4, "float32"))
    built(result)
    np.testing.assert_array_equal(result.numpy(), [0, 0, 3, 0])
