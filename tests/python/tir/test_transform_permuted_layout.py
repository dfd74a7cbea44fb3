"""Shared memory whose vectors are permuted."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.script import tir as T

RACES = tvm.target.emulated("cuda", check_races=True)


def transposed(columns, write=True, read=True):
    """Rows to shared memory, columns back."""

    @T.prim_func
    def main(A: T.Buffer((64, columns), "float16"), B: T.Buffer((columns, 64), "float16")):
        for bx in T.thread_binding(2, thread="blockIdx.x"):
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("tile"):
                    S = T.alloc_buffer((32, columns), "float16", scope="shared")
                    for c in range(columns // 8):
                        for v in T.vectorized(8):
                            with T.block("write"):
                                T.block_attr({"permuted_layout": write})
                                S[tx, c * 8 + v] = A[bx * 32 + tx, c * 8 + v]
                    for c in range(columns):
                        with T.block("read"):
                            T.block_attr({"permuted_layout": read})
                            B[c, bx * 32 + tx] = S[31 - tx, c]

    return main


@pytest.mark.parametrize("columns", [32, 64, 128])
def test_what_is_read_is_what_was_written(columns):
    a = np.random.default_rng(0).random((64, columns)).astype("float16")
    out = tvm.nd.empty((columns, 64), "float16")
    func = transposed(columns)
    assert "bitwise_xor" in str(tvm.lower(func)) or "^" in str(tvm.lower(func))
    tvm.build(func, target=RACES)(tvm.nd.array(a), out)
    expected = a.reshape(2, 32, columns)[:, ::-1].reshape(64, columns).T
    np.testing.assert_array_equal(out.numpy(), expected)


def test_vectors_stay_whole():
    stores = [line for line in str(tvm.lower(transposed(64))).splitlines() if "S[T.Ramp(" in line]
    assert len(stores) == 1
    assert ", 1, 8)] = A" in stores[0]


@pytest.mark.parametrize("columns", [32, 64])
def test_a_column_is_in_all_banks(columns):
    """Where elements of column 0 are, from the expression itself."""
    func = tir.transform.InjectPermutedLayout()(
        tvm.tir.transform.ConvertBlocksToOpaque()(tvm.IRModule({"main": transposed(columns)}))
    )["main"]
    store = []
    tir.stmt_functor.post_order_visit(
        func.body,
        lambda n: store.append(n) if isinstance(n, tir.BufferStore) and n.buffer.name == "S" else 0,
    )
    names = {v.name: v for v in tir.analysis.undefined_vars(store[0].indices[1])}
    analyzer = tvm.arith.Analyzer()
    banks = set()
    for row in range(8):
        values = {names["tx"]: row, names["c"]: 0, names["v"]: 0}
        place = tir.stmt_functor.substitute(store[0].indices[1], values)
        column = int(analyzer.simplify(place))
        banks.add((row * columns + column) * 2 % 128 // 16)
    assert banks == set(range(8))


def test_addresses_of_instructions_follow():
    @T.prim_func
    def main(A: T.Buffer((16, 64), "float16"), B: T.Buffer((32, 8), "float16")):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("tile"):
                S = T.alloc_buffer((16, 64), "float16", scope="shared")
                W = T.alloc_buffer((8,), "float16", scope="local")
                for c in range(32):
                    with T.block("write"):
                        T.block_attr({"permuted_layout": 1})
                        S[c // 2, c % 2 * 32 + tx] = A[c // 2, c % 2 * 32 + tx]
                with T.block("load"):
                    T.block_attr({"permuted_layout": 1})
                    T.evaluate(
                        T.ptx_ldmatrix(
                            False, 4, ".b16", W.data, 0,
                            S.access_ptr("r", offset=16), 64 * (tx % 16) + 8 * (tx // 16),
                            dtype="float16",
                        )
                    )  # fmt: skip
                for v in range(8):
                    with T.block("out"):
                        B[tx, v] = W[v]

    func = tir.transform.InjectPermutedLayout()(tvm.IRModule({"main": main}))["main"]
    calls = []
    tir.stmt_functor.post_order_visit(
        func.body,
        lambda n: (
            calls.append(n)
            if isinstance(n, tir.Call) and getattr(n.op, "name", "") == "tir.ptx_ldmatrix"
            else None
        ),
    )
    (call,) = calls
    analyzer = tvm.arith.Analyzer()
    tx = next(v for v in tir.analysis.undefined_vars(call) if v.name == "tx")
    for thread in range(32):
        # Row thread % 16, columns from 16 + 8 * (thread // 16) on: vector 2 or 3 of the row.
        row, vector = thread % 16, 2 + thread // 16
        place = int(analyzer.simplify(tir.stmt_functor.substitute(call.args[6], {tx: thread})))
        assert place == row * 64 + (vector ^ row % 8) * 8
    assert int(call.args[5].args[2]) == 0


def test_all_who_access_it_have_to_ask():
    with pytest.raises(tvm.error.ValueError, match="S is accessed in blocks with the annotation"):
        tvm.lower(transposed(64, read=False))


def test_rows_of_another_length_are_refused():
    with pytest.raises(tvm.error.ValueError, match="rows of S.* have 12 vectors"):
        tvm.lower(transposed(96))
    with pytest.raises(tvm.error.ValueError, match="rows of S, of shape .*8.* are not four"):
        tvm.lower(transposed(8))
