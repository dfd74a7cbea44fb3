"""Kernels whose threads meet in global memory, run by the stackvm."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_kernels import Kernel
from tvm import tir
from tvm.script import tir as T
from tvm.target import emulated

ZEROS = np.zeros(8, "float32")


def in_reverse(barrier, threads=8, blocks=1):
    """A is written by the threads, B takes it in reverse."""
    k = Kernel(threads, blocks)
    A, B = k.buffer((8,), name="A"), k.buffer((8,), name="B")
    at = k.bx.var * threads + k.tx.var
    A[at] = at.astype("float32") + 1
    if barrier:
        k.sync(barrier)
    B[at] = A[7 - at]
    return k


def test_what_threads_of_a_block_wrote_is_read_behind_a_barrier():
    assert in_reverse("shared").run(ZEROS, ZEROS).tolist() == [8, 7, 6, 5, 4, 3, 2, 1]
    with pytest.raises(ValueError, match=r"race on A\[7\]: this thread loads what thread 7 stored"):
        in_reverse(None).run(ZEROS, ZEROS)


def test_a_barrier_does_not_order_blocks():
    with pytest.raises(ValueError, match="race on A.*another block of threads"):
        in_reverse("shared", threads=2, blocks=4).run(ZEROS, ZEROS)


def test_races_are_not_looked_for_on_request():
    unwatched = emulated("cuda", check_races=False)
    assert in_reverse(None).run(ZEROS, ZEROS, target=unwatched).tolist() == list(range(8, 0, -1))


def test_a_store_over_what_another_block_read_is_a_race():
    k = Kernel(threads=1, blocks=8)
    A, B = k.buffer((8,), name="A"), k.buffer((8,), name="B")
    B[k.bx.var] = A[tir.max(k.bx.var - 1, 0)]
    A[tir.min(k.bx.var + 1, 7)] = k.bx.var.astype("float32") + 3
    with pytest.raises(ValueError, match=r"race on A.*another block"):
        k.run(ZEROS, ZEROS)


def test_blocks_do_not_store_different_values_to_one_element():
    def kernel(value):
        k = Kernel(threads=2, blocks=4)
        A = k.buffer((8,))
        A[k.tx.var] = value(k)
        return k

    assert kernel(lambda k: 5.0).run(ZEROS).tolist() == [5, 5, 0, 0, 0, 0, 0, 0]
    with pytest.raises(ValueError, match=r"race on A\[0\].*another block of threads loaded or"):
        kernel(lambda k: k.bx.var.astype("float32") + 1).run(ZEROS)


def test_each_thread_changes_its_own_elements_in_place():
    k = Kernel(threads=2, blocks=2)
    A = k.buffer((8,))
    with k.ib.for_range(0, 2) as i:
        at = (k.bx.var * 2 + k.tx.var) * 2 + i
        A[at] = A[at] * 2
        A[at] = A[at] + 1
    a = np.arange(8, dtype="float32")
    assert k.run(a).tolist() == (2 * a + 1).tolist()


def test_vectors_are_watched_by_element():
    k = Kernel(threads=2)
    A, B = k.buffer((8,), name="A"), k.buffer((8,), name="B")
    at = k.tx.var * 4
    A[tir.Ramp(at, 1, 4)] = tir.Broadcast(k.tx.var.astype("float32") + 1, 4)
    B[k.tx.var] = A[6 - k.tx.var * 4]
    with pytest.raises(ValueError, match=r"race on A\[6\]: this thread loads what thread 1 stored"):
        k.run(ZEROS, ZEROS)


def test_a_scratch_buffer_of_all_blocks_is_a_race():
    @T.prim_func
    def kernel(
        A: T.Buffer((8,), "float32"), S: T.Buffer((1,), "float32"), C: T.Buffer((8,), "float32")
    ):
        for bx in T.thread_binding(8, "blockIdx.x"):
            with T.block("S"):
                i = T.axis.spatial(8, bx)
                S[0] = A[i] * T.float32(2)
            with T.block("C"):
                i = T.axis.spatial(8, bx)
                C[i] = S[0]

    arrays = [tvm.nd.array(np.arange(n, dtype="float32") + 1) for n in (8, 1, 8)]
    with pytest.raises(ValueError, match=r"race on S\[0\].*another block"):
        tvm.build(kernel, target=emulated("cuda"))(*arrays)
