"""Passes that hand copies to a function, bind thread axes once, and give contexts their memory."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.script import tir as T


def _copies(func, write):
    mod = tvm.IRModule.from_expr(func.with_attr("global_symbol", "main"))
    return tvm.tir.transform.InjectCopyIntrin("copy", write)(mod)["main"].body


def test_copies_are_handed_over_with_their_strides():
    @T.prim_func
    def before(A: T.Buffer((1000,), "float32"), B: T.Buffer((1000,), "float16")):
        with T.attr(0, "pragma_copy", 1):
            for i, j in T.grid(10, 20):
                B[i * 40 + j * 2 + 3] = T.Cast("float16", A[j * 10 + i + 7])

    seen = []

    def write(source, target, pad_before, pad_after, pad_value):
        seen.append((source, target))
        assert list(pad_before) == [] and list(pad_after) == [] and pad_value is None
        return tir.Evaluate(tir.call_extern("int32", "copy", source.data, target.data))

    assert isinstance(_copies(before, write), tir.Evaluate)
    ((source, target),) = seen
    assert (source.name, str(source.dtype)) == ("A", "float32")
    assert (target.name, str(target.dtype)) == ("B", "float16")
    assert [int(n) for n in source.shape] == [int(n) for n in target.shape] == [10, 20]
    assert [int(n) for n in source.strides] == [1, 10] and int(source.elem_offset) == 7
    assert [int(n) for n in target.strides] == [40, 2] and int(target.elem_offset) == 3


def test_conditions_of_copies_are_paddings():
    n = 13
    a = te.placeholder((n, n), name="A")
    b = te.compute(
        (n + 3, n + 4),
        lambda i, j: te.if_then_else(
            te.all(i >= 2, i < n + 2, j >= 1, j < n + 1), a[i - 2, j - 1], 0.5
        ),
        name="B",
    )
    s = te.create_schedule(b.op)
    s[b].pragma(b.op.axis[0], "copy")
    body = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    func = te.schedule.SchedulePostProcToPrimFunc([a, b], body, None)
    mod = tvm.IRModule.from_expr(func)
    mod = tvm.tir.transform.Simplify()(tvm.tir.transform.StorageFlatten(64)(mod))
    seen = []

    def write(source, target, pad_before, pad_after, pad_value):
        seen.append([int(k) for k in (*source.shape, *source.strides, source.elem_offset)])
        assert [int(k) for k in pad_before] == [2, 1]
        assert [int(k) for k in pad_after] == [1, 3]
        assert float(pad_value) == 0.5
        assert [int(k) for k in target.shape] == [n + 3, n + 4]
        return tir.Evaluate(0)

    tvm.tir.transform.InjectCopyIntrin("copy", write)(mod)
    assert seen == [[n, n, n, 1, 0]]


def test_a_copy_of_one_element_has_one_axis():
    @T.prim_func
    def before(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        with T.attr(0, "pragma_copy", 1):
            B[1] = A[2]

    def write(source, target, *_):
        assert [int(n) for n in (*source.shape, *source.strides, source.elem_offset)] == [1, 1, 2]
        assert int(target.elem_offset) == 1
        return tir.Evaluate(0)

    _copies(before, write)


def test_what_is_no_copy_is_refused():
    @T.prim_func
    def adds(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        with T.attr(0, "pragma_copy", 1):
            for i in range(4):
                B[i] = A[i] + T.float32(1)

    @T.prim_func
    def squares(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        with T.attr(0, "pragma_copy", 1):
            for i in range(4):
                B[i] = A[i * i]

    with pytest.raises(ValueError, match="what is stored is no element of a buffer"):
        _copies(adds, lambda *_: tir.Evaluate(0))
    with pytest.raises(ValueError, match="places in A are not linear"):
        _copies(squares, lambda *_: tir.Evaluate(0))
    with pytest.raises(TypeError, match="return the statement"):
        _copies(_plain(), lambda *_: None)


def _plain():
    @T.prim_func
    def plain(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        with T.attr(0, "pragma_copy", 1):
            for i in range(4):
                B[i] = A[i]

    return plain


def test_thread_axes_are_bound_once_where_their_loops_meet():
    @T.prim_func
    def before(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
        for b in T.thread_binding(8, thread="blockIdx.x"):
            for _k in range(2):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    A[b, t] = A[b, t] + T.float32(1)
                for u in T.thread_binding(32, thread="threadIdx.x"):
                    B[b, u] = A[b, u] * T.float32(2)

    @T.prim_func
    def expected(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
        for b in T.thread_binding(8, thread="blockIdx.x"):
            for _k in range(2):
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    A[b, t] = A[b, t] + T.float32(1)
                    B[b, t] = A[b, t] * T.float32(2)

    lift = tvm.tir.transform.LiftThreadBinding()
    after = lift(tvm.IRModule.from_expr(before.with_attr("global_symbol", "main")))
    tvm.ir.assert_structural_equal(after["main"], expected.with_attr("global_symbol", "main"))
    tvm.ir.assert_structural_equal(lift(after), after)
    plain = tvm.IRModule.from_expr(_plain().with_attr("global_symbol", "main"))
    assert lift(plain)["main"].same_as(plain["main"])


def test_thread_axes_of_several_extents_are_refused():
    @T.prim_func
    def before(A: T.Buffer((8, 32), "float32")):
        for b in T.thread_binding(8, thread="blockIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                A[b, t] = T.float32(1)
            for t in T.thread_binding(16, thread="threadIdx.x"):
                A[b, t] = T.float32(2)

    with pytest.raises(ValueError, match=r"threadIdx.x has extent 32 in one loop and 16"):
        tvm.tir.transform.LiftThreadBinding()(tvm.IRModule.from_expr(before))


def _threads(tag, mask):
    ib = tir.ir_builder.create()
    a = ib.pointer("float32", name="A")
    with ib.for_range(0, 3) as i:
        thread = te.thread_axis(tag)
        ib.scope_attr(thread, "virtual_thread", 2)
        b = ib.allocate("float32", 4, name="B", scope="shared")
        c = ib.allocate("float32", 4, name="C", scope="shared")
        b[i] = a[i * 2 + thread]
        c[i] = a[i]
        view = c.asobject().access_ptr(mask, offset=1)
        ib.emit(tir.call_extern("int32", "run", b.asobject().access_ptr("r"), view))
        ib.emit(tir.call_extern("int32", "log", tir.call_intrin("int32", "tir.tvm_context_id")))
    mod = tvm.IRModule.from_expr(tir.PrimFunc([a.asobject().data], ib.get()))
    return tvm.tir.transform.InjectVirtualThread()(mod)["main"].body


def _calls(body, name):
    found = []

    def visit(node):
        if isinstance(node, tir.Call) and node.op.name == name:
            found.append(node)

    tir.stmt_functor.post_order_visit(body, visit)
    return found


@pytest.mark.parametrize(
    ("tag", "mask", "sizes", "offsets"),
    [
        ("vthread", "r", {"B": 8, "C": 4}, {0, 1, 4}),
        ("vthread", "w", {"B": 8, "C": 8}, {0, 1, 4, 5}),
        ("cthread", "r", {"B": 8, "C": 8}, {0, 1, 4, 5}),
    ],
)
def test_pointers_of_virtual_threads(tag, mask, sizes, offsets):
    body = _threads(tag, mask)
    found = {}

    def visit(node):
        if isinstance(node, tir.Allocate):
            found[node.buffer_var.name] = int(np.prod([int(n) for n in node.extents]))

    tir.stmt_functor.post_order_visit(body, visit)
    assert found == sizes
    simplify = tvm.arith.Analyzer().simplify
    pointers = {int(simplify(call.args[2])) for call in _calls(body, "tir.tvm_access_ptr")}
    assert pointers == offsets
    logs = [call for call in _calls(body, "tir.call_extern") if call.args[0].value == "log"]
    if tag == "cthread":
        assert [int(call.args[1]) for call in logs] == [0, 1]
    else:
        assert [call.args[1].op.name for call in logs] == ["tir.tvm_context_id"]
