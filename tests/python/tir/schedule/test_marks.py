"""parallel, vectorize, unroll, bind and annotations."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_blocks import arrays_for, chain, check, matmul
from tvm import tir


def test_independent_loops_run_at_once():
    func, answer = matmul(12, 20, 18)
    sch = tir.Schedule(func, debug_mask="all")
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    j_0, j_1 = sch.split(j, [None, 4])
    k_0, k_1 = sch.split(k, [None, 3])
    sch.reorder(i, j_0, k_0, k_1, j_1)
    sch.decompose_reduction(c, k_0)
    sch.parallel(i)
    sch.vectorize(j_1)
    sch.unroll(k_1)
    text = str(sch.mod)
    assert all(f"T.{kind}(" in text for kind in ("parallel", "vectorized", "unroll"))
    check(sch, func, answer)


@pytest.mark.parametrize("mark", ["parallel", "vectorize"])
def test_loops_of_a_reduction_do_not_run_at_once(mark):
    sch = tir.Schedule(matmul()[0])
    k = sch.get_loops(sch.get_block("C"))[2]
    with pytest.raises(tir.ScheduleError, match="its iterations add to the same elements"):
        getattr(sch, mark)(k)
    sch.unroll(k)


def test_a_marked_loop_is_not_taken_apart():
    sch = tir.Schedule(chain()[0])
    i, j = sch.get_loops(sch.get_block("D"))
    sch.parallel(i)
    with pytest.raises(tir.ScheduleError, match="split first, then mark the parts"):
        sch.split(i, [None, 2])
    with pytest.raises(tir.ScheduleError, match="fuse first, then mark"):
        sch.fuse(i, j)


def test_an_annotation_is_put_on_and_taken_off():
    sch = tir.Schedule(chain()[0])
    block = sch.get_block("D")
    i, _ = sch.get_loops(block)
    sch.annotate(block, "note", 7)
    sch.annotate(i, "pragma_auto_unroll_max_step", 16)
    assert int(sch.get(block).annotations["note"]) == 7
    assert "pragma_auto_unroll_max_step" in str(sch.mod)
    sch.unannotate(block, "note")
    assert "note" not in sch.get(block).annotations
    with pytest.raises(tir.ScheduleError, match="D has no annotation 'note'; it has none"):
        sch.unannotate(block, "note")


def test_a_sampled_number_can_be_an_annotation():
    sch = tir.Schedule(chain()[0])
    size = sch.sample_categorical([3], [1.0])
    sch.annotate(sch.get_block("D"), "size", size)
    assert int(sch.get(sch.get_block("D")).annotations["size"]) == 3
    assert "ann_val=v0" in str(sch.trace)


def gpu_run(sch, func, answer):
    arrays = arrays_for(func)
    given = [tvm.nd.array(a) for a in arrays]
    tvm.build(sch.mod, target=tvm.target.emulated("cuda"))(*given)
    np.testing.assert_allclose(given[-1].numpy(), answer(*arrays[:-1]), rtol=1e-4, atol=1e-4)


def test_threads_run_a_matmul():
    func, answer = matmul(16, 32, 8)
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    i_0, i_1 = sch.split(i, [None, 4])
    j_0, j_1 = sch.split(j, [None, 8])
    sch.reorder(i_0, j_0, i_1, j_1, k)
    for loop, tag in (
        (i_0, "blockIdx.y"),
        (j_0, "blockIdx.x"),
        (i_1, "threadIdx.y"),
        (j_1, "threadIdx.x"),
    ):
        sch.bind(loop, tag)
    gpu_run(sch, func, answer)


def test_partial_blocks_of_threads_are_guarded():
    func, answer = chain(10, 13)
    sch = tir.Schedule(func)
    for name in ("B", "C", "D"):
        fused = sch.fuse(*sch.get_loops(sch.get_block(name)))
        outer, inner = sch.split(fused, [None, 32])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, tvm.te.thread_axis("threadIdx.x"))
    gpu_run(sch, func, answer)


def test_a_reduction_is_not_bound_to_blocks_of_threads():
    sch = tir.Schedule(matmul()[0])
    k = sch.get_loops(sch.get_block("C"))[2]
    with pytest.raises(tir.ScheduleError, match="cannot be bound to blockIdx.x: its iterations"):
        sch.bind(k, "blockIdx.x")
    with pytest.raises(tir.ScheduleError, match="'warp' is no thread axis; there are blockIdx.x"):
        sch.bind(k, "warp")


def test_two_loops_around_a_block_are_not_one_thread_axis():
    sch = tir.Schedule(matmul(8, 8, 4)[0])
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.bind(i, "threadIdx.x")
    with pytest.raises(tir.ScheduleError, match="both bound to threadIdx.x"):
        sch.bind(j, "threadIdx.x")
