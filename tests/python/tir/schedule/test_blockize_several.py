"""One block around several that stand side by side."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import Schedule

SIZE = 32


@T.prim_func
def scale_and_shift(X: T.Buffer((SIZE, SIZE), "float32"), Z: T.Buffer((SIZE, SIZE), "float32")):
    Y = T.alloc_buffer((SIZE, SIZE))
    for i, j in T.grid(SIZE, SIZE):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * 2.0
    for i, j in T.grid(SIZE, SIZE):
        with T.block("shift"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = Y[vi, vj] + 1.0


@T.prim_func
def rows(
    X: T.Buffer((8, 16), "float32"),
    R: T.Buffer((8,), "float32"),
    N: T.Buffer((8, 16), "float32"),
):
    for i in range(8):
        for k in range(16):
            with T.block("total"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    R[vi] = T.float32(0)
                R[vi] = R[vi] + X[vi, vk]
        for j in range(16):
            with T.block("divide"):
                vi, vj = T.axis.remap("SS", [i, j])
                N[vi, vj] = X[vi, vj] / R[vi]


def tiled() -> Schedule:
    sch = Schedule(scale_and_shift, debug_mask="all")
    i, j = sch.get_loops("shift")
    (i0, i1), (j0, j1) = sch.split(i, [None, 8]), sch.split(j, [None, 8])
    sch.reorder(i0, j0, i1, j1)
    sch.compute_at("scale", j0)
    return sch


def check(sch: Schedule) -> None:
    x = np.random.default_rng(0).random((SIZE, SIZE), "float32")
    out = tvm.nd.array(np.zeros((SIZE, SIZE), "float32"))
    tvm.build(sch.mod, "llvm")(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x * 2 + 1, rtol=1e-6)


def test_a_tile_of_two_blocks_becomes_one_block():
    sch = tiled()
    made = sch.blockize([sch.get_block("scale"), sch.get_block("shift")])
    block = sch.get(made)
    assert block.name_hint == "outer_scale_shift_"
    # Both have the same values outside, so the new block has two variables and not four.
    assert [int(iv.dom.extent) for iv in block.iter_vars] == [4, 4]
    assert [str(r.buffer.name) for r in block.reads] == ["X", "Y"]
    assert [str(r.buffer.name) for r in block.writes] == ["Y", "Z"]
    assert all(int(r.extent) == 8 for region in block.reads for r in region.region)
    assert len(sch.get_loops(made)) == 2
    assert [sch.get(b).name_hint for b in sch.get_child_blocks(made)] == ["scale", "shift"]
    check(sch)


def test_steps_are_in_the_trace_with_all_blocks():
    sch = tiled()
    sch.blockize(["shift", "scale"])
    assert "blockize(target=[" in str(sch.trace)
    for again in (Schedule(scale_and_shift), Schedule(scale_and_shift)):
        tir.schedule.Trace.apply_json_to_schedule(sch.trace.as_json(), again)
        tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_whole_nests_leave_no_variable_outside():
    sch = Schedule(scale_and_shift, debug_mask="all")
    made = sch.blockize(["scale", "shift"], preserve_unit_iters=False)
    assert not sch.get(made).iter_vars and not sch.get_loops(made)
    check(sch)


def test_a_reduction_inside_is_whole_and_variables_outside_are_shared():
    sch = Schedule(rows, debug_mask="all")
    made = sch.blockize(["total", "divide"], preserve_unit_iters=False)
    (iv,) = sch.get(made).iter_vars
    assert int(iv.dom.extent) == 8 and iv.iter_type == tir.IterVar.DataPar
    x = np.random.default_rng(1).random((8, 16), "float32")
    total, out = (tvm.nd.array(np.zeros(n, "float32")) for n in (8, (8, 16)))
    tvm.build(sch.mod, "llvm")(tvm.nd.array(x), total, out)
    np.testing.assert_allclose(out.numpy(), x / x.sum(1, keepdims=True), rtol=1e-5)


def test_what_does_not_fit_in_one_block_is_refused():
    sch = Schedule(rows)
    with pytest.raises(tvm.error.ScheduleError, match="no blocks given"):
        sch.blockize([])
    three = Schedule(three_steps)
    with pytest.raises(tvm.error.ScheduleError, match="do not follow each other"):
        three.blockize(["first", "third"])


@T.prim_func
def three_steps(
    X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32"), Z: T.Buffer((4,), "float32")
):
    for i in range(4):
        with T.block("first"):
            v = T.axis.spatial(4, i)
            X[v] = T.float32(1)
    for i in range(4):
        with T.block("second"):
            v = T.axis.spatial(4, i)
            Y[v] = T.float32(2)
    for i in range(4):
        with T.block("third"):
            v = T.axis.spatial(4, i)
            Z[v] = T.float32(3)
