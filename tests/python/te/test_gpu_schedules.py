"""Schedules for threads, run by the emulator against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, tir


def run(schedule, args, *arrays, target=None):
    """Build for the emulated GPU and run; the last array receives the result."""
    func = tvm.build(schedule, args, target or tvm.target.emulated("cuda"))
    tensors = [tvm.nd.array(a) for a in arrays]
    func(*tensors)
    return [t.numpy() for t in tensors]


def lowered(schedule, args):
    with tvm.target.Target("cuda"):
        return str(tvm.lower(schedule, args))


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("n", [1, 10, 64, 100])
def test_vector_add_covers_sizes_that_threads_do_not_divide(n):
    a = te.placeholder((n,), name="A")
    b = te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=32)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].bind(inner, te.thread_axis("threadIdx.x"))
    x, y = random(n), random(n, seed=1)
    np.testing.assert_array_equal(run(s, [a, b, c], x, y, np.zeros(n, "float32"))[2], x + y)


def test_vector_add_takes_its_size_at_run_time():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=16)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].bind(inner, te.thread_axis("threadIdx.x"))
    x = random(37)
    np.testing.assert_array_equal(run(s, [a, c], x, np.zeros(37, "float32"))[1], x + 1)


def tiled_matmul(m, n, k, tile=16, threads=4, step=8, vthread=2, scope="shared"):
    """A tile of C per block; A and B are fetched by all threads of the block together."""
    a = te.placeholder((m, k), name="A")
    b = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    shared = [s.cache_read(t, scope, [c]) for t in (a, b)]
    local = s.cache_write(c, "local")
    tx = te.thread_axis((0, threads), "threadIdx.x")
    ty = te.thread_axis((0, threads), "threadIdx.y")
    bi, i = s[c].split(c.op.axis[0], factor=tile)
    bj, j = s[c].split(c.op.axis[1], factor=tile)
    vi, i = s[c].split(i, nparts=vthread)
    vj, j = s[c].split(j, nparts=vthread)
    ti, i = s[c].split(i, nparts=threads)
    tj, j = s[c].split(j, nparts=threads)
    s[c].reorder(bi, bj, vi, vj, ti, tj, i, j)
    s[c].bind(bi, te.thread_axis("blockIdx.y"))
    s[c].bind(bj, te.thread_axis("blockIdx.x"))
    s[c].bind(vi, te.thread_axis("vthread", name="vy"))
    s[c].bind(vj, te.thread_axis("vthread", name="vx"))
    s[c].bind(ti, ty)
    s[c].bind(tj, tx)
    s[local].compute_at(s[c], tj)
    ko, ki = s[local].split(s[local].op.reduce_axis[0], factor=step)
    s[local].reorder(ko, ki, *s[local].op.axis)
    for cache in shared:
        s[cache].compute_at(s[local], ko)
        fused = s[cache].fuse(*s[cache].op.axis)
        fused, lane = s[cache].split(fused, factor=threads)
        fused, row = s[cache].split(fused, factor=threads)
        s[cache].bind(lane, tx)
        s[cache].bind(row, ty)
    return s, [a, b, c]


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 16), (20, 35, 11)])
@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_tiled_matmul_with_cooperative_fetch_and_virtual_threads(m, n, k, scope):
    s, args = tiled_matmul(m, n, k, scope=scope)
    x, y = random(m, k), random(k, n, seed=1)
    result = run(s, args, x, y, np.zeros((m, n), "float32"))[2]
    np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-4)


def test_a_kernel_asks_for_what_is_more_than_every_device_grants():
    s, args = tiled_matmul(16, 16, 1024, step=1024)  # two tiles of 64 KiB
    x, y = random(16, 1024), random(1024, 16, seed=1)
    out = np.zeros((16, 16), "float32")
    emulated = tvm.target.emulated
    result = run(s, args, x, y, out, target=emulated("cuda -arch=sm_80"))[2]
    np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-4)
    kernels = tvm.driver.split_dev_host_funcs(tvm.lower(s, args), tvm.target.Target("cuda"))[1]
    assert 'T.allocate([131072], "uint8", "shared.dyn")' in str(kernels)
    assert '"float32", "shared")' not in str(kernels)
    with pytest.raises(ValueError, match="131072 bytes of dynamic .*; the target has 65536"):
        run(s, args, x, y, out, target=emulated("cuda -arch=sm_75"))
    less = emulated("cuda -arch=sm_80 -max_shared_memory_per_block=32768")
    with pytest.raises(ValueError, match="brings the shared .* the target has 32768"):
        run(s, args, x, y, out, target=less)


def test_tiled_matmul_waits_twice_per_step():
    s, args = tiled_matmul(32, 32, 16)
    target = tvm.target.Target("cuda", host="llvm")
    with target:
        mod = tvm.lower(s, args)
    kernels = tvm.driver.split_dev_host_funcs(mod, target)[1]
    text = str(kernels)
    # Before the fetch overwrites what is still read, and before what it wrote is read.
    assert text.count("tvm_storage_sync") == 2
    assert "vthread" not in text


@settings(max_examples=10, deadline=None)
@given(
    m=st.integers(1, 24),
    n=st.integers(1, 24),
    k=st.integers(1, 20),
    threads=st.sampled_from([1, 2, 4]),
    step=st.integers(1, 6),
    vthread=st.sampled_from([1, 2]),
)
def test_tiled_matmul_agrees_with_numpy_for_any_size(m, n, k, threads, step, vthread):
    s, args = tiled_matmul(m, n, k, 8, threads, step, vthread)
    x, y = random(m, k), random(k, n, seed=1)
    result = run(s, args, x, y, np.zeros((m, n), "float32"))[2]
    np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-4)


def test_a_fetch_smaller_than_the_block_leaves_threads_idle():
    s, args = tiled_matmul(5, 3, 2, tile=8, threads=4, step=1, vthread=1)
    x, y = random(5, 2), random(2, 3, seed=1)
    result = run(s, args, x, y, np.zeros((5, 3), "float32"))[2]
    np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-5)

    a = te.placeholder((3,), name="A")
    b = te.compute((20,), lambda i: a[i % 3] * 2.0, name="B")
    s = te.create_schedule(b.op)
    cache = s.cache_read(a, "shared", [b])
    lane = te.thread_axis((0, 8), "threadIdx.x")
    outer, inner = s[b].split(b.op.axis[0], factor=8)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, lane)
    s[cache].compute_at(s[b], outer)
    _, part = s[cache].split(cache.op.axis[0], factor=16)
    part, _ = s[cache].split(part, factor=2)
    s[cache].bind(part, lane)
    x = random(3)
    want = 2 * x[np.arange(20) % 3]
    np.testing.assert_array_equal(run(s, [a, b], x, np.zeros(20, "float32"))[1], want)


def row_sum(m, n, threads, rows=1):
    a = te.placeholder((m, n), name="A")
    k = te.reduce_axis((0, n), "k")
    b = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=rows)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, te.thread_axis("threadIdx.y"))
    _, lane = s[b].split(s[b].op.reduce_axis[0], factor=threads)
    s[b].bind(lane, te.thread_axis("threadIdx.x"))
    return s, [a, b]


@pytest.mark.parametrize("threads", [8, 32, 64, 24])
@pytest.mark.parametrize(("m", "n", "rows"), [(3, 100, 1), (5, 64, 2)])
def test_sum_over_threads(m, n, threads, rows):
    s, args = row_sum(m, n, threads, rows)
    x = random(m, n)
    result = run(s, args, x, np.zeros(m, "float32"))[1]
    np.testing.assert_allclose(result, x.sum(axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("threads", "shuffles", "waits"), [(16, 1, 0), (64, 1, 1), (48, 0, 1)])
def test_warps_exchange_values_by_shuffles(threads, shuffles, waits):
    s, args = row_sum(4, 128, threads)
    target = tvm.target.Target("cuda", host="llvm")
    with target:
        mod = tvm.lower(s, args)
    text = str(tvm.driver.split_dev_host_funcs(mod, target)[1])
    assert ("shuffle" in text) == bool(shuffles)
    assert ("storage_sync" in text) == bool(waits)


def test_rfactor_and_threads_store_once_where_the_predicate_holds():
    n = 128
    a = te.placeholder((8, n), name="A")
    k = te.reduce_axis((0, n), "k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.reduce_axis[0], factor=16)
    partial = s.rfactor(b, inner)
    outer, row = s[b].split(s[b].op.axis[0], factor=4)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(row, te.thread_axis("threadIdx.y"))
    lane = te.thread_axis("threadIdx.x")
    s[b].bind(s[b].op.reduce_axis[0], lane)
    s[partial].compute_at(s[b], s[b].op.reduce_axis[0])
    s[b].set_store_predicate(lane.var.equal(0))
    x = random(8, n)
    result = run(s, [a, b], x, np.zeros(8, "float32"))[1]
    np.testing.assert_allclose(result, x.sum(axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [16, 48])
def test_argmax_over_threads_keeps_index_and_value_together(threads):
    m, n = 4, 50

    def better(x, y):
        first = tir.Or(x[1] > y[1], tir.And(x[1] == y[1], x[0] < y[0]))
        return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])

    argmax = te.comm_reducer(
        better, lambda t0, t1: (tir.const(-1, t0), tir.const(-3e38, t1)), name="argmax"
    )
    a = te.placeholder((m, n), name="A")
    index = te.compute((m, n), lambda i, j: j, name="index")
    k = te.reduce_axis((0, n), "k")
    where, value = te.compute((m,), lambda i: argmax((index[i, k], a[i, k]), axis=k), name="best")
    s = te.create_schedule(where.op)
    s[index].compute_inline()
    s[where].bind(where.op.axis[0], te.thread_axis("blockIdx.x"))
    _, lane = s[where].split(where.op.reduce_axis[0], factor=threads)
    s[where].bind(lane, te.thread_axis("threadIdx.x"))
    x = random(m, n)
    _, got, best = run(s, [a, where, value], x, np.zeros(m, "int32"), np.zeros(m, "float32"))
    np.testing.assert_array_equal(got, x.argmax(axis=1))
    np.testing.assert_array_equal(best, x.max(axis=1))


def test_softmax_shares_one_block_per_row():
    m, n, threads = 3, 70, 32
    a = te.placeholder((m, n), name="A")
    k1 = te.reduce_axis((0, n), "k1")
    top = te.compute((m,), lambda i: te.max(a[i, k1], axis=k1), name="top")
    e = te.compute((m, n), lambda i, j: te.exp(a[i, j] - top[i]), name="e")
    k2 = te.reduce_axis((0, n), "k2")
    total = te.compute((m,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
    out = te.compute((m, n), lambda i, j: e[i, j] / total[i], name="out")
    s = te.create_schedule(out.op)
    lane = te.thread_axis((0, threads), "threadIdx.x")
    s[out].bind(out.op.axis[0], te.thread_axis("blockIdx.x"))
    _, inner = s[out].split(out.op.axis[1], factor=threads)
    s[out].bind(inner, lane)
    for stage in (total, top):
        s[stage].compute_at(s[out], out.op.axis[0])
        _, inner = s[stage].split(s[stage].op.reduce_axis[0], factor=threads)
        s[stage].bind(inner, lane)
    s[e].compute_at(s[out], out.op.axis[0])
    _, inner = s[e].split(e.op.axis[1], factor=threads)
    s[e].bind(inner, lane)
    x = random(m, n)
    want = np.exp(x - x.max(axis=1, keepdims=True))
    want /= want.sum(axis=1, keepdims=True)
    result = run(s, [a, out], x, np.zeros((m, n), "float32"))[1]
    np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-6)


def test_memory_of_a_warp_is_read_across_its_threads():
    n = 64
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[(i // 32) * 32 + (i + 5) % 32] * 2.0, name="B")
    s = te.create_schedule(b.op)
    cache = s.cache_read(a, "warp", [b])
    lane = te.thread_axis("threadIdx.x")
    outer, inner = s[b].split(b.op.axis[0], factor=32)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, lane)
    s[cache].compute_at(s[b], outer)
    _, inner = s[cache].split(s[cache].op.axis[0], factor=32)
    s[cache].bind(inner, lane)
    x = random(n)
    want = 2 * np.roll(x.reshape(2, 32), -5, axis=1).reshape(-1)
    np.testing.assert_array_equal(run(s, [a, b], x, np.zeros(n, "float32"))[1], want)


def test_two_kernels_pass_on_memory_of_the_device():
    n = 40
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((n,), lambda i: b[n - 1 - i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    for stage in (b, c):
        outer, inner = s[stage].split(stage.op.axis[0], factor=16)
        s[stage].bind(outer, te.thread_axis("blockIdx.x"))
        s[stage].bind(inner, te.thread_axis("threadIdx.x"))
    x = random(n)
    np.testing.assert_array_equal(run(s, [a, c], x, np.zeros(n, "float32"))[1], x[::-1] * 2 + 1)


def test_vectorized_loads_stay_in_kernels():
    n = 64
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    outer, lane = s[b].split(outer, factor=8)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(lane, te.thread_axis("threadIdx.x"))
    s[b].vectorize(inner)
    x = random(n)
    np.testing.assert_array_equal(run(s, [a, b], x, np.zeros(n, "float32"))[1], x + 1)


def test_a_reduction_over_blocks_is_refused():
    a = te.placeholder((64,), name="A")
    k = te.reduce_axis((0, 64), "k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="B")
    s = te.create_schedule(b.op)
    with pytest.raises(tvm.error.ScheduleError, match="rfactor a reduction"):
        s[b].bind(b.op.reduce_axis[0], te.thread_axis("blockIdx.x"))


def test_a_stage_without_a_scope_lives_where_its_threads_share_it():
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((64,), lambda i: b[i] + 1.0, name="C")
    for at_thread, scope in ((False, "shared"), (True, "local")):
        s = te.create_schedule(c.op)
        outer, inner = s[c].split(c.op.axis[0], factor=16)
        s[c].bind(outer, te.thread_axis("blockIdx.x"))
        s[c].bind(inner, te.thread_axis("threadIdx.x"))
        s[b].compute_at(s[c], inner if at_thread else outer)
        assert f'"{scope}"' in lowered(s, [a, c])
