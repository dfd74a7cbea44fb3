"""What threads have of tiles of a warp."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import apply
from tvm import tir
from tvm.script import tir as T

RACES = tvm.target.emulated("cuda", check_races=True)


@T.prim_func
def sums(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 16), "float32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("all"):
            C = T.alloc_buffer((32, 16), scope="m16n8k8.matrixC")
            for i, j, a, b in T.grid(2, 2, 2, 2):
                with T.block("in"):
                    C[i * 16 + a * 8 + tx // 4, j * 8 + tx % 4 * 2 + b] = A[
                        i * 16 + a * 8 + tx // 4, j * 8 + tx % 4 * 2 + b
                    ]
            for i, j, a, b in T.grid(2, 2, 2, 2):
                with T.block("out"):
                    B[i * 16 + a * 8 + tx // 4, j * 8 + tx % 4 * 2 + b] = (
                        C[i * 16 + a * 8 + tx // 4, j * 8 + tx % 4 * 2 + b] * 2.0
                    )


def test_sums_are_registers_of_threads():
    text = str(tvm.lower(sums))
    # Two by two tiles, four elements of each a thread.
    assert 'T.allocate([16], "float32", "local")' in text
    a = np.random.default_rng(0).random((32, 16), "float32")
    out = tvm.nd.empty((32, 16))
    tvm.build(sums, target=RACES)(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.numpy(), 2 * a)


@pytest.mark.parametrize(
    ("scope", "shape", "own"),
    [
        ("m16n8k8.matrixA", (64, 16), [2, 2, 4, 2]),
        ("m16n8k8.matrixB", (16, 64), [2, 2, 4, 2]),
        ("m16n8k8.matrixC", (3, 32, 24), [3, 2, 3, 2, 2]),
    ],
)
def test_threads_have_their_elements_of_each_tile(scope, shape, own):
    @T.prim_func
    def main():
        with T.block("all"):
            F = T.alloc_buffer(shape, "float16", scope=scope)
            T.evaluate(T.call_extern("int32", "use", F.data))

    block = apply(tir.transform.TransformMmaBufferLayout(), main).body.block
    inner = block.body.block if isinstance(block.body, tir.BlockRealize) else block
    (buffer,) = inner.alloc_buffers
    assert [int(n) for n in buffer.shape] == own
    assert buffer.scope() == "local"
    assert inner.body.value.args[1].same_as(buffer.data)


def test_parts_of_tiles_are_refused():
    @T.prim_func
    def main():
        with T.block("all"):
            F = T.alloc_buffer((24, 8), "float16", scope="m16n8k8.matrixC")
            T.evaluate(T.call_extern("int32", "use", F.data))

    with pytest.raises(tvm.error.ValueError, match="F in m16n8k8.matrixC has the shape"):
        apply(tir.transform.TransformMmaBufferLayout(), main)


def test_elements_of_operands_are_the_instructions():
    @T.prim_func
    def main():
        with T.block("all"):
            F = T.alloc_buffer((32, 8), "float16", scope="m16n8k8.matrixA")
            F[0, 0] = T.float16(0)

    with pytest.raises(tvm.error.ValueError, match="an element of F in m16n8k8.matrixA"):
        apply(tir.transform.TransformMmaBufferLayout(), main)
