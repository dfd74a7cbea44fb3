"""One nest of loops made of several, and several of one."""

from __future__ import annotations

import pytest

from testing_blocks import chain, check, matmul, replay
from tvm import te, tir
from tvm.ir import structural_equal


def test_merge_runs_consumers_in_the_iterations_of_their_producers():
    func, answer = chain()
    sch = tir.Schedule(func, debug_mask="all")
    loops = [sch.get_loops(name)[1] for name in ("B", "C", "D")]
    sch.merge(*loops)
    (i, _), (same, _) = sch.get_loops("B"), sch.get_loops("D")
    assert sch.get(i).same_as(sch.get(same))
    sch.parallel(i)
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_merge_refuses_what_would_read_unwritten_elements():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[7 - i], name="C")
    D = te.compute((9,), lambda i: A[i % 8], name="D")
    sch = tir.Schedule(te.create_prim_func([A, C, D]))
    b, c, d = (sch.get_loops(name)[0] for name in "BCD")
    with pytest.raises(tir.ScheduleError, match="block B does not write all of B that C reads"):
        sch.merge(b, c)
    with pytest.raises(tir.ScheduleError, match="have one extent|one extent"):
        sch.merge(c, d)
    with pytest.raises(tir.ScheduleError, match="is not right behind the loops before it"):
        sch.merge(c, b)
    with pytest.raises(tir.ScheduleError, match="give at least two"):
        sch.merge(b)


@pytest.mark.parametrize(
    ("factors", "parts"), [([2, 3], [2, 3, 7]), ([None, 4], [8, 4]), ([12], [12]), ([5, 7], [5, 7])]
)
def test_loop_partition_makes_consecutive_parts(factors, parts):
    func, answer = matmul(12, 5, 6)
    sch = tir.Schedule(func, debug_mask="all")
    loops = sch.loop_partition(sch.get_loops("C")[0], factors)
    assert [int(sch.get(loop).extent) for loop in loops] == parts
    sch.parallel(loops[0])
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_loop_partition_of_a_reduction_goes_on_from_the_part_before():
    func, answer = matmul(4, 5, 9)
    sch = tir.Schedule(func, debug_mask="all")
    loops = sch.loop_partition(sch.get_loops("C")[2], [4])
    check(sch, func, answer)
    with pytest.raises(tir.ScheduleError):
        sch.decompose_reduction(sch.get_child_blocks(loops[1])[0], loops[1])
    check(sch, func, answer)


def test_loop_partition_refuses_parts_that_do_not_fit():
    func, _ = matmul(4, 5, 9)
    sch = tir.Schedule(func)
    loop = sch.get_loops("C")[2]
    with pytest.raises(tir.ScheduleError, match="add up to 10, which is not less than"):
        sch.loop_partition(loop, [4, 6])
    with pytest.raises(tir.ScheduleError, match="at most one can be left to be inferred"):
        sch.loop_partition(loop, [None, None])
    with pytest.raises(tir.ScheduleError, match="parts have at least 1 iteration"):
        sch.loop_partition(loop, [0, None])


def test_sample_partitioned_tile_has_an_inner_part_of_a_multiple():
    func, _ = matmul(48, 5, 6)
    for seed in range(20):
        sch = tir.Schedule(func, seed=seed)
        loop = sch.get_loops("C")[0]
        a, b, c = (int(sch.get(v)) for v in sch.sample_partitioned_tile(loop, 3, 1, 4))
        assert a * b * c == 48
        assert b * c % 4 == 0
    assert [int(sch.get(v)) for v in sch.sample_partitioned_tile(loop, 3, 1, 5)] == [48, 1, 1]
    drawn = sch.sample_partitioned_tile(loop, 2, 1, 4, decision=[3, 16])
    assert [int(sch.get(v)) for v in drawn] == [3, 16]
    with pytest.raises(tir.ScheduleError, match="is not 2 factors of the extent 48"):
        sch.sample_partitioned_tile(loop, 2, 1, 4, decision=[5, 16])
