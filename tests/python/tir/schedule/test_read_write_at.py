"""Copies, as one block each, of what one iteration of a loop uses."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_blocks import check, matmul, replay
from tvm import te, tir
from tvm.ir import structural_equal


def tiled_matmul():
    func, answer = matmul(16, 16, 8)
    sch = tir.Schedule(func, debug_mask="all")
    i, j, k = sch.get_loops("C")
    (by, ty), (bx, tx), (ko, ki) = (sch.split(loop, [None, 4]) for loop in (i, j, k))
    sch.reorder(by, bx, ty, tx, ko, ki)
    return func, answer, sch, (by, bx, ty, tx, ko)


def test_read_at_and_write_at_copy_the_tile_of_all_threads():
    func, answer, sch, (by, bx, ty, tx, ko) = tiled_matmul()
    for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y")):
        sch.bind(loop, axis)
    sch.bind(tx, "threadIdx.x")
    for index in (0, 1):
        copy = sch.read_at(ko, "C", index, "shared")
        assert [int(iv.dom.extent) for iv in sch.get(copy).iter_vars] == [[4, 2], [2, 4]][index]
    block = sch.get(sch.write_at(tx, "C", 0, "shared"))
    assert int(block.annotations["auto_copy"]) == 1
    assert [int(r.extent) for r in block.writes[0].region] == [4, 4]
    check(sch, func, answer, target=tvm.target.emulated("cuda"))
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_read_at_copies_what_one_iteration_reads():
    func, answer, sch, (_, _, _, _, ko) = tiled_matmul()
    copy = sch.get(sch.read_at(ko, "C", 0, "global"))
    assert [int(r.extent) for r in copy.reads[0].region] == [1, 4]
    check(sch, func, answer)


def test_copies_are_refused_where_they_would_not_hold_what_is_used():
    _, _, sch, (_, _, _, tx, ko) = tiled_matmul()
    with pytest.raises(tir.ScheduleError, match="is not finished there"):
        sch.write_at(ko, "C", 0, "local")
    with pytest.raises(tir.ScheduleError, match="is no memory scope"):
        sch.read_at(ko, "C", 0, "nowhere")
    func, _ = matmul(16, 16, 8, epilogue=True)
    sch = tir.Schedule(func)
    sch.reverse_compute_at("D", sch.get_loops("C")[0])
    with pytest.raises(tir.ScheduleError, match="writes C"):
        sch.read_at(sch.get_loops("D")[0], "D", 0, "local")
    with pytest.raises(tir.ScheduleError, match="is not around block"):
        sch.read_at(sch.get_loops("C")[2], "D", 0, "local")


def test_a_copy_of_overlapping_boxes_stays_inside_wherever_it_is_computed():
    A = te.placeholder((8, 10), name="A")
    r, s = te.reduce_axis((0, 2), "r"), te.reduce_axis((0, 2), "s")
    B = te.compute((7, 9), lambda i, j: te.max(A[i + r, j + s], axis=[r, s]), name="B")
    func = te.create_prim_func([A, B])
    sch = tir.Schedule(func, debug_mask="all")
    copy = sch.read_at(sch.get_loops("B")[1], "B", 0, "global")
    assert [int(iv.dom.extent) for iv in sch.get(copy).iter_vars] == [7, 9]
    sch.compute_at(copy, sch.get_loops("B")[3])
    check(sch, func, lambda a: np.maximum.reduce([a[:-1, :-1], a[1:, :-1], a[:-1, 1:], a[1:, 1:]]))


def test_a_kept_index_is_inlined_also_into_what_a_copy_declares():
    func, answer = matmul(16, 16, 8)
    sch = tir.Schedule(func, debug_mask="all")
    copy = sch.read_at(sch.get_loops("C")[0], "C", 0, "global")
    (index,) = sch.cache_index(copy, "global", 0)
    assert "index_var_0[" in str(sch.get(copy).reads)
    sch.compute_inline(index)
    assert "index_var_0" not in str(sch.mod)
    check(sch, func, answer)
