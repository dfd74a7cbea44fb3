"""The constructs of tensor programs, written by hand and as they print."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tvm
from testing_script import check_round_trip
from tvm import te, tir
from tvm.script import ir as I
from tvm.script import tir as T

N = 16
SHAPE = (N, 4)


@T.prim_func
def matmul_relu(x: T.handle, w: T.Buffer((8, N), "float32"), out: T.handle):
    T.func_attr({"tir.noalias": True, "layout_free_buffers": [1], "checked": T.bool(True)})
    n = T.int64()
    X = T.match_buffer(x, (n, T.int64(8)))
    Y = T.match_buffer(out, (n, T.int64(N)), "float32")
    # with T.block("root"):
    product = T.alloc_buffer((n, T.int64(N)), "float32")
    for i, j, k in T.grid(n, T.int64(N), T.int64(8)):
        with T.block("product"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(X[v_i, v_k], w[v_k, v_j])
            T.writes(product[v_i, v_j])
            with T.init():
                product[v_i, v_j] = T.float32(0)
            product[v_i, v_j] = product[v_i, v_j] + X[v_i, v_k] * w[v_k, v_j]
    for i, j in T.grid(n, T.int64(N)):
        with T.block("relu"):
            v_i = T.axis.spatial(n, i)
            v_j = T.axis.spatial(T.int64(N), j)
            Y[v_i, v_j] = T.max(product[v_i, v_j], T.float32(0.0))


def test_blocks_written_by_hand_compute():
    check_round_trip(matmul_relu)
    x = np.random.default_rng(0).standard_normal((5, 8)).astype("float32")
    w = np.random.default_rng(1).standard_normal((8, N)).astype("float32")
    out = tvm.nd.empty((5, N))
    tvm.build(matmul_relu, target="llvm")(tvm.nd.array(x), tvm.nd.array(w), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(x @ w, 0), rtol=1e-5)


def test_regions_that_are_not_written_are_worked_out():
    text = matmul_relu.script()
    assert "T.reads(product[v_i_1, v_j_1])" in text
    assert "T.writes(Y[v_i_1, v_j_1])" in text
    assert '# with T.block("root"):' in text


def test_text_begins_with_the_names_of_the_dialects():
    lines = matmul_relu.script().splitlines()
    assert lines[:2] == ["# from tvm.script import tir as T", ""]
    assert 'T.func_attr({"tir.noalias": True' in "\n".join(lines)
    assert "n = T.int64()" in matmul_relu.script()
    assert "X = T.match_buffer(x, (n, T.int64(8)))" in matmul_relu.script()


def test_axes_may_be_letters_and_the_result_none():
    @T.prim_func
    def sums(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")) -> None:
        for i, k in T.grid(4, 8):
            with T.block("B"):
                v_i = T.axis.S(4, i)
                v_k = T.axis.R(8, k)
                with T.init():
                    B[v_i] = T.float32(0)
                B[v_i] = B[v_i] + A[v_i, v_k]

    check_round_trip(sums)
    assert 'v_i, v_k = T.axis.remap("SR", [i, k])' in sums.script()


def test_a_private_function_has_no_symbol():
    @T.prim_func(private=True)
    def copy(A: T.Buffer(SHAPE, "int8"), B: T.Buffer(SHAPE, "int8")):
        for i, j in T.grid(SHAPE[0], SHAPE[1] // 1):
            B[i, j] = A[i, j]

    assert "global_symbol" not in copy.attrs
    assert "@T.prim_func(private=True)" in str(copy)
    check_round_trip(copy)


def test_a_class_becomes_a_module():
    @tvm.script.ir_module
    class Two:
        I.module_attrs({"version": 3})

        @T.prim_func
        def first(A: T.Buffer((8,), "float32")):
            for i in T.parallel(8):
                A[i] += 1.0

        @T.prim_func(private=True)
        def second(A: T.Buffer((8,), "float32"), n: T.int32):
            if n < 8:
                A[n] = 0.0
            else:
                T.evaluate(cls.first(A.data, dtype="int32"))  # noqa: F821

    assert isinstance(Two, tvm.IRModule)
    assert [v.name_hint for v in Two.get_global_vars()] == ["first", "second"]
    assert Two["first"].attrs["global_symbol"] == "first"
    assert Two.get_attr("version") == 3
    check_round_trip(Two)


def test_extra_variables_are_constants_of_a_text():
    text = "@T.prim_func\ndef f(A: T.Buffer((n,), d)):\n    A[n - 1] = T.cast(1, d)"
    func = tvm.script.from_source(text, extra_vars={"n": 4, "d": "int16"})
    assert str(func.buffer_map[func.params[0]].dtype) == "int16"
    assert str(func.body) == "A[3] = T.int16(1)"


def test_a_cast_that_changes_nothing_is_left_out():
    text = "@T.prim_func\ndef f(A: T.Buffer((4,), d)):\n    A[0] = T.cast(A[1] + T.cast(2, d), d)"
    for dtype in ("float32", "int32"):
        func = tvm.script.from_source(text, extra_vars={"d": dtype})
        assert tvm.ir.structural_equal(func.body.value, func.body.value.a + tir.const(2, dtype))
        written = tvm.script.from_source(
            text.replace("T.cast(A[1]", "T.Cast(d, A[1]").replace("2, d), d)", "2, d))"),
            extra_vars={"d": dtype},
        )
        assert isinstance(written.body.value, tir.Cast)


def program(body):
    """A function whose parameters a statement uses: A, a buffer of 64 floats, n, and p."""
    a = tir.decl_buffer((64,), name="A")
    n, p = tir.Var("n"), tir.Var("p", "handle")
    return tir.PrimFunc([a, n, p], body(a, n, p)).with_attr("global_symbol", "main")


def evaluated(*values):
    return tir.SeqStmt([tir.Evaluate(value) for value in [*values, *values[:1]]])


def constants():
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        for value in (0, 1, 100, -1 if dtype[0] == "i" else 7):
            yield tir.const(value, dtype)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for value in (0.0, -0.0, 0.1, -2.5, 1e-30, math.inf, -math.inf, math.nan):
            yield tir.const(value, dtype)
    yield from (tir.const(True), tir.const(False), tir.const(2**63 - 1, "int64"))
    yield tir.StringImm('quote " backslash \\ line\nfeed \t and \x01 é')


@pytest.mark.parametrize("constant", list(constants()), ids=str)
def test_constants_of_all_types_come_back(constant):
    check_round_trip(program(lambda a, n, p: evaluated(constant, tir.Cast("int32", n))))


def expressions(a, n, p):
    x, y = tir.Var("x", "float32"), tir.Var("i.j", "int64")
    ramp = tir.Ramp(n, 2, 4)
    yield from (
        tir.Add(tir.Sub(n, tir.Add(n, 1)), n),
        tir.Sub(n, tir.Sub(n, n)),
        -1 * n,
        tir.Mul(n, -1),
    )
    yield from (tir.Mul(tir.Add(n, 1), 2), tir.FloorDiv(n, 3), tir.FloorMod(n, 3), tir.Mod(n, 3))
    yield from (tir.Div(n, 3), tir.Div(a[0], a[1]), tir.Min(n, 3), tir.Max(n, 3))
    yield from (tir.EQ(tir.LT(n, 1), tir.LT(2, n)), tir.LT(tir.Add(1, 2), n))
    yield from (tir.And(n < 1, tir.And(n < 2, n < 3)), tir.And(tir.And(n < 1, n < 2), n < 3))
    yield from (
        tir.Or(tir.And(n < 1, n > 2), tir.Not(tir.Not(n == 3))),
        tir.Not(tir.Or(n < 1, n > 4)),
    )
    yield tir.And(tir.Not(n == 3), tir.Or(n < 1, n > 4))
    yield from (tir.Select(n < 2, a[n], 0.5), tir.if_then_else(n < 2, a[n], 0.5))
    yield from (
        tir.Cast("float64", a[0]),
        tir.Broadcast(a[0], 4),
        a[ramp],
        tir.Cast("int8x4", ramp),
    )
    yield tir.Shuffle([ramp, ramp], [0, 5])
    yield from (tir.Let(x, a[0], x + x), tir.Let(y, tir.const(3, "int64"), y + y))
    yield from (
        tir.exp(a[0]),
        tir.power(a[0], a[1]),
        tir.isnan(a[0]),
        tir.popcount(n),
        n << 2,
        ~n,
        n ^ 3,
    )
    yield from (tir.call_extern("float32x4", "f", a.data, "text", n), tir.call_packed("g", n, p))
    yield from (
        tir.Call("float32", "tir.reinterpret", [n]),
        tir.Call("int64", "tir.tvm_struct_get", [p, 0, 1]),
    )
    yield from (
        tir.Call("handle", "tir.address_of", [a[n]]),
        tir.Call("bool", "tir.isnullptr", [p]),
    )
    yield from (tir.Call("float16", "tir.exp", [a[0]]), a.access_ptr("rw"), tir.likely(n < 1))
    yield tir.Call("float32", tvm.ir.GlobalVar("other"), [n])
    yield tir.Call("int32", tvm.ir.GlobalVar("not a name"), [n])
    yield tir.Call("uint64", "tir.large_uint_imm", [tir.const(1, "uint32"), tir.const(3, "uint32")])


@pytest.mark.parametrize("index", range(51))
def test_expressions_come_back_as_the_same_tree(index):
    found = []

    def body(a, n, p):
        found.extend(expressions(a, n, p))
        return evaluated(found[min(index, len(found) - 1)])

    check_round_trip(program(body))
    assert len(found) <= 51


def test_loops_of_all_kinds_come_back():
    def body(a, n, p):
        result = tir.BufferStore(a, 1.0, [n])
        for kind in (
            tir.ForKind.SERIAL,
            tir.ForKind.PARALLEL,
            tir.ForKind.VECTORIZED,
            tir.ForKind.UNROLLED,
        ):
            for low, extent in ((0, 4), (2, 4), (n, 4), (n + 3, n)):
                result = tir.For(
                    tir.Var("i"), low, extent, kind, result, annotations={"a": n, "b": 1}
                )
        tx = tir.IterVar(None, "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
        i = tir.Var("i", "int64")
        loop = tir.For(i, 0, tir.const(4, "int64"), tir.ForKind.SERIAL, tir.Evaluate(i))
        result = tir.SeqStmt([tir.While(a[0] < 4.0, result), loop])
        return tir.For(tir.Var("t"), 0, 32, tir.ForKind.THREAD_BINDING, result, tx)

    func = program(body)
    assert all(f"T.{name}(" in str(func) for name in ("parallel", "vectorized", "unroll"))
    assert 'T.thread_binding(32, thread="threadIdx.x")' in str(func)
    check_round_trip(func)


def test_scopes_in_the_middle_and_at_the_end_come_back():
    def body(a, n, p):
        store = tir.BufferStore(a, 1.0, [0])
        x, q = tir.Var("x"), tir.Var("q", tvm.ir.PointerType(tvm.ir.PrimType("int8"), "shared"))
        inner = [
            lambda s: tir.LetStmt(x, n + 1, s),
            lambda s: tir.AttrStmt(a.data, "key", n, s),
            lambda s: tir.AttrStmt(tir.StringImm("default"), "device_id", 0, s),
            lambda s: tir.AttrStmt(None, "pragma", tir.StringImm("on"), s),
            lambda s: tir.AssertStmt(n < 3, "too large", s),
            lambda s: tir.Allocate(q, "int8", [n, 4], n < 2, s, {"note": "x"}),
            lambda s: tir.IfThenElse(n < 1, s, tir.IfThenElse(n < 2, s, None)),
            lambda s: tir.IfThenElse(n < 1, tir.IfThenElse(n < 3, s, None), s),
        ]
        parts = [make(store) for make in inner]
        return tir.SeqStmt([*parts, store, inner[4](inner[1](tir.SeqStmt([store, store])))])

    func = program(body)
    check_round_trip(func)
    assert "with T.Assert(n < 3" in str(func)
    assert "    assert n < 3" in str(func)


def test_threads_launched_twice_are_declared_once():
    tx = tir.IterVar(None, "tx", tir.IterVar.ThreadIndex, "threadIdx.x")

    def body(a, n, p):
        store = tir.BufferStore(a, 1.0, [tx.var])
        launch = tir.AttrStmt(tx, "thread_extent", 32, store)
        return tir.SeqStmt([launch, launch])

    func = program(body)
    assert 'tx = T.env_thread("threadIdx.x")' in str(func)
    check_round_trip(func)
    once = program(lambda a, n, p: body(a, n, p).seq[0])
    assert 'tx = T.launch_thread("threadIdx.x", 32)' in str(once)
    check_round_trip(once)


def test_buffers_of_every_layout_come_back():
    n, s, off = tir.Var("n"), tir.Var("s"), tir.Var("off", "int64")
    a = tir.decl_buffer((n, 4), "float16", "A", strides=[s, 1], elem_offset=off, offset_factor=4)
    b = tir.decl_buffer((), "bool", "A", scope="shared", data_alignment=128)
    c = tir.decl_buffer(
        (4,), "int8", "c", data=tir.Var("raw", tvm.ir.PointerType(tvm.ir.PrimType("uint8")))
    )
    view = tir.decl_buffer((16,), "float16", "A", data=a.data)
    store = tir.SeqStmt(
        [
            tir.BufferStore(a, view[3], [0, 1]),
            tir.BufferStore(b, True, []),
            tir.BufferStore(c, tir.const(1, "int8"), [0]),
            tir.Prefetch(view, [tvm.ir.Range(0, 4)]),
        ]
    )
    func = tir.PrimFunc([a, b, c, n], store, ret_type=tvm.ir.PrimType("int32"))
    check_round_trip(func)
    assert "-> T.int32:" in str(func)


def test_attributes_keep_the_type_of_their_values():
    func = program(lambda a, n, p: tir.Evaluate(0))
    values = {
        "int": 1, "bool": True, "float": 0.5, "nan": math.nan, "none": [None], "text": "a\"b",
        "imm": tir.const(1), "imm64": tir.const(1, "int64"), "flag": tir.const(True),
        "real": tir.const(1.5), "string": tir.StringImm("x"), "list": [1, "a", [2.0]],
        "table": {"k": [1]}, "target": tvm.target.Target("llvm", host="llvm"),
        "type": tvm.ir.PrimType("int8"), "range": tvm.ir.Range(1, 3),
        "tensor": tvm.nd.array(np.ones(3)),
    }  # fmt: skip
    func = func.with_attr(values)
    assert '"int": 1, "bool": True, "float": 0.5' in str(func)
    assert '"flag": True' in str(func)
    again = tvm.script.from_source(func.script(show_meta=True))
    tvm.ir.assert_structural_equal(func, again)
    assert str(func).endswith(
        "# Metadata omitted. Use show_meta=True in script() method to show it."
    )
    with pytest.raises(tvm.error.DiagnosticError, match="show_meta=True"):
        tvm.script.from_source(str(func))


def test_names_that_python_does_not_allow_are_changed():
    names = ("if", "T", "a.b", "1x", "", "a_b")
    variables = [tir.Var(name) for name in names]
    body = tir.Evaluate(tir.call_extern("int32", "f", *variables))
    func = tir.PrimFunc(variables, body).with_attr("global_symbol", "my-function")
    assert "def my_function(if_: T.int32, T_: T.int32, a_b: T.int32, v1x: T.int32" in str(func)
    check_round_trip(func)
    other = program(lambda a, n, p: tir.Evaluate(0))
    check_round_trip(tvm.IRModule({"my-function": func, "other.one": other}))


def test_blocks_without_a_root_and_roots_without_blocks_come_back():
    a = tir.decl_buffer((8,), name="A")
    store = tir.BufferStore(a, 0.0, [0])

    def block(name, body, **options):
        return tir.BlockRealize([], True, tir.Block([], [], [], name, body, **options))

    for body in (
        block("only", store),
        block("root", store),
        block("root", block("root", store)),
        block("root", block("inner", store)),
        block("root", store, alloc_buffers=[tir.decl_buffer((8,), "int8", name="B")]),
        block("root", store, annotations={"a": 1}),
        tir.SeqStmt([block("x", store), store]),
    ):
        check_round_trip(tir.PrimFunc([a], body))


def test_views_of_regions_and_block_attributes_come_back():
    @T.prim_func
    def func(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        s = T.int32()
        for i in range(4):
            with T.block("tile"):
                v = T.axis.opaque((0, 4), i)
                T.where(i < 3)
                T.reads(A[v * 4 : v * 4 + 4, 0:16])
                T.writes(B[v * 4, 3])
                T.block_attr({"pragma": "x", "n": 4})
                V = T.match_buffer(A[v * 4 : v * 4 + 4, 0:16], (4, 16), strides=(s, 1))
                B[v * 4, 3] = V[0, 0]

    check_round_trip(func)
    assert all(text in str(func) for text in ("T.where(i < 3)", 'T.block_attr({"pragma": "x"'))


def test_the_text_of_te_programs_is_that_of_tvm():
    A = te.placeholder((1, 784), name="A")
    B = te.compute((1, 784), lambda i, j: te.max(A[i, j], 0.0), name="B")
    assert repr(te.create_prim_func([A, B])).splitlines()[1:] == [
        'def main(A: T.Buffer((1, 784), "float32"), B: T.Buffer((1, 784), "float32")):',
        '    T.func_attr({"tir.noalias": True})',
        '    # with T.block("root"):',
        "    for i, j in T.grid(1, 784):",
        '        with T.block("B"):',
        '            v_i, v_j = T.axis.remap("SS", [i, j])',
        "            T.reads(A[v_i, v_j])",
        "            T.writes(B[v_i, v_j])",
        "            B[v_i, v_j] = T.max(A[v_i, v_j], T.float32(0.0))",
    ]


def test_functions_of_tir_help_to_write_expressions():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), n: T.int32):
        A[0] = T.min_value("float32")
        A[1] = T.abs(A[2])
        if T.all(n < 3, n > 1):
            T.call_packed("report", n)

    text = str(f)
    assert 'T.float32("-inf")' in text or "T.float32(-3.4028235e+38)" in text
    assert "T.fabs(A[2])" in text
    assert "if n < 3 and 1 < n:" in text or "if n < 3 and n > 1:" in text
    assert 'T.tvm_call_packed("int32", "report", n)' in text
    check_round_trip(f)


def test_the_variables_of_a_grid_may_have_one_name() -> None:
    read = tvm.script.from_source(
        "from tvm.script import tir as T\n"
        "@T.prim_func\n"
        'def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):\n'
        "    for at in T.grid(2, 3):\n"
        '        with T.block("copy"):\n'
        '            i, j = T.axis.remap("SS", at)\n'
        "            B[i, j] = A[i, j]\n"
    )
    loop = read.body.block.body
    assert [str(loop.loop_var.name), str(loop.body.loop_var.name)] == ["at_0", "at_1"]


def test_an_axis_is_as_wide_as_its_value() -> None:
    read = tvm.script.from_source(
        "from tvm.script import tir as T\n"
        "@T.prim_func\n"
        'def f(A: T.Buffer((), "float32")):\n'
        '    with T.block("one"):\n'
        "        i = T.axis.spatial(1, T.int64(0))\n"
        "        A[()] = T.float32(1)\n"
    )
    axis = read.body.block.body.block.iter_vars[0]
    assert str(axis.var.dtype) == str(axis.dom.extent.dtype) == "int64"


def test_the_block_around_a_function_accesses_what_it_says():
    @T.prim_func
    def silent(A: T.Buffer((16,), "float32")):
        with T.block("root"):
            for i in range(16):
                with T.block("one"):
                    vi = T.axis.spatial(16, i)
                    A[vi] = T.float32(1)

    @T.prim_func
    def spoken(A: T.Buffer((16,), "float32")):
        with T.block("root"):
            T.writes(A[0:16])
            for i in range(16):
                with T.block("one"):
                    vi = T.axis.spatial(16, i)
                    A[vi] = T.float32(1)

    assert not silent.body.block.reads and not silent.body.block.writes
    assert '# with T.block("root"):' in silent.script()
    assert len(spoken.body.block.writes) == 1
    for func in (silent, spoken):
        check_round_trip(func)
