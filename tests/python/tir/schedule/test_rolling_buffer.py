"""rolling_buffer keeps what the next iteration needs; cache_index computes indices before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing_blocks import blur, check, matmul, replay
from tvm import te, tir
from tvm.ir import structural_equal


def two_pools(height, width, window, stride=1):
    """The largest of windows of the largest of windows, and what numpy computes."""

    def pool(A, name, step):
        rows, cols = ((int(extent) - window) // step + 1 for extent in A.shape)
        r = te.reduce_axis((0, window), "r")
        s = te.reduce_axis((0, window), "s")
        return te.compute(
            (rows, cols),
            lambda i, j: te.max(A[i * step + r, j * step + s], axis=[r, s]),
            name=name,
        )

    A = te.placeholder((height, width), name="A")
    B = pool(A, "B", 1)
    C = pool(B, "C", stride)

    def answer(a):
        for step in (1, stride):
            windows = np.lib.stride_tricks.sliding_window_view(a, (window, window))
            a = windows[::step, ::step].max(axis=(2, 3))
        return a

    return te.create_prim_func([A, C]), answer


def tiled(func, tile, preserve_unit_loops=False):
    sch = tir.Schedule(func, debug_mask="all")
    c = sch.get_block("C")
    i, j, _, _ = sch.get_loops(c)
    i_0, i_1 = sch.split(i, [None, tile[0]])
    j_0, j_1 = sch.split(j, [None, tile[1]])
    sch.reorder(i_0, j_0, i_1, j_1)
    sch.compute_at(sch.get_block("B"), j_0, preserve_unit_loops)
    return sch


def test_an_axis_keeps_what_one_iteration_needs():
    func, answer = two_pools(12, 12, 3)
    sch = tiled(func, (4, 4))
    sch.rolling_buffer(sch.get_block("B"), 0)
    text = sch.mod.script()
    assert "B = T.alloc_buffer((6, 10))" in text
    assert "T.where((i_0 < 1 or 2 <= ax0) and (j_0 < 1 or 2 <= ax1))" in text
    assert "vi = T.axis.opaque" in text or "v_i = T.axis.opaque" in text
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


@given(
    sizes=st.tuples(st.integers(8, 20), st.integers(8, 20)),
    window=st.integers(2, 4),
    stride=st.integers(1, 3),
    tile=st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
@settings(max_examples=25, deadline=None)
def test_what_is_kept_is_what_was_computed(sizes, window, stride, tile):
    func, answer = two_pools(*sizes, window, stride)
    sch = tiled(func, tile)
    try:
        sch.rolling_buffer("B", 0)
    except tir.ScheduleError as error:
        # Tiles that lie side by side, or one tile.
        assert "rolling pattern" in str(error)
    check(sch, func, answer)


def test_what_does_not_roll_is_refused():
    func, _ = two_pools(12, 12, 3)
    sch = tir.Schedule(func)
    with pytest.raises(tir.ScheduleError, match="loop is around all accesses of B"):
        sch.rolling_buffer("B", 0)
    with pytest.raises(tir.ScheduleError, match="block C is an output block"):
        sch.rolling_buffer("C", 0)
    product, _ = matmul(8, 8, 8)
    sch = tir.Schedule(product)
    copy = sch.cache_read("C", 0, "global")
    sch.compute_at(copy, sch.get_loops("C")[0])
    with pytest.raises(tir.ScheduleError, match="no axis of A_global .* rolling pattern"):
        sch.rolling_buffer(copy, 0)


def test_a_rolling_buffer_keeps_the_order_of_its_loops():
    func, answer = two_pools(12, 12, 3)
    sch = tiled(func, (4, 4))
    sch.rolling_buffer("B", 0)
    i_0, j_0 = sch.get_loops("C")[:2]
    for step in (lambda: sch.parallel(i_0), lambda: sch.reorder(j_0, i_0)):
        with pytest.raises(tir.ScheduleError):
            step()
    sch.unroll(j_0)
    check(sch, func, answer)
    sch = tiled(func, (4, 4))
    sch.parallel(sch.get_loops("C")[0])
    with pytest.raises(tir.ScheduleError, match="order of its iterations"):
        sch.rolling_buffer("B", 0)


def lookup():
    A = te.placeholder((40, 10), name="A")
    B = te.compute(
        (20, 30), lambda i, j: A[i // 4 + j // 4, j // 3] * (j // 3 + 1).astype("float32"), "B"
    )
    rows, cols = np.arange(20)[:, None], np.arange(30)[None, :]

    def answer(a):
        return a[rows // 4 + cols // 4, cols // 3 + 0 * rows] * (cols // 3 + 1)

    return te.create_prim_func([A, B]), answer


def test_indices_are_computed_before():
    func, answer = lookup()
    sch = tir.Schedule(func, debug_mask="all")
    made = sch.cache_index("B", "global")
    assert [str(sch.get(block).name_hint) for block in made] == ["index_0", "index_1", "index_2"]
    assert 'index_var_0 = T.alloc_buffer((20, 30), "int32")' in sch.mod.script()
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_only_what_is_computed_often_gets_a_table():
    func, answer = lookup()
    sch = tir.Schedule(func, debug_mask="all")
    (block,) = sch.cache_index("B", "global", 2)
    assert "v0 // 3" in str(sch.get(block).body)
    check(sch, func, answer)
    assert sch.cache_index("B", "global", 9) == []


def test_values_that_memory_or_a_condition_decides_get_no_table():
    A = te.placeholder((9,), name="A")
    chosen = lambda i: te.if_then_else(i > 0, 90 // i, 0)  # noqa: E731
    B = te.compute((9,), lambda i: A[i] + chosen(i).astype("float32"), "B")
    func = te.create_prim_func([A, B])
    sch = tir.Schedule(func, debug_mask="all")
    for block in sch.cache_index("B", "global"):
        assert "90" not in str(sch.get(block).body)
    check(sch, func, lambda a: a + np.array([0, *(90 // np.arange(1, 9))]))


def test_hidden_regions_are_no_longer_declared():
    func, answer = blur()
    sch = tir.Schedule(func)
    name = str(sch.get(sch.get_child_blocks(sch.get_block("root"))[-1]).name_hint)
    count = len(sch.get(sch.get_block(name)).reads)
    sch.unsafe_hide_buffer_access(name, "read", [0])
    assert len(sch.get(sch.get_block(name)).reads) == count - 1
    with pytest.raises(tir.ScheduleError, match="reads no buffer 7"):
        sch.unsafe_hide_buffer_access(name, "read", [7])
    with pytest.raises(tir.ScheduleError, match='is "read" or "write"'):
        sch.unsafe_hide_buffer_access(name, "both", [0])


def test_padding_can_be_asked_about():
    A = te.placeholder((8,), name="A")
    B = te.compute((12,), lambda i: te.if_then_else(te.all(i >= 2, i < 10), A[i - 2], 0.0), "B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    (loop,) = sch.get_loops("B")
    block = sch.get_block("B")
    before = str(sch.trace)
    assert sch.can_decompose_padding(block, loop)
    assert str(sch.trace) == before
    sch = tir.Schedule(matmul(4, 4, 4)[0])
    assert not sch.can_decompose_padding(sch.get_block("C"), sch.get_loops("C")[0])
