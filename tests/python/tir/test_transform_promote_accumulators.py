"""Accumulators kept in registers."""

from __future__ import annotations

import numpy as np

import tvm
from testing_programs import PARALLEL, UNROLLED, VECTORIZED, apply, lines, loop
from testing_tir import run_prim_func
from tvm import tir
from tvm.tir import transform

Promote = transform.PromoteAccumulators


def accumulate(c, index, value):
    return tir.BufferStore(c, c[index] + value, [index])


def test_sum_starts_from_the_store_before_and_ends_in_one_store():
    a, c = tir.decl_buffer((4 * 8,), name="A"), tir.decl_buffer((4,), name="C")

    def row(i):
        reduce = loop(8, lambda k: accumulate(c, i, a[i * 8 + k]), name="k")
        return tir.SeqStmt([tir.BufferStore(c, 0.0, [i]), reduce])

    func = tir.PrimFunc([a, c], loop(4, row))
    assert lines(apply(Promote(), func)) == [
        "for i in range(4):",
        '    C_acc = T.allocate([1], "float32", "local")',
        "    C_acc[0] = T.float32(0.0)",
        "    for k in range(8):",
        "        C_acc[0] = C_acc[0] + A[i * 8 + k]",
        "    C[i] = C_acc[0]",
    ]


def test_without_a_start_the_old_value_is_loaded():
    a, c = tir.decl_buffer((8,), name="A"), tir.decl_buffer((1,), name="C")
    func = tir.PrimFunc([a, c], loop(8, lambda k: accumulate(c, 0, a[k])))
    assert lines(apply(Promote(), func))[1] == "C_acc[0] = C[0]"


def test_promotion_is_around_the_outermost_loop_that_keeps_the_index():
    a, c = tir.decl_buffer((8,), name="A"), tir.decl_buffer((4,), name="C")

    def outer(k0):
        def inner(i):
            return loop(4, lambda k1: accumulate(c, i, a[k0 * 4 + k1]), name="k1")

        return loop(4, inner, name="i")

    text = lines(apply(Promote(), tir.PrimFunc([a, c], loop(2, outer, name="k0"))))
    assert text[2] == '        C_acc = T.allocate([1], "float32", "local")'
    assert text[4] == "        for k1 in range(4):"


def test_overlapping_indices_are_left_in_memory():
    c = tir.decl_buffer((16,), name="C")

    def body(k):
        one = tir.BufferStore(c, c[tir.Ramp(0, 1, 8)] + 1.0, [tir.Ramp(0, 1, 8)])
        two = tir.BufferStore(c, c[tir.Ramp(4, 1, 8)] + 1.0, [tir.Ramp(4, 1, 8)])
        return tir.SeqStmt([one, two])

    func = tir.PrimFunc([c], loop(4, body))
    assert apply(Promote(), func).body.same_as(func.body)


def test_index_that_the_loop_changes_is_left_in_memory():
    c = tir.decl_buffer((16,), name="C")
    func = tir.PrimFunc([c], loop(4, lambda k: accumulate(c, k, 1.0)))
    assert apply(Promote(), func).body.same_as(func.body)


def test_guarded_store_is_left_in_memory():
    c = tir.decl_buffer((16,), name="C")
    n = tir.Var("n")
    body = loop(4, lambda k: tir.IfThenElse(k < n, accumulate(c, n, 1.0)))
    func = tir.PrimFunc([c, n], body)
    assert apply(Promote(), func).body.same_as(func.body)


def test_arguments_that_may_overlap_are_left_in_memory():
    a, c = tir.decl_buffer((8,), name="A"), tir.decl_buffer((1,), name="C")
    func = tir.PrimFunc([a, c], loop(8, lambda k: accumulate(c, 0, a[k])))
    func = func.with_attr("tir.noalias", False)
    assert apply(Promote(), func).body.same_as(func.body)


def test_two_tiles_with_equal_indices_get_registers_of_their_own():
    a, c, d = (tir.decl_buffer((8,), name=x) for x in "ACD")

    def body(k):
        return tir.SeqStmt([accumulate(c, 0, a[k]), accumulate(d, 0, a[k] * 2.0)])

    func = apply(Promote(), tir.PrimFunc([a, c, d], loop(8, body)))
    assert {"C_acc", "D_acc"} <= {line.split(" ")[0] for line in lines(func)}
    values = np.arange(8, dtype="float32")
    outs = [np.zeros(8, "float32") for _ in range(2)]
    run_prim_func(func, values, *outs)
    assert [out[0] for out in outs] == [28, 56]


