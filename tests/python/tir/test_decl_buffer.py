"""Statements that declare buffers and constants: text, passes, and what runs."""

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.script import from_source
from tvm.script import tir as T


@T.prim_func
def staged(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    stage = T.decl_buffer((4, 8), "float32")
    rows = T.decl_buffer((32,), "float32", data=stage.data)
    for i, j in T.grid(4, 8):
        stage[i, j] = A[i, j] + 1.0
    for i in range(32):
        B[i // 8, i % 8] = rows[i] * 2.0


@T.prim_func
def table(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    steps = T.allocate_const([3, -1, 4, -1, 5, -9, 2, 6], "int32", [8])
    for i in range(8):
        B[i] = A[i] + steps[i]


def test_decl_buffer_is_a_statement_over_its_memory():
    allocate = staged.body
    assert isinstance(allocate, tir.Allocate)
    assert isinstance(allocate.body, tir.DeclBuffer)
    assert allocate.body.buffer.data.same_as(allocate.buffer_var)
    assert allocate.body.body.buffer.data.same_as(allocate.buffer_var)


@pytest.mark.parametrize("func", [staged, table])
def test_declarations_read_back_as_they_print(func):
    tvm.ir.assert_structural_equal(from_source(func.script()), func)


def test_axis_separators_read_back_as_they_print():
    @T.prim_func
    def cut():
        A = T.decl_buffer((2, 3, 5), "float32", axis_separators=[1])
        A[0, 0, 0] = 1.0

    assert [int(axis) for axis in cut.body.body.buffer.axis_separators] == [1]
    tvm.ir.assert_structural_equal(from_source(cut.script()), cut)


def test_axis_separators_must_increase():
    with pytest.raises(ValueError, match="axis_separators must increase"):
        tir.decl_buffer((2, 3, 5), axis_separators=[2, 1])


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_declared_views_share_memory(target):
    run = tvm.build(staged, target=target)
    a = np.random.default_rng(0).random((4, 8), "float32")
    out = tvm.nd.array(np.zeros_like(a))
    run(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), (a + 1) * 2, rtol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_constants_are_part_of_the_program(target):
    run = tvm.build(table, target=target)
    out = tvm.nd.array(np.zeros(8, "int32"))
    run(tvm.nd.array(np.arange(8, dtype="int32")), out)
    np.testing.assert_array_equal(out.numpy(), np.arange(8) + [3, -1, 4, -1, 5, -9, 2, 6])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int64"])
def test_constants_keep_their_values(dtype):
    values = np.array([1, 2, 100], dtype)
    var = tir.Var("c", tvm.ir.PointerType(tvm.ir.PrimType(dtype)))
    view = tir.Buffer(var, dtype, [3])
    out = tir.decl_buffer((3,), dtype, "out")
    i = tir.Var("i", "int32")
    body = tir.For(i, 0, 3, tir.ForKind.SERIAL, tir.BufferStore(out, view[i], [i]))
    body = tir.AllocateConst(var, dtype, [3], tvm.nd.array(values), body)
    func = tir.PrimFunc([out], body).with_attr("global_symbol", "main")
    for target in ("llvm", "c"):
        result = tvm.nd.array(np.zeros(3, dtype))
        tvm.build(func, target=target)(result)
        np.testing.assert_array_equal(result.numpy(), values)


def test_a_constant_has_to_fit_its_extents():
    var = tir.Var("c", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    data = tvm.nd.array(np.zeros(3, "float32"))
    with pytest.raises(ValueError, match="its constant has 3 elements"):
        tir.AllocateConst(var, "float32", [4], data, tir.Evaluate(0))


def test_constant_bytes_are_rounded_up():
    assert tir.analysis.calculate_constant_bytes(table) == 32
    assert tir.analysis.calculate_constant_bytes(table, 100) == 100


def test_flatten_buffer_keeps_the_axes_between_separators():
    @T.prim_func
    def cut():
        A = T.decl_buffer((2, 3, 5, 7), "float32", axis_separators=[2])
        for i, j, k, m in T.grid(2, 3, 5, 7):
            A[i, j, k, m] = 1.0

    body = tir.transform.FlattenBuffer()(tvm.IRModule({"main": cut}))["main"].body
    assert [int(extent) for extent in body.extents] == [6, 35]
    stores = []
    tir.stmt_functor.post_order_visit(
        body, lambda node: stores.append(node) if isinstance(node, tir.BufferStore) else None
    )
    assert len(stores[0].indices) == 2


def test_flatten_buffer_computes_the_same():
    flat = tir.transform.FlattenBuffer()(tvm.IRModule({"main": staged}))
    run = tvm.build(flat, target="llvm")
    a = np.random.default_rng(1).random((4, 8), "float32")
    out = tvm.nd.array(np.zeros_like(a))
    run(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), (a + 1) * 2, rtol=1e-6)


def test_axes_of_one_element_repeat_it():
    m, n, p, q = (te.size_var(name) for name in "mnpq")
    A = te.placeholder((m, n), name="A")
    B = te.placeholder((p, q), name="B")
    C = te.compute((m, n), lambda i, j: A[i, j] + B[i, j], name="C")
    binds = {
        tensor: tir.decl_buffer(tensor.shape, tensor.dtype, buffer_type="auto_broadcast")
        for tensor in (A, B)
    }
    add = tvm.build(te.create_schedule(C.op), [A, B, C], target="llvm", binds=binds)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 5), "float32")
    for shape in ((4, 5), (4, 1), (1, 5), (1, 1)):
        b = rng.standard_normal(shape, "float32")
        c = tvm.nd.empty((4, 5))
        add(tvm.nd.array(a), tvm.nd.array(b), c)
        np.testing.assert_array_equal(c.numpy(), a + b)


def test_strides_of_repeated_axes_follow_from_constant_extents():
    strides = tir.decl_buffer((1, 8), buffer_type="auto").strides
    assert strides[0].value == 0 and isinstance(strides[1], tir.Var)


def test_the_offset_of_an_element_has_one_index_for_each_flat_axis():
    i, j = te.var("i"), te.var("j")
    assert [str(v) for v in tir.decl_buffer((4, 5)).offset_of([i, j])] == ["i * 5 + j"]
    cut = tir.decl_buffer((4, 5), axis_separators=[1])
    assert [str(v) for v in cut.offset_of([i, j])] == ["i", "j"]
    with pytest.raises(ValueError, match="has 2 axes, got 1 indices"):
        cut.offset_of([i])


def test_memory_that_moves_takes_its_declarations_along():
    @T.prim_func
    def shared(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        tx = T.launch_thread("threadIdx.x", 128)
        s = T.allocate([128], "float32", "shared.dyn")
        r = T.allocate([128], "float16", "shared.dyn")
        S = T.decl_buffer((128,), data=s, scope="shared.dyn")
        R = T.decl_buffer((128,), "float16", data=r, scope="shared.dyn")
        S[tx] = A[tx]
        R[tx] = T.Cast("float16", S[tx])
        B[tx] = T.Cast("float32", R[tx])

    @T.prim_func
    def warp(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        T.func_attr({"target": T.target("cuda")})
        tx = T.launch_thread("threadIdx.x", 32)
        w = T.allocate([32], "float32", "warp")
        W = T.decl_buffer((32,), data=w, scope="warp")
        W[tx] = A[tx]
        B[tx] = W[(tx + 1) % 32]

    passes = (tir.transform.MergeSharedMemoryAllocations(), tir.transform.LowerWarpMemory())
    for func, change in zip((shared, warp), passes):
        moved = change(tvm.IRModule({"main": func}))["main"]
        assert tir.analysis.verify_well_formed(moved)
        assert "T.decl_buffer" in moved.script()


def test_lowered_loops_of_threads_are_launches():
    @T.prim_func
    def kernel(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                B[b * 32 + t] = A[b * 32 + t] + T.float32(1)

    lowered = tvm.lower(kernel)
    text = lowered.script()
    assert 'T.launch_thread("blockIdx.x", 4)' in text and "iter_var" not in text
    tvm.ir.assert_structural_equal(from_source(text), lowered)
