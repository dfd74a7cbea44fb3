"""Visitors and mutators that passes in Python derive from."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.tir.stmt_functor import StmtExprMutator, StmtExprVisitor


def matmul_loops():
    X, Y = te.placeholder((4, 6), name="X"), te.placeholder((6, 8), name="Y")
    k = te.reduce_axis((0, 6), name="k")
    Z = te.compute((4, 8), lambda i, j: te.sum(X[i, k] * Y[k, j], axis=k), name="Z")
    return te.create_schedule(Z.op), [X, Y, Z]


def lowered_matmul():
    return tvm.lower(*matmul_loops(), simple_mode=True)["main"]


class Loops(StmtExprVisitor):
    def __init__(self, enter=True):
        self.names = []
        self.enter = enter

    def visit_for_(self, op):
        self.names.append(op.loop_var.name)
        if self.enter:
            super().visit_for_(op)


def test_a_visitor_meets_nodes_from_the_outside_in():
    loops = Loops()
    loops.visit(lowered_matmul())
    assert loops.names == ["i", "j", "k"]


def test_a_visitor_stops_where_an_override_does_not_call_super():
    loops = Loops(enter=False)
    loops.visit(lowered_matmul().body)
    assert loops.names == ["i"]


def test_a_visitor_sees_what_a_post_order_visit_sees():
    class Count(StmtExprVisitor):
        def __init__(self):
            self.seen = {}

        def note(self, op):
            self.seen[type(op).__name__] = self.seen.get(type(op).__name__, 0) + 1

        def visit_stmt(self, node):
            self.note(node)
            super().visit_stmt(node)

        def visit_expr(self, node):
            self.note(node)
            super().visit_expr(node)

    counter, expected = Count(), {}
    # Blocks have regions, iteration domains and a predicate below them.
    func = te.create_prim_func(matmul_loops()[1])
    counter.visit(func)
    assert counter.seen["Block"] == 2
    assert counter.seen["BufferStore"] == 2
    assert counter.seen["BufferLoad"] == 3
    lowered = lowered_matmul()
    tir.stmt_functor.post_order_visit(
        lowered.body,
        lambda op: expected.__setitem__(type(op).__name__, True),
    )
    counter.seen.clear()
    counter.visit(lowered)
    assert set(expected) <= set(counter.seen)


def test_a_mutator_changes_what_an_override_returns_and_keeps_the_rest():
    n = 16
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 3.0 + 1.0, name="B")

    class Double(tir.PyStmtExprMutator):
        def visit_float_imm_(self, op):
            return tir.FloatImm(op.dtype, op.value * 2)

    @tir.transform.prim_func_pass(opt_level=0)
    def double(func, mod, ctx):
        return Double().visit(func)

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, double)]}):
        f = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
    a, b = np.arange(n, dtype="float32"), tvm.nd.empty((n,))
    f(tvm.nd.array(a), b)
    np.testing.assert_array_equal(b.numpy(), a * 6 + 2)


def test_a_mutator_without_overrides_returns_the_program_it_got():
    for func in (lowered_matmul(), te.create_prim_func(matmul_loops()[1])):
        assert StmtExprMutator().visit(func).same_as(func)


def test_a_mutator_drops_statements_from_sequences():
    A = tir.decl_buffer((2,), "float32", "A")
    body = tir.stmt_seq(tir.BufferStore(A, 1.0, [0]), tir.BufferStore(A, 2.0, [1]))

    class DropFirst(StmtExprMutator):
        def visit_buffer_store_(self, op):
            return tir.Evaluate(0) if int(op.indices[0]) == 0 else op

    rest = DropFirst().visit(body)
    assert isinstance(rest, tir.BufferStore)
    assert int(rest.indices[0]) == 1


def test_an_override_that_returns_nothing_is_named():
    class Forgets(StmtExprMutator):
        def visit_for_(self, op):
            pass

    with pytest.raises(TypeError, match=r"Forgets\.visit_for_ must return a Stmt, got NoneType"):
        Forgets().visit(lowered_matmul())


def test_what_is_no_program_is_refused():
    with pytest.raises(TypeError, match="expected a statement, an expression or a PrimFunc"):
        StmtExprVisitor().visit(3)


def test_decorators_of_newer_versions_are_accepted():
    @tir.functor.visitor
    class Anything(tir.PyStmtExprVisitor):
        pass

    Anything().visit(lowered_matmul())


def test_passes_over_functions_are_a_class_of_their_own():
    @tir.transform.prim_func_pass(opt_level=2, name="test.Tag")
    class Tag:
        """Marks functions."""

        def __init__(self, value):
            self.value = value

        def transform_function(self, func, mod, ctx):
            return func.with_attr("tag", self.value)

    tag = Tag(3)
    assert isinstance(tag, tir.transform.PrimFuncPass) and isinstance(tag, Tag)
    assert (tag.value, str(tag.info.name), tag.info.opt_level) == (3, "test.Tag", 2)
    assert isinstance(tir.transform.Simplify(), tir.transform.PrimFuncPass)
    func = tir.PrimFunc([], tir.Evaluate(0)).with_attr("global_symbol", "main")
    module = tvm.IRModule({"main": func})
    assert tag(module)["main"].attrs["tag"] == 3
    with tvm.transform.PassContext(opt_level=1):
        left = tvm.transform.Sequential([tag])(module)
    assert "tag" not in left["main"].attrs


def test_a_function_knows_its_type():
    x, a = tir.Var("x", "float32"), tir.Var("a", "handle")
    known = tir.PrimFunc([x, a], tir.Evaluate(0)).checked_type
    assert [str(kind) for kind in known.arg_types] == [
        str(x.type_annotation),
        str(a.type_annotation),
    ]
    assert len(known.ret_type.fields) == 0
