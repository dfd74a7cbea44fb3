"""Printed forms of the types of graphs, and of the results of analyses over integers."""

from __future__ import annotations

import tvm
from tvm import arith, relay, te, tir

X = te.var("x")


def test_types_print_as_in_tvm():
    tensor = relay.TensorType((2, relay.Any()), "float32")
    param = relay.TypeVar("a")
    listed = relay.GlobalTypeVar("List")
    assert str(tensor) == "TensorType([2, ?], float32)"
    assert str(relay.TupleType([tensor])) == 'T.Tuple(I.TensorType([2, ?], "float32"))'
    assert str(relay.TupleType([])) == "None"
    assert str(param) == 'I.TypeVar("a", "Type")'
    assert str(listed) == 'I.GlobalTypeVar("List", "AdtHandle")'
    assert str(relay.FuncType([tensor], param, [param])) == (
        'I.FuncType([I.TypeVar("a", "Type")], [I.TensorType([2, ?], "float32")], '
        'I.TypeVar("a", "Type"))'
    )
    assert str(relay.RefType(tensor)) == 'I.RelayRef(I.TensorType([2, ?], "float32"))'
    assert str(relay.IncompleteType()) == "I.IncompleteType()"
    assert str(relay.TypeCall(listed, [param])) == f"TypeCall({listed}, [{param}])"
    assert str(relay.Constructor("Nil", [], listed)) == f"ConstructorNode(Nil, [], {listed})"


def test_results_of_analyses_print_as_in_tvm():
    assert str(arith.IntervalSet(0, X)) == "IntervalSet[0, x]"
    assert str(arith.IntervalSet(arith.int_set.neg_inf(), 3)) == "IntervalSet[neg_inf, 3]"
    assert str(arith.ModularSet(4, 1)) == "ModularSet(coeff=4, base=1)"
    assert str(arith.ConstIntBound(-3, 4)) == "ConstIntBound[-3,4]"
    unbounded = arith.Analyzer().const_int_bound(tir.Var("n", "int64"))
    assert str(unbounded) == "ConstIntBound[neg_inf,pos_inf]"
    constraints = arith.IntConstraints([X], {X: tvm.ir.Range(0, 3)}, [X > 1])
    assert str(constraints) == "IntConstraints([x], {x: T.Range(0, 3)}, [x > 1])"
    bounds = arith.IntGroupBounds(2, [1], [3], [5])
    assert str(bounds) == "IntGroupBounds(coef=2, lower=[1], equal=[3], upper=[5])"


def test_programs_print_with_the_imports_that_they_need():
    func = tir.PrimFunc([], tir.Evaluate(0)).with_attr("global_symbol", "main")
    assert str(func).splitlines()[:3] == ["# from tvm.script import tir as T", "", "@T.prim_func"]
    module = tvm.IRModule({"main": func})
    assert str(module).startswith(
        "# from tvm.script import ir as I\n# from tvm.script import tir as T\n\n@I.ir_module\n"
    )
    assert repr(module).startswith("@I.ir_module\n")
    graph = tvm.IRModule.from_expr(relay.Function([], relay.const(1.0)))
    assert str(graph).startswith("#[version")


def test_numbers_are_one_attribute_however_they_are_written():
    func = tir.PrimFunc([], tir.Evaluate(0))
    plain, typed = func.with_attr("k", 1), func.with_attr("k", tir.IntImm("int32", 1))
    tvm.ir.assert_structural_equal(plain, typed)
    assert tvm.ir.structural_hash(plain) == tvm.ir.structural_hash(typed)
    assert not tvm.ir.structural_equal(plain, func.with_attr("k", tir.IntImm("int64", 1)))
