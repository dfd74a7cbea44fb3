"""Analyses of expressions and functions."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.tir import analysis


def test_deep_equality_compares_trees_but_not_variables():
    i, other = tir.Var("i"), tir.Var("i")
    assert analysis.expr_deep_equal(i * 4 + 1, i * 4 + 1)
    assert not analysis.expr_deep_equal(i * 4 + 1, other * 4 + 1)
    assert not analysis.expr_deep_equal(i * 4, i * 4 + 0 * i + 1)
    a = tir.decl_buffer((8,), name="A")
    assert analysis.expr_deep_equal(a[i], a[i])


def test_undefined_variables_come_in_order_of_use():
    i, n, m = tir.Var("i"), tir.Var("n"), tir.Var("m")
    a = tir.decl_buffer((8,), "int32", name="A")
    stmt = tir.For(i, 0, n, 0, tir.BufferStore(a, m + i, [i]))
    names = [var.name for var in analysis.undefined_vars(stmt)]
    assert names == ["n", "A", "m"]
    assert [v.name for v in analysis.undefined_vars(stmt, [n, a.data])] == ["m"]


@pytest.mark.parametrize(
    ("expr", "effect"),
    [
        (tir.Var("i") + 1, analysis.CallEffectKind.PURE),
        (tir.exp(tir.Var("x", "float32")), analysis.CallEffectKind.PURE),
        (tir.decl_buffer((4,))[0], analysis.CallEffectKind.READ_STATE),
        (tir.call_extern("int32", "f", 1), analysis.CallEffectKind.UPDATE_STATE),
    ],
)
def test_effects_are_the_strongest_inside(expr, effect):
    assert analysis.side_effect(expr) == effect


def test_nodes_are_counted_at_each_use():
    i = tir.Var("i")
    shared = i + 1
    assert analysis.count_nodes(shared * shared) == 7


def test_ssa_refuses_a_variable_bound_twice():
    i = tir.Var("i")
    a = tir.decl_buffer((8,), name="A")
    loop = tir.For(i, 0, 8, 0, tir.BufferStore(a, 0.0, [i]))
    assert analysis.verify_ssa(tir.PrimFunc([a], loop))
    assert not analysis.verify_ssa(tir.PrimFunc([a], tir.SeqStmt([loop, loop])))


def test_well_formedness_names_the_unbound_variable():
    i = tir.Var("i")
    a = tir.decl_buffer((8,), name="A")
    func = tir.PrimFunc([a], tir.BufferStore(a, 0.0, [i]))
    assert not analysis.verify_well_formed(func, assert_mode=False)
    with pytest.raises(ValueError, match="variable i is used but not bound there"):
        analysis.verify_well_formed(func)