def register_tile_matmul(n, m, l, tile):
    """C = A B with a tile of rows unrolled and columns vectorised inside of two k loops."""
    a, b, c = (
        tir.decl_buffer(shape, name=x) for shape, x in (((n, l), "A"), ((l, m), "B"), ((n, m), "C"))
    )
    rows, columns = tile

    def over_tile(io, jo, make):
        def row(ii):
            return loop(
                columns, lambda ji: make(io * rows + ii, jo * columns + ji), VECTORIZED, "ji"
            )

        return loop(rows, row, UNROLLED, "ii")

    def block(io, jo):
        zero = over_tile(io, jo, lambda i, j: tir.BufferStore(c, 0.0, [i, j]))

        def update(k):
            return over_tile(
                io, jo, lambda i, j: tir.BufferStore(c, c[i, j] + a[i, k] * b[k, j], [i, j])
            )

        reduce = loop(
            l // 2, lambda ko: loop(2, lambda ki: update(ko * 2 + ki), name="ki"), name="ko"
        )
        return tir.SeqStmt([zero, reduce])

    nest = loop(
        n // rows,
        lambda io: loop(m // columns, lambda jo: block(io, jo), name="jo"),
        PARALLEL,
        "io",
    )
    return tir.PrimFunc([a, b, c], nest)


def test_register_tile_of_a_matmul_ends_in_vector_registers():
    func = register_tile_matmul(8, 32, 6, (4, 16))
    for pass_ in (
        transform.StorageFlatten(),
        transform.VectorizeLoop(),
        transform.UnrollLoop(),
        transform.Simplify(),
        Promote(),
    ):
        func = apply(pass_, func)
    text = str(func)
    assert 'C_acc = T.allocate([8], "float32x8", "local")' in text
    inner = text[text.index("for ki") :].split("\n")[1:9]
    assert all(line.strip().startswith("C_acc[") for line in inner)
    rng = np.random.default_rng(0)
    a, b = rng.random((8, 6), "float32"), rng.random((6, 32), "float32")
    c = np.full((8, 32), np.nan, "float32")
    run_prim_func(func, a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_limit_of_registers_is_respected():
    func = register_tile_matmul(8, 32, 6, (4, 16))
    for pass_ in (transform.StorageFlatten(), transform.VectorizeLoop(), transform.UnrollLoop()):
        func = apply(pass_, func)
    assert "acc" not in str(apply(Promote(max_elements=7), func))
    assert "acc" in str(apply(Promote(max_elements=8), func))


def test_launches_inside_of_the_loop_keep_their_sums_in_memory():
    a, c = tir.decl_buffer((8,), name="A"), tir.decl_buffer((4,), name="C")
    thread = tir.IterVar((0, 4), "tx", tir.IterVar.ThreadIndex, "threadIdx.x")

    def launch(k):
        return tir.AttrStmt(thread, "thread_extent", 4, accumulate(c, thread.var, a[k]))

    func = tir.PrimFunc([a, c], loop(8, launch, name="k"))
    assert "acc" not in str(apply(Promote(), func))


def test_a_count_in_a_register_is_the_place_of_a_store():
    data, copied = tir.decl_buffer((8,), name="D"), tir.decl_buffer((8,), name="K")
    count = tir.decl_buffer((1,), "int32", name="N")

    def copy(j):
        stored = tir.BufferStore(copied, data[j], [count[0]])
        return tir.SeqStmt([stored, tir.BufferStore(count, count[0] + 1, [0])])

    body = tir.SeqStmt([tir.BufferStore(count, 0, [0]), loop(8, copy, name="j")])
    func = apply(Promote(), tir.PrimFunc([data, copied, count], body))
    assert "K[N_acc[0]] = D[j]" in str(func)
    values = np.arange(8, dtype="float32") - 3
    result, number = np.zeros(8, "float32"), np.zeros(1, "int32")
    run_prim_func(func, values, result, number)
    np.testing.assert_array_equal(result, values)
    assert number[0] == 8


def test_pass_is_named_for_dumps():
    assert Promote().info.name == "tir.PromoteAccumulators"
    assert isinstance(Promote(), tvm.transform.Pass)
