"""Unrolling, partition, simplification and clean-up of loops."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import PARALLEL, SERIAL, UNROLLED, VECTORIZED, apply, lines, loop
from testing_tir import run_prim_func
from tvm import te, tir
from tvm.error import ScheduleError
from tvm.script import tir as T
from tvm.tir import transform

HINT = "pragma_loop_partition_hint"


def with_config(config, pass_, func):
    with tvm.transform.PassContext(config=config):
        return apply(pass_(), func)


def store_loop(extent, kind, pragma=None):
    b = tir.decl_buffer((64,), name="B")
    body = loop(extent, lambda i: tir.BufferStore(b, 1.0, [i]), kind)
    if pragma is not None:
        body = tir.AttrStmt(None, "pragma_auto_unroll_max_step", pragma, body)
    return tir.PrimFunc([b], body)


def test_marked_loop_is_written_out():
    assert lines(apply(transform.UnrollLoop(), store_loop(3, UNROLLED))) == [
        "B[0] = T.float32(1.0)",
        "B[1] = T.float32(1.0)",
        "B[2] = T.float32(1.0)",
    ]


def test_serial_loop_follows_the_step_limit_of_the_context():
    func = store_loop(4, SERIAL)
    unrolled = with_config({"tir.UnrollLoop": {"auto_max_step": 16}}, transform.UnrollLoop, func)
    kept = with_config({"tir.UnrollLoop": {"auto_max_step": 0}}, transform.UnrollLoop, func)
    assert isinstance(unrolled.body, tir.SeqStmt)
    assert isinstance(kept.body, tir.For)


def test_pragma_sets_the_limit_for_its_scope_and_disappears():
    assert isinstance(apply(transform.UnrollLoop(), store_loop(4, SERIAL, 8)).body, tir.SeqStmt)
    assert isinstance(apply(transform.UnrollLoop(), store_loop(9, SERIAL, 8)).body, tir.For)


def test_implicit_unrolling_only_marks_the_loop():
    config = {"tir.UnrollLoop": {"auto_max_step": 16, "explicit_unroll": False}}
    marked = with_config(config, transform.UnrollLoop, store_loop(4, SERIAL))
    assert marked.body.kind == UNROLLED


def test_unknown_option_is_refused():
    with pytest.raises(ValueError, match="tir.UnrollLoop has no option auto_max_steps"):
        with_config(
            {"tir.UnrollLoop": {"auto_max_steps": 1}}, transform.UnrollLoop, store_loop(4, SERIAL)
        )


def test_unrolling_a_loop_of_unknown_extent_is_refused():
    n = tir.SizeVar("n")
    b = tir.decl_buffer((n,), name="B")
    func = tir.PrimFunc([b], loop(n, lambda i: tir.BufferStore(b, 1.0, [i]), UNROLLED))
    with pytest.raises(ScheduleError, match="loop i is to be unrolled but has the extent n"):
        apply(transform.UnrollLoop(), func)


def test_unrolling_into_more_code_than_can_be_compiled_is_refused():
    b = tir.decl_buffer((1 << 20,), name="B")

    def row(i):
        return loop(1 << 10, lambda j: tir.BufferStore(b, 1.0, [i * (1 << 10) + j]), UNROLLED)

    func = tir.PrimFunc([b], loop(1 << 10, row, UNROLLED))
    with pytest.raises(ScheduleError, match="of 1024 trips is to be unrolled.*split it"):
        apply(transform.UnrollLoop(), func)


def guarded_copy(n, factor, kind=SERIAL):
    """B[i] = A[i] for i < n in blocks of `factor`, with the guard of an inexact split."""
    a, b = tir.decl_buffer((n,), name="A"), tir.decl_buffer((n,), name="B")

    def body(o, i):
        index = o * factor + i
        return tir.IfThenElse(tir.likely(index < n), tir.BufferStore(b, a[index] + 1.0, [index]))

    blocks = tir.ceildiv(n, factor)
    nest = loop(blocks, lambda o: loop(factor, lambda i: body(o, i), kind, "i"), name="o")
    return tir.PrimFunc([a, b], nest)


def partition(func, constant=True):
    config = {"tir.LoopPartition": {"partition_const_loop": constant}}
    func = with_config(config, transform.LoopPartition, func)
    return apply(transform.RemoveNoOp(), apply(transform.Simplify(), func))


def test_constant_loop_is_partitioned_only_when_asked():
    func = guarded_copy(21, 8)
    assert "likely" in str(partition(func, constant=False))
    assert lines(partition(func)) == [
        "for o in range(2):",
        "    for i in range(8):",
        "        B[o * 8 + i] = A[o * 8 + i] + T.float32(1.0)",
        "for i_1 in range(5):",
        "    B[i_1 + 16] = A[i_1 + 16] + T.float32(1.0)",
    ]


def test_loop_of_unknown_extent_is_partitioned():
    n = tir.SizeVar("n")
    text = str(partition(guarded_copy(n, 8), constant=False).body)
    main = text[: text.index("T.likely")] if "T.likely" in text else text
    assert "for i in range(8):\n        B[o * 8 + i] = A[o * 8 + i] + T.float32(1.0)" in main


@pytest.mark.parametrize(("n", "factor"), [(21, 8), (16, 8), (5, 8), (1, 1), (23, 5)])
def test_partition_computes_the_same(n, factor):
    values = np.arange(n, dtype="float32")
    out = np.zeros(n, "float32")
    run_prim_func(partition(guarded_copy(n, factor, VECTORIZED)), values, out)
    np.testing.assert_allclose(out, values + 1)


def test_partition_with_symbolic_extent_computes_the_same():
    func = partition(guarded_copy(tir.SizeVar("n"), 8, PARALLEL), constant=False)
    for n in (1, 7, 8, 20, 24):
        values, out = np.arange(n, dtype="float32"), np.zeros(n, "float32")
        run_prim_func(func, values, out)
        np.testing.assert_allclose(out, values + 1)


@pytest.mark.parametrize("key", ["virtual_thread", "thread_extent"])
def test_threads_inside_of_a_loop_are_not_mentioned_where_it_is_split(key):
    a, b = (tir.decl_buffer((21,), name=name) for name in "AB")
    thread = tir.IterVar((0, 4), tir.Var("t", "int32"), 4, "vthread")

    def body(o):
        index = o * 4 + thread.var
        store = tir.BufferStore(b, a[index] + 1.0, [index])
        return tir.AttrStmt(thread, key, 4, tir.IfThenElse(tir.likely(index < 21), store))

    func = partition(tir.PrimFunc([a, b], loop(6, body, name="o")))
    free = tir.analysis.undefined_vars(func.body, list(func.params))
    assert thread.var not in list(free)
    assert "for o in range(5)" in str(func)


def padded_row(hinted, n=8):
    """P = A with a zero on either side, its loop with or without the pragma."""
    A = te.placeholder((n,), name="A")
    P = te.compute(
        (n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i <= n), A[i - 1], 0.0), name="P"
    )
    s = te.create_schedule(P.op)
    if hinted:
        s[P].pragma(P.op.axis[0], "loop_partition_hint", True)
    return s, [A, P]


@pytest.mark.parametrize("hinted", [False, True])
def test_a_hinted_loop_is_split_at_conditions_that_are_not_marked_likely(hinted):
    s, args = padded_row(hinted)
    func = tvm.driver.form_irmodule(s, args)["main"]
    after = apply(transform.Simplify(), apply(transform.LoopPartition(), func))
    text = lines(after)
    if not hinted:
        assert sum("if_then_else" in line for line in text) == 1
        return
    assert text == [
        "P[0] = T.float32(0.0)",
        "for i in range(8):",
        "    P[i + 1] = A[i]",
        "P[9] = T.float32(0.0)",
    ]
    values, result = np.arange(8, dtype="float32"), tvm.nd.empty((10,))
    tvm.build(s, args)(tvm.nd.array(values), result)
    np.testing.assert_array_equal(result.numpy(), np.pad(values, 1))


@pytest.mark.parametrize("asked", [False, True])
def test_a_hinted_loop_without_an_interval_is_unrolled_when_asked(asked):
    b = tir.decl_buffer((8,), name="B")
    nest = loop(
        8, lambda i: tir.IfThenElse(tir.EQ(i % 2, 0), tir.BufferStore(b, 1.0, [i])), name="i"
    )
    hinted = tir.For(nest.loop_var, 0, 8, SERIAL, nest.body, annotations={HINT: 1})
    config = {"tir.LoopPartition": {"unroll_loop_with_partition_hint_no_interval": asked}}
    after = with_config(config, transform.LoopPartition, tir.PrimFunc([b], hinted))
    assert lines(after)[0] == ("for i in T.unroll(8):" if asked else "for i in range(8):")
    assert HINT not in str(after)


def test_simplify_uses_loop_bounds_and_branches():
    b = tir.decl_buffer((64,), "int32", name="B")

    def body(i):
        value = tir.Select(i < 8, i // 8 + i % 8, i)
        inner = tir.IfThenElse(i < 4, tir.BufferStore(b, tir.Select(i < 5, 1, 2), [i]))
        return tir.SeqStmt([tir.BufferStore(b, value, [i]), inner])

    assert lines(apply(transform.Simplify(), tir.PrimFunc([b], loop(8, body)))) == [
        "for i in range(8):",
        "    B[i] = i",
        "    if i < 4:",
        "        B[i] = 1",
    ]


def test_simplify_drops_loops_of_one_trip():
    b = tir.decl_buffer((64,), name="B")
    body = loop(1, lambda i: tir.BufferStore(b, 1.0, [i + 3]))
    assert lines(apply(transform.Simplify(), tir.PrimFunc([b], body))) == ["B[3] = T.float32(1.0)"]


def test_no_ops_disappear():
    b = tir.decl_buffer((4,), name="B")
    n = tir.Var("n")
    t = tir.decl_buffer((4,), name="T")
    store = tir.BufferStore(b, 1.0, [0])
    body = tir.SeqStmt(
        [
            loop(4, lambda i: tir.Evaluate(i)),
            tir.IfThenElse(n < 3, tir.Evaluate(0)),
            tir.LetStmt(tir.Var("x"), n + 1, store),
            tir.Allocate(t.data, "float32", [4], True, tir.BufferStore(b, 2.0, [1])),
        ]
    )
    assert lines(apply(transform.RemoveNoOp(), tir.PrimFunc([b, n], body))) == [
        "B[0] = T.float32(1.0)",
        "B[1] = T.float32(2.0)",
    ]


@pytest.mark.parametrize("read", [False, True])
def test_memory_that_nobody_reads_is_not_written(read):
    a, b = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")
    t = tir.decl_buffer((8,), name="T")
    store = loop(8, lambda i: tir.BufferStore(t, a[i] * 2.0, [i]))
    use = loop(8, lambda i: tir.BufferStore(b, t[i] if read else a[i], [i]))
    body = tir.Allocate(t.data, "float32", [8], True, tir.SeqStmt([store, use]))
    func = tir.PrimFunc([a, b], body)
    # A program that is lowered without one of its results is shown with it.
    text = str(apply(transform.RemoveNoOp(), func).body)
    assert "T[i] = A[i] * T.float32(2.0)" in text and "T.allocate" in text
    with tvm.transform.PassContext(config={"tir.RemoveNoOp": {"use_dataflow_analysis": True}}):
        text = str(apply(transform.RemoveNoOp(), func).body)
    assert ("T[i] = A[i] * T.float32(2.0)" in text) is read
    assert ("T.allocate" in text) is read


def test_memory_that_a_call_gets_is_written():
    t = tir.decl_buffer((8,), name="T")
    call = tir.Evaluate(tir.call_extern("int32", "use", t.data))
    body = tir.SeqStmt([tir.BufferStore(t, 1.0, [0]), call])
    func = tir.PrimFunc([], tir.Allocate(t.data, "float32", [8], True, body))
    assert "T[0] = T.float32(1.0)" in str(apply(transform.RemoveNoOp(), func).body)


def test_call_with_effects_is_no_no_op():
    func = tir.PrimFunc([], tir.Evaluate(tir.call_extern("int32", "tick")))
    assert apply(transform.RemoveNoOp(), func).body.same_as(func.body)


def test_assertions_are_dropped():
    b = tir.decl_buffer((8,), name="B")
    i = tir.Var("i", "int32")
    store = tir.BufferStore(b, 1.0, [i])
    checked = tir.For(i, 0, 8, SERIAL, tir.AssertStmt(i < 8, tir.StringImm("too far"), store))
    func = tir.PrimFunc([b], checked)
    assert "assert i < 8" in str(func)
    assert lines(apply(transform.SkipAssert(), func)) == [
        "for i in range(8):",
        "    B[i] = T.float32(1.0)",
    ]


def test_empty_branch_is_turned_round():
    b, n = tir.decl_buffer((4,), name="B"), tir.Var("n")
    body = tir.IfThenElse(n < 3, tir.Evaluate(0), tir.BufferStore(b, 1.0, [0]))
    assert lines(apply(transform.RemoveNoOp(), tir.PrimFunc([b, n], body)))[0] == "if not n < 3:"


def test_select_with_a_load_becomes_a_branch_unless_disabled():
    a, b, n = tir.decl_buffer((4,), name="A"), tir.decl_buffer((4,), name="B"), tir.Var("n")
    func = tir.PrimFunc([a, b, n], tir.BufferStore(b, tir.Select(n < 3, a[n], 0.0), [0]))
    assert "T.if_then_else(n < 3, A[n], T.float32(0.0))" in str(
        apply(transform.RewriteUnsafeSelect(), func).body
    )
    kept = with_config({"tir.disable_select_rewriting": True}, transform.RewriteUnsafeSelect, func)
    assert kept.body.same_as(func.body)


def test_select_of_safe_values_stays():
    b, n = tir.decl_buffer((4,), name="B"), tir.Var("n")
    func = tir.PrimFunc([b, n], tir.BufferStore(b, tir.Select(n < 3, 1.0, 0.0), [0]))
    assert apply(transform.RewriteUnsafeSelect(), func).body.same_as(func.body)


@pytest.mark.parametrize("name", ["sigmoid", "rsqrt", "exp10", "tan", "cosh"])
def test_lowered_functions_keep_their_values(name):
    a, b = tir.decl_buffer((8,), "float64", name="A"), tir.decl_buffer((8,), "float64", name="B")

    def call(x):
        return tir.call_intrin("float64", f"tir.{name}", x)

    func = tir.PrimFunc([a, b], loop(8, lambda i: tir.BufferStore(b, call(a[i]), [i])))
    after = apply(transform.LowerIntrin(), func)
    assert f"T.{name}" not in str(after)
    values = np.linspace(0.1, 1.4, 8)
    outs = [np.zeros(8) for _ in range(2)]
    run_prim_func(func, values, outs[0])
    run_prim_func(after, values, outs[1])
    np.testing.assert_allclose(outs[1], outs[0], rtol=1e-12)


def test_loops_over_registers_are_unrolled_when_asked():
    @T.prim_func
    def main(A: T.Buffer((64,), "float32")):
        for i in range(8):
            r = T.allocate([8], "float32", "local")
            R = T.Buffer((8,), data=r, scope="local")
            for j in range(8):
                R[j] = A[i * 8 + j]
            for j in range(8):
                A[i * 8 + j] = R[7 - j]

    def loops(**options):
        count = 0

        def visit(node):
            nonlocal count
            count += isinstance(node, tir.For)

        with tvm.transform.PassContext(config={"tir.UnrollLoop": options}):
            mod = tir.transform.UnrollLoop()(tvm.IRModule({"main": main}))
        tir.stmt_functor.post_order_visit(mod["main"].body, visit)
        return count

    assert loops() == 3
    assert loops(unroll_local_access=True) == 1
