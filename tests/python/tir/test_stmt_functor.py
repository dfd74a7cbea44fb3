"""Visiting, rewriting and substitution."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.tir import stmt_functor


def loop_nest():
    i, j = tir.Var("i"), tir.Var("j")
    a, b = tir.decl_buffer((4, 8), name="A"), tir.decl_buffer((4, 8), name="B")
    inner = tir.For(j, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(b, a[i, j] + 1.0, [i, j]))
    return tir.For(i, 0, 4, tir.ForKind.SERIAL, inner), i, a


def test_post_order_visits_shared_nodes_once_and_leaves_first():
    i = tir.Var("i")
    shared = i + 1
    seen = []
    stmt_functor.post_order_visit(shared * shared, lambda node: seen.append(str(node)))
    assert seen == ["i", "1", "i + 1", "(i + 1) * (i + 1)"]


def test_pre_order_stops_where_told():
    stmt, _, _ = loop_nest()
    seen = []

    def visit(node):
        seen.append(type(node).__name__)
        return not isinstance(node, tir.BufferStore)

    stmt_functor.pre_order_visit(stmt, visit)
    assert "For" in seen
    assert "BufferLoad" not in seen


def test_rewriting_nothing_returns_the_same_object():
    stmt, _, _ = loop_nest()
    assert stmt_functor.ir_transform(stmt, None, lambda node: None).same_as(stmt)
    assert stmt_functor.substitute(stmt, {tir.Var("other"): 3}).same_as(stmt)


def test_transform_replaces_the_asked_for_nodes():
    stmt, _, _ = loop_nest()

    def widen(loop):
        return tir.For(loop.loop_var, loop.min, loop.extent, tir.ForKind.PARALLEL, loop.body)

    result = stmt_functor.ir_transform(stmt, None, widen, ["tir.For"])
    assert (result.kind, result.body.kind) == (1, 1)


def test_substitute_reaches_buffers_and_keeps_them_one():
    n, i = tir.SizeVar("n"), tir.Var("i")
    a = tir.decl_buffer((n, 8), name="A")
    stmt = tir.BufferStore(a, a[i, 0] + a[i, 1], [i, n - 1])
    result = stmt_functor.substitute(stmt, {n: 16})
    assert str(result) == "A[i, 16 - 1] = A[i, 0] + A[i, 1]"
    assert [int(extent) for extent in result.buffer.shape] == [16, 8]
    assert result.value.a.buffer.same_as(result.buffer)


def test_substitute_refuses_another_type():
    i = tir.Var("i")
    with pytest.raises(TypeError, match="i is int32, its replacement x is float32"):
        stmt_functor.substitute(i + 1, {i: tir.Var("x", "float32")})


def test_structural_equality_renames_bound_variables():
    one, _, _ = loop_nest()
    other, _, _ = loop_nest()
    assert tvm.ir.structural_equal(one, other, map_free_vars=True)
    assert not tvm.ir.structural_equal(one, other.body, map_free_vars=True)


def test_statements_survive_json():
    stmt, _, _ = loop_nest()
    again = tvm.ir.load_json(tvm.ir.save_json(stmt))
    assert str(again) == str(stmt)
    assert again.body.body.buffer.data.type_annotation.element_type.dtype == "float32"
