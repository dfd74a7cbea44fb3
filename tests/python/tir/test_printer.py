"""Text of statements and functions."""

from __future__ import annotations

from tvm import tir


def test_function_reads_as_script():
    n = tir.SizeVar("n")
    a, b = tir.decl_buffer((n, 8), name="A"), tir.decl_buffer((n, 8), name="B")
    i, j = tir.Var("i"), tir.Var("j")
    store = tir.BufferStore(b, tir.if_then_else(i < 2, a[i, j], 0.5), [i, j])
    loop = tir.For(j, 0, 8, tir.ForKind.VECTORIZED, store)
    body = tir.For(i, 1, n - 1, tir.ForKind.PARALLEL, loop, annotations={"note": 3})
    func = tir.PrimFunc([a, b], body).with_attr("global_symbol", "scale")
    assert repr(func) == (
        "@T.prim_func\n"
        "def scale(var_A: T.handle, var_B: T.handle):\n"
        "    n = T.int32(is_size_var=True)\n"
        "    A = T.match_buffer(var_A, (n, 8))\n"
        "    B = T.match_buffer(var_B, (n, 8))\n"
        '    for i in T.parallel(1, 1 + (n - 1), annotations={"note": 3}):\n'
        "        for j in T.vectorized(8):\n"
        "            B[i, j] = T.if_then_else(i < 2, A[i, j], T.float32(0.5))"
    )


def test_scope_that_ends_early_is_indented_and_the_last_is_not():
    x, y = tir.Var("x"), tir.Var("x")
    b = tir.decl_buffer((2,), "int32", name="B")
    first = tir.LetStmt(x, 3, tir.BufferStore(b, x, [0]))
    last = tir.LetStmt(y, 4, tir.BufferStore(b, y, [1]))
    assert str(tir.SeqStmt([first, last])) == (
        "with T.LetStmt(3) as x:\n    B[0] = x\nx_1: T.int32 = 4\nB[1] = x_1"
    )


def test_constants_show_their_type_when_it_is_not_the_common_one():
    assert str(tir.Var("i", "int64") + 1) == "i + T.int64(1)"
    assert str(tir.Var("x") + 0.1) == 'T.Cast("float32", x) + T.float32(0.1)'
    assert str(tir.Var("x", "float64") + 0.1) == "x + T.float64(0.1)"
    assert str(tir.max(tir.Var("x", "float32"), tir.infinity("float32"))) == (
        'T.max(x, T.float32("inf"))'
    )


def test_common_reductions_print_by_name():
    k = tir.IterVar((0, 8), "k", tir.IterVar.CommReduce)
    a = tir.decl_buffer((8,), name="A")
    assert str(tir.sum(a[k], axis=k)) == "T.sum(A[k], axis=[k])"
    assert str(tir.max(a[k], axis=k, where=k.var < 3)) == "T.max(A[k], axis=[k], where=k < 3)"
