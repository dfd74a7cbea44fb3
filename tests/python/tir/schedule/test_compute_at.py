"""compute_at and reverse_compute_at: regions, guards, refusals, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_blocks import blur, body, chain, check, concat, matmul, row_sums
from tvm import te, tir
from tvm.script import tir as T


def scheduled(program):
    func, answer = program
    return tir.Schedule(func, debug_mask="all"), func, answer


def test_a_producer_is_computed_where_it_is_needed():
    sch, func, answer = scheduled(chain())
    i, j = sch.get_loops(sch.get_block("D"))
    sch.compute_at(sch.get_block("C"), i)
    lines = [line.strip() for line in body(sch)]
    start = lines.index('with T.block("C"):')
    assert lines[start - 1] == "for ax0 in range(14):"
    assert len(sch.get_loops(sch.get_block("C"))) == 2
    check(sch, func, answer)


def test_neighbours_are_computed_again_with_a_guard_at_the_ends():
    sch, func, answer = scheduled(blur(21))
    i, r = sch.get_loops(sch.get_block("S"))
    i_0, i_1 = sch.split(i, [None, 4])
    sch.compute_at(sch.get_block("P"), i_0)
    sch.compute_at(sch.get_block("B"), i_0)
    text = str(sch.mod)
    assert "for ax0 in range(6)" in text
    assert text.count("T.where(") == 3
    check(sch, func, answer)


def test_a_whole_reduction_moves_with_its_loops():
    sch, func, answer = scheduled(matmul(12, 20, 18, epilogue=True))
    i, j = sch.get_loops(sch.get_block("D"))
    j_0, j_1 = sch.split(j, [None, 4])
    c = sch.get_block("C")
    sch.compute_at(c, j_0)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(c)] == [12, 5, 4, 18]
    sch.parallel(i)
    sch.decompose_reduction(c, sch.get_loops(c)[-1])
    check(sch, func, answer)


def test_units_are_kept_when_asked_for():
    sch, func, answer = scheduled(chain())
    _, j = sch.get_loops(sch.get_block("D"))
    c = sch.get_block("C")
    sch.compute_at(c, j, preserve_unit_loops=True)
    assert len(sch.get_loops(c)) == 4
    check(sch, func, answer)


def test_the_place_under_a_loop_can_be_chosen():
    sch, func, answer = scheduled(chain())
    i, _ = sch.get_loops(sch.get_block("D"))
    sch.compute_at(sch.get_block("C"), i)
    sch.compute_at(sch.get_block("B"), i, index=0)
    with pytest.raises(tir.ScheduleError, match="loop i is an ancestor of block"):
        sch.compute_at(sch.get_block("B"), i)
    check(sch, func, answer)
    sch, func, answer = scheduled(chain())
    i, _ = sch.get_loops(sch.get_block("D"))
    with pytest.raises(tir.ScheduleError, match="places from 0 to 0 are behind"):
        sch.compute_at(sch.get_block("C"), i, index=3)


def test_a_result_of_the_function_is_not_computed_in_parts():
    sch, _, _ = scheduled(row_sums())
    loop = sch.get_loops(sch.get_block("S"))[0]
    with pytest.raises(tir.ScheduleError, match="D is an output block: it writes D, a result"):
        sch.compute_at(sch.get_block("D"), loop)


def test_all_consumers_must_be_under_the_loop():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((8,), lambda i: B[i] + C[i], name="D")
    sch = tir.Schedule(te.create_prim_func([A, D]))
    (loop,) = sch.get_loops(sch.get_block("D"))
    with pytest.raises(tir.ScheduleError, match="C reads B outside of loop"):
        sch.compute_at(sch.get_block("B"), loop)


def test_iterations_that_share_a_buffer_do_not_run_as_lanes():
    sch, func, answer = scheduled(blur(20))
    i, r = sch.get_loops(sch.get_block("S"))
    sch.compute_at(sch.get_block("P"), i)
    with pytest.raises(tir.ScheduleError, match="lanes of a vector share a buffer"):
        sch.vectorize(i)
    # Each core has its own.
    sch.parallel(i)
    check(sch, func, answer)


def test_a_consumer_is_computed_as_soon_as_its_input_is_there():
    sch, func, answer = scheduled(matmul(12, 20, 18, epilogue=True))
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    j_0, j_1 = sch.split(j, [None, 8])
    sch.reorder(i, j_0, k, j_1)
    sch.reverse_compute_at(sch.get_block("D"), j_0)
    assert len(sch.get_loops(sch.get_block("D"))) == 3
    sch.decompose_reduction(c, k)
    sch.parallel(i)
    check(sch, func, answer)


def test_a_consumer_does_not_move_into_a_reduction():
    sch, _, _ = scheduled(matmul(12, 20, 18, epilogue=True))
    i, j, k = sch.get_loops(sch.get_block("C"))
    d = sch.get_block("D")
    with pytest.raises(tir.ScheduleError, match="loop k feeds the reduction of block C"):
        sch.reverse_compute_at(d, k)
    sch.reorder(k, i)
    with pytest.raises(tir.ScheduleError, match="loop k feeds the reduction of block C"):
        sch.reverse_compute_at(d, j)


def test_a_consumer_of_scattered_elements_does_not_move():
    sch, _, _ = scheduled(chain(12, 5))
    i, j = sch.get_loops(sch.get_block("B"))
    i_0, i_1 = sch.split(i, [None, 3])
    sch.reorder(i_1, i_0)
    with pytest.raises(tir.ScheduleError, match="is no box of elements"):
        sch.reverse_compute_at(sch.get_block("C"), i_1)


def test_a_consumer_of_neighbours_does_not_move():
    sch, _, _ = scheduled(blur())
    (i,) = sch.get_loops(sch.get_block("B"))
    with pytest.raises(tir.ScheduleError, match="writes only a part of that axis"):
        sch.reverse_compute_at(sch.get_block("P"), i)


@pytest.mark.parametrize("source", [0, 1])
def test_a_consumer_of_one_part_runs_for_the_other_part_too(source):
    sch, func, answer = scheduled(concat(4, 6, 6))
    c = sch.get_block("C")
    i, j = sch.get_loops(sch.cache_read(c, source, "global"))
    with pytest.raises(tir.ScheduleError, match="use compute_at to move|a part of that axis"):
        sch.reverse_compute_at(c, j)
    sch.reverse_compute_at(c, i)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(c)] == [4, 12]
    check(sch, func, answer)


@T.prim_func
def rows_of_a_result(
    A: T.Buffer((4, 4), "float32"), C: T.Buffer((8, 4), "float32"), D: T.Buffer((8, 4), "float32")
):
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1.0
    for i, j in T.grid(8, 4):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * 2.0


def test_a_consumer_of_what_the_caller_gave_is_not_left_out():
    sch = tir.Schedule(rows_of_a_result)
    i, _ = sch.get_loops(sch.get_block("C"))
    with pytest.raises(
        tir.ScheduleError, match="block D for values of vi that block C writes nothing of C for"
    ):
        sch.reverse_compute_at(sch.get_block("D"), i)


def test_partial_tiles_of_a_producer_limit_its_consumer():
    sch, func, answer = scheduled(chain(23, 5))
    i, j = sch.get_loops(sch.get_block("B"))
    i_0, i_1 = sch.split(i, [None, 10])
    a, b = sch.split(i_1, [None, 4])
    c = sch.get_block("C")
    sch.reverse_compute_at(c, i_0)
    sch.reverse_compute_at(sch.get_block("D"), sch.get_loops(c)[1])
    assert "ax0 < 10" in str(sch.mod)
    check(sch, func, answer)


def test_sampled_places_are_legal():
    func, answer = blur()
    for seed in range(6):
        sch = tir.Schedule(func, seed=seed)
        for name in ("S", "P", "B"):
            block = sch.get_block(name)
            sch.compute_at(block, sch.sample_compute_location(block))
        check(sch, func, answer)
    with pytest.raises(tir.ScheduleError, match="cannot be computed at place 7; places that are"):
        sch.sample_compute_location(sch.get_block("H"), decision=7)


def test_places_are_the_decisions_that_are_not_refused():
    func, _ = blur()
    for name in ("S", "P", "B", "H"):
        sch = tir.Schedule(func)
        block = sch.get_block(name)
        before, taken = str(sch.mod), []
        for place in range(-3, 6):
            try:
                sch.copy().sample_compute_location(block, decision=place)
            except tir.ScheduleError:
                continue
            taken.append(place)
        assert sch.compute_locations(block) == taken
        assert -1 in taken and str(sch.mod) == before
    with pytest.raises(TypeError, match="expected a block of this schedule"):
        sch.compute_locations(sch.get_loops(block)[0])


def test_symbolic_sizes_are_tiled_moved_and_run_in_parallel():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((n,), lambda i: te.sum(B[i, k], axis=k), name="C")
    D = te.compute((n,), lambda i: C[i] + 1.0, name="D")
    sch = tir.Schedule(te.create_prim_func([A, D]), debug_mask="all")
    c = sch.get_block("C")
    i, k = sch.get_loops(c)
    (i_0, i_1), (k_0, k_1) = sch.split(i, [None, 4]), sch.split(k, [None, 4])
    sch.reorder(i_0, k_0, i_1, k_1)
    sch.compute_at(sch.get_block("B"), k_0)
    sch.decompose_reduction(c, k_0)
    sch.reverse_compute_at(sch.get_block("D"), i_0)
    sch.parallel(i_0)
    function = tvm.build(sch.mod, target="llvm")
    for shape in ((10, 13), (1, 1), (8, 4)):
        a = np.random.default_rng(0).standard_normal(shape, "float32")
        result = tvm.nd.array(np.zeros(shape[0], "float32"))
        function(tvm.nd.array(a), result)
        np.testing.assert_allclose(result.numpy(), (a * 2).sum(axis=1) + 1, rtol=1e-5, atol=1e-5)


@T.prim_func(check_well_formed=False)
def shifted(a: T.Buffer((4, 4), "float32"), c: T.Buffer((4, 4), "float32")):
    b = T.alloc_buffer((4, 4))
    for i, j in T.grid(4, 4):
        with T.block("B"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            b[v_i, v_j] = a[v_i, v_j] * T.Select(i < 2, T.float32(1), T.float32(3))
    for i, j in T.grid(4, 4):
        with T.block("C"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            c[v_i, v_j] = b[v_i, v_j] * T.float32(2)


def test_a_block_that_uses_a_loops_variable_itself_stays_under_it():
    sch = tir.Schedule(shifted)
    block = sch.get_block("B")
    before = sch.mod.script()
    consumer = sch.get_loops(sch.get_block("C"))[0]
    for move in (lambda: sch.compute_at(block, consumer), lambda: sch.compute_inline(block)):
        with pytest.raises(tir.ScheduleError, match="uses the variable of loop i itself"):
            move()
    assert sch.mod.script() == before


def test_a_buffer_that_is_written_from_its_end_is_computed_where_it_is_needed():

    @T.prim_func
    def turned(X: T.Buffer((9, 6), "float32"), Z: T.Buffer((6, 9), "float32")):
        Y = T.alloc_buffer((9, 6), "float32")
        for i, j in T.grid(9, 6):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[8 - vi, 5 - vj] = X[vi, vj] + T.float32(1)
        for i, j in T.grid(6, 9):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vj, vi]

    for depth, bound in ((0, "T.axis.spatial(6, 5 - i)"), (1, "T.axis.spatial(9, 8 - j)")):
        sch = tir.Schedule(turned, debug_mask="all")
        sch.compute_at("Y", sch.get_loops("Z")[depth])
        assert bound in sch.mod.script()
        check(sch, turned, lambda x: (x + 1)[::-1, ::-1].T)


@T.prim_func
def sums_of_columns(X: T.Buffer((12, 8), "float32"), Z: T.Buffer((8,), "float32")):
    Y = T.alloc_buffer((12, 8), "float32")
    for i, j in T.grid(12, 8):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)
    for j, k in T.grid(8, 12):
        with T.block("Z"):
            vj, vk = T.axis.remap("SR", [j, k])
            with T.init():
                Z[vj] = T.float32(0)
            Z[vj] = Z[vj] + Y[vk, vj]


def test_a_reduction_is_computed_where_its_inputs_are():
    sch = tir.Schedule(sums_of_columns, debug_mask="all")
    i, j = sch.get_loops("Y")
    i_0, i_1 = sch.split(i, [None, 4])
    sch.reorder(j, i_0, i_1)
    sch.reverse_compute_at("Z", i_0)
    # Four of the twelve rows at a time, and the first ones begin the sum.
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("Z")] == [8, 3, 4]
    check(sch, sums_of_columns, lambda x: 2 * x.sum(axis=0))
    sch.decompose_reduction("Z", sch.get_loops("Z")[1])
    check(sch, sums_of_columns, lambda x: 2 * x.sum(axis=0))


def test_a_reduction_does_not_move_under_a_loop_that_would_repeat_it():
    sch = tir.Schedule(sums_of_columns, debug_mask="all")
    i, j = sch.get_loops("Y")
    # Rows outside, so that the sum of every column would begin again and again.
    before = sch.mod.script()
    j_0, _ = sch.split(j, [2, None])
    sch.reorder(i, j_0)
    sch.reverse_compute_at("Z", i)
    check(sch, sums_of_columns, lambda x: 2 * x.sum(axis=0))
    assert sch.mod.script() != before

    @T.prim_func
    def windows(X: T.Buffer((12,), "float32"), Z: T.Buffer((1,), "float32")):
        Y = T.alloc_buffer((12,), "float32")
        for i, k in T.grid(5, 4):
            with T.block("Y"):
                vi = T.axis.spatial(12, i * 2 + k)
                Y[vi] = X[vi] * T.float32(2)
        for j, k in T.grid(1, 12):
            with T.block("Z"):
                vj, vk = T.axis.remap("SR", [j, k])
                with T.init():
                    Z[vj] = T.float32(0)
                Z[vj] = Z[vj] + Y[vk]

    sch = tir.Schedule(windows, debug_mask="all")
    with pytest.raises(tir.ScheduleError, match="would add the same elements again"):
        sch.reverse_compute_at("Z", sch.get_loops("Y")[0])


def test_a_sum_of_parts_is_computed_by_the_threads_that_have_them():

    @T.prim_func
    def parts(X: T.Buffer((16, 8), "float32"), Z: T.Buffer((8,), "float32")):
        Y = T.alloc_buffer((16, 8), "float32", scope="local")
        for j in T.thread_binding(8, thread="blockIdx.x"):
            for t in T.thread_binding(4, thread="threadIdx.x"):
                for i in range(4):
                    with T.block("Y"):
                        vi = T.axis.spatial(16, t * 4 + i)
                        vj = T.axis.spatial(8, j)
                        Y[vi, vj] = X[vi, vj] * T.float32(2)
        for j, k in T.grid(8, 16):
            with T.block("Z"):
                vj, vk = T.axis.remap("SR", [j, k])
                with T.init():
                    Z[vj] = T.float32(0)
                Z[vj] = Z[vj] + Y[vk, vj]

    sch = tir.Schedule(parts, debug_mask="all")
    sch.reverse_compute_at("Z", sch.get_loops("Y")[1])
    x = np.random.default_rng(0).random((16, 8), "float32")
    z = tvm.nd.array(np.zeros(8, "float32"))
    tvm.build(sch.mod, target=tvm.target.emulated("cuda"))(tvm.nd.array(x), z)
    np.testing.assert_allclose(z.numpy(), 2 * x.sum(axis=0), rtol=1e-5)


def test_another_layout_is_made_where_its_elements_are():

    @T.prim_func
    def blocks_of_8(X: T.Buffer((3, 5, 16), "float32"), Z: T.Buffer((6, 5, 8), "float32")):
        Y = T.alloc_buffer((3, 5, 16))
        for i, j, k in T.grid(3, 5, 16):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                Y[vi, vj, vk] = X[vi, vj, vk] + T.float32(1)
        for i, j, k in T.grid(6, 5, 8):
            with T.block("Z"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                Z[vi, vj, vk] = Y[(vi * 8 + vk) // 16, vj, (vi * 8 + vk) % 16]

    def answer(x):
        return (x + 1).reshape(3, 5, 2, 8).transpose(0, 2, 1, 3).reshape(6, 5, 8)

    sch = tir.Schedule(blocks_of_8, debug_mask="all")
    sch.reverse_compute_at("Z", sch.get_loops("Y")[0])
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("Z")] == [3, 2, 5, 8]
    assert "T.where" not in sch.mod.script()
    check(sch, blocks_of_8, answer)
    # Tiles that do not fit the blocks run what they have.
    for tile in (4, 6):
        sch = tir.Schedule(blocks_of_8, debug_mask="all")
        i, j, k = sch.get_loops("Y")
        k_0, k_1 = sch.split(k, [None, tile])
        sch.reorder(k_0, i, j, k_1)
        sch.reverse_compute_at("Z", j)
        check(sch, blocks_of_8, answer)


def test_a_reduction_over_symbolic_sizes_follows_its_parts():

    @T.prim_func
    def product(b: T.handle, z: T.handle):
        n = T.int32()
        B = T.match_buffer(b, (4, n, 8))
        Z = T.match_buffer(z, (4, n))
        P = T.alloc_buffer((8, 4, n))
        for f, k in T.grid(n * 4, 8):
            with T.block("P"):
                vk = T.axis.spatial(8, k)
                v0 = T.axis.spatial(4, f // n)
                v1 = T.axis.spatial(n, f % n)
                P[vk, v0, v1] = B[v0, v1, vk] * T.float32(2)
        for f, k in T.grid(n * 4, 8):
            with T.block("Z"):
                vk = T.axis.reduce(8, k)
                v0 = T.axis.spatial(4, f // n)
                v1 = T.axis.spatial(n, f % n)
                with T.init():
                    Z[v0, v1] = T.float32(0)
                Z[v0, v1] = Z[v0, v1] + P[vk, v0, v1]

    sch = tir.Schedule(product, debug_mask="all")
    sch.reverse_compute_at("Z", sch.get_loops("P")[0])
    assert len(sch.get_loops("Z")) == 2
    compiled = tvm.build(sch.mod, target="llvm")
    for n in (1, 5):
        x = np.random.default_rng(n).random((4, n, 8), "float32")
        z = tvm.nd.array(np.zeros((4, n), "float32"))
        compiled(tvm.nd.array(x), z)
        np.testing.assert_allclose(z.numpy(), 2 * x.sum(axis=2), rtol=1e-5)


@pytest.mark.parametrize("rows, columns", [(64, 48), (32, 16)])
def test_tiles_of_a_layout_are_read_back_where_they_are_made(rows, columns):
    n, m = rows, columns

    @T.prim_func
    def tiled(A: T.Buffer((n, m), "float32"), C: T.Buffer((n, m), "float32")):
        B = T.alloc_buffer((n // 8, m // 8, 8, 8), "float32")
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi // 8, vj // 8, vi % 8, vj % 8] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(n, m):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi // 8, vj // 8, vi % 8, vj % 8] * T.float32(2)

    sch = tir.Schedule(tiled, debug_mask="all")
    i, j = sch.get_loops(sch.get_block("B"))
    i_0, i_1, i_2 = sch.split(i, [None, 2, 8])
    j_0, j_1, j_2 = sch.split(j, [None, 2, 8])
    sch.reorder(i_0, j_0, i_1, j_1, i_2, j_2)
    sch.reverse_compute_at(sch.get_block("C"), j_0)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(sch.get_block("C"))][2:] == [16, 16]
    check(sch, tiled, lambda a: (a + 1) * 2)


def test_threads_write_together_what_they_have_in_common():
    A = te.placeholder((64, 32), name="A")
    B = te.compute((64, 32), lambda i, j: A[i, 31 - j] + 1.0, name="B")
    func = te.create_prim_func([A, B])
    sch = tir.Schedule(func, debug_mask="all")
    b = sch.get_block("B")
    copy = sch.cache_write(b, 0, "shared")
    i, j = sch.get_loops(b)
    i_0, i_1, i_2 = sch.split(i, [None, 4, 4])
    j_0, j_1 = sch.split(j, [2, None])
    sch.reorder(i_0, i_1, j_0, i_2, j_1)
    for loop, tag in [(i_0, "blockIdx.x"), (i_1, "threadIdx.y"), (j_0, "threadIdx.x")]:
        sch.bind(loop, tag)
    sch.reverse_compute_at(copy, j_0)
    fused = sch.fuse(*sch.get_loops(copy)[-2:])
    assert int(sch.get(fused).extent) == 16 * 32
    _, y, x, lanes = sch.split(fused, [None, 4, 2, 4])
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    sch.vectorize(lanes)
    built = tvm.build(sch.mod, target=tvm.target.emulated("cuda", check_races=True))
    a = np.random.default_rng(0).random((64, 32), dtype="float32")
    found = tvm.nd.empty((64, 32))
    built(tvm.nd.array(a), found)
    np.testing.assert_array_equal(found.numpy(), a[:, ::-1] + 1)


def test_blocks_of_threads_read_what_they_wrote_themselves():
    A = te.placeholder((64, 32), name="A")
    B = te.compute((64, 32), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((64, 32), lambda i, j: B[i, j] * 2.0, name="C")
    func = te.create_prim_func([A, C])
    sch = tir.Schedule(func, debug_mask="all")
    i, _ = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    sch.reverse_compute_at("C", i)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("C")] == [64, 32]
    check(sch, func, lambda a: (a + 1) * 2, tvm.target.emulated("cuda", check_races=True))


def test_a_copy_that_may_write_nothing_moves_to_its_input():
    @T.prim_func
    def cut(A: T.Buffer((24,), "float32"), C: T.Buffer((21,), "float32")):
        B = T.alloc_buffer((24,), "float32")
        D = T.alloc_buffer((24,), "float32")
        for i in T.serial(24):
            with T.block("B"):
                vi = T.axis.spatial(24, i)
                B[vi] = A[vi] + T.float32(1)
        for i in T.serial(24):
            with T.block("D"):
                vi = T.axis.spatial(24, i)
                D[vi] = B[vi] * T.float32(2)
        for i in T.serial(21):
            with T.block("C"):
                vi = T.axis.spatial(21, i)
                C[vi] = D[vi]

    sch = tir.Schedule(cut, debug_mask="all")
    sch.reverse_compute_inline(sch.get_block("C"))
    (i,) = sch.get_loops(sch.get_block("B"))
    i_0, _ = sch.split(i, [None, 4])
    sch.reverse_compute_at(sch.get_block("D"), i_0)
    check(sch, cut, lambda a: (a[:21] + 1) * 2)


def test_a_layout_of_tiles_is_filled_as_far_as_its_readers_need_it():
    A = te.placeholder((64, 96), name="A")
    C = te.compute((64, 96), lambda i, j: A[i, j] * 2.0 + A[i, 95 - j // 96], name="C")
    func = te.create_prim_func([A, C])
    sch = tir.Schedule(func, debug_mask="all")
    c = sch.get_block("C")
    copy = sch.cache_read(c, 0, "global")
    sch.transform_layout(copy, ("write", 0), lambda i, j: (i // 8, j // 16, i % 8, j % 16))
    i, j = sch.get_loops(c)
    i_0, i_1 = sch.split(i, [None, 16])
    sch.compute_at(copy, i_0)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(copy)] == [4, 16, 96]
    check(sch, func, lambda a: a * 2 + a[:, 95:])


def test_a_layout_that_tiles_do_not_fill_is_filled_whole():
    A = te.placeholder((20, 16), name="A")
    C = te.compute((20, 16), lambda i, j: A[i, j] + 1.0, name="C")
    func = te.create_prim_func([A, C])
    sch = tir.Schedule(func, debug_mask="all")
    c = sch.get_block("C")
    copy = sch.cache_read(c, 0, "global")
    sch.transform_layout(copy, ("write", 0), lambda i, j: (i // 8, j, i % 8), pad_value=0.0)
    i, _ = sch.get_loops(c)
    sch.compute_at(copy, i)
    check(sch, func, lambda a: a + 1)


def test_all_threads_read_what_all_of_them_wrote_before_their_loops_are_split():
    """As tensor core schedules of TVM's users store a tile: its copy out of shared memory is under
    the loop of warps while it is each warp's copy of all, and shared out among threads then."""
    A = te.placeholder((128, 128), name="A")
    B = te.compute((128, 128), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((128, 128), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((128, 128), lambda i, j: C[i, j] - 1.0, name="D")
    func = te.create_prim_func([A, D])
    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    i_0, i_1 = sch.split(i, [4, None])
    j_0, j_1 = sch.split(j, [4, None])
    sch.reorder(j_0, i_0, i_1, j_1)
    warps = sch.fuse(j_0, i_0)
    block = sch.add_unit_loop(warps)
    sch.bind(block, "blockIdx.x")
    sch.bind(warps, "threadIdx.y")
    sch.set_scope("B", 0, "shared")
    sch.reverse_compute_at("C", warps)
    rows = sch.fuse(*sch.get_loops("C")[2:])
    _, warp, lane = sch.split(rows, [None, 16, 32])
    sch.bind(warp, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    last = sch.fuse(*sch.get_loops("D"))
    outer, inner = sch.split(last, [None, 64])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    check(sch, func, lambda a: a * 2.0 + 1.0, target=tvm.target.emulated("cuda"))
