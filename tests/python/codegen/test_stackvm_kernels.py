"""Kernels written by hand, run block by block by the stackvm."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tvm
from testing_kernels import Kernel
from tvm import te, tir
from tvm.target import emulated
from tvm.tir import call_intrin

FULL = tir.const(0xFFFFFFFF, "uint32")


def test_threads_exchange_values_through_shared_memory():
    k = Kernel(threads=8, blocks=3)
    A, B = k.buffer((24,), name="A"), k.buffer((24,), name="B")
    S = k.ib.allocate("float32", 8, name="S", scope="shared")
    t, at = k.tx.var, k.bx.var * 8
    S[t] = A[at + t]
    k.sync()
    B[at + t] = S[7 - t]
    a = np.arange(24, dtype="float32")
    np.testing.assert_array_equal(k.run(a, a * 0), a.reshape(3, 8)[:, ::-1].ravel())


def test_threads_of_three_axes_are_numbered_from_x():
    ib = tir.ir_builder.create()
    axes = [te.thread_axis(f"threadIdx.{axis}") for axis in "xyz"]
    out = tir.decl_buffer((24,), "int32", "out")
    for axis, extent in zip(axes, (2, 3, 4), strict=True):
        ib.scope_attr(axis, "thread_extent", extent)
    x, y, z = (axis.var for axis in axes)
    ib.buffer_ptr(out)[x + y * 2 + z * 6] = x * 100 + y * 10 + z
    k = Kernel(1)
    k.ib, k.params = ib, [out.data]
    f = k.build(tags=["threadIdx.x", "threadIdx.y", "threadIdx.z"])["kernel"]
    result = tvm.nd.empty((24,), "int32")
    f(result, 2, 3, 4)
    expected = [x * 100 + y * 10 + z for z in range(4) for y in range(3) for x in range(2)]
    assert result.numpy().tolist() == expected


def test_branches_and_loops_differ_between_threads():
    k = Kernel(threads=16)
    steps = k.buffer((16,), "int32", "steps")
    n = k.ib.allocate("int32", 1, name="n", scope="local")
    count = k.ib.allocate("int32", 1, name="count", scope="local")
    n[0] = k.tx.var + 1
    count[0] = 0
    with k.ib.while_loop(n[0] > 1):
        with k.ib.if_scope(n[0] % 2 == 0):
            n[0] = n[0] // 2
        with k.ib.else_scope():
            n[0] = n[0] * 3 + 1
        count[0] = count[0] + 1
    steps[k.tx.var] = count[0]

    def collatz(value):
        count = 0
        while value > 1:
            value, count = (value // 2 if value % 2 == 0 else 3 * value + 1), count + 1
        return count

    assert k.run(np.zeros(16, "int32")).tolist() == [collatz(i + 1) for i in range(16)]


def test_loop_with_extent_by_thread_and_lazy_choice():
    k = Kernel(threads=10)
    A, B = k.buffer((10,), name="A"), k.buffer((10,), name="B")
    t = k.tx.var
    B[t] = 0.0
    with k.ib.for_range(0, t, name="i") as i:
        B[t] = B[t] + A[i]
    with k.ib.if_scope(t > 0):
        # Thread 0 must not read A[-1].
        B[t] = B[t] + tir.if_then_else(t > 1, A[t - 2], tir.const(100.0, "float32"))
    a = np.arange(1, 11, dtype="float32")
    expected = np.array(
        [a[:t].sum() + (0 if t == 0 else 100 if t == 1 else a[t - 2]) for t in range(10)]
    )
    np.testing.assert_array_equal(k.run(a, a * 0), expected)


def test_access_outside_of_a_buffer_names_the_element_and_the_thread():
    k = Kernel(threads=8, blocks=2)
    A, B = k.buffer((16,), name="A"), k.buffer((16,), name="B")
    B[k.tx.var] = A[k.bx.var * 8 + k.tx.var + 1]
    message = r"kernel kernel, block \(1, 0, 0\), thread \(7, 0, 0\): load of A\[16\]"
    with pytest.raises(IndexError, match=message):
        k.run(np.zeros(16, "float32"), np.zeros(16, "float32"))


def test_access_outside_of_shared_memory_is_refused():
    k = Kernel(threads=8)
    S = k.ib.allocate("float32", 8, name="S", scope="shared")
    S[k.tx.var - 1] = 0.0
    with pytest.raises(IndexError, match=r"store to S\[-1\], but S has 8 elements"):
        k.run()


def test_barrier_in_a_divergent_branch_is_refused():
    k = Kernel(threads=8)
    with k.ib.if_scope(k.tx.var < 4):
        k.sync()
    with pytest.raises(ValueError, match=r"thread \(4, 0, 0\): the barrier is reached by 4 of 8"):
        k.run()


def test_shared_memory_without_a_barrier_is_a_race():
    def kernel(barrier):
        k = Kernel(threads=4)
        A = k.buffer((4,))
        S = k.ib.allocate("float32", 4, name="S", scope="shared")
        S[k.tx.var] = k.tx.var.astype("float32")
        if barrier:
            k.sync()
        A[k.tx.var] = S[3 - k.tx.var]
        return k

    zeros = np.zeros(4, "float32")
    assert kernel(True).run(zeros).tolist() == [3, 2, 1, 0]
    with pytest.raises(ValueError, match=r"race on S\[3\]: this thread loads what thread 3 stored"):
        kernel(False).run(zeros)
    unwatched = emulated("cuda", check_races=False)
    assert kernel(False).run(zeros, target=unwatched).tolist() == [3, 2, 1, 0]


def test_store_after_load_without_a_barrier_is_a_race():
    k = Kernel(threads=4)
    A = k.buffer((4,))
    S = k.ib.allocate("float32", 4, name="S", scope="shared")
    S[k.tx.var] = 1.0
    k.sync()
    A[k.tx.var] = S[3 - k.tx.var]
    S[k.tx.var] = 2.0
    with pytest.raises(ValueError, match="race on S.*this thread stores"):
        k.run(np.zeros(4, "float32"))


def group(k, *copies):
    """Copies (to, index, from, index) that go on meanwhile, as one group."""
    zero = tir.const(0, "int32")
    with k.ib.new_scope():
        k.ib.scope_attr(zero, "async_commit_queue_scope", zero)
        with k.ib.new_scope():
            k.ib.scope_attr(zero, "async_scope", 1)
            for to, i, source, j in copies:
                to[i] = source[j]


def sync_after_groups(k, under_way):
    zero = tir.const(0, "int32")
    with k.ib.new_scope():
        k.ib.scope_attr(zero, "async_wait_queue_scope", zero)
        k.ib.scope_attr(zero, "async_wait_inflight_count", under_way)
        k.sync()


def copied_and_turned_around(wait, dtype="float32", target=None):
    """Each of four threads copies an element and writes that of another."""
    k = Kernel(threads=4)
    A, B = k.buffer((4,), dtype, name="A"), k.buffer((4,), dtype, name="B")
    S = k.ib.allocate(dtype, 4, name="S", scope="shared")
    t = k.tx.var
    group(k, (S, t, A, t))
    wait(k)
    B[t] = S[3 - t]
    a = np.arange(4).astype(dtype)
    return k.run(a, a * 0, target=target)


def test_copies_that_go_on_meanwhile_are_there_after_the_wait():
    result = copied_and_turned_around(lambda k: sync_after_groups(k, 0))
    assert result.tolist() == [3, 2, 1, 0]
    # One group may be on its way, so nothing was waited for.
    assert np.isnan(copied_and_turned_around(lambda k: sync_after_groups(k, 1))).all()
    assert np.isnan(copied_and_turned_around(Kernel.sync)).all()


def test_a_barrier_before_the_wait_is_a_race():
    def barrier_first(k):
        k.sync()
        zero = tir.const(0, "int32")
        with k.ib.new_scope():
            k.ib.scope_attr(zero, "async_wait_queue_scope", zero)
            k.ib.scope_attr(zero, "async_wait_inflight_count", 0)
            k.ib.emit(tir.Evaluate(zero))

    with pytest.raises(ValueError, match=r"race on S\[3\]: this thread loads what thread 3 stored"):
        copied_and_turned_around(barrier_first)


def test_instructions_move_four_bytes_or_more():
    # Threads carry out what is less, so it is there without a wait.
    result = copied_and_turned_around(Kernel.sync, dtype="float16")
    assert result.tolist() == [3, 2, 1, 0]


def test_the_oldest_groups_come_first():
    k = Kernel(threads=2)
    A, B = k.buffer((6,), name="A"), k.buffer((6,), name="B")
    S = k.ib.allocate("float32", 6, name="S", scope="shared")
    t = k.tx.var
    for i in range(3):
        group(k, (S, t + 2 * i, A, t + 2 * i))
    sync_after_groups(k, 2)
    for i in range(3):
        B[t + 2 * i] = S[t + 2 * i]
    a = np.arange(6, dtype="float32")
    result = k.run(a, a * 0)
    assert result[:2].tolist() == [0, 1]
    assert np.isnan(result[2:]).all()


def test_a_copy_into_what_another_thread_reads_is_a_race():
    k = Kernel(threads=4)
    A, B = k.buffer((4,), name="A"), k.buffer((4,), name="B")
    S = k.ib.allocate("float32", 4, name="S", scope="shared")
    t = k.tx.var
    S[t] = 1.0
    k.sync()
    B[t] = S[3 - t]
    group(k, (S, t, A, t))
    with pytest.raises(ValueError, match=r"race on S.*this thread stores what thread . loaded"):
        k.run(np.zeros(4, "float32"), np.zeros(4, "float32"))


def test_a_copy_outside_of_its_buffer_is_refused():
    k = Kernel(threads=4)
    A = k.buffer((4,), name="A")
    S = k.ib.allocate("float32", 4, name="S", scope="shared")
    group(k, (S, k.tx.var + 1, A, k.tx.var))
    with pytest.raises(IndexError, match=r"store to S\[4\], but S has 4 elements"):
        k.run(np.zeros(4, "float32"))


def test_threads_may_store_the_same_value():
    k = Kernel(threads=4)
    A = k.buffer((4,))
    S = k.ib.allocate("float32", 1, name="S", scope="shared")
    S[0] = 5.0
    A[k.tx.var] = S[0]
    assert k.run(np.zeros(4, "float32")).tolist() == [5, 5, 5, 5]


def test_barrier_of_a_warp_orders_its_own_threads_only():
    def kernel(distance):
        k = Kernel(threads=64)
        A = k.buffer((64,))
        S = k.ib.allocate("float32", 64, name="S", scope="shared")
        S[k.tx.var] = k.tx.var.astype("float32")
        k.sync("warp")
        A[k.tx.var] = S[tir.floormod(k.tx.var + distance, 64)]
        return k

    zeros = np.zeros(64, "float32")
    with pytest.raises(ValueError, match="race on S"):
        kernel(32).run(zeros)
    assert kernel(0).run(zeros).tolist() == list(range(64))


def shuffled(kind, operand, width=32):
    k = Kernel(threads=32)
    A, B = k.buffer((32,), "int32", "A"), k.buffer((32,), "int32", "B")
    value = call_intrin(
        "int32", f"tir.tvm_warp_shuffle{kind}", FULL, A[k.tx.var], operand(k.tx.var), width, 32
    )
    B[k.tx.var] = value
    a = np.arange(32, dtype="int32") * 10
    return a, k.run(a, a * 0)


def test_shuffles_take_values_of_other_lanes():
    a, got = shuffled("", lambda t: 31 - t)
    assert got.tolist() == a[::-1].tolist()
    a, got = shuffled("_down", lambda t: 4, width=16)
    assert got.tolist() == [a[i + 4] if i % 16 < 12 else a[i] for i in range(32)]
    a, got = shuffled("_up", lambda t: 1)
    assert got.tolist() == [a[max(i - 1, 0)] for i in range(32)]


def test_shuffle_from_an_idle_lane_is_refused():
    k = Kernel(threads=32)
    A = k.buffer((32,), "int32")
    with k.ib.if_scope(k.tx.var < 16):
        mask = call_intrin("uint32", "tir.tvm_warp_activemask")
        A[k.tx.var] = call_intrin("int32", "tir.tvm_warp_shuffle_down", mask, k.tx.var, 1, 32, 32)
    with pytest.raises(ValueError, match="shuffle from lane 16 of the warp"):
        k.run(np.zeros(32, "int32"))


@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 8, 16), (8, 32, 16)])
@pytest.mark.parametrize(
    ("inputs", "output"), [("float16", "float32"), ("float16", "float16"), ("int8", "int32")]
)
def test_fragments_multiply(shape, inputs, output):
    m, n, depth = shape
    k = Kernel(threads=64)
    A, B = k.buffer((2 * m, depth), inputs, "A"), k.buffer((n, depth), inputs, "B")
    C = k.buffer((2 * m, n), output, "C")
    fa = k.ib.allocate(inputs, m * depth, name="fa", scope="wmma.matrix_a")
    fb = k.ib.allocate(inputs, depth * n, name="fb", scope="wmma.matrix_b")
    fc = k.ib.allocate(output, m * n, name="fc", scope="wmma.accumulator")
    row = tir.floordiv(k.tx.var, 32) * m

    def call(name, *args):
        k.ib.emit(call_intrin("handle", f"tir.{name}", *args))

    def address(buffer, row):
        return call_intrin("handle", "tir.address_of", buffer[row, 0])

    call("tvm_fill_fragment", fc.asobject().data, m, n, depth, 0, tir.const(1, output))
    load = "tvm_load_matrix_sync"
    call(load, fa.asobject().data, m, n, depth, 0, address(A, row), depth, "row_major")
    # B is stored by columns, so its transpose is multiplied.
    call(load, fb.asobject().data, m, n, depth, 0, address(B, 0), depth, "col_major")
    fragments = [f.asobject().data for f in (fc, fa, fb, fc)]
    call("tvm_mma_sync", *[x for fragment in fragments for x in (fragment, 0)])
    store = "tvm_store_matrix_sync"
    call(store, fc.asobject().data, m, n, depth, 0, address(C, row), n, "row_major")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(inputs) for s in ((2 * m, depth), (n, depth)))
    got = k.run(a, b, np.zeros((2 * m, n), output))
    np.testing.assert_array_equal(got, a.astype(output) @ b.T.astype(output) + 1)


def test_vectors_that_a_gpu_reads_at_once_must_be_aligned():
    def kernel(offset):
        k = Kernel(threads=2)
        A, B = k.buffer((16,), name="A"), k.buffer((8,), name="B")
        ramp = tir.Ramp(k.tx.var * 4 + offset, 1, 4)
        B[tir.Ramp(k.tx.var * 4, 1, 4)] = A[ramp]
        return k

    a = np.arange(16, dtype="float32")
    assert kernel(4).run(a, a[:8] * 0).tolist() == a[4:12].tolist()
    # CUDA code reads what may lie across vectors element by element.
    assert kernel(1).run(a, a[:8] * 0).tolist() == a[1:9].tolist()
    shifted = tvm.nd.from_dlpack(torch.arange(17, dtype=torch.float32)[1:])
    with pytest.raises(ValueError, match="access of 4 elements of A at index 4 is not aligned"):
        kernel(4).build()["kernel"](shifted, tvm.nd.empty((8,)), 1, 2)


def test_dynamic_shared_memory_is_bounded_by_the_launch():
    k = Kernel(threads=4)
    A = k.buffer((4,))
    S = k.ib.allocate("float32", 4, name="S", scope="shared.dyn")
    S[k.tx.var] = 2.0
    k.sync()
    A[k.tx.var] = S[0]
    f = k.build(tags=["blockIdx.x", "threadIdx.x", "tir.use_dyn_shared_memory"])["kernel"]
    a = tvm.nd.empty((4,))
    f(a, 1, 4, 16)
    assert a.numpy().tolist() == [2, 2, 2, 2]
    with pytest.raises(ValueError, match="S takes 16 bytes of dynamic .* provides 8"):
        f(a, 1, 4, 8)


def test_launch_beyond_the_limits_is_refused():
    f = Kernel(threads=8).build(emulated("cuda -max_threads_per_block=4"))["kernel"]
    with pytest.raises(ValueError, match="a block of 8 x 1 x 1 threads; the target has at most 4"):
        f(1, 8)
    k = Kernel(threads=8)
    k.ib.allocate("float32", 64, name="S", scope="shared")
    with pytest.raises(ValueError, match="S brings the shared memory .* to 256 bytes"):
        k.run(target=emulated("cuda -max_shared_memory_per_block=128"))
    with pytest.raises(TypeError, match="takes 0 arguments and 2 extents of the launch, got 1"):
        f(1)


def test_memory_that_was_not_written_is_nan():
    k = Kernel(threads=2)
    A = k.buffer((2,))
    L = k.ib.allocate("float32", 1, name="L", scope="local")
    A[k.tx.var] = L[0]
    assert np.isnan(k.run(np.zeros(2, "float32"))).all()


def test_emulated_target_has_the_limits_of_the_gpu():
    target = emulated("cuda -arch=sm_80 -max_threads_per_block=256")
    assert str(target.kind.name) == "stackvm"
    assert [str(key) for key in target.keys] == ["cuda", "gpu"]
    assert target.get_attr("arch") == "sm_80"
    assert target.get_attr("max_threads_per_block") == 256
    assert target.thread_warp_size == 32
    assert str(target.host.kind.name) == "llvm"
    assert tvm.target.Target(str(target)) is not None
    with pytest.raises(ValueError, match="option libs has no meaning here"):
        emulated("cuda -libs=cublas")
