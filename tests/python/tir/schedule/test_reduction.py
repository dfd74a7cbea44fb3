"""decompose_reduction: its two blocks, where it may stand, and that results stay."""

from __future__ import annotations

import pytest

import tvm
from testing_blocks import blur, check, matmul, row_sums
from tvm import te, tir
from tvm.script import tir as T


def test_a_decomposed_reduction_is_an_init_and_an_update():
    func, answer = matmul()
    sch = tir.Schedule(func, debug_mask="all")
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    init = sch.decompose_reduction(c, k)
    assert str(sch.get(init).name_hint) == "C_init"
    assert str(sch.get(c).name_hint) == "C_update"
    assert sch.get(c).init is None
    assert len(sch.get_loops(init)) == 2
    check(sch, func, answer)


@pytest.mark.parametrize("place", range(3))
def test_first_values_may_be_written_before_any_loop_around_the_reduction(place):
    func, answer = matmul()
    sch = tir.Schedule(func)
    c = sch.get_block("C")
    loops = sch.get_loops(c)
    init = sch.decompose_reduction(c, loops[place])
    assert len(sch.get_loops(init)) == 2
    check(sch, func, answer)


def test_first_values_inside_of_the_reduction_are_refused():
    sch = tir.Schedule(matmul()[0])
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    sch.reorder(k, i)
    with pytest.raises(tir.ScheduleError, match="loop k around i feeds the reduction"):
        sch.decompose_reduction(c, i)
    sch.decompose_reduction(c, k)
    with pytest.raises(tir.ScheduleError, match="C_update is no reduction with an init"):
        sch.decompose_reduction(c, k)


def test_partial_tiles_keep_their_guard_in_both_blocks():
    func, answer = matmul(10, 7, 9)
    sch = tir.Schedule(func)
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    i_0, i_1 = sch.split(i, [None, 4])
    k_0, k_1 = sch.split(k, [None, 4])
    sch.reorder(i_0, k_0, i_1, k_1)
    init = sch.decompose_reduction(c, k_0)
    assert "i_0 * 4 + i_1_init < 10" in str(sch.mod)
    assert len(sch.get_loops(init)) == 3
    check(sch, func, answer)


def test_a_block_without_an_init_is_refused():
    sch = tir.Schedule(blur()[0])
    b = sch.get_block("B")
    with pytest.raises(tir.ScheduleError, match="block B is no reduction with an init"):
        sch.decompose_reduction(b, sch.get_loops(b)[0])


def test_a_loop_of_another_block_is_refused():
    sch = tir.Schedule(row_sums()[0])
    loop = sch.get_loops(sch.get_block("D"))[0]
    with pytest.raises(tir.ScheduleError, match="the loops around it are i, r"):
        sch.decompose_reduction(sch.get_block("S"), loop)


def test_several_results_start_together():
    X = te.placeholder((5, 9), name="X")
    pair = te.comm_reducer(
        lambda x, y: (
            tir.Select(x[1] >= y[1], x[0], y[0]),
            tir.Select(x[1] >= y[1], x[1], y[1]),
        ),
        lambda i, v: (tir.const(-1, i), te.min_value(v)),
        name="argmax",
    )
    k = te.reduce_axis((0, 9), name="k")
    index, value = te.compute((5,), lambda i: pair((k, X[i, k]), axis=k), name="best")
    func = te.create_prim_func([X, index, value])
    sch = tir.Schedule(func)
    best = sch.get_block("best")
    i, k = sch.get_loops(best)
    sch.reorder(k, i)
    sch.decompose_reduction(best, k)
    check(sch, te.create_prim_func([X, index, value]), lambda x, _: x.max(axis=1))


def test_first_values_are_written_by_a_loop_of_threads_of_their_own():

    @T.prim_func
    def rows(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(16):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]

    sch = tir.Schedule(rows, debug_mask="all")
    sch.decompose_reduction("B", sch.get_loops("B")[0])
    text = sch.mod.script()
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), sch.mod)


def _summed_in_steps(other_instances: bool):
    """Rows summed by blocks around a copy and a sum, which may touch the next row's result."""

    @T.prim_func
    def alone(A: T.Buffer((6, 64), "float32"), B: T.Buffer((6,), "float32")):
        for ko, i in T.grid(2, 6):
            with T.block("outer"):
                vko, vi = T.axis.remap("RS", [ko, i])
                C = T.alloc_buffer((32,))
                with T.init():
                    B[vi] = T.float32(0)
                for ki in range(32):
                    with T.block("copy"):
                        vki = T.axis.spatial(32, ki)
                        C[vki] = A[vi, vko * 32 + vki]
                for ki in range(32):
                    with T.block("sum"):
                        vki = T.axis.reduce(32, ki)
                        B[vi] = B[vi] + C[vki]

    @T.prim_func
    def together(A: T.Buffer((6, 64), "float32"), B: T.Buffer((7,), "float32")):
        for i, ko in T.grid(6, 2):
            with T.block("outer"):
                vi, vko = T.axis.remap("SR", [i, ko])
                with T.init():
                    B[vi] = T.float32(0)
                for ki in range(32):
                    with T.block("sum"):
                        vki = T.axis.reduce(32, ki)
                        B[vi] = B[vi] + A[vi, vko * 32 + vki]
                with T.block("next"):
                    B[vi + 1] = T.float32(1)

    return together if other_instances else alone


def test_a_block_around_others_is_decomposed():
    func = _summed_in_steps(other_instances=False)
    sch = tir.Schedule(func, debug_mask="all")
    outer = sch.get_block("outer")
    init = sch.decompose_reduction(outer, sch.get_loops(outer)[0])
    assert str(sch.get(init).name_hint) == "outer_init"
    update = sch.get(outer)
    assert update.init is None
    # What is added to is read; memory of the block itself is no part of what it declares.
    assert [str(region.buffer.name) for region in update.reads] == ["B", "A"]
    assert [str(region.buffer.name) for region in update.writes] == ["B"]
    check(sch, func, lambda a: a.sum(axis=1))


def test_first_values_that_others_touch_stay():
    sch = tir.Schedule(_summed_in_steps(other_instances=True))
    with pytest.raises(tir.ScheduleError, match="an instance uses elements of B"):
        sch.decompose_reduction("outer", sch.get_loops("outer")[1])
