"""Texts of single expressions, statements, buffers and types."""

import pytest

import tvm
from tvm import ir, tir

I, J = tir.Var("i", "int32"), tir.Var("j", "int32")
A = tir.decl_buffer((128, 64), "float16", name="A")
B = tir.decl_buffer((8, 8), "float32", name="B")
OPEN = tir.decl_buffer((J, 4), "float32", name="C")
NOTHING = tir.Evaluate(0)


def block(name, reads=()):
    axes = [tir.IterVar((0, 8), "vi", tir.IterVar.DataPar)]
    return tir.Block(axes, list(reads), [], name, NOTHING)


EXPRESSIONS = [
    (tir.const(float("-inf"), "float32"), 'T.float32("-inf")'),
    (I * J, "i = T.int32()\nj = T.int32()\ni * j"),
    (I // 4 % 3, "i = T.int32()\ni // 4 % 3"),
    (
        tir.call_intrin("float32", "tir.atan", tir.const(1.0, "float32")),
        "T.atan(T.float32(1.0))",
    ),
    (
        tir.Select(tir.const(True), I, J),
        "i = T.int32()\nj = T.int32()\nT.Select(T.bool(True), i, j)",
    ),
    (tir.Let(I, 1, I + 1), "i = T.int32()\nT.Let(i + 1, where={i: 1})"),
    (
        tir.BufferLoad(A, [I, J]),
        'A = T.Buffer((128, 64), "float16")\ni = T.int32()\nj = T.int32()\nA[i, j]',
    ),
    (A, 'A = T.Buffer((128, 64), "float16")\nA'),
    (OPEN, "j = T.int32()\nC = T.Buffer((j, 4))\nC"),
    (
        tir.BufferRegion(A, [ir.Range.from_min_extent(64, 64), ir.Range(0, 64)]),
        'A = T.Buffer((128, 64), "float16")\nA[64:128, 0:64]',
    ),
    (ir.Range(0, 10), "T.Range(0, 10)"),
    (
        tir.IterVar((0, 8), "x", tir.IterVar.CommReduce),
        'x = T.int32()\nT.iter_var(x, T.Range(0, 8), "CommReduce", "")',
    ),
    (tir.CommReducer([I], [J], [I + J], [0]), "T.comm_reducer(lambda i, j: [i + j], [0])"),
    (ir.PrimType("float32"), "T.float32"),
    (ir.PointerType(ir.PrimType("int32"), "shared"), 'T.handle("int32", "shared")'),
    (ir.TupleType([]), "None"),
    (ir.TupleType([ir.PrimType("int8"), ir.PrimType("bool")]), "T.Tuple(T.int8, T.bool)"),
]


@pytest.mark.parametrize("part, expected", EXPRESSIONS, ids=str)
def test_expressions_are_declared_on_request(part, expected):
    assert part.script(verbose_expr=True) == expected
    assert part.script() == expected.splitlines()[-1] or part.same_as(A) or part.same_as(OPEN)


STATEMENTS = [
    (
        tir.BufferStore(B, 1.0, [I, 0]),
        "B = T.Buffer((8, 8))\ni = T.int32()\nB[i, 0] = T.float32(1.0)",
    ),
    (tir.For(I, 0, J, 0, tir.Evaluate(I)), "j = T.int32()\nfor i in range(j):\n    T.evaluate(i)"),
    (tir.LetStmt(I, 10, tir.Evaluate(I)), "with T.LetStmt(10) as i:\n    T.evaluate(i)"),
    (
        tir.AttrStmt("pragma", "unroll", 1, NOTHING),
        'with T.attr("pragma", "unroll", 1):\n    T.evaluate(0)',
    ),
    (
        tir.AssertStmt(tir.const(True), tir.StringImm("why"), NOTHING),
        'with T.Assert(T.bool(True), "why"):\n    T.evaluate(0)',
    ),
    (
        tir.Allocate(
            tir.Var("p", ir.PointerType(ir.PrimType("float32"))), "float32", [128], True, NOTHING
        ),
        'with T.allocate([128], "float32", "global") as p:\n    T.evaluate(0)',
    ),
    (
        tir.Prefetch(A, [ir.Range(0, 1), ir.Range(0, 64)]),
        'A = T.Buffer((128, 64), "float16")\nT.prefetch(A, [T.Range(0, 1), T.Range(0, 64)])',
    ),
    (
        block("copy"),
        'with T.block("copy", no_realize=True):\n    vi = T.axis.spatial(8)\n'
        "    T.reads()\n    T.writes()\n    T.evaluate(0)",
    ),
    (
        tir.BlockRealize([I], True, block("copy")),
        'i = T.int32()\nwith T.block("copy"):\n    vi = T.axis.spatial(8, i)\n'
        "    T.reads()\n    T.writes()\n    T.evaluate(0)",
    ),
    (
        tir.MatchBufferRegion(
            tir.decl_buffer((8, 8), "float16", name="V"),
            tir.BufferRegion(A, [ir.Range.from_min_extent(0, 8), ir.Range.from_min_extent(I, 8)]),
        ),
        'A = T.Buffer((128, 64), "float16")\ni = T.int32()\n'
        'V = T.match_buffer(A[0:8, i:i + 8], (8, 8), "float16")',
    ),
]


@pytest.mark.parametrize("part, expected", STATEMENTS, ids=str)
def test_statements_declare_what_they_name(part, expected):
    assert part.script() == expected
    assert part.script(verbose_expr=True) == expected


def test_functions_do_not_declare_the_parts_that_they_hold():
    @tvm.script.tir.prim_func(private=True)
    def func(X: tvm.script.tir.Buffer((4,), "float32")):
        for i in range(4):
            X[i] = X[i] * 2.0

    text = func.script(verbose_expr=True)
    assert text == func.script()
    assert "X[i] = X[i] * T.float32(2.0)" in text


def test_blocks_without_values_are_read_back():
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import tir as T

    with IRBuilder() as builder, T.block("copy", no_realize=True):
        T.axis.spatial(8)
        T.evaluate(0)
    made = builder.get()
    assert isinstance(made, tir.Block) and int(made.iter_vars[0].dom.extent) == 8
    wrong = pytest.raises(ValueError, match="T.axis.spatial needs a value")
    with wrong, IRBuilder(), T.block("copy"):
        T.axis.spatial(8)


def test_packages_may_stand_before_the_name_of_a_dialect():
    @tvm.script.tir.prim_func
    def func(X: tvm.script.tir.Buffer((4,), "int32")):
        X[0] = 1

    assert isinstance(func, tir.PrimFunc) and func.attrs["global_symbol"] == "func"
