"""Reductions whose loops are bound to threads, on an emulated device against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.target import emulated

NUMPY = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}


def row_reduction(n, m, name):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    combine = {
        "sum": te.sum,
        "max": te.max,
        "min": te.min,
        "prod": te.comm_reducer(lambda x, y: x * y, lambda dtype: tir.const(1, dtype), name="prod"),
    }[name]
    B = te.compute((n,), lambda i: combine(A[i, k], axis=k), name="B")
    return tir.Schedule(te.create_prim_func([A, B]))


def run(mod, *arrays):
    f = tvm.build(mod, target=emulated("cuda"))
    out = arrays[-1]
    args = [tvm.nd.array(array) for array in arrays]
    f(*args)
    return args[-1].numpy() if len(arrays) > 1 else out


def random(*shape):
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape).astype("float32")


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("n, m, threads", [(5, 128, 32), (4, 100, 32), (3, 33, 8), (3, 64, 64)])
def test_rows(name, n, m, threads):
    sch = row_reduction(n, m, name)
    i, k = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    _, inner = sch.split(k, [None, threads])
    sch.bind(inner, "threadIdx.x")
    a = random(n, m)
    b = run(sch.mod, a, np.zeros(n, "float32"))
    np.testing.assert_allclose(b, NUMPY[name](a, axis=1), rtol=1e-4)


@pytest.mark.parametrize("n, rows", [(8, 4), (10, 4)])
def test_several_rows_in_a_block_of_threads(n, rows):
    sch = row_reduction(n, 48, "sum")
    i, k = sch.get_loops("B")
    outer, inner = sch.split(i, [None, rows])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.y")
    lane, rest = sch.split(k, [16, None])
    sch.bind(lane, "threadIdx.x")
    a = random(n, 48)
    b = run(sch.mod, a, np.zeros(n, "float32"))
    np.testing.assert_allclose(b, a.sum(axis=1), rtol=1e-4)


def test_whole_reduction_by_two_axes_of_threads():
    sch = row_reduction(3, 32, "max")
    i, k = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    y, x = sch.split(k, [4, 8])
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    a = random(3, 32)
    np.testing.assert_array_equal(run(sch.mod, a, np.zeros(3, "float32")), a.max(axis=1))


def test_result_in_shared_memory_for_all_threads():
    n, m, threads = 6, 96, 32
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((n, m), lambda i, j: A[i, j] / B[i], name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.set_scope("B", 0, "shared")
    sch.compute_at("B", i)
    for loop in (sch.get_loops("B")[-1], j):
        _, lane = sch.split(loop, [None, threads])
        sch.bind(lane, "threadIdx.x")
    a = random(n, m)
    c = run(sch.mod, a, np.zeros((n, m), "float32"))
    np.testing.assert_allclose(c, a / a.sum(axis=1, keepdims=True), rtol=1e-5)


@T.prim_func
def argmax(a: T.handle, b: T.handle, c: T.handle, d: T.handle) -> None:
    index = T.match_buffer(a, (5, 64), "int32")
    value = T.match_buffer(b, (5, 64), "float32")
    best_index = T.match_buffer(c, (5,), "int32")
    best = T.match_buffer(d, (5,), "float32")
    for i, k in T.grid(5, 64):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                best_index[vi] = -1
                best[vi] = T.min_value("float32")
            v_index: T.int32 = T.Select(best[vi] >= value[vi, vk], best_index[vi], index[vi, vk])
            v_value: T.float32 = T.Select(best[vi] >= value[vi, vk], best[vi], value[vi, vk])
            best_index[vi] = v_index
            best[vi] = v_value


@pytest.mark.parametrize("threads", [16, 64])
def test_argmax(threads):
    sch = tir.Schedule(argmax)
    i, k = sch.get_loops("argmax")
    sch.bind(i, "blockIdx.x")
    _, lane = sch.split(k, [None, threads])
    sch.bind(lane, "threadIdx.x")
    index = np.tile(np.arange(64, dtype="int32"), (5, 1))
    value = np.random.default_rng(0).permutation(320).reshape(5, 64).astype("float32")
    f = tvm.build(sch.mod, target=emulated("cuda"))
    found, best = tvm.nd.array(np.zeros(5, "int32")), tvm.nd.array(np.zeros(5, "float32"))
    f(tvm.nd.array(index), tvm.nd.array(value), found, best)
    np.testing.assert_array_equal(found.numpy(), value.argmax(axis=1))
    np.testing.assert_array_equal(best.numpy(), value.max(axis=1))


def test_refusals_name_what_is_in_the_way():
    sch = row_reduction(8, 64, "sum")
    i, k = sch.get_loops("B")
    with pytest.raises(tir.ScheduleError, match="add to the same elements"):
        sch.bind(k, "blockIdx.x")
    with pytest.raises(tir.ScheduleError, match="add to the same elements"):
        sch.bind(k, "vthread.x")
    outer, inner = sch.split(k, [None, 32])
    sch.reorder(outer, i)
    with pytest.raises(tir.ScheduleError, match="loop i of a spatial variable is inside"):
        sch.bind(inner, "threadIdx.x")
    sch.reorder(i, outer)
    sch.decompose_reduction("B", outer)
    with pytest.raises(tir.ScheduleError, match="before the reduction is decomposed"):
        sch.bind(inner, "threadIdx.x")


def test_first_value_that_is_not_neutral():
    @T.prim_func
    def from_one(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4,), "float32")) -> None:
        for i, k in T.grid(4, 32):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(1)
                B[vi] = B[vi] + A[vi, vk]

    sch = tir.Schedule(from_one)
    with pytest.raises(tir.ScheduleError, match="is not neutral"):
        sch.bind(sch.get_loops("B")[-1], "threadIdx.x")


def test_global_result_that_the_kernel_reads():
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    sch.compute_at("B", sch.get_loops("C")[0])
    with pytest.raises(tir.ScheduleError, match='scope "shared" or "local"|passes values'):
        sch.bind(sch.get_loops("C")[0], "blockIdx.x")
        sch.bind(sch.get_loops("B")[-1], "threadIdx.x")


def test_pass_refuses_a_virtual_thread():
    @T.prim_func
    def virtual(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4,), "float32")) -> None:
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for k in T.thread_binding(4, thread="vthread.x"):
                for t in T.thread_binding(8, thread="threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(32, k * 8 + t)
                        with T.init():
                            B[vi] = T.float32(0)
                        B[vi] = B[vi] + A[vi, vk]

    with pytest.raises(ValueError, match="bound to vthread.x"):
        tir.transform.LowerCrossThreadReduction()(tvm.IRModule({"main": virtual}))


@pytest.mark.parametrize("bind", [False, True])
def test_sum_put_among_threads_that_do_not_share_it_yet(bind):
    n, m, threads = 6, 64, 32
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((n, m), lambda i, j: A[i, j] / B[i], name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    _, lane = sch.split(j, [None, threads])
    sch.bind(lane, "threadIdx.x")
    sch.set_scope("B", 0, "shared")
    sch.compute_at("B", i)
    if bind:
        _, lane = sch.split(sch.get_loops("B")[-1], [None, threads])
        sch.bind(lane, "threadIdx.x")
    a = random(n, m)
    c = run(sch.mod, a, np.zeros((n, m), "float32"))
    np.testing.assert_allclose(c, a / a.sum(axis=1, keepdims=True), rtol=1e-5)


def test_sums_of_what_other_threads_wrote():
    n, m = 4, 32
    A = te.placeholder((n, m), name="A")
    r0, r1 = te.reduce_axis((0, m), name="r0"), te.reduce_axis((0, m), name="r1")
    most = te.compute((n,), lambda i: te.max(A[i, r0], axis=r0), name="most")
    total = te.compute((n,), lambda i: te.sum(A[i, r1] - most[i], axis=r1), name="total")
    sch = tir.Schedule(te.create_prim_func([A, total]))
    i, k = sch.get_loops("total")
    sch.bind(i, "blockIdx.x")
    sch.set_scope("most", 0, "shared")
    sch.compute_at("most", i)
    sch.bind(k, "threadIdx.x")
    sch.bind(sch.get_loops("most")[-1], "threadIdx.x")
    a = random(n, m)
    found = run(sch.mod, a, np.zeros(n, "float32"))
    np.testing.assert_allclose(found, (a - a.max(axis=1, keepdims=True)).sum(axis=1), rtol=1e-4)


def products(n, m, dtype="float32"):
    A, B = te.placeholder((m,), dtype, "A"), te.placeholder((n, m), dtype, "B")
    k = te.reduce_axis((0, m), name="k")
    C = te.compute((n,), lambda i: te.sum(A[k] * B[i, k], axis=k), name="C")
    return tir.Schedule(te.create_prim_func([A, B, C]))


@pytest.mark.parametrize("scope", ["local", "shared"])
def test_operands_are_copied_inside_of_what_threads_add_up(scope):
    """As matrix-vector products of TVM's users are written: vectors of both operands in registers,
    or in shared memory, for each step of the reduction; the result in registers, too."""
    sch = products(12, 256)
    c = sch.get_block("C")
    copies = [sch.cache_read(c, at, scope) for at in range(2)]
    result = sch.cache_write(c, 0, "local")
    i, k = sch.get_loops(c)
    bx, ty = sch.split(i, [None, 4])
    k_0, tx, k_1 = sch.split(k, [None, 16, 4])
    sch.reorder(bx, ty, k_0, tx, k_1)
    sch.bind(bx, "blockIdx.x")
    sch.bind(ty, "threadIdx.y")
    sch.bind(tx, "threadIdx.x")
    for copy in copies:
        sch.compute_at(copy, tx if scope == "local" else k_0)
    if scope == "shared":
        for copy in copies:
            _, part = sch.split(sch.get_loops(copy)[-1], [None, 16])
            sch.bind(part, "threadIdx.x")
    sch.reverse_compute_at(result, ty)
    a, b = random(256), random(12, 256)
    np.testing.assert_allclose(run(sch.mod, a, b, np.zeros(12, "float32")), b @ a, rtol=1e-5)


def test_parts_are_moved_to_threads_that_are_bound_later():
    """As TVM's default schedules of reductions do it: partial sums in registers, their combination
    moved into the kernel before its own loop is bound."""
    sch = row_reduction(6, 256, "sum")
    b = sch.get_block("B")
    i, k = sch.get_loops(b)
    _, tx = sch.split(k, [None, 32], preserve_unit_iters=True)
    part = sch.rfactor(tx, 0)
    i, k_0, tx = sch.get_loops(part)
    sch.reorder(i, tx, k_0)
    sch.bind(i, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    sch.set_scope(part, 0, "local")
    sch.decompose_reduction(part, k_0)
    sch.reverse_compute_at(b, i, preserve_unit_loops=True)
    sch.bind(sch.get_loops(b)[1], "threadIdx.x")
    a = random(6, 256)
    result = run(sch.mod, a, np.zeros(6, "float32"))
    np.testing.assert_allclose(result, a.sum(axis=1), rtol=1e-5)


def test_sums_that_all_threads_would_add_to_are_refused_when_they_are_lowered():
    sch = row_reduction(8, 16, "sum")
    b = sch.get_block("B")
    copy = sch.cache_read(b, 0, "shared")
    i, k = sch.get_loops(b)
    sch.bind(i, "blockIdx.x")
    sch.compute_at(copy, i)
    sch.decompose_reduction(b, k)
    sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")
    with pytest.raises(tvm.error.ValueError, match="B_update is in a kernel with threadIdx.x but"):
        tvm.build(sch.mod, target=emulated("cuda"))
