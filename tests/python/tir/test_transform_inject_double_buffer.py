"""Buffers with one half to fill and one to read."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tvm
from testing_programs import apply, floats
from testing_tir import run_prim_func
from tvm import te, tir
from tvm.tir import transform


def staged_sums(rows=6, mark=True, ahead=None):
    """B[i] = sum over j of 2 A[i, j], a row of A at a time going through a buffer."""
    A = te.placeholder((rows, 8), name="A")
    j = te.reduce_axis((0, 8), name="j")
    B = te.compute((rows,), lambda i: te.sum(A[i, j] * 2.0, axis=j), name="B")
    s = te.create_schedule(B.op)
    AA = s.cache_read(A, "global", [B])
    s[AA].compute_at(s[B], B.op.axis[0])
    if mark:
        s[AA].double_buffer()
    if ahead is not None:
        s[AA].pragma(s[AA].op.axis[0], "async_copy", ahead)
    return s, [A, B]


def flat(s, args):
    func = tvm.driver.form_irmodule(s, args)["main"]
    return apply(transform.Simplify(), apply(transform.StorageFlatten(), func))


def injected(s, args, **options):
    with tvm.transform.PassContext(config={"tir.InjectDoubleBuffer": options}):
        func = apply(transform.InjectDoubleBuffer(), flat(s, args))
    return apply(transform.RemoveNoOp(), apply(transform.Simplify(), func))


def test_the_next_row_is_filled_before_this_one_is_read():
    text = str(injected(*staged_sums()))
    assert "T.allocate([16]" in text
    assert text.count("A_global[") == 3
    assert "if i < 5:" in text
    assert "double_buffer_scope" not in text


@pytest.mark.parametrize("rows", [1, 5, 6, 8])
@pytest.mark.parametrize("split", [1, 2, 4])
def test_double_buffering_computes_the_same(rows, split):
    func = injected(*staged_sums(rows), split_loop=split)
    values = floats(rows, 8)
    out = np.zeros(rows, "float32")
    run_prim_func(func, values, out)
    np.testing.assert_allclose(out, 2 * values.sum(axis=1), rtol=1e-5)


def test_split_trips_know_their_half():
    text = str(injected(*staged_sums(), split_loop=2))
    assert "for i_step in range(3):" in text
    assert "% 2" not in text


@pytest.mark.parametrize("split", [0, 3])
def test_an_odd_split_is_refused(split):
    with pytest.raises(ValueError, match=f"split_loop must be 1 or even, got {split}"):
        injected(*staged_sums(), split_loop=split)


def test_a_buffer_filled_from_the_same_loop_keeps_its_one_half():
    A = te.placeholder((6, 8), name="A")
    P = te.compute((6, 8), lambda i, j: A[i, j] + 1.0, name="P")
    Q = te.compute((6, 8), lambda i, j: P[i, j] * 2.0, name="Q")
    B = te.compute((6, 8), lambda i, j: Q[i, 7 - j], name="B")
    s = te.create_schedule(B.op)
    s[P].compute_at(s[B], B.op.axis[0])
    s[Q].compute_at(s[B], B.op.axis[0])
    s[Q].double_buffer()
    func = injected(s, [A, B])
    assert "T.allocate([16]" not in str(func)
    values, out = floats(6, 8), np.zeros((6, 8), "float32")
    run_prim_func(func, values, out)
    np.testing.assert_allclose(out, (values[:, ::-1] + 1) * 2, rtol=1e-6)


def test_double_buffered_schedule_runs_compiled():
    s, args = staged_sums(7)
    with tvm.transform.PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": 2}}):
        module = tvm.build(s, args, target="llvm")
    values, out = floats(7, 8), tvm.nd.empty((7,))
    module(tvm.nd.array(values), out)
    np.testing.assert_allclose(out.numpy(), 2 * values.sum(axis=1), rtol=1e-5)


class _LateCopies:
    """Runs a function whose asynchronous copies arrive no earlier than waits demand."""

    _OPERATORS = {
        "Add": operator.add,
        "Sub": operator.sub,
        "Mul": operator.mul,
        "FloorMod": operator.mod,
        "LT": operator.lt,
    }

    def __init__(self, func, *arrays):
        self.values = {}
        self.memory = {
            func.buffer_map[param].data.name: array.reshape(-1)
            for param, array in zip(func.params, arrays)
        }
        self.group, self.under_way, self.most_under_way = None, [], 0
        self.run(func.body)

    def run(self, stmt):
        getattr(self, type(stmt).__name__)(stmt)

    def value(self, expr):
        if isinstance(expr, (tir.IntImm, tir.FloatImm)):
            return expr.value
        if isinstance(expr, tir.Var):
            return self.values[expr.name]
        if isinstance(expr, tir.BufferLoad):
            return self.memory[expr.buffer.data.name][self.value(expr.indices[0])]
        return self._OPERATORS[type(expr).__name__](self.value(expr.a), self.value(expr.b))

    def SeqStmt(self, stmt):
        for part in stmt.seq:
            self.run(part)

    def For(self, stmt):
        first = self.value(stmt.min)
        for trip in range(first, first + self.value(stmt.extent)):
            self.values[stmt.loop_var.name] = trip
            self.run(stmt.body)

    def Evaluate(self, stmt):
        assert isinstance(stmt.value, tir.IntImm)

    def IfThenElse(self, stmt):
        if self.value(stmt.condition):
            self.run(stmt.then_case)

    def Allocate(self, stmt):
        size = int(stmt.extents[0])
        self.memory[stmt.buffer_var.name] = np.full(size, np.nan, str(stmt.dtype))
        self.run(stmt.body)

    def AttrStmt(self, stmt):
        if stmt.attr_key == "async_commit_queue_scope":
            self.group = []
            self.run(stmt.body)
            self.under_way.append(self.group)
            self.group = None
            return
        if stmt.attr_key == "async_wait_inflight_count":
            while len(self.under_way) > self.value(stmt.value):
                for memory, index, value in self.under_way.pop(0):
                    memory[index] = value
            self.most_under_way = max(self.most_under_way, len(list(filter(len, self.under_way))))
        self.run(stmt.body)

    def BufferStore(self, stmt):
        place = self.memory[stmt.buffer.data.name], self.value(stmt.indices[0])
        if self.group is None:
            place[0][place[1]] = self.value(stmt.value)
        else:
            self.group.append((*place, self.value(stmt.value)))


@pytest.mark.parametrize("ahead", [1, 2, 4])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 9])
def test_copies_several_trips_ahead_arrive_before_they_are_read(rows, ahead):
    func = injected(*staged_sums(rows, ahead=ahead))
    in_flight = min(ahead, max(rows - 1, 1))
    assert f"T.allocate([{8 * (in_flight + 1)}]" in str(func) or rows == 1
    values, out = floats(rows, 8), np.zeros(rows, "float32")
    run = _LateCopies(func, values, out)
    np.testing.assert_allclose(out, 2 * values.sum(axis=1), rtol=1e-5)
    assert run.most_under_way == (in_flight - 1 if rows > 1 else 0)
    # A step of the loop whose trips know their parts, where the parts divide it.
    split = injected(*staged_sums(rows, ahead=ahead), split_loop=2 * (ahead + 1))
    _LateCopies(split, values, out)
    np.testing.assert_allclose(out, 2 * values.sum(axis=1), rtol=1e-5)


def test_trips_ahead_are_a_number():
    with pytest.raises(ValueError, match="pragma_async_copy of A.global must be a number .* got 0"):
        injected(*staged_sums(ahead=0))


def test_a_request_without_a_loop_is_dropped():
    t = tir.decl_buffer((4,), name="T")
    b = tir.decl_buffer((4,), name="B")
    fill = tir.AttrStmt(t.data, "double_buffer_scope", 1, tir.BufferStore(t, 1.0, [0]))
    body = tir.SeqStmt([fill, tir.BufferStore(b, t[0], [0])])
    func = tir.PrimFunc([b], tir.Allocate(t.data, "float32", [4], True, body))
    assert "double_buffer" not in str(apply(transform.InjectDoubleBuffer(), func))
