"""What threads read is what they wrote themselves, or what they may have waited for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.target import emulated


def two_steps(scope, read, n=64):
    """B = 2 A, C = B at other places, both by the same threads of one kernel."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2, name="B")
    C = te.compute((n,), lambda i: B[read(i)], name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    made, used = sch.get_block("B"), sch.get_block("C")
    sch.set_scope(made, 0, scope)
    (i,) = sch.get_loops(used)
    block = sch.add_unit_loop(i)
    sch.bind(block, "blockIdx.x")
    sch.compute_at(made, block)
    sch.bind(sch.get_loops(made)[-1], "threadIdx.x")
    sch.bind(i, "threadIdx.x")
    return sch.mod


def run(mod, n=64):
    a = np.arange(n, dtype="float32")
    args = [tvm.nd.array(a), tvm.nd.array(np.zeros(n, "float32"))]
    tvm.build(mod, target=emulated("cuda"))(*args)
    return a, args[1].numpy()


PLACES = {
    "the next one": lambda i: (i + 1) % 64,
    "in reverse": lambda i: 63 - i,
    "in pairs": lambda i: i + 1 - i % 2 * 2,
}


@pytest.mark.parametrize("place", PLACES)
def test_parts_of_other_threads_are_not_read_from_memory_of_their_own(place):
    with pytest.raises(tvm.error.ValueError, match='block C reads elements of B.*scope "shared"'):
        run(two_steps("local", PLACES[place]))


@pytest.mark.parametrize("place", PLACES)
def test_threads_do_not_read_global_memory_that_others_have_just_written(place):
    with pytest.raises(tvm.error.ValueError, match="for which no thread waits"):
        run(two_steps("global", PLACES[place]))


@pytest.mark.parametrize("place", PLACES)
def test_threads_wait_for_what_they_share(place):
    a, c = run(two_steps("shared", PLACES[place]))
    np.testing.assert_array_equal(c, 2 * a[[int(PLACES[place](i)) for i in range(64)]])


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize(
    "same", [lambda i: i, lambda i: (i // 4) * 4 + i % 4, lambda i: (i + 64) % 64]
)
def test_threads_read_what_they_wrote(scope, same):
    a, c = run(two_steps(scope, same))
    np.testing.assert_array_equal(c, 2 * a)


@given(st.sampled_from([4, 8, 16]), st.sampled_from([1, 2, 4]), st.integers(0, 3), st.booleans())
def test_windows_are_refused_when_they_reach_into_what_others_have(threads, each, reach, inside):
    """Each thread has `each` elements, which a window reaches out of; or a copy of the whole window
    of each of its elements."""
    n = threads * each
    A = te.placeholder((n + 4,), name="A")
    B = te.compute((n + 4,), lambda i: A[i] + 1, name="B")
    C = te.compute((n,), lambda i: B[i] + B[i + reach], name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    made, used = sch.get_block("B"), sch.get_block("C")
    sch.set_scope(made, 0, "local")
    tx, _ = sch.split(sch.get_loops(used)[0], [threads, None])
    if inside:
        sch.compute_at(made, tx)
        sch.bind(tx, "threadIdx.x")
    else:
        block = sch.add_unit_loop(tx)
        sch.bind(block, "blockIdx.x")
        sch.compute_at(made, block)
        # As many elements for each thread, and what is left for another pass of the first ones.
        loops = sch.split(sch.get_loops(made)[-1], [None, threads, each])
        sch.bind(loops[1], "threadIdx.x")
        sch.bind(tx, "threadIdx.x")
    if not inside and reach > 0:
        with pytest.raises(tvm.error.ValueError, match="block C reads elements of B"):
            tvm.build(sch.mod, target=emulated("cuda"))
        return
    a = np.arange(n + 4, dtype="float32")
    args = [tvm.nd.array(a), tvm.nd.array(np.zeros(n, "float32"))]
    tvm.build(sch.mod, target=emulated("cuda"))(*args)
    np.testing.assert_array_equal(args[1].numpy(), a[:n] + a[reach : n + reach] + 2)


def test_one_thread_reads_its_own_part_under_a_condition():
    @T.prim_func
    def first(A: T.Buffer((32,), "float32"), C: T.Buffer((1,), "float32")):
        B = T.alloc_buffer((32,), scope="local")
        for bx in T.thread_binding(1, "blockIdx.x"):
            for tx in T.thread_binding(32, "threadIdx.x"):
                with T.block("B"):
                    i = T.axis.spatial(32, tx)
                    B[i] = A[i] * T.float32(2)
            for tx in T.thread_binding(32, "threadIdx.x"):
                with T.block("C"):
                    T.where(tx == 5)
                    o = T.axis.spatial(1, bx)
                    C[o] = B[5]

    a = np.arange(32, dtype="float32")
    args = [tvm.nd.array(a), tvm.nd.array(np.zeros(1, "float32"))]
    tvm.build(first, target=emulated("cuda"))(*args)
    assert args[1].numpy()[0] == 10


def test_a_kernel_of_unknown_size_is_refused_too():
    n = te.var("n")
    A = te.placeholder((n, 64), name="A")
    B = te.compute((n, 64), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((n, 64), lambda i, j: B[i, 63 - j], name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    made, used = sch.get_block("B"), sch.get_block("C")
    sch.set_scope(made, 0, "local")
    i, j = sch.get_loops(used)
    sch.bind(i, "blockIdx.x")
    sch.compute_at(made, i)
    sch.bind(sch.get_loops(made)[-1], "threadIdx.x")
    sch.bind(j, "threadIdx.x")
    with pytest.raises(tvm.error.ValueError, match="block C reads elements of B"):
        tvm.build(sch.mod, target=emulated("cuda"))


def test_barriers_in_a_kernel_are_its_authors_word():
    @T.prim_func
    def reverse(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
        B = T.alloc_buffer((32,))
        for _bx in T.thread_binding(1, "blockIdx.x"):
            for tx in T.thread_binding(32, "threadIdx.x"):
                with T.block("B"):
                    i = T.axis.spatial(32, tx)
                    B[i] = A[i] * T.float32(2)
            T.evaluate(T.tvm_storage_sync("shared"))
            for tx in T.thread_binding(32, "threadIdx.x"):
                with T.block("C"):
                    i = T.axis.spatial(32, tx)
                    C[i] = B[31 - i]

    a = np.arange(32, dtype="float32")
    args = [tvm.nd.array(a), tvm.nd.array(np.zeros(32, "float32"))]
    tvm.build(reverse, target=emulated("cuda"))(*args)
    np.testing.assert_array_equal(args[1].numpy(), 2 * a[::-1])
