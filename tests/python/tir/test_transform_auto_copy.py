"""Copies of tiles shared out among the threads of a kernel."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.script import tir as T

RACES = tvm.target.emulated("cuda", check_races=True)


def product(n=64, tile=(16, 16), threads=(8, 8), **annotations):
    """A product of matrices whose operands are brought to shared memory tile by tile."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    sch = tir.Schedule(te.create_prim_func([A, B, C]))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, threads[0], tile[0] // threads[0]])
    j0, j1, j2 = sch.split(j, [None, threads[1], tile[1] // threads[1]])
    k0, k1 = sch.split(k, [None, 16])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    for loop, tag in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y")):
        sch.bind(loop, tag)
    sch.bind(j1, "threadIdx.x")
    for operand, scope in ((0, "shared.dyn"), (1, "shared")):
        copy = sch.read_at(k0, block, operand, scope)
        for key, value in annotations.items():
            sch.annotate(copy, key, value)
    return sch


def check(mod, n=64):
    rng = np.random.default_rng(0)
    x, y = (rng.random((n, n), "float32") for _ in range(2))
    out = tvm.nd.empty((n, n))
    tvm.build(mod, target=RACES)(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-4)


def stores_to(text, name):
    return [line.strip() for line in text.splitlines() if line.strip().startswith(f"{name}[")]


@pytest.mark.parametrize(
    "annotations",
    [{}, {"vector_bytes": 8}, {"vector_bytes": 16, "local_stage": 1}, {"local_stage": 1}],
    ids=str,
)
def test_every_element_is_copied_once(annotations):
    check(product(**annotations).mod)


@pytest.mark.parametrize(("tile", "threads"), [((20, 16), (5, 4)), ((16, 32), (16, 4))])
def test_tiles_need_not_be_a_multiple_of_the_threads(tile, threads):
    sch = product(80 if tile[0] == 20 else 64, tile, threads, vector_bytes=16)
    check(sch.mod, 80 if tile[0] == 20 else 64)


def test_neighbours_copy_neighbours_in_vectors():
    text = str(tvm.lower(product(vector_bytes=16).mod))
    (store,) = stores_to(text, "A_shared_dyn")
    assert "T.Ramp(" in store
    assert store.count(", 1, 4)") == 2


def test_registers_are_between_on_request():
    text = str(tvm.lower(product(local_stage=1).mod))
    assert 'T.allocate([4], "float32", "local")' in text


def test_rows_that_begin_at_one_bank_are_padded():
    text = str(tvm.lower(product(tile=(16, 32), threads=(16, 4)).mod))
    # Rows of 32 floats are 128 bytes, those of 16 are 64: 16 more move the next to other banks.
    assert 'T.allocate([576], "float32", "shared")' in text
    assert 'T.allocate([320], "float32", "shared.dyn")' in text


def test_results_go_back_from_shared_memory():
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[j, i] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    block = sch.get_block("B")
    i, j = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 16])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, j1, i1)
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    sch.bind(j1, "threadIdx.x")
    sch.write_at(j0, block, 0, "shared")
    x = np.random.default_rng(0).random((64, 64), "float32")
    out = tvm.nd.empty((64, 64))
    tvm.build(sch.mod, target=RACES)(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x.T + 1)


@pytest.mark.parametrize("scope", ["shared", "global", "local"])
def test_threads_with_tiles_of_their_own_copy_them_themselves(scope):
    A = te.placeholder((8, 32), name="A")
    C = te.compute((8, 32), lambda i, j: A[i, 31 - j] * 2.0 + 1.0, name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    block = sch.get_block("C")
    i, _ = sch.get_loops(block)
    outer, i = sch.split(i, [2, 4])
    sch.bind(outer, "blockIdx.x")
    sch.bind(i, "threadIdx.x")
    sch.read_at(i, block, 0, scope)
    a = np.random.default_rng(0).random((8, 32), "float32")
    out = tvm.nd.empty((8, 32))
    tvm.build(sch.mod, target=RACES)(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.numpy(), 2 * a[:, ::-1] + 1)


def test_copies_that_were_scheduled_further_stay_as_they_are():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        with T.block("both"):
            T.block_attr({"auto_copy": 1})
            for i in T.vectorized(4):
                A[i] = 1.0
                B[i] = A[i]

    before = tvm.IRModule({"main": main})
    after = tir.transform.LowerAutoCopy()(before)
    tvm.ir.assert_structural_equal(after, before)


def fragments(rows=32, convert=False, transposed=False):
    """A product of 32 x 32 by tensor cores, operands by way of shared memory."""

    @T.prim_func
    def main(
        A: T.Buffer((32, 32), "float16"),
        B: T.Buffer((32, 32), "float16"),
        C: T.Buffer((32, 32), "float32"),
    ):
        for _ in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("all"):
                SA = T.alloc_buffer((32, 64), "float16", scope="shared")
                SB = T.alloc_buffer((32, 64), "float16", scope="shared")
                FA = T.alloc_buffer((32, 32), "float16", scope="wmma.matrix_a")
                FB = T.alloc_buffer((32, 32), "float16", scope="wmma.matrix_b")
                FC = T.alloc_buffer((32, 32), "float32", scope="wmma.accumulator")
                with T.block("SA"):
                    T.block_attr({"auto_copy": 1, "vector_bytes": 16})
                    for i, j in T.grid(32, 32):
                        SA[i, j] = A[i, j]
                with T.block("SB"):
                    T.block_attr({"auto_copy": 1, "vector_bytes": 16})
                    for i, j in T.grid(32, 32):
                        SB[i, j] = B[i, j]
                with T.block("FA"):
                    T.block_attr({"auto_copy": 1})
                    for i, j in T.grid(rows, 32):
                        FA[i, j] = SA[i, j]
                with T.block("FB"):
                    T.block_attr({"auto_copy": 1})
                    for i, j in T.grid(32, 32):
                        FB[i, j] = T.meta_var(SB[j, i] if transposed else SB[i, j])
                for t in range(4):
                    T.evaluate(
                        T.tvm_fill_fragment(FC.data, 16, 16, 16, t, T.float32(0), dtype="handle")
                    )
                for i, j, k in T.grid(2, 2, 2):
                    T.evaluate(
                        T.tvm_mma_sync(
                            FC.data, i * 2 + j, FA.data, i * 2 + k, FB.data, k * 2 + j,
                            FC.data, i * 2 + j, dtype="handle",
                        )
                    )  # fmt: skip
                with T.block("FC"):
                    T.block_attr({"auto_copy": 1})
                    for i, j in T.grid(32, 32):
                        C[i, j] = FC[i, j]

    return main


@pytest.mark.parametrize("transposed", [False, True])
def test_fragments_are_loaded_and_stored_by_warps(transposed):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (32, 32)).astype("float16") for _ in range(2))
    out = tvm.nd.empty((32, 32))
    func = fragments(transposed=transposed)
    tvm.build(func, target=RACES)(tvm.nd.array(a), tvm.nd.array(b), out)
    expected = a.astype("float32") @ (b.T if transposed else b).astype("float32")
    np.testing.assert_array_equal(out.numpy(), expected)
    text = str(tvm.lower(func))
    assert ("col_major" in text) == transposed
    # Rows of 32 halves are 64 bytes; 8 more halves move them to other banks.
    assert ", 40, " in text


def test_parts_of_fragments_are_refused():
    with pytest.raises(tvm.error.ValueError, match="block FA .* 24 rows or columns, which are no"):
        tvm.lower(fragments(rows=24))
