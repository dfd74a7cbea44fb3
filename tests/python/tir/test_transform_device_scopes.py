"""What devices are told of functions, and analyses that refuse them."""

from __future__ import annotations

import pytest

import tvm
from testing_programs import apply
from tvm import te, tir
from tvm.script import tir as T


@T.prim_func
def vtcm(A: T.Buffer((256,), "float32"), C: T.Buffer((256,), "float32")):
    T.func_attr({"global_symbol": "main"})
    B = T.alloc_buffer((256,), scope="global.vtcm")
    for i in range(256):
        with T.block("copy"):
            v = T.axis.spatial(256, i)
            B[v] = A[v]
    for i in range(256):
        with T.block("back"):
            v = T.axis.spatial(256, i)
            C[v] = B[255 - v]


def test_a_limit_of_memory_is_checked():
    func = tvm.lower(vtcm)["main"]
    assert apply(tir.transform.VerifyVTCMLimit(1024), func).body.same_as(func.body)
    with pytest.raises(tvm.error.ValueError, match="main allocates 1024 bytes .* limit is 1000"):
        apply(tir.transform.VerifyVTCMLimit(1000), func)
    assert apply(tir.transform.VerifyVTCMLimit(), func).body.same_as(func.body)


def test_variables_bound_twice_are_named():
    i = tir.Var("i", "int32")
    loop = tir.For(i, 0, 4, 0, tir.Evaluate(i))
    func = tir.PrimFunc([], tir.SeqStmt([loop, loop]))
    with pytest.raises(tvm.error.ValueError, match="function main binds a variable more"):
        apply(tir.transform.VerifySSA(), func)
    once = tir.PrimFunc([], loop)
    assert apply(tir.transform.VerifySSA(), once).body.same_as(once.body)


def test_a_function_is_all_the_devices():
    func = apply(tir.transform.DecorateDeviceScope(), vtcm)
    assert isinstance(func.body, tir.AttrStmt)
    assert func.body.attr_key == "device_scope"
    assert func.body.body.same_as(vtcm.body)


def test_a_context_is_asked_for_once_a_thread():
    def context():
        made = tir.call_extern("handle", "make_context")
        return tir.call_intrin("handle", "tir.tvm_thread_context", made)

    use = tir.Evaluate(tir.call_extern("int32", "use", context(), context()))
    i = tir.Var("i", "int32")
    parallel = tir.For(i, 0, 4, tir.ForKind.PARALLEL, use)
    func = tir.PrimFunc([], tir.SeqStmt([use, tir.SeqStmt([use, parallel])]))
    func = apply(tir.transform.CombineContextCall(), func)
    text = str(func)
    assert text.count("make_context") == 2  # that of the function and that of the loop's threads
    assert "tvm_thread_context" not in text
    assert isinstance(func.body, tir.LetStmt)


def test_memory_of_a_name_of_its_own_is_at_its_address():
    @tvm.register_func("tvm.info.mem.global.pass_test", override=True)
    def info():
        return tvm.ir.make_node(
            "MemoryInfo",
            unit_bits=32,
            max_num_bits=1024,
            max_simd_bits=32,
            head_address=tir.call_extern("handle", "head"),
        )

    def program(extent):
        data = tir.Var("m", tvm.ir.PointerType(tvm.ir.PrimType("float32"), "global.pass_test"))
        buffer = tir.decl_buffer((extent,), name="m", data=data)
        store = tir.BufferStore(buffer, 1.0, [2])
        return tir.PrimFunc([], tir.Allocate(data, "float32", [extent], True, store))

    func = apply(tir.transform.LowerDeviceStorageAccessInfo(), program(32))
    assert isinstance(func.body, tir.LetStmt)
    assert func.body.value.args[0].value == "head"
    with pytest.raises(tvm.error.ValueError, match="m takes 1056 bits .* which has 1024"):
        apply(tir.transform.LowerDeviceStorageAccessInfo(), program(33))


def test_the_anchor_is_the_reduction_with_most_operations():
    A = te.placeholder((16, 16), name="A")
    k, m = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 16), "m")
    rows = te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="rows")
    big = te.compute((16, 16), lambda i, j: te.sum(A[i, m] * A[m, j], axis=m), name="big")
    out = te.compute((16, 16), lambda i, j: big[i, j] + rows[i], name="out")
    mod = tvm.IRModule({"main": te.create_prim_func([A, out])})
    assert tir.analysis.find_anchor_block(mod).name_hint == "big"
    plain = te.compute((16, 16), lambda i, j: A[i, j] * 2.0, name="plain")
    mod = tvm.IRModule({"main": te.create_prim_func([A, plain])})
    assert tir.analysis.find_anchor_block(mod) is None


def test_branches_are_statements_and_expressions():
    x = tir.Var("x", "int32")
    nothing = tir.Evaluate(0)
    assert tir.analysis.has_if_then_else(tir.IfThenElse(x > 1, nothing, None))
    assert tir.analysis.has_if_then_else(tir.Evaluate(tir.if_then_else(x > 1, x, 0)))
    assert tir.analysis.has_if_then_else(tir.Evaluate(tir.Select(x > 1, x, 0)))
    assert not tir.analysis.has_if_then_else(tir.Evaluate(x + 1))
    assert list(tir.analysis.get_vtcm_compaction_passes()) == []
