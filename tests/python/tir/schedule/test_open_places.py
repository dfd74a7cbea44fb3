"""Places that blocks write to by extents and variables that are not numbers."""

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.script import tir as T


@T.prim_func
def named_place(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("block"):
            vi = T.axis.spatial(64, i)
            place: T.int32 = 63 - vi
            value: T.float32 = A[place]
            B[vi] = value


@T.prim_func
def parted(a: T.handle, b: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n + m,))
    B, C = T.match_buffer(b, (n,)), T.match_buffer(c, (m,))
    for i in range(n + m):
        with T.block("block"):
            vi = T.axis.spatial(n + m, i)
            if vi < n:
                B[vi] = A[vi]
            else:
                behind: T.int32 = vi - n
                C[behind] = A[vi]


@T.prim_func
def folded(A: T.Buffer((64,), "float32"), B: T.Buffer((32,), "float32")):
    for i in range(64):
        with T.block("block"):
            vi = T.axis.spatial(64, i)
            place: T.int32 = vi % 32
            B[place] = A[vi]


def _bound(func):
    sch = tir.Schedule(func)
    block = sch.get_sblock("block")
    outer, inner = sch.split(sch.get_loops(block)[0], [None, 32])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    return tvm.build(sch.mod, target=tvm.target.emulated("cuda"))


def test_a_variable_in_a_block_stands_for_its_value():
    x, out = np.arange(64, dtype="float32"), tvm.nd.empty((64,))
    _bound(named_place)(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x[::-1])


def test_places_behind_an_open_extent_differ():
    x = np.arange(75, dtype="float32")
    left, right = tvm.nd.empty((40,)), tvm.nd.empty((35,))
    _bound(parted)(tvm.nd.array(x), left, right)
    np.testing.assert_array_equal(np.concatenate([left.numpy(), right.numpy()]), x)


def test_a_variable_that_takes_a_value_twice_is_no_place_of_its_own():
    with pytest.raises(tir.ScheduleError, match="depends on the order of its iterations"):
        _bound(folded)
