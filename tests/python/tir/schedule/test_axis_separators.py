"""Axes of a buffer that stay apart in memory."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import IndexMap


@T.prim_func
def two_steps(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")) -> None:
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


def separators(buffer):
    return [int(axis) for axis in buffer.axis_separators]


@pytest.mark.parametrize("named", [("write", 0), "B"])
def test_buffer_of_the_function(named):
    sch = tir.Schedule(two_steps, debug_mask="all")
    sch.set_axis_separator("B", named, [1])
    (own,) = sch.mod["main"].body.block.alloc_buffers
    assert separators(own) == [1]
    assert sch.get(sch.get_block("C")).reads[0].buffer.same_as(own)
    again = tir.Schedule(two_steps)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_buffer_of_the_caller():
    sch = tir.Schedule(two_steps, debug_mask="all")
    sch.set_axis_separator("B", ("read", 0), [1])
    func = sch.mod["main"]
    assert separators(func.buffer_map[func.params[0]]) == [1]
    sch.set_axis_separator("B", ("read", 0), None)
    tvm.ir.assert_structural_equal(sch.mod["main"], two_steps)


def test_views_follow():
    @T.prim_func
    def viewed(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")) -> None:
        B = T.alloc_buffer((16, 8))
        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                view = T.match_buffer(B[vi, vj], (1, 1), offset_factor=1)
                view[0, 0] = A[vi, vj]
        for i, j in T.grid(16, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]

    sch = tir.Schedule(viewed)
    sch.set_axis_separator("B", ("write", 0), [1])
    assert separators(sch.get(sch.get_block("B")).match_buffers[0].buffer) == [1]


def test_separator_of_a_layout():
    sch = tir.Schedule(two_steps, debug_mask="all")
    sch.transform_layout(
        "B", ("write", 0), lambda i, j: [i, IndexMap.AXIS_SEPARATOR, j // 4, j % 4]
    )
    (own,) = sch.mod["main"].body.block.alloc_buffers
    assert [int(n) for n in own.shape] == [16, 2, 4] and separators(own) == [1]


@pytest.mark.parametrize("given", [[0], [2], [1, 1]])
def test_separators_that_are_no_axes(given):
    sch = tir.Schedule(two_steps)
    with pytest.raises(tir.ScheduleError, match="axis separators of B, which has 2 axes"):
        sch.set_axis_separator("B", ("write", 0), given)


def test_blocks_around_constants():
    @T.prim_func
    def table(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")) -> None:
        values = T.allocate_const([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "float32", [8])
        B = T.decl_buffer((8,), "float32", data=values)
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + B[vi]

    sch = tir.Schedule(table, debug_mask="all")
    (i,) = sch.get_loops("C")
    _, lanes = sch.split(i, [None, 4])
    sch.vectorize(lanes)
    sch.cache_read("C", "B", "local")
    a = tvm.nd.array([float(n) for n in range(8)], dtype="float32")
    c = tvm.nd.empty((8,))
    tvm.build(sch.mod, target="llvm")(a, c)
    assert c.numpy().tolist() == [2.0 * n for n in range(8)]
