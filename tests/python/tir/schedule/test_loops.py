"""split, fuse and reorder: the loops they make, what they refuse, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_blocks import blur, body, chain, check, matmul, row_sums
from tvm import te, tir
from tvm.script import tir as T


def scheduled(program):
    func, answer = program
    return tir.Schedule(func, debug_mask="all"), func, answer


def extents(sch, loops):
    return [int(sch.get(loop).extent) for loop in loops]


def test_split_infers_the_factor_that_is_left_out():
    sch, func, answer = scheduled(matmul(128, 128, 128))
    _, j, _ = sch.get_loops(sch.get_block("C", "main"))
    assert extents(sch, sch.split(j, factors=[None, 4])) == [32, 4]
    assert "T.where" not in str(sch.mod)


def test_split_by_factors_that_do_not_divide_adds_a_predicate():
    sch, func, answer = scheduled(matmul(10, 6, 7))
    i, _, _ = sch.get_loops(sch.get_block("C"))
    assert extents(sch, sch.split(i, factors=[None, 4])) == [3, 4]
    assert "T.where(i_0 * 4 + i_1 < 10)" in str(sch.mod)
    check(sch, func, answer)


def test_split_into_three_parts_multiplies_to_the_loop():
    sch, func, answer = scheduled(chain(24, 5))
    i, _ = sch.get_loops(sch.get_block("D"))
    parts = sch.split(i, factors=[2, None, 3])
    assert extents(sch, parts) == [2, 4, 3]
    check(sch, func, answer)


def test_split_drops_loops_of_one_iteration_from_the_values_when_told_so():
    sch, _, _ = scheduled(matmul(8, 5, 3))
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, factors=[8, 1], preserve_unit_iters=False)
    sch.split(j, factors=[5, 1])
    assert "v_i = T.axis.spatial(8, i_0)" in str(sch.mod)
    assert "v_j = T.axis.spatial(5, j_0 + j_1)" in str(sch.mod)


@pytest.mark.parametrize(
    ("factors", "options", "message"),
    [
        ([2, 4], {}, "multiply to 8, which is less than the extent 12"),
        ([None, None], {}, "at most one can be left to be inferred"),
        ([0, 12], {}, "extents are at least 1"),
        ([], {}, "no factors for loop i"),
        ([None, 5], {"disable_predication": True}, "leave disable_predication=False"),
    ],
)
def test_split_refuses(factors, options, message):
    sch, func, _ = scheduled(matmul())
    i, _, _ = sch.get_loops(sch.get_block("C"))
    with pytest.raises(tir.ScheduleError, match=message) as error:
        sch.split(i, factors=factors, **options)
    assert 'T.block("C")' in str(error.value)
    assert tvm.ir.structural_equal(sch.mod["main"], func)
    assert len(sch.trace) == 2


def test_fuse_makes_one_loop_of_two():
    sch, func, answer = scheduled(matmul(10, 6, 7))
    i, j, _ = sch.get_loops(sch.get_block("C"))
    assert extents(sch, [sch.fuse(i, j)]) == [60]
    assert body(sch)[0] == "for i_j_fused, k in T.grid(60, 7):"
    assert "v_i = T.axis.spatial(10, i_j_fused // 6)" in str(sch.mod)
    check(sch, func, answer)


def test_fuse_over_a_reduction_keeps_the_order_of_its_sum():
    sch, func, answer = scheduled(matmul(4, 3, 5))
    fused = sch.fuse(*sch.get_loops(sch.get_block("C")))
    a, b = sch.split(fused, factors=[None, 7])
    check(sch, func, answer)
    with pytest.raises(tir.ScheduleError, match="feeds spatial and reducing variables alike"):
        sch.reorder(b, a)


@T.prim_func
def in_uneven_tiles(A: T.Buffer((50, 8), "float32"), B: T.Buffer((50, 8), "float32")):
    for i in range(4):
        for j, k in T.grid(T.min(15, 49 - i * 16) + 1, 8):
            with T.block("B"):
                vi, vk = T.axis.spatial(50, i * 16 + j), T.axis.spatial(8, k)
                B[vi, vk] = A[vi, vk] * 2.0


def test_loops_whose_extent_another_loop_decides_are_fused_and_split():
    sch = tir.Schedule(in_uneven_tiles, debug_mask="all")
    _, j, k = sch.get_loops("B")
    fused = sch.fuse(j, k)
    values = [str(v) for v in sch.get_iter_values("B")]
    assert values == ["i * 16 + j_k_fused // 8", "j_k_fused % 8"]
    sch.split(fused, [None, 4])
    a = np.random.default_rng(0).random((50, 8), "float32")
    out = tvm.nd.array(np.zeros((50, 8), "float32"))
    tvm.build(sch.mod, "llvm")(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), a * 2, rtol=1e-6)


def test_fuse_refuses_loops_that_are_not_neighbours():
    sch, _, _ = scheduled(matmul())
    i, j, k = sch.get_loops(sch.get_block("C"))
    with pytest.raises(tir.ScheduleError, match="the nest is i, j, k. Reorder first"):
        sch.fuse(i, k)
    with pytest.raises(tir.ScheduleError, match="from outermost to innermost"):
        sch.fuse(j, i)


def test_reorder_moves_loops_to_the_places_they_have_together():
    sch, func, answer = scheduled(matmul())
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(k, i)
    names = [sch.get(loop).loop_var.name for loop in sch.get_loops(sch.get_block("C"))]
    assert names == ["k", "j", "i"]
    check(sch, func, answer)


def test_reorder_refuses_loops_with_something_beside_them():
    sch, _, _ = scheduled(matmul())
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    sch.decompose_reduction(c, k)
    with pytest.raises(tir.ScheduleError, match="loop j holds more than the next loop"):
        sch.reorder(k, i)


def test_reorder_refuses_a_sum_that_runs_along_its_own_result():
    """B[i + 1] = B[i] + A[i], where iteration i needs the one before."""
    A, B = tir.decl_buffer((4, 8), name="A"), tir.decl_buffer((5, 8), name="B")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    iters = [
        tir.IterVar((0, n), tir.Var(name, "int32"), tir.IterVar.DataPar)
        for n, name in ((4, "vi"), (8, "vj"))
    ]
    vi, vj = (iv.var for iv in iters)
    store = tir.BufferStore(B, B[vi, vj] + A[vi, vj], [vi + 1, vj])
    block = tir.BlockRealize([i, j], True, tir.Block(iters, [], [], "scan", store))
    nest = tir.For(i, 0, 4, 0, tir.For(j, 0, 8, 0, block))
    root = tir.BlockRealize([], True, tir.Block([], [], [], "root", nest))
    sch = tir.Schedule(tir.PrimFunc([A, B], root))
    loops = sch.get_loops(sch.get_block("scan"))
    with pytest.raises(tir.ScheduleError, match="depends on the order of its iterations"):
        sch.reorder(*reversed(loops))
    with pytest.raises(tir.ScheduleError, match="loop j cannot be vectorized"):
        sch.vectorize(loops[1])
    sch.split(loops[0], factors=[2, 2])


def test_loops_of_an_update_can_be_reordered_around_the_rest():
    sch, func, answer = scheduled(matmul())
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    sch.decompose_reduction(c, i)
    i, j, k = sch.get_loops(c)
    sch.reorder(k, j, i)
    check(sch, func, answer)


def test_a_loop_that_was_split_is_gone():
    sch, _, _ = scheduled(matmul())
    i, _, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, factors=[3, None])
    with pytest.raises(tir.ScheduleError, match="loop i is gone; a primitive took it apart"):
        sch.parallel(i)


@pytest.mark.parametrize("program", [matmul, chain, blur, row_sums])
def test_loops_of_every_block_can_be_tiled(program):
    sch, func, answer = scheduled(program())
    for block in sch.get_child_blocks(sch.get_block("root")):
        parts = [sch.split(loop, factors=[None, 4]) for loop in sch.get_loops(block)]
        sch.reorder(*[outer for outer, _ in parts], *[inner for _, inner in parts])
    check(sch, func, answer)


def test_split_of_a_symbolic_extent_is_guarded():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    (i,) = sch.get_loops(sch.get_block("B"))
    i_0, i_1 = sch.split(i, factors=[None, 8])
    sch.reorder(i_1, i_0)
    sch.parallel(i_1)
    assert "T.where(i_0 * 8 + i_1 < n)" in str(sch.mod)
