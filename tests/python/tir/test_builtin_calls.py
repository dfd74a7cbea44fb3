"""Calls that programs spell out which passes otherwise make."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm._ffi.runtime_ctypes import ArgTypeCode
from tvm.script import tir as T

TARGETS = ["llvm", "c", "stackvm"]
INT = int(ArgTypeCode.INT)


@T.prim_func
def part_of_a_matrix(A: T.Buffer((4, 3), "float32"), B: T.Buffer((2, 3), "float32")):
    T.evaluate(
        T.call_packed(
            "test.copy_array",
            T.tvm_stack_make_array(
                A.data,
                T.tvm_stack_make_shape(2, 3, dtype="handle"),
                0,
                2,
                T.float32(0),
                3,
                dtype="handle",
            ),
            T.tvm_stack_make_array(
                B.data,
                T.tvm_stack_make_shape(2, 3, dtype="handle"),
                T.tvm_stack_make_shape(3, 1, dtype="handle"),
                2,
                T.float32(0),
                0,
                dtype="handle",
            ),
        )
    )


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_made_on_the_stack_are_parts_of_buffers(target):
    @tvm.register_func("test.copy_array", override=True)
    def copy_array(source, destination):
        assert source.shape == (2, 3)
        source.copyto(destination)

    a = np.random.default_rng(0).random((4, 3), "float32")
    b = tvm.nd.array(np.zeros((2, 3), "float32"))
    tvm.build(part_of_a_matrix, target=target)(tvm.nd.array(a), b)
    np.testing.assert_array_equal(b.numpy(), a[1:3])


def test_an_array_needs_its_shape():
    shape = tir.tvm_stack_make_shape(2)
    array = tir.tvm_stack_make_array(
        tir.Var("p", "handle"), shape, 0, 2, tir.const(0, "float32"), 0
    )
    func = tir.PrimFunc([], tir.Evaluate(tir.call_packed("f", array)))
    with pytest.raises(TypeError, match="of 2 axes needs as many extents"):
        tir.transform.LowerTVMBuiltin()(tvm.IRModule({"main": func}))


@pytest.mark.parametrize("target", TARGETS)
def test_calls_with_arguments_in_place(target):
    tvm.register_func("test.half", lambda number: number // 2, override=True)

    @T.prim_func
    def call(A: T.Buffer((1,), "int32")):
        stack: T.handle = T.tvm_stack_alloca("tvm_any", 2)
        T.evaluate(T.tvm_struct_set(stack, 0, 0, INT))
        T.evaluate(T.tvm_struct_set(stack, 0, 1, T.int64(42)))
        A[0] = T.call_packed_lowered("test.half", stack, 0, 1)

    a = tvm.nd.array(np.zeros(1, "int32"))
    tvm.build(call, target=target)(a)
    assert a.numpy()[0] == 21


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_memory_of_the_device_for_a_call(target):
    @T.prim_func
    def through_memory(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        pointer: T.handle("float32") = T.TVMBackendAllocWorkspace(1, 0, 32, 2, 32)
        memory = T.Buffer((8,), "float32", data=pointer)
        for i in range(8):
            memory[i] = A[i] + 1.0
        for i in range(8):
            B[i] = memory[7 - i]
        T.evaluate(T.TVMBackendFreeWorkspace(1, 0, pointer))

    a = np.arange(8, dtype="float32")
    b = tvm.nd.array(np.zeros(8, "float32"))
    tvm.build(through_memory, target=target)(tvm.nd.array(a), b)
    np.testing.assert_array_equal(b.numpy(), a[::-1] + 1)


def test_loops_are_not_split_where_a_condition_says_so():
    def partitioned(wrap):
        i, n = tir.Var("i", "int32"), tir.Var("n", "int32")
        A = tir.decl_buffer((20,), "float32", "A")
        body = tir.IfThenElse(wrap(i < 15), tir.BufferStore(A, tir.const(1, "float32"), [i]), None)
        loop = tir.For(i, 0, 20, tir.ForKind.SERIAL, body)
        mod = tvm.IRModule({"main": tir.PrimFunc([A, n], loop)})
        config = {"tir.LoopPartition": {"partition_const_loop": True}}
        with tvm.transform.PassContext(config=config):
            return tir.transform.LoopPartition()(mod)["main"]

    assert "range(20)" not in str(partitioned(tir.likely).body)
    assert "range(20)" in str(partitioned(tir.ignore_loop_partition).body)
    func = partitioned(lambda condition: tir.likely(tir.ignore_loop_partition(condition)))
    a = tvm.nd.array(np.zeros(20, "float32"))
    tvm.build(func, target="llvm")(a, 3)
    np.testing.assert_array_equal(a.numpy(), np.arange(20) < 15)


def test_conditions_of_all_threads_are_conditions():
    n = tir.Var("n", "int32")
    condition = tir.tvm_thread_invariant(n < 4)
    assert (condition.op.name, condition.dtype) == ("tir.tvm_thread_invariant", "bool")
    func = tir.PrimFunc([n], tir.Evaluate(condition))
    lowered = tir.transform.LowerIntrin()(tvm.IRModule({"main": func}))["main"]
    assert str(lowered.body.value) == "n < 4"
