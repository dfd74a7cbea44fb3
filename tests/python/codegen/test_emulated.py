"""GPU schedules of te built for an emulated device, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.script import tir as T
from tvm.target import emulated

block_x, block_y = te.thread_axis("blockIdx.x"), te.thread_axis("blockIdx.y")
thread_x, thread_y = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")


def run(schedule, tensors, *arrays, target=None):
    """Values of the last tensor."""
    module = tvm.build(schedule, tensors, target=target or emulated("cuda"), name="main")
    out = tensors[-1]
    result = tvm.nd.empty([int(extent) for extent in out.shape], str(out.dtype))
    module["main"](*map(tvm.nd.array, arrays), result)
    return result.numpy()


def random(*shape):
    return np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")


def bound_add(n, factor):
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=factor)
    s[C].bind(outer, block_x)
    s[C].bind(inner, thread_x)
    return s, [A, B, C]


@pytest.mark.parametrize("n", [1, 64, 100])
def test_elementwise_kernel(n):
    s, tensors = bound_add(n, 32)
    a, b = random(n), random(n)
    np.testing.assert_array_equal(run(s, tensors, a, b), a + b)


def test_host_module_imports_the_kernel():
    s, tensors = bound_add(64, 32)
    module = tvm.build(s, tensors, target=emulated("cuda"), name="main")
    (device,) = module.imported_modules
    assert device.type_key == "stackvm"
    assert "thread_index.int32" in device.get_source()
    assert "kernel" in device.get_source()


def test_kernel_of_unknown_size():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: te.exp(A[i]), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=16)
    s[B].bind(outer, block_x)
    s[B].bind(inner, thread_x)
    f = tvm.build(s, [A, B], target=emulated("cuda"), name="main")["main"]
    for size in (1, 16, 45):
        a, b = random(size), tvm.nd.empty((size,))
        f(tvm.nd.array(a), b)
        np.testing.assert_allclose(b.numpy(), np.exp(a), rtol=1e-6)


@pytest.mark.parametrize("vectorize", [False, True])
def test_matmul_through_shared_memory(vectorize):
    m, n, k = 48, 32, 24
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = te.create_schedule(C.op)
    shared = [s.cache_read(x, "shared", [C]) for x in (A, B)]
    local = s.cache_write(C, "local")
    i, j = s[C].op.axis
    by, i = s[C].split(i, factor=16)
    bx, j = s[C].split(j, factor=16)
    ty, i = s[C].split(i, factor=4)
    tx, j = s[C].split(j, factor=4)
    s[C].reorder(by, bx, ty, tx, i, j)
    for axis, thread in zip((by, bx, ty, tx), (block_y, block_x, thread_y, thread_x), strict=True):
        s[C].bind(axis, thread)
    s[local].compute_at(s[C], tx)
    outer, inner = s[local].split(s[local].op.reduce_axis[0], factor=8)
    s[local].reorder(outer, inner, *s[local].op.axis)
    for stage in shared:
        s[stage].compute_at(s[local], outer)
        fused = s[stage].fuse(*s[stage].op.axis)
        if vectorize:
            fused, lanes = s[stage].split(fused, factor=4)
            s[stage].vectorize(lanes)
        fused, x = s[stage].split(fused, factor=4)
        _, y = s[stage].split(fused, factor=4)
        s[stage].bind(x, thread_x)
        s[stage].bind(y, thread_y)
    a, b = random(m, k), random(k, n)
    np.testing.assert_allclose(run(s, [A, B, C], a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_stencil_reads_its_neighbours_through_shared_memory():
    n = 64
    A = te.placeholder((n + 2,), name="A")
    B = te.compute((n,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")
    s = te.create_schedule(B.op)
    staged = s.cache_read(A, "shared", [B])
    outer, inner = s[B].split(B.op.axis[0], factor=16)
    s[B].bind(outer, block_x)
    s[B].bind(inner, thread_x)
    s[staged].compute_at(s[B], outer)
    _, lane = s[staged].split(s[staged].op.axis[0], factor=16)
    s[staged].bind(lane, thread_x)
    a = random(n + 2)
    expected = a[:-2] + a[1:-1] + a[2:]
    np.testing.assert_allclose(run(s, [A, B], a), expected, rtol=1e-6, atol=1e-6)


def test_virtual_threads():
    n = 64
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    v, rest = s[B].split(B.op.axis[0], nparts=2)
    outer, inner = s[B].split(rest, factor=8)
    s[B].bind(v, te.thread_axis("vthread"))
    s[B].bind(outer, block_x)
    s[B].bind(inner, thread_x)
    a = random(n)
    np.testing.assert_array_equal(run(s, [A, B], a), a * 2)


@pytest.mark.parametrize("threads", [16, 64])
def test_reduction_across_threads(threads):
    m, n = 6, 96
    A = te.placeholder((m, n), name="A")
    r = te.reduce_axis((0, n), name="r")
    B = te.compute((m,), lambda i: te.sum(A[i, r], axis=r), name="B")
    s = te.create_schedule(B.op)
    _, lane = s[B].split(B.op.reduce_axis[0], factor=threads)
    s[B].bind(lane, thread_x)
    s[B].bind(B.op.axis[0], block_x)
    a = random(m, n)
    np.testing.assert_allclose(run(s, [A, B], a), a.sum(axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "threads"), [(4, 8), (1, 64), (1, 96), (3, 48), (4, 128), (2, 512), (1, 1024)]
)
def test_groups_of_threads_reduce_again_and_again(rows, threads):
    # Within a warp, over whole warps (a power of two or not), and where warps are not filled.
    trips = 3

    @T.prim_func
    def func(
        A: T.Buffer((trips, rows, threads), "float32"),
        S: T.Buffer((trips, rows), "float32"),
        P: T.Buffer((trips, rows), "int32"),
    ):
        ty = T.launch_thread("threadIdx.y", rows)
        tx = T.launch_thread("threadIdx.x", threads)
        total = T.decl_buffer((1,), scope="local")
        place = T.decl_buffer((1,), "int32", scope="local")
        largest = T.decl_buffer((1,), scope="local")
        for i in range(trips):
            with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):
                T.tvm_thread_allreduce(
                    T.uint32(1), A[i, ty, tx], tx % 3 != 1, total[0], tx, dtype="handle"
                )
            with T.attr(
                T.comm_reducer(
                    lambda p0, v0, p1, v1: (T.Select(v0 > v1, p0, p1), T.max(v0, v1)),
                    [T.int32(-1), T.float32(-9)],
                ),
                "reduce_scope",
                0,
            ):
                T.tvm_thread_allreduce(
                    T.uint32(2), tx, A[i, ty, tx], True, place[0], largest[0], tx, dtype="handle"
                )
            if tx == threads - 1:
                S[i, ty] = total[0] * largest[0]
                P[i, ty] = place[0]

    a = random(trips, rows, threads)
    sums, places = tvm.nd.empty((trips, rows)), tvm.nd.empty((trips, rows), "int32")
    tvm.build(func, target=emulated("cuda"))(tvm.nd.array(a), sums, places)
    taken = np.where(np.arange(threads) % 3 != 1, a, 0)
    np.testing.assert_allclose(sums.numpy(), taken.sum(-1) * a.max(-1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(places.numpy(), a.argmax(-1))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_reduction_across_threads_of_one_of_two_kernels(dtype):
    # Variables of 64 bits are narrowed on the way; the reduction still knows its threads.
    @T.prim_func
    def func(A: T.Buffer((7, 10), "float32"), C: T.Buffer((7,), "float32")):
        B = T.alloc_buffer((7,))
        for i in T.thread_binding(T.cast(7, dtype), thread="blockIdx.y"):
            for k1 in T.serial(T.cast(5, dtype)):
                for k0 in T.thread_binding(T.cast(2, dtype), thread="threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(T.cast(7, dtype), i)
                        vk = T.axis.reduce(T.cast(10, dtype), k0 * T.cast(5, dtype) + k1)
                        with T.init():
                            B[vi] = T.float32(0)
                        B[vi] = B[vi] + A[vi, vk]
        for j in T.thread_binding(T.cast(7, dtype), thread="threadIdx.x"):
            with T.block("C"):
                vj = T.axis.spatial(T.cast(7, dtype), j)
                C[vj] = B[vj] * T.float32(2)

    a, out = random(7, 10), tvm.nd.empty((7,))
    tvm.build(func, target=emulated("cuda"))(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), 2 * a.sum(axis=1), rtol=1e-5)


def test_a_reduction_over_what_is_no_thread_is_refused():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        tx = T.launch_thread("threadIdx.x", 8)
        out = T.decl_buffer((1,), scope="local")
        with T.attr(
            T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
            "reduce_scope",
            T.reinterpret("handle", T.uint64(0)),
        ):
            T.tvm_thread_allreduce(T.uint32(1), A[tx], T.bool(True), out[0], tx * 2, dtype="handle")
        B[0] = out[0]

    mod = tvm.IRModule({"main": func.with_attr("target", tvm.target.Target("cuda"))})
    with pytest.raises(ValueError, match=r"reduces over .*tx.*, which is not the variable of a"):
        tvm.tir.transform.LowerThreadAllreduce()(mod)


def test_host_may_be_the_stackvm_as_well():
    s, tensors = bound_add(40, 16)
    target = tvm.target.Target(emulated("cuda"), "stackvm")
    a, b = random(40), random(40)
    np.testing.assert_array_equal(run(s, tensors, a, b, target=target), a + b)


def test_exported_library_holds_the_kernel(tmp_path):
    s, tensors = bound_add(64, 32)
    path = tmp_path / "add.so"
    tvm.build(s, tensors, target=emulated("cuda"), name="main").export_library(path)
    a, b, c = tvm.nd.array(random(64)), tvm.nd.array(random(64)), tvm.nd.empty((64,))
    tvm.runtime.load_module(path)["main"](a, b, c)
    np.testing.assert_array_equal(c.numpy(), a.numpy() + b.numpy())


def test_elements_that_32_bits_cannot_number():
    # Pages that nobody touches take no memory.
    rows, columns = 3, 1 << 30
    A = te.placeholder((rows, columns), "int8", name="A")
    B = te.compute((rows,), lambda i: A[i, columns - 1 - i] + tvm.tir.const(1, "int8"), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], thread_x)
    a = np.zeros((rows, columns), "int8")
    a[range(rows), columns - 1 - np.arange(rows)] = [5, 6, 7]
    result = tvm.nd.empty((rows,), "int8")
    tvm.build(s, [A, B], target=emulated("cuda"))(tvm.nd.from_dlpack(a), result)
    np.testing.assert_array_equal(result.numpy(), [6, 7, 8])


@pytest.mark.parametrize("rows", [50000, 60000])
def test_kernels_of_cuda_index_large_arrays_in_64_bits(rows):
    A = te.placeholder((rows, 40000), "int8", name="A")
    B = te.compute(A.shape, lambda i, j: -A[i, j], name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(s[B].fuse(*B.op.axis), 256)
    s[B].bind(outer, block_x)
    s[B].bind(inner, thread_x)
    source = tvm.build(s, [A, B], target="cuda -arch=sm_80").imported_modules[0].get_source()
    assert ("long long" in source) == (rows * 40000 >= 2**31)
