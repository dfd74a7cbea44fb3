"""Element-wise functions over padded operands."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import apply
from tvm import tir
from tvm.script import tir as T


def padded(pattern, padding=0.0, operator=lambda a, b: a * b):
    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8))):
        T.func_attr({"op_pattern": pattern})
        for i, j in T.grid(4, 8):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.assume(not (vi == 3 and vj >= 4) or A[vi, vj] == T.float32(0))
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.assume(not (vi == 3 and vj >= 4) or B[vi, vj] == T.float32(0))
        for i, j in T.grid(4, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.if_then_else(
                    vi == 3 and vj >= 4, T.float32(padding), operator(A[vi, vj], B[vi, vj])
                )

    return main


def reduced(func):
    return apply(tir.transform.UseAssumeToReduceBranches(), func)


@pytest.mark.parametrize(
    "operator",
    [lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a - b],
    ids=["mul", "add", "sub"],
)
@pytest.mark.parametrize("pattern", [0, 1])
def test_padding_is_computed_like_the_rest(pattern, operator):
    func = padded(pattern, operator=operator)
    after = reduced(func)
    assert "if_then_else" in str(func)
    assert "if_then_else" not in str(after)
    rng = np.random.default_rng(0)
    a, b = (rng.random((4, 8), "float32") for _ in range(2))
    a[3, 4:] = b[3, 4:] = 0
    results = []
    for each in (func, after):
        out = tvm.nd.empty((4, 8))
        tvm.build(each, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
        results.append(out.numpy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    "func",
    [
        padded(0, padding=1.0),
        padded(0, operator=lambda a, b: T.exp(a) + b),
        padded(2),
    ],
    ids=["other padding", "not kept", "a reduction"],
)
def test_other_values_stay_guarded(func):
    assert reduced(func).body.same_as(func.body)


def test_nothing_is_known_without_being_assumed():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        T.func_attr({"op_pattern": 0})
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                T.assume(vi < 5 or A[vi] == T.float32(0))
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.if_then_else(vi >= 4, T.float32(0), A[vi])

    assert reduced(main).body.same_as(main.body)
