"""What rules of programs' own ask of loops and targets."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.dlight.gpu import utils
from tvm.script import tir as T
from tvm.target import Target


@T.prim_func
def copy(var_A: T.handle, var_B: T.handle):
    n = T.int64()
    A = T.match_buffer(var_A, (n, T.int64(24)), "float16")
    B = T.match_buffer(var_B, (n, T.int64(24)), "float16")
    for i, j in T.grid(n, T.int64(24)):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


@pytest.mark.parametrize(
    ("dtype", "size"), [("float16", 2), ("float32x4", 16), ("int4", 1), ("bool", 1)]
)
def test_bytes_of_element_types(dtype, size):
    assert utils.get_bytes(dtype) == size


def test_extents_are_numbers_or_expressions():
    sch = tir.Schedule(copy)
    rows, columns = sch.get_loops(sch.get_block("B"))
    assert utils.get_extent(sch, columns) == 24
    assert isinstance(utils.get_extent(sch, rows), tir.Var)


def test_loops_become_lanes_a_few_at_a_time():
    sch = tir.Schedule(copy)
    rows, columns = sch.get_loops(sch.get_block("B"))
    utils.auto_vectorize(sch, columns, 8)
    # Nothing says that rows make whole vectors.
    utils.auto_vectorize(sch, rows, 8)
    loops = [sch.get(loop) for loop in sch.get_loops(sch.get_block("B"))]
    assert [loop.kind for loop in loops[1:]] == [tir.ForKind.SERIAL, tir.ForKind.VECTORIZED]
    assert [int(loop.extent) for loop in loops[1:]] == [3, 8]
    assert loops[0].kind == tir.ForKind.SERIAL

    short = tir.Schedule(copy)
    utils.auto_vectorize(short, short.get_loops(short.get_block("B"))[1], 32)
    assert short.get(short.get_loops(short.get_block("B"))[1]).kind == tir.ForKind.VECTORIZED


@pytest.mark.parametrize(
    ("extents", "limit", "threads"),
    [
        ([64, 64], 32, [64, 16]),
        ([24, 7], 32, [16, 4]),
        ([2048], 32, [1024]),
        (["n", 8], 32, [128, 8]),
        (["n", 8, "m"], 16, [16, 8, 8]),
        (["n", 8, "m"], 4, [32, 8, 4]),
        ([1, "n"], 4, [1, 1024]),
        ([], 32, []),
    ],
)
def test_threads_are_shared_out_among_loops(extents, limit, threads):
    def loop(extent):
        count = tir.Var(extent, "int32") if isinstance(extent, str) else tir.IntImm("int32", extent)
        return tir.For(tir.Var("i", "int32"), 0, count, tir.ForKind.SERIAL, tir.Evaluate(0))

    target = Target("cuda -max_threads_per_block=1024")
    found = utils.suggest_threads_per_block(target, [loop(e) for e in extents], limit)
    assert found == threads


def test_threads_are_for_gpus():
    with pytest.raises(ValueError, match="key gpu"):
        utils.suggest_threads_per_block(Target("llvm"), [])
