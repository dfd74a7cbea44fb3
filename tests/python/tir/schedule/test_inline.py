"""compute_inline and reverse_compute_inline."""

from __future__ import annotations

import pytest

from testing_blocks import blur, body, chain, check, matmul, row_sums
from tvm import te, tir


def test_a_computation_moves_into_all_that_read_it():
    func, answer = chain(4, 6)
    sch = tir.Schedule(func, debug_mask="all")
    sch.compute_inline(sch.get_block("B"))
    sch.compute_inline(sch.get_block("C"))
    assert body(sch) == [
        "for i, j in T.grid(4, 6):",
        '    with T.block("D"):',
        '        v_i, v_j = T.axis.remap("SS", [i, j])',
        "        T.reads(A[v_i, v_j])",
        "        T.writes(D[v_i, v_j])",
        "        D[v_i, v_j] = (A[v_i, v_j] + T.float32(1.0)) * T.float32(2.0) - A[v_i, v_j]",
    ]
    check(sch, func, answer)


def test_inlining_follows_the_indices_of_the_reader():
    func, answer = blur()
    sch = tir.Schedule(func, debug_mask="all")
    sch.compute_inline(sch.get_block("B"))
    sch.compute_inline(sch.get_block("P"))
    assert "A[v_i + v_r - 1]" in str(sch.mod)
    check(sch, func, answer)


def test_a_reduction_is_not_inlined():
    sch = tir.Schedule(row_sums()[0])
    with pytest.raises(tir.ScheduleError, match="S is not a single store"):
        sch.compute_inline(sch.get_block("S"))


def test_a_result_of_the_function_is_not_inlined():
    sch = tir.Schedule(chain()[0])
    with pytest.raises(tir.ScheduleError, match="D, a result of the function, which has to be"):
        sch.compute_inline(sch.get_block("D"))


def test_a_consumer_moves_into_its_producer():
    func, answer = chain(4, 6)
    sch = tir.Schedule(func, debug_mask="all")
    c = sch.get_block("C")
    i, _ = sch.get_loops(c)
    sch.reverse_compute_inline(sch.get_block("D"))
    assert "D[v_i_1, v_j_1] = B[v_i_1, v_j_1] * T.float32(2.0) - A[v_i_1, v_j_1]" in str(sch.mod)
    sch.parallel(i)
    check(sch, func, answer)


def test_a_consumer_of_a_transposed_buffer_moves_too():
    A = te.placeholder((3, 5), name="A")
    B = te.compute((3, 5), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((5, 3), lambda i, j: B[j, i] * 2.0, name="C")
    func = te.create_prim_func([A, C])
    sch = tir.Schedule(func, debug_mask="all")
    sch.reverse_compute_inline(sch.get_block("C"))
    assert "C[v_j, v_i]" in str(sch.mod)
    check(sch, func, lambda a: (a + 1).T * 2)


def test_a_consumer_of_a_reduction_does_not_move_into_it():
    sch = tir.Schedule(matmul(epilogue=True)[0])
    with pytest.raises(tir.ScheduleError, match="C is not a single store"):
        sch.reverse_compute_inline(sch.get_block("D"))


def test_a_consumer_that_repeats_elements_does_not_move():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4, 3), lambda i, j: B[i] * 2.0, name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    with pytest.raises(tir.ScheduleError, match="do not each access one element of B"):
        sch.reverse_compute_inline(sch.get_block("C"))


def test_a_buffer_with_two_readers_keeps_its_producer():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((4,), lambda i: B[i] + C[i], name="D")
    func = te.create_prim_func([A, D])
    sch = tir.Schedule(func)
    with pytest.raises(tir.ScheduleError, match="one block writes and no other reads"):
        sch.reverse_compute_inline(sch.get_block("C"))
    sch.reverse_compute_inline(sch.get_block("D"))
    check(sch, func, lambda a: (a + 1) * 3)
