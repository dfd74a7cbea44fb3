"""Copies to shared memory through registers, and loads under a predicate."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.script import tir as T

RACES = tvm.target.emulated("cuda", check_races=True)


def staged(annotation):
    @T.prim_func
    def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "float32")):
        for bx in T.thread_binding(2, thread="blockIdx.x"):
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for k in range(4):
                    with T.block("outer"):
                        S = T.alloc_buffer((64, 32), scope="shared")
                        for i in range(4):
                            for v in T.vectorized(2):
                                with T.block("copy"):
                                    T.block_attr(annotation)
                                    S[bx * 32 + k * 8 + i * 2 + v, tx] = A[
                                        bx * 32 + k * 8 + i * 2 + v, tx
                                    ]
                        for i in range(8):
                            with T.block("out"):
                                B[bx * 32 + k * 8 + i, tx] = S[bx * 32 + k * 8 + i, 31 - tx] + 1.0

    return main


STAGE = {"tir.manifest_shared_memory_local_stage": 1}


def test_a_copy_goes_through_registers():
    text = str(tvm.lower(staged(STAGE)))
    # A register for each trip of the loops, not for each element of the shared memory.
    assert 'T.allocate([8], "float32", "local")' in text
    load = text.index("S_local[")
    assert load < text.index("S[T.Ramp")
    plain = str(tvm.lower(staged({})))
    assert '"local"' not in plain


@pytest.mark.parametrize("annotation", [STAGE, {}], ids=["staged", "plain"])
def test_values_are_the_same_either_way(annotation):
    a = np.random.default_rng(0).random((64, 32), "float32")
    out = tvm.nd.empty((64, 32))
    tvm.build(staged(annotation), target=RACES)(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.numpy(), a[:, ::-1] + 1)


def test_a_block_that_does_more_than_copy_is_refused():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("copy"):
                T.block_attr(STAGE)
                A[i] = 1.0
                B[i] = 2.0

    with pytest.raises(tvm.error.ValueError, match="block copy does more than to store one value"):
        tir.transform.ManifestSharedMemoryLocalStage()(tvm.IRModule({"main": main}))


@T.prim_func
def guarded(A: T.Buffer((20,), "float32"), B: T.Buffer((32,), "float32")):
    T.func_attr({"global_symbol": "main"})
    tx = T.launch_thread("threadIdx.x", 32)
    r = T.allocate([1], "float32", "local")
    r_1 = T.Buffer((1,), "float32", data=r, scope="local")
    r_1[0] = T.if_then_else(tx < 20, A[tx], T.float32(0))
    B[tx] = r_1[0]


def test_a_guarded_load_becomes_one_instruction():
    func = tir.transform.InjectPTXLDG32()(tvm.IRModule({"main": guarded}))["main"]
    assert "T.ptx_ldg32(r, tx < 20, A[tx], 0" in str(func)


@pytest.mark.parametrize("enable", [True, False])
def test_other_programs_stay_as_they_are(enable):
    @T.prim_func
    def one(A: T.Buffer((20,), "float32"), B: T.Buffer((32,), "float32")):
        tx = T.launch_thread("threadIdx.x", 32)
        r = T.allocate([1], "float32", "local")
        r_1 = T.Buffer((1,), "float32", data=r, scope="local")
        r_1[0] = T.if_then_else(tx < 20, A[tx], T.float32(1))
        B[tx] = T.if_then_else(tx < 20, A[tx], T.float32(0)) + r_1[0]

    mod = tvm.IRModule({"main": one if enable else guarded})
    after = tir.transform.InjectPTXLDG32(enable)(mod)
    tvm.ir.assert_structural_equal(after, mod)


def test_builds_load_so_on_request():
    target = tvm.target.Target("cuda", host="llvm")
    for ask in (False, True):
        with tvm.transform.PassContext(config={"tir.ptx_ldg32": ask}):
            _, device = tvm.driver.split_dev_host_funcs(tvm.IRModule({"main": guarded}), target)
        assert ("ptx_ldg32" in str(device)) == ask
