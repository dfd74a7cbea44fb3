"""Padding written apart from what is padded, and contractions over padded copies."""

from __future__ import annotations

import numpy as np
import pytest

from testing_blocks import check, matmul, replay
from tvm import te, tir
from tvm.ir import structural_equal
from tvm.script import tir as T


def padded_row(n=128, before=6, after=6, pad=0.0):
    A = te.placeholder((n,), name="A")

    def inside(i):
        return tir.all(i >= before, i < n + before)

    B = te.compute(
        (n + before + after,),
        lambda i: tir.if_then_else(inside(i), A[i - before], pad),
        name="B",
    )

    def answer(a):
        return np.pad(a, (before, after), constant_values=pad)

    return te.create_prim_func([A, B]), answer


@pytest.mark.parametrize(("before", "after", "pad"), [(6, 6, 0.0), (0, 3, 2.5), (4, 0, -1.0)])
def test_decompose_padding_writes_the_padding_before_what_is_inside(before, after, pad):
    func, answer = padded_row(20, before, after, pad)
    sch = tir.Schedule(func, debug_mask="all")
    (loop,) = sch.get_loops(sch.get_block("B"))
    fill = sch.decompose_padding("B", loop)
    assert sch.get(fill).name_hint == "B_pad_const"
    assert [int(sch.get(sch.get_loops(name)[0]).extent) for name in (fill, "B")] == [
        20 + before + after,
        20,
    ]
    sch.vectorize(sch.get_loops("B")[0])
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_decompose_padding_of_a_tile_keeps_the_loops_under_a_predicate():
    func, answer = padded_row(20, 3, 5)
    sch = tir.Schedule(func, debug_mask="all")
    _, inner = sch.split(sch.get_loops(sch.get_block("B"))[0], [7, 4])
    sch.decompose_padding("B", inner)
    assert len(sch.get_child_blocks(sch.get_block("root"))) == 2
    check(sch, func, answer)


def test_decompose_padding_refuses_what_pads_nothing_constant():
    func, _ = matmul()
    sch = tir.Schedule(func)
    with pytest.raises(tir.ScheduleError, match="block C is not a single store of T.if_then_else"):
        sch.decompose_padding("C", sch.get_loops("C")[0])
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: tir.if_then_else(i < 4, A[i], A[0]), name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    with pytest.raises(tir.ScheduleError, match="which is no constant"):
        sch.decompose_padding("B", sch.get_loops("B")[0])
    C = te.compute((8,), lambda i: tir.if_then_else(i * i < 9, A[i], 0.0), name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    with pytest.raises(tir.ScheduleError, match="is no bound of one variable"):
        sch.decompose_padding("C", sch.get_loops("C")[0])


@pytest.mark.parametrize("padding", [[8, 8, 8], [16, 1, 1], [1, 1, 4], [1, 1, 1]])
def test_pad_einsum_runs_over_multiples_and_copies_what_was_asked_for(padding):
    func, answer = matmul(13, 9, 7)
    sch = tir.Schedule(func, debug_mask="all")
    sch.pad_einsum("C", padding)
    extents = [int(sch.get(loop).extent) for loop in sch.get_loops("C")]
    assert extents == [-(-n // k) * k for n, k in zip((13, 9, 7), padding, strict=True)]
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_pad_einsum_refuses_what_zeros_would_change():
    A = te.placeholder((6, 7), name="A")
    r = te.reduce_axis((0, 7), name="r")
    M = te.compute((6,), lambda i: te.max(A[i, r], axis=r), name="M")
    sch = tir.Schedule(te.create_prim_func([A, M]))
    with pytest.raises(tir.ScheduleError, match="is no sum of products"):
        sch.pad_einsum("M", [1, 4])
    func, _ = matmul()
    sch = tir.Schedule(func)
    with pytest.raises(tir.ScheduleError, match="2 numbers to pad to multiples of"):
        sch.pad_einsum("C", [8, 8])
    with pytest.raises(tir.ScheduleError, match="cannot be padded to multiples of 0"):
        sch.pad_einsum("C", [8, 8, 0])
    sch.split(sch.get_loops("C")[0], [None, 4])
    with pytest.raises(tir.ScheduleError, match="pad before loops are changed"):
        sch.pad_einsum("C", [8, 8, 8])


def test_pad_einsum_leaves_loops_alone_that_other_blocks_share():
    func, answer = matmul(11, 6, 5, epilogue=True)
    sch = tir.Schedule(func)
    sch.compute_at("C", sch.get_loops("D")[1])
    with pytest.raises(tir.ScheduleError, match="holds more than block C"):
        sch.pad_einsum("C", [4, 1, 1])
    check(sch, func, answer)


def test_pad_einsum_leaves_axes_of_one_place_as_they_are():
    @T.prim_func
    def one_of_several(
        A: T.Buffer((2, 6, 5), "float32"),
        B: T.Buffer((5, 7), "float32"),
        C: T.Buffer((6, 7), "float32"),
    ) -> None:
        for i, j, k in T.grid(6, 7, 5):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[1, vi, vk] * B[vk, vj]

    sch = tir.Schedule(one_of_several)
    sch.pad_einsum("C", [4, 1, 8])
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("C")] == [8, 7, 8]
    check(sch, one_of_several, lambda a, b: a[1] @ b)
