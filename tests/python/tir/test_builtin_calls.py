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


CALLS_BY_SYMBOL = """
from tvm.script import tir as T, ir as I

@I.ir_module
class Module:
    @T.prim_func
    def add_to(a: T.handle, k: T.int32):
        T.func_attr({"global_symbol": "add_to"})
        A = T.match_buffer(a, (4,), "float32")
        for i in range(4):
            A[i] = A[i] + T.cast(k, "float32")

    @T.prim_func
    def main(a: T.handle):
        T.func_attr({"global_symbol": "main"})
        A = T.match_buffer(a, (4,), "float32")
        for i in range(2):
            T.evaluate(T.call_cpacked("add_to", A, i + 5))
"""


def runnable(module, folder):
    """What can be called of a module that may be source."""
    if module.format != "c":
        return module
    library = str(folder / "library.so")
    module.export_library(library)
    return tvm.runtime.load_module(library)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_function_of_the_module_is_called_by_its_symbol(target, tmp_path):
    module = tvm.script.from_source(CALLS_BY_SYMBOL)
    tvm.ir.assert_structural_equal(tvm.script.from_source(module.script()), module)
    array = tvm.nd.array(np.zeros(4, "float32"))
    runnable(tvm.build(module, target=target), tmp_path)["main"](array)
    np.testing.assert_array_equal(array.numpy(), np.full(4, 11, "float32"))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_an_unexpected_status_leaves_the_function(target, tmp_path):
    A = tir.decl_buffer((2,), "int32", name="A")
    which = tir.Var("which", "int32")
    handle = tir.Var("a", "handle")
    body = tir.stmt_seq(
        tir.BufferStore(A, 1, [0]),
        tir.Evaluate(tir.tvm_check_return(7, 0, which)),
        tir.BufferStore(A, 1, [1]),
    )
    func = tir.PrimFunc([handle, which], body, buffer_map={handle: A})
    module = tvm.build(func.with_attr("global_symbol", "main"), target=target, name="main")
    main = runnable(module, tmp_path)["main"]
    for status, expected in ((7, [1, 1]), (6, [1, 0])):
        array = tvm.nd.array(np.zeros(2, "int32"))
        main(array, status)
        assert array.numpy().tolist() == expected


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_the_last_error_is_passed_on(target, tmp_path):
    which = tir.Var("which", "int32")
    body = tir.IfThenElse(which > 0, tir.Evaluate(tir.tvm_throw_last_error()))
    func = tir.PrimFunc([which], body).with_attr("global_symbol", "main")
    main = runnable(tvm.build(func, target=target, name="main"), tmp_path)["main"]
    main(0)
    with pytest.raises(tvm.error.TVMError):
        main(1)


def test_a_linked_constant_is_found_by_name(tmp_path):
    A = tir.decl_buffer((2,), "float32", name="A")
    handle = tir.Var("a", "handle")
    address = tir.lookup_param("weights")
    assert (address.op.name, address.dtype) == ("tir.lookup_param", "handle")
    body = tir.Evaluate(tir.call_extern("int32", "copy_weights", A.data, address))
    func = tir.PrimFunc([handle], tir.stmt_seq(body, body), buffer_map={handle: A})
    func = func.with_attr("global_symbol", "main")
    # Code for another machine, since nobody in this process has the functions.
    other = tvm.build(func, target="llvm -mtriple=aarch64-linux-gnu", name="main").get_source()
    assert other.count("@__tvm_param__weights = external global i8") == 1
    weights = tmp_path / "weights.c"
    weights.write_text(
        "float __tvm_param__weights[2] = {3, 4};\n"
        "int copy_weights(float* to, void* from) {\n"
        "  for (int i = 0; i < 2; ++i) to[i] = ((float*)from)[i];\n"
        "  return 0;\n"
        "}\n"
    )
    library = str(tmp_path / "library.so")
    tvm.build(func, target="c", name="main").export_library(library, addons=[weights])
    array = tvm.nd.empty((2,))
    tvm.runtime.load_module(library)["main"](array)
    assert array.numpy().tolist() == [3, 4]


PRODUCT_OF_BITS = """
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((32,), "int32"), C: T.Buffer((64,), "int32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    bx = T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 32)
    a = T.allocate([1024], "int1", "wmma.matrix_a")
    b = T.allocate([1024], "int1", "wmma.matrix_b")
    c = T.allocate([64], "int32", "wmma.accumulator")
    T.evaluate(T.tvm_fill_fragment(c, 8, 8, 128, 0, 0))
    T.evaluate(T.tvm_load_matrix_sync(a, 8, 8, 128, 0, A.data, 128, "row_major"))
    T.evaluate(T.tvm_load_matrix_sync(b, 8, 8, 128, 0, A.data, 128, "col_major"))
    T.evaluate(T.tvm_bmma_sync(c, 0, a, 0, b, 0, c, 0))
    T.evaluate(T.tvm_store_matrix_sync(c, 8, 8, 128, 0, C.data, 8, "row_major"))
"""


def test_products_of_single_bits_are_wmma_calls():
    fragments = [tir.decl_buffer((1,), "int32", name=name) for name in "DABC"]
    call = tir.tvm_bmma_sync(*[part for fragment in fragments for part in (fragment, 0)])
    assert (call.op.name, call.args[2].name) == ("tir.tvm_bmma_sync", "A")
    module = tvm.IRModule({"main": tvm.script.from_source(PRODUCT_OF_BITS)})
    target = tvm.target.Target("cuda -arch=sm_80", host="llvm")
    passes = [tir.transform.BindTarget(target), tir.transform.AnnotateDeviceRegions()]
    kernels = tvm.transform.Sequential([*passes, tir.transform.SplitHostDevice()])(module)
    kernels = tir.transform.Filter(lambda func: "tir.is_global_func" in func.attrs)(kernels)
    text = tvm.get_global_func("target.EmitCUDA")(kernels, target)
    bits = "8, 8, 128, nvcuda::wmma::experimental::precision::b1, nvcuda::wmma::"
    assert f"matrix_a, {bits}row_major" in text and f"matrix_b, {bits}col_major" in text
    assert "nvcuda::wmma::bmma_sync(c[0], a[0], b[0], c[0]);" in text
