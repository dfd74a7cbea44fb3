"""rfactor: partial results, what may be factored, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing_blocks import best, check, matmul, replay
from tvm import te, tir
from tvm.ir import structural_equal
from tvm.script import tir as T


def reduction(make, n=22):
    A = te.placeholder((5, n), name="A")
    r = te.reduce_axis((0, n), name="r")
    return te.create_prim_func([A, te.compute((5,), lambda i: make(A[i, r], axis=r), name="B")])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_partial_sums_run_in_parallel(axis):
    func = reduction(te.sum)
    sch = tir.Schedule(func, debug_mask="all")
    b = sch.get_block("B")
    i, r = sch.get_loops(b)
    r_0, r_1 = sch.split(r, [None, 4])
    partial = sch.rfactor(r_1, axis)
    assert str(sch.get(partial).name_hint) == "B_rf"
    i, r_0, r_1 = sch.get_loops(partial)
    sch.reorder(r_1, i, r_0)
    sch.parallel(r_1)
    check(sch, func, lambda a: a.sum(axis=1))


@pytest.mark.parametrize(("make", "answer"), [(te.max, np.max), (te.min, np.min), (te.sum, np.sum)])
@pytest.mark.parametrize("outer", [True, False])
def test_sums_and_extremes_are_factored(make, answer, outer):
    func = reduction(make)
    sch = tir.Schedule(func, debug_mask="all")
    b = sch.get_block("B")
    # Two of the nine outer iterations have no elements at all.
    r_0, r_1 = sch.split(sch.get_loops(b)[1], [9, 3])
    sch.rfactor(r_0 if outer else r_1, 0)
    check(sch, func, lambda a: answer(a, axis=1))


def test_both_blocks_can_be_scheduled_on():
    func, answer = matmul(6, 5, 12)
    sch = tir.Schedule(func, debug_mask="all")
    c = sch.get_block("C")
    k_0, k_1 = sch.split(sch.get_loops(c)[2], [3, None])
    partial = sch.rfactor(k_0, 0)
    sch.decompose_reduction(partial, sch.get_loops(partial)[-1])
    sch.decompose_reduction(c, sch.get_loops(c)[-1])
    check(sch, func, answer)


@pytest.mark.parametrize("factors", [[1, None], [None, 1]])
@pytest.mark.parametrize("part", [0, 1])
def test_a_sum_in_one_part(factors, part):
    func, answer = matmul()
    sch = tir.Schedule(func, debug_mask="all")
    parts = sch.split(sch.get_loops(sch.get_block("C"))[2], factors)
    sch.rfactor(parts[part], 2)
    check(sch, func, answer)


def test_a_loop_of_one_iteration_in_other_bindings_stays_there():
    func, answer = matmul()
    sch = tir.Schedule(func, debug_mask="all")
    i, j, k = sch.get_loops(sch.get_block("C"))
    _, unit = sch.split(i, [None, 1])
    sch.rfactor(unit, 0)
    check(sch, func, answer)


def test_a_loop_that_feeds_no_reduction_is_refused():
    sch = tir.Schedule(matmul()[0])
    i, j, k = sch.get_loops(sch.get_block("C"))
    with pytest.raises(tir.ScheduleError, match="loop i does not feed .* those that do are k"):
        sch.rfactor(i, 0)
    with pytest.raises(tir.ScheduleError, match="factor_axis is from -3 to 2, got 3"):
        sch.rfactor(k, 3)


def test_a_sum_that_starts_from_a_value_is_refused():
    A = te.placeholder((5, 8), name="A")
    r = te.reduce_axis((0, 8), name="r")
    B = te.compute((5,), lambda i: te.sum(A[i, r], axis=r, init=1.0), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    with pytest.raises(tir.ScheduleError, match="block B is no reduction .* not neutral"):
        sch.rfactor(sch.get_loops(sch.get_block("B"))[1], 0)


@given(
    sizes=st.tuples(st.integers(1, 7), st.integers(13, 30)),
    factor=st.integers(2, 6),
    outer=st.booleans(),
    axis=st.sampled_from([0, 1, -1]),
)
@settings(max_examples=15, deadline=None)
def test_several_results_are_factored_together(sizes, factor, outer, axis):
    func, answer = best(*sizes)
    sch = tir.Schedule(func, debug_mask="all")
    block = sch.get_block("best")
    loops = sch.split(sch.get_loops(block)[1], [None, factor])
    partial = sch.rfactor(loops[0 if outer else 1], axis)
    assert len(sch.get(partial).writes) == len(sch.get(block).writes) == 2
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)
    # Both go on as reductions.
    sch.decompose_reduction(partial, sch.get_loops(partial)[2 if outer else 1])
    check(sch, func, answer)


def test_results_that_are_stored_before_all_are_computed_are_refused():
    @T.prim_func
    def stale(
        A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32"), C: T.Buffer((1,), "float32")
    ):
        for i in range(8):
            with T.block("sums"):
                vi = T.axis.reduce(8, i)
                with T.init():
                    B[0] = T.float32(0)
                    C[0] = T.float32(0)
                B[0] = B[0] + A[vi]
                C[0] = C[0] + B[0]

    sch = tir.Schedule(stale)
    with pytest.raises(tir.ScheduleError, match="rfactor|order of its iterations|stored already"):
        sch.rfactor(sch.get_loops("sums")[0], 0)


def test_the_factor_is_the_first_axis_and_loops_of_one_step_stay():
    func, answer = matmul(6, 5, 12)
    sch = tir.Schedule(func)
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    j_0, j_1 = sch.split(j, [None, 1], preserve_unit_iters=True)
    k_0, k_1, k_2 = sch.split(k, [None, 4, 3], preserve_unit_iters=True)
    part = sch.rfactor(k_2, 0)
    assert [sch.get(loop).loop_var.name for loop in sch.get_loops(part)] == [
        "i", "j_0", "j_1", "k_0", "k_1", "k_2",
    ]  # fmt: skip
    axes = [(axis.var.name, int(axis.iter_type)) for axis in sch.get(part).iter_vars]
    spatial, reducing = tir.IterVar.DataPar, tir.IterVar.CommReduce
    assert [kind for _, kind in axes] == [spatial, spatial, spatial, reducing, reducing]
    assert [axes[0][0], axes[3][0], axes[4][0]] == ["vk_2", "vk_0", "vk_1"]
    assert [int(axis.iter_type) for axis in sch.get(c).iter_vars] == [reducing, spatial, spatial]
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(c)] == [6, 5, 1, 3]
    check(sch, func, answer)
