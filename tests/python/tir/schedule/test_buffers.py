"""cache_read, cache_write, set_scope and storage_align; and a matmul for a GPU of all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_blocks import blur, check, concat, matmul, row_sums
from tvm import te, tir
from tvm.script import tir as T


def scheduled(program):
    func, answer = program
    return tir.Schedule(func, debug_mask="all"), func, answer


def test_a_copy_of_an_input_is_read_instead_of_it():
    sch, func, answer = scheduled(matmul(12, 20, 18))
    c = sch.get_block("C")
    copy = sch.cache_read(c, 0, "local")
    assert str(sch.get(copy).name_hint) == "A_local"
    assert 'A_local = T.alloc_buffer((12, 18), scope="local")' in str(sch.mod)
    i, _, _ = sch.get_loops(c)
    sch.compute_at(copy, i)
    check(sch, func, answer)


def test_only_named_consumers_read_the_copy():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: A[i] * B[i], name="C")
    func = te.create_prim_func([A, C])
    for named, count in ((["B"], 1), (["C"], 1), (["B", "C"], 2), (None, 2)):
        sch = tir.Schedule(func, debug_mask="all")
        others = None if named is None else [sch.get_block(name) for name in named]
        sch.cache_read(sch.get_block("B"), 0, "global", others)
        assert str(sch.mod).count("A_global[v_i") == 2 * count
        check(sch, func, lambda a: (a + 1) * a)


def test_a_block_writes_to_a_copy_that_goes_back():
    sch, func, answer = scheduled(matmul(12, 20, 18))
    c = sch.get_block("C")
    back = sch.cache_write(c, 0, "local")
    i, j, k = sch.get_loops(c)
    sch.reverse_compute_at(back, j)
    sch.decompose_reduction(c, k)
    check(sch, func, answer)


def test_a_copy_beside_a_block_under_a_condition_stays_inside_of_its_buffer():
    sch, func, answer = scheduled(concat(4, 6, 5))
    c = sch.get_block("C")
    sch.compute_at(sch.get_block("Q"), sch.get_loops(c)[1])
    sch.cache_read(c, 1, "global")
    sch.compute_at(c, sch.get_loops(sch.get_block("D"))[0])
    assert "T.where(j_1 + ax1 - 6 >= 0)" in str(sch.mod)
    check(sch, func, answer)


def test_a_copy_inside_of_a_block_needs_no_condition_for_what_its_axes_say():
    sch, func, answer = scheduled(matmul(16, 16, 8))
    i, j, k = sch.get_loops("C")
    (outer, inner) = sch.split(i, [None, 4])
    sch.blockize(inner)
    sch.cache_read("C", 0, "local")
    assert "T.where" not in str(sch.mod)
    check(sch, func, answer)


def test_an_intermediate_result_is_cached_in_both_directions():
    sch, func, answer = scheduled(blur())
    sch.cache_write(sch.get_block("S"), 0, "global")
    sch.cache_read(sch.get_block("S"), 0, "global")
    check(sch, func, answer)


def test_a_block_that_writes_a_part_of_a_result_keeps_the_rest():
    A, B = tir.decl_buffer((4,), name="A"), tir.decl_buffer((8,), name="B")
    vi = tir.IterVar((0, 4), tir.Var("vi", "int32"), tir.IterVar.DataPar)
    i = tir.Var("i", "int32")
    block = tir.Block([vi], [], [], "half", tir.BufferStore(B, A[vi.var], [vi.var]))
    block = tir.Block([vi], *tir.analysis.get_block_access_region(block)[:2], "half", block.body)
    nest = tir.For(i, 0, 4, 0, tir.BlockRealize([i], True, block))
    root = tir.BlockRealize([], True, tir.Block([], [], [], "root", nest))
    sch = tir.Schedule(tir.PrimFunc([A, B], root))
    copy = sch.cache_write(sch.get_block("half"), 0, "local")
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(copy)] == [4]
    result = tvm.nd.array(np.full(8, -1, "float32"))
    built = tvm.build(sch.mod["main"].with_attr("global_symbol", "main"), target="llvm")
    built(tvm.nd.array(np.arange(4, dtype="float32")), result)
    np.testing.assert_array_equal(result.numpy(), [0, 1, 2, 3, -1, -1, -1, -1])


def test_buffers_are_named_by_their_place_among_the_regions():
    sch, _, _ = scheduled(matmul())
    with pytest.raises(tir.ScheduleError, match="C reads no buffer 2; it reads 0: A, 1: B"):
        sch.cache_read(sch.get_block("C"), 2, "local")
    with pytest.raises(tir.ScheduleError, match="'fast' is no memory scope; there are global"):
        sch.cache_write(sch.get_block("C"), 0, "fast")


def test_copies_are_made_in_the_loops_that_producer_and_consumer_share():
    sch, func, answer = scheduled(matmul(12, 20, 18, epilogue=True))
    sch.compute_at("C", sch.get_loops("D")[0])
    copy = sch.cache_read("D", "C", "local")
    assert len(sch.get_loops(copy)) == 3
    back = sch.cache_write("C", 0, "local")
    assert len(sch.get_loops(back)) == 3
    check(sch, func, answer)


def test_consumers_may_read_what_a_block_wrote_elsewhere():
    sch, func, answer = scheduled(row_sums())
    sch.cache_write("S", 0, "local", consumer_blocks=["D"])
    assert "S_local[v_i_1]" in str(sch.mod)
    check(sch, func, answer)


def test_copies_inside_of_a_block_hold_what_belongs_to_the_block():
    sch, func, answer = scheduled(matmul(12, 8, 6))
    i, j, k = sch.get_loops("C")
    (i_0, i_1), (j_0, j_1) = sch.split(i, [None, 4]), sch.split(j, [None, 2])
    sch.reorder(i_0, j_0, i_1, j_1, k)
    sch.blockize(i_1, preserve_unit_iters=False)
    sch.cache_read("C", "A", "local")
    sch.cache_write("C", 0, "local")
    assert 'A_local = T.alloc_buffer((4, 6), scope="local")' in str(sch.mod)
    assert 'C_local = T.alloc_buffer((4, 2), scope="local")' in str(sch.mod)
    check(sch, func, answer)


def test_a_buffer_that_changes_in_place_is_copied_there_and_back():
    A = tir.decl_buffer((8,), name="A")
    call = tir.call_packed("test.schedule.double", A)
    block = tir.Block(
        [],
        [tir.BufferRegion(A, [tvm.ir.Range(0, 8)])],
        [tir.BufferRegion(A, [tvm.ir.Range(0, 8)])],
        "call",
        tir.Evaluate(call),
    )
    root = tir.Block(
        [],
        [],
        [],
        "root",
        tir.For(tir.Var("i", "int32"), 0, 1, 0, tir.BlockRealize([], True, block)),
    )
    sch = tir.Schedule(tir.PrimFunc([A], tir.BlockRealize([], True, root)))
    there, back = sch.cache_inplace("call", "A", "global")
    assert "A_global[v0] = A[v0]" in str(sch.get(there))
    assert "A[v0] = A_global[v0]" in str(sch.get(back))
    with pytest.raises(tir.ScheduleError, match="only reads A; use cache_read"):
        sch.cache_inplace(there, 0, "local")


def test_a_buffer_moves_to_another_scope():
    sch, func, answer = scheduled(row_sums())
    sch.set_scope(sch.get_block("S"), 0, "local")
    assert 'S = T.alloc_buffer((9,), scope="local")' in str(sch.mod)
    check(sch, func, answer)
    with pytest.raises(tir.ScheduleError, match="given by the caller, who decides where it is"):
        sch.set_scope(sch.get_block("D"), 0, "local")


def test_aligned_rows_are_that_far_apart_in_memory():
    sch, func, answer = scheduled(matmul(8, 16, 4, epilogue=True))
    sch.storage_align(sch.get_block("C"), 0, 0, 8, 1)
    assert "T.allocate([136]" in str(tvm.lower(sch.mod))
    check(sch, func, answer)
    sch.storage_align(sch.get_block("C"), 0, -2, 8, 2)
    assert "T.allocate([144]" in str(tvm.lower(sch.mod))
    with pytest.raises(tir.ScheduleError, match="the offset 8 from 0 to below it"):
        sch.storage_align(sch.get_block("C"), 0, 0, 8, 8)


def test_elements_of_a_row_are_apart_where_the_last_axis_is_aligned():
    sch, func, answer = scheduled(matmul(2, 3, 4, epilogue=True))
    sch.storage_align(sch.get_block("C"), 0, 1, 8, 0)
    assert "T.allocate([48]" in str(tvm.lower(sch.mod))
    check(sch, func, answer)


def tile_for_threads(sch, tile, step, threads):
    """The usual matmul for a GPU: a tile for each block of threads, in shared and local memory."""
    c = sch.get_block("C")
    back = sch.cache_write(c, 0, "local")
    copies = [sch.cache_read(c, index, "shared") for index in (0, 1)]
    i, j, k = sch.get_loops(c)
    i_0, i_1, i_2 = sch.split(i, [None, threads, tile])
    j_0, j_1, j_2 = sch.split(j, [None, threads, tile])
    k_0, k_1 = sch.split(k, [None, step])
    sch.reorder(i_0, j_0, i_1, j_1, k_0, k_1, i_2, j_2)
    for loop, tag in ((i_0, "blockIdx.y"), (j_0, "blockIdx.x"), (i_1, "threadIdx.y")):
        sch.bind(loop, tag)
    sch.bind(j_1, "threadIdx.x")
    sch.reverse_compute_at(back, j_1)
    for copy in copies:
        sch.compute_at(copy, k_0, preserve_unit_loops=True)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, y, x = sch.split(fused, [None, threads, threads])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.storage_align(copy, 0, 0, 8, 4)
    sch.decompose_reduction(c, k_0)


def test_a_tiled_matmul_uses_shared_and_local_memory():
    sch, func, answer = scheduled(matmul(32, 32, 16))
    tile_for_threads(sch, tile=2, step=8, threads=4)
    check(sch, func, answer, target=tvm.target.emulated("cuda"))
    source = tvm.build(sch.mod, target="cuda").imported_modules[0].get_source()
    assert "__syncthreads" in source
    # Eight rows of eight elements, twelve apart: what one step of the reduction needs.
    assert "A_shared[96]" in source
    assert "float C_local[4]" in source


@given(
    sizes=st.tuples(*[st.integers(3, 24)] * 3),
    tile=st.sampled_from([1, 2, 3]),
    step=st.sampled_from([2, 4, 5]),
    threads=st.sampled_from([2, 3, 4]),
)
@settings(max_examples=12, deadline=None)
def test_a_tiled_matmul_of_any_size_equals_numpy(sizes, tile, step, threads):
    func, answer = matmul(*sizes)
    sch = tir.Schedule(func, debug_mask="all")
    tile_for_threads(sch, tile, step, threads)
    check(sch, func, answer, target=tvm.target.emulated("cuda"))


def test_threads_do_not_pass_values_through_their_own_memory():
    sch, _, _ = scheduled(matmul(16, 16, 8))
    c = sch.get_block("C")
    copy = sch.cache_read(c, 0, "local")
    i, j, k = sch.get_loops(c)
    sch.bind(i, "blockIdx.x")
    sch.compute_at(copy, i)
    j_0, j_1 = sch.split(j, [None, 8])
    sch.bind(j_1, "threadIdx.x")
    sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")
    with pytest.raises(tvm.error.ValueError, match='A_local.*give the buffer the scope "shared"'):
        tvm.build(sch.mod, target=tvm.target.emulated("cuda"))
    sch.set_scope(copy, 0, "shared")
    check(sch, *matmul(16, 16, 8), target=tvm.target.emulated("cuda"))


def test_blocks_of_threads_do_not_share_a_scratch_buffer_in_global_memory():
    sch, _, _ = scheduled(blur())
    i, r = sch.get_loops(sch.get_block("S"))
    sch.compute_at(sch.get_block("P"), i)
    with pytest.raises(tir.ScheduleError, match="threads share it; give it the scope"):
        sch.bind(i, "blockIdx.x")
    sch.set_scope(sch.get_block("P"), 0, "shared")
    sch.bind(i, "blockIdx.x")


def test_neighbours_are_loaded_together_by_the_threads_of_a_block():
    n, threads = 64, 16
    A = te.placeholder((n + 2,), name="A")
    B = te.compute((n,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")
    func = te.create_prim_func([A, B])
    sch = tir.Schedule(func, debug_mask="all")
    block = sch.get_block("B")
    i_0, i_1 = sch.split(sch.get_loops(block)[0], [None, threads])
    sch.bind(i_0, "blockIdx.x")
    sch.bind(i_1, "threadIdx.x")
    copy = sch.cache_read(block, 0, "shared")
    sch.compute_at(copy, i_1)
    _, inner = sch.split(sch.get_loops(copy)[-1], [None, threads])
    sch.bind(inner, "threadIdx.x")
    check(sch, func, lambda a: a[:-2] + a[1:-1] + a[2:], target=tvm.target.emulated("cuda"))


def test_threads_load_vectors_into_shared_memory():
    sch, func, answer = scheduled(matmul(32, 32, 32))
    c = sch.get_block("C")
    back = sch.cache_write(c, 0, "local")
    i, j, k = sch.get_loops(c)
    (i_0, i_1, i_2), (j_0, j_1, j_2) = (sch.split(loop, [None, 4, 4]) for loop in (i, j))
    k_0, k_1 = sch.split(k, [None, 8])
    sch.unroll(k_1)
    sch.reorder(i_0, j_0, i_1, j_1, k_0, k_1, i_2, j_2)
    sch.reverse_compute_at(back, j_1)
    sch.bind(i_0, "blockIdx.y")
    sch.bind(j_0, "blockIdx.x")
    sch.bind(sch.fuse(i_1, j_1), "threadIdx.x")
    for index in (0, 1):
        copy = sch.cache_read(c, index, "shared")
        sch.compute_at(copy, k_0)
        _, thread, lane = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 16, 4])
        sch.vectorize(lane)
        sch.bind(thread, "threadIdx.x")
    sch.decompose_reduction(c, k_0)
    check(sch, func, answer, target=tvm.target.emulated("cuda"))
    assert "float4" in tvm.build(sch.mod, target="cuda").imported_modules[0].get_source()


def test_views_follow_their_buffer_into_other_memory():

    @T.prim_func
    def through_views(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        B = T.alloc_buffer((16, 16), "float32")
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                one = T.match_buffer(B[vi, vj], [], offset_factor=1)
                one[()] = A[vi, vj] * 2.0
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                other = T.match_buffer(B[vi, vj], [], offset_factor=1)
                C[vi, vj] = other[()] + 1.0

    sch = tir.Schedule(through_views, debug_mask="all")
    sch.set_scope("B", 0, "local")
    text = sch.mod.script()
    assert text.count('scope="local"') == 3
    check(sch, through_views, lambda a: 2 * a + 1)
