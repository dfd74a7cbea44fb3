"""Layouts of buffers and of the variables of blocks, and copies laid out by index maps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_blocks import chain, check, matmul, replay
from tvm import te, tir
from tvm.ir import structural_equal
from tvm.script import tir as T


def test_an_intermediate_buffer_is_laid_out_in_tiles():
    func, answer = chain(12, 16)
    sch = tir.Schedule(func, debug_mask="all")
    sch.transform_layout("B", ("write", 0), lambda i, j: [i // 4, j // 8, i % 4, j % 8])
    assert "B = T.alloc_buffer((3, 2, 4, 8))" in str(sch.mod)
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_a_layout_of_an_argument_is_what_the_caller_gives():
    func, answer = matmul(8, 12, 16)
    sch = tir.Schedule(func, debug_mask="all")
    sch.transform_layout("C", "B", lambda k, j: [j // 4, k, j % 4])
    a, b = (np.random.default_rng(0).random(s, dtype="float32") for s in ((8, 16), (16, 12)))
    packed = np.ascontiguousarray(b.reshape(16, 3, 4).transpose(1, 0, 2))
    out = tvm.nd.empty((8, 12))
    tvm.build(sch.mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(packed), out)
    np.testing.assert_allclose(out.numpy(), answer(a, b), rtol=1e-4)


def test_padding_is_written_by_the_block_that_writes_all_of_the_buffer():
    func, answer = chain(6, 10)
    sch = tir.Schedule(func, debug_mask="all")
    with pytest.raises(tir.ScheduleError, match="no element of B comes to.*give pad_value"):
        sch.transform_layout("B", "B", lambda i, j: [i, j // 4, j % 4])
    sch.transform_layout("B", "B", lambda i, j: [i, j // 4, j % 4], pad_value=7.0)
    assert "T.if_then_else" in str(sch.mod)
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_padding_of_a_reduction_is_written_afterwards():
    func, answer = matmul(6, 10, 5, epilogue=True)
    sch = tir.Schedule(func, debug_mask="all")
    sch.transform_layout("C", ("write", 0), lambda i, j: [i // 4, j, i % 4], pad_value=0.0)
    assert "C_pad_C" in str(sch.mod)
    check(sch, func, answer)


def test_padding_of_an_input_is_assumed():
    func, _ = chain(6, 10)
    sch = tir.Schedule(func)
    sch.transform_layout("B", ("read", 0), lambda i, j: [i, j // 4, j % 4], pad_value=0.0)
    assert "assume" in str(sch.mod)
    assert "assume" not in str(tir.transform.RemoveAssume()(sch.mod))


def test_maps_that_give_one_place_to_two_elements_are_refused():
    func, _ = chain(6, 10)
    sch = tir.Schedule(func)
    with pytest.raises(tir.ScheduleError, match="cannot be undone"):
        sch.transform_layout("B", "B", lambda i, j: [i % 3, j])
    with pytest.raises(tir.ScheduleError, match="takes 1 indices, and B has 2 axes"):
        sch.transform_layout("B", "B", tir.IndexMap.from_func(lambda i: [i]))
    with pytest.raises(tir.ScheduleError, match="accesses no buffer X; those it accesses are A, B"):
        sch.transform_layout("B", "X", lambda i, j: [j, i])


@given(
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    tile=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    order=st.permutations(range(4)),
)
@settings(max_examples=12, deadline=None)
def test_any_tiles_in_any_order_keep_the_results(sizes, tile, order):
    func, answer = chain(*sizes)
    sch = tir.Schedule(func, debug_mask="all")

    def layout(i, j):
        parts = [i // tile[0], i % tile[0], j // tile[1], j % tile[1]]
        return [parts[k] for k in order]

    sch.transform_layout("C", ("write", 0), layout, pad_value=1.0)
    check(sch, func, answer)


def test_a_block_runs_over_variables_computed_of_its_own():
    func, answer = matmul(12, 8, 6)
    sch = tir.Schedule(func, debug_mask="all")
    sch.transform_block_layout("C", lambda i, j, k: [i // 4, j, i % 4, k])
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("C")] == [3, 8, 4, 6]
    check(sch, func, answer)
    with pytest.raises(tir.ScheduleError, match="mixes spatial and reducing"):
        sch2 = tir.Schedule(func)
        sch2.transform_block_layout("C", lambda i, j, k: [i, j * 6 + k])


@pytest.mark.parametrize("tile", [3, 4])
def test_tiles_of_a_block_divide_its_extents(tile):
    sch = tir.Schedule(matmul(2, 8, 6)[0])
    with pytest.raises(tir.ScheduleError, match="tiles must divide|cannot be undone"):
        sch.transform_block_layout("C", lambda i, j, k: [i // tile, j, k, i % tile])


def test_variables_of_a_block_change_places():
    func, answer = matmul()
    sch = tir.Schedule(func, debug_mask="all")
    sch.reorder_block_iter_var("C", [2, 0, 1])
    assert [str(iv.var.name) for iv in sch.get(sch.get_block("C")).iter_vars][0].startswith("v_k")
    check(sch, func, answer)
    with pytest.raises(tir.ScheduleError, match=r"\[0, 1\] does not name each of the 3"):
        sch.reorder_block_iter_var("C", [0, 1])


def convolution_row(n=10, w=3):
    A, K = te.placeholder((n + w - 1,), name="A"), te.placeholder((w,), name="K")
    r = te.reduce_axis((0, w), name="r")
    C = te.compute((n,), lambda i: te.sum(A[i + r] * K[r], axis=r), name="C")
    return te.create_prim_func([A, K, C]), lambda a, k: np.correlate(a, k, "valid")


def test_reindexed_inputs_are_indexed_by_the_variables_of_the_block():
    func, answer = convolution_row()
    sch = tir.Schedule(func, debug_mask="all")
    copy = sch.reindex("C", "A")
    assert "A_reindex = T.alloc_buffer((10, 3))" in str(sch.mod)
    assert str(sch.get(copy).name_hint) == "A_reindex"
    sch.reindex("C", ("write", 0))
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_copies_are_laid_out_by_maps_of_the_variables():
    func, answer = matmul(12, 8, 6)
    sch = tir.Schedule(func, debug_mask="all")
    sch.reindex_cache_read("C", "A", "local", lambda i, j, k: [k // 2, i, k % 2])
    sch.reindex_cache_write("C", 0, "local", lambda i, j, k: [j, i])
    assert "A_local = T.alloc_buffer((3, 12, 2)" in str(sch.mod)
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)
    with pytest.raises(tir.ScheduleError, match="both must depend on"):
        sch.reindex_cache_read("C", "B", "local", lambda i, j, k: [i, k])
    with pytest.raises(tir.ScheduleError, match="not another one for each instance"):
        sch.reindex_cache_read("C", "B", "local", lambda i, j, k: [j + k])


def test_another_element_type_is_converted_at_each_access():
    func, _ = chain(4, 5)
    sch = tir.Schedule(func, debug_mask="all")
    sch.unsafe_set_dtype("B", 0, "float64")
    assert 'B = T.alloc_buffer((4, 5), "float64")' in str(sch.mod)
    check(sch, func, lambda a: (a + 1) * 2 - a)
    with pytest.raises(tir.ScheduleError, match="given by the caller, with the type it has"):
        sch.unsafe_set_dtype("D", 0, "float64")


def test_a_buffer_whose_elements_are_only_looked_at_is_laid_out():
    @T.prim_func
    def looks(A: T.Buffer((4, 8), "float32")):
        B = T.alloc_buffer((4, 8))
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i, j in T.grid(4, 8):
            with T.block("look"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.evaluate(B[vi, vj])

    sch = tir.Schedule(looks)
    sch.transform_layout("B", ("write", 0), lambda i, j: [j, i])
    assert [int(n) for n in sch.get(sch.get_block("B")).writes[0].buffer.shape] == [8, 4]
    read = sch.get(sch.get_block("look")).body.value
    assert [str(index) for index in read.indices] == ["vj", "vi"]
