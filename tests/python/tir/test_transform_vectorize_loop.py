"""Vectorised loops."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import SERIAL, VECTORIZED, apply, lines, loop
from testing_tir import run_prim_func
from tvm import tir
from tvm.script import tir as T

VectorizeLoop = tir.transform.VectorizeLoop


def copy_plus_one(extent, dtype="float32"):
    a, b = tir.decl_buffer((extent,), dtype, name="A"), tir.decl_buffer((extent,), dtype, name="B")
    body = loop(extent, lambda i: tir.BufferStore(b, a[i] + 1, [i]), VECTORIZED)
    return tir.PrimFunc([a, b], body)


def test_loop_of_machine_width_becomes_one_vector_statement():
    assert lines(apply(VectorizeLoop(), copy_plus_one(8))) == [
        "B[T.Ramp(0, 1, 8)] = A[T.Ramp(0, 1, 8)] + T.Broadcast(T.float32(1.0), 8)"
    ]


def test_rest_takes_power_of_two_pieces():
    assert lines(apply(VectorizeLoop(), copy_plus_one(15))) == [
        "B[T.Ramp(0, 1, 8)] = A[T.Ramp(0, 1, 8)] + T.Broadcast(T.float32(1.0), 8)",
        "B[T.Ramp(8, 1, 4)] = A[T.Ramp(8, 1, 4)] + T.Broadcast(T.float32(1.0), 4)",
        "B[T.Ramp(12, 1, 2)] = A[T.Ramp(12, 1, 2)] + T.Broadcast(T.float32(1.0), 2)",
        "B[14] = A[14] + T.float32(1.0)",
    ]


def test_many_pieces_are_a_loop():
    assert lines(apply(VectorizeLoop(), copy_plus_one(64))) == [
        "for i_piece in range(8):",
        "    B[T.Ramp(i_piece * 8, 1, 8)] = A[T.Ramp(i_piece * 8, 1, 8)] + "
        "T.Broadcast(T.float32(1.0), 8)",
    ]


def test_lanes_follow_the_widest_element_and_the_register():
    assert "float64x4" not in str(apply(VectorizeLoop(), copy_plus_one(8, "float64")))
    assert "T.Ramp(4, 1, 4)" in str(apply(VectorizeLoop(), copy_plus_one(8, "float64")))
    assert "T.Ramp(0, 1, 16)" in str(apply(VectorizeLoop(vector_bits=512), copy_plus_one(16)))
    assert "T.Ramp(0, 1, 32)" in str(apply(VectorizeLoop(), copy_plus_one(32, "int8")))


def exp_of(extent, dtype="float32"):
    a, b = tir.decl_buffer((extent,), dtype, name="A"), tir.decl_buffer((extent,), dtype, name="B")
    body = loop(extent, lambda i: tir.BufferStore(b, tir.exp(a[i]), [i]), VECTORIZED)
    return tir.PrimFunc([a, b], body)


def test_elementary_functions_take_several_vectors_at_once():
    two_at_once = VectorizeLoop(interleaved=2)
    assert lines(apply(two_at_once, exp_of(24))) == [
        "B[T.Ramp(0, 1, 16)] = T.exp(A[T.Ramp(0, 1, 16)])",
        "B[T.Ramp(16, 1, 8)] = T.exp(A[T.Ramp(16, 1, 8)])",
    ]
    # In float32 a vector of a half type is two already.
    assert "T.Ramp(0, 1, 16)" in str(apply(two_at_once, exp_of(16, "float16")))
    assert "T.Ramp(0, 1, 32)" not in str(apply(two_at_once, exp_of(32, "float16")))
    assert "T.Ramp(8, 1, 8)" in str(apply(two_at_once, copy_plus_one(16)))
    assert "T.Ramp(8, 1, 8)" in str(apply(VectorizeLoop(), exp_of(16)))


def test_fewer_than_one_vector_at_once_is_refused():
    with pytest.raises(ValueError, match="interleaved must be at least 1, got 0"):
        VectorizeLoop(interleaved=0)


def test_disabled_vectorisation_leaves_serial_loops():
    after = apply(VectorizeLoop(enable_vectorize=False), copy_plus_one(8))
    assert after.body.kind == SERIAL


def test_strided_and_invariant_operands():
    a, s, b = (tir.decl_buffer((n,), name=x) for n, x in ((32, "A"), (1, "S"), (8, "B")))
    body = loop(8, lambda i: tir.BufferStore(b, a[i * 4 + 2] * s[0], [i]), VECTORIZED)
    assert lines(apply(VectorizeLoop(), tir.PrimFunc([a, s, b], body))) == [
        "B[T.Ramp(0, 1, 8)] = A[T.Ramp(2, 4, 8)] * T.Broadcast(S[0], 8)"
    ]


def test_quotient_that_is_the_same_in_all_lanes_stays_scalar():
    a, b = tir.decl_buffer((4,), name="A"), tir.decl_buffer((64,), name="B")

    def body(i):
        return tir.BufferStore(b, a[i // 16] + tir.Cast("float32", i % 16), [i])

    after = str(apply(VectorizeLoop(), tir.PrimFunc([a, b], loop(64, body, VECTORIZED))))
    assert "T.Broadcast(A[i_piece * 8 // 16], 8)" in after
    assert "T.Ramp(i_piece * 8 % 16, 1, 8)" in after


def test_reduction_over_the_lanes_stays_serial():
    a, b = tir.decl_buffer((8,), name="A"), tir.decl_buffer((1,), name="B")
    body = loop(8, lambda i: tir.BufferStore(b, b[0] + a[i], [0]), VECTORIZED)
    assert lines(apply(VectorizeLoop(), tir.PrimFunc([a, b], body))) == [
        "for i_lane in range(8):",
        "    B[0] = B[0] + A[i_lane]",
    ]


def test_select_is_vectorised_and_a_branch_per_lane_is_not():
    a, b = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")

    def program(choose):
        body = loop(8, lambda i: tir.BufferStore(b, choose(i < 5, a[i], 0.0), [i]), VECTORIZED)
        return str(apply(VectorizeLoop(), tir.PrimFunc([a, b], body)))

    assert "T.Select(T.Ramp(0, 1, 8) < T.Broadcast(5, 8)" in program(tir.Select)
    assert "for i_lane in range(8)" in program(tir.if_then_else)


def test_guard_the_lanes_agree_on_becomes_scalar():
    b = tir.decl_buffer((40,), name="B")
    o = tir.Var("o")

    def body(i):
        index = o * 8 + i
        return tir.IfThenElse(tir.likely(index < 40), tir.BufferStore(b, 1.0, [index]))

    outer = tir.For(o, 0, 6, SERIAL, loop(8, body, VECTORIZED))
    func = apply(VectorizeLoop(), tir.PrimFunc([b], outer))
    assert lines(apply(tir.transform.Simplify(), func)) == [
        "for o in range(6):",
        "    if T.likely(o < 5):",
        "        B[T.Ramp(o * 8, 1, 8)] = T.Broadcast(T.float32(1.0), 8)",
    ]


@pytest.mark.parametrize("extent", [3, 8, 13, 40])
@pytest.mark.parametrize("limit", [1, 7, 12, 40])
def test_guarded_loop_computes_the_same(extent, limit):
    a, b = tir.decl_buffer((40,), name="A"), tir.decl_buffer((40,), name="B")

    def body(i):
        return tir.IfThenElse(
            tir.likely(i < limit),
            tir.BufferStore(b, a[i] * 2.0, [i]),
            tir.BufferStore(b, a[39], [i]),
        )

    func = apply(VectorizeLoop(), tir.PrimFunc([a, b], loop(extent, body, VECTORIZED)))
    values = np.arange(40, dtype="float32")
    out = np.zeros(40, dtype="float32")
    run_prim_func(func, values, out)
    index = np.arange(40)
    expected = np.where(index < limit, values * 2, values[39])
    np.testing.assert_array_equal(out, np.where(index < extent, expected, 0))


def test_rows_that_fill_no_vectors_end_in_narrower_ones():
    a, b = tir.decl_buffer((21,), name="A"), tir.decl_buffer((21,), name="B")
    o = tir.Var("o")

    def body(i):
        index = o * 8 + i
        return tir.IfThenElse(tir.likely(index < 21), tir.BufferStore(b, a[index], [index]))

    func = tir.PrimFunc([a, b], tir.For(o, 0, 3, SERIAL, loop(8, body, VECTORIZED)))
    assert lines(apply(tir.transform.Simplify(), apply(VectorizeLoop(), func))) == [
        "for o in range(3):",
        "    if T.likely(o < 2):",
        "        B[T.Ramp(o * 8, 1, 8)] = A[T.Ramp(o * 8, 1, 8)]",
        "    else:",
        "        B[T.Ramp(16, 1, 4)] = A[T.Ramp(16, 1, 4)]",
        "        B[20] = A[20]",
    ]


COMPARISONS = {
    "below": (lambda i, n: i < n, lambda i, n: i < n),
    "above": (lambda i, n: n > i, lambda i, n: i < n),
    "up to": (lambda i, n: i <= n, lambda i, n: i <= n),
    "from": (lambda i, n: n >= i, lambda i, n: i <= n),
    "both": (lambda i, n: tir.And(i < n, i + 3 <= 2 * n), lambda i, n: (i < n) & (i + 3 <= 2 * n)),
    "the last": (lambda i, n: i >= n, lambda i, n: i >= n),
    "every other": (lambda i, n: 2 * i < n, lambda i, n: 2 * i < n),
}


@pytest.mark.parametrize("kind", COMPARISONS)
@pytest.mark.parametrize("lanes", [8, 6])
def test_guards_of_a_number_known_at_run_time(kind, lanes):
    guard, holds = COMPARISONS[kind]
    a, b = tir.decl_buffer((40,), name="A"), tir.decl_buffer((40,), name="B")
    number = tir.decl_buffer((1,), "int32", name="number")
    o = tir.Var("o")

    def body(i):
        index = o * lanes + i
        store = tir.BufferStore(b, b[index] + a[index], [index])
        return tir.IfThenElse(tir.likely(guard(index, n)), store)

    n = tir.Var("n")
    outer = tir.For(o, 0, 40 // lanes, SERIAL, loop(lanes, body, VECTORIZED))
    func = tir.PrimFunc([number, a, b], tir.LetStmt(n, number[0], outer))
    func = apply(VectorizeLoop(), func)
    values, index = np.arange(1, 41, dtype="float32"), np.arange(40)
    for limit in (-9, -1, 0, 1, 5, 8, 15, 23, 38, 40, 90):
        out = np.ones(40, dtype="float32")
        run_prim_func(func, np.array([limit], "int32"), values, out)
        taken = holds(index, limit) & (index < 40 // lanes * lanes)
        np.testing.assert_array_equal(out, np.where(taken, values + 1, 1))


def let_of(value, use):
    a, b = (tir.decl_buffer((8,), name=name) for name in "AB")

    def body(i):
        held = value(a, i)
        name = tir.Var("held", held.dtype)
        return tir.LetStmt(name, held, use(b, i, name))

    return tir.PrimFunc([a, b], loop(8, body, VECTORIZED))


def test_a_value_of_each_lane_is_a_vector():
    func = let_of(lambda a, i: a[i] + 2.0, lambda b, i, v: tir.BufferStore(b, v * v, [i]))
    assert lines(apply(VectorizeLoop(), func)) == [
        "held: T.float32x8 = A[T.Ramp(0, 1, 8)] + T.Broadcast(T.float32(2.0), 8)",
        "B[T.Ramp(0, 1, 8)] = held * held",
    ]


def test_an_index_of_each_lane_stays_a_ramp():
    func = let_of(lambda a, i: 7 - i, lambda b, i, k: tir.BufferStore(b, k * 1.0, [k]))
    text = str(apply(VectorizeLoop(), func))
    assert "B[T.Ramp(7, -1, 8)] =" in text and "held" not in text


def test_a_value_that_a_loop_over_lanes_uses_is_one_of_a_lane():
    def use(b, i, v):
        call = tir.call_extern("float32", "f", v)
        return tir.SeqStmt([tir.BufferStore(b, v, [i]), tir.BufferStore(b, call, [i])])

    text = str(apply(VectorizeLoop(), let_of(lambda a, i: a[i] + 2.0, use)))
    assert "for i_lane in range(8)" in text and "held: T.float32 =" in text


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_vectors_that_are_named_compute_the_same(target):
    @T.prim_func
    def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
        for i in range(4):
            for j in T.vectorized(16):
                v = A[i, j] + T.float32(2)
                w = v * v
                B[i, j] = w - v

    x = np.random.default_rng(0).random((4, 16)).astype("float32")
    out = tvm.nd.array(np.zeros_like(x))
    tvm.build(main, target=target)(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), (x + 2) ** 2 - (x + 2), rtol=1e-6)


def test_trip_count_known_at_run_time():
    n = tir.SizeVar("n")
    a, b = tir.decl_buffer((n,), name="A"), tir.decl_buffer((n,), name="B")
    body = loop(n, lambda i: tir.BufferStore(b, a[i] + 1.0, [i]), VECTORIZED)
    func = apply(VectorizeLoop(), tir.PrimFunc([a, b], body))
    for size in (1, 8, 21):
        values, out = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        run_prim_func(func, values, out)
        np.testing.assert_allclose(out, values + 1)


def test_vector_register_too_narrow_is_refused():
    with pytest.raises(ValueError, match="vector_bits must be at least 8, got 4"):
        VectorizeLoop(vector_bits=4)
