"""Types that follow from others by a function."""

import pytest

import tvm
from tvm import relay
from tvm.relay.testing import run_infer_type

BROADCAST = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")


def _generic():
    a, b, r = (relay.TypeVar(name) for name in "abr")
    return relay.FuncType([a, b], r, [a, b, r], [relay.TypeRelation(BROADCAST, [a, b, r], 2)])


def test_a_relation_is_a_type_with_a_function_and_parts():
    relation = _generic().type_constraints[0]
    assert isinstance(relation, tvm.ir.TypeConstraint)
    assert relation.num_inputs == 2 and relation.attrs is None
    assert str(relation.func.name) == "tvm.relay.type_relation.Broadcast"
    assert relay.analysis.check_kind(relation) == relay.TypeKind.Constraint
    assert relay.analysis.check_kind(_generic()) == relay.TypeKind.Type
    assert _generic() == _generic() != relay.FuncType(*(_generic().arg_types, _generic().ret_type))
    assert tvm.ir.load_json(tvm.ir.save_json(_generic())) == _generic()
    with pytest.raises(ValueError, match="1 operands and a result are 2 types, got 3"):
        relay.TypeRelation(BROADCAST, list(relation.args), 1)


def test_walks_over_types_meet_the_parts_of_relations():
    met = []

    class Look(relay.TypeVisitor):
        def visit_type_var(self, tv):
            met.append(str(tv.name_hint))

    Look().visit(_generic().type_constraints[0])
    assert met == ["a", "b", "r"]
    number = relay.scalar_type("float32")

    class Settle(relay.TypeMutator):
        def visit_type_var(self, tv):
            return number

    settled = Settle().visit(_generic().type_constraints[0])
    assert list(settled.args) == [number] * 3 and settled.func == BROADCAST


def test_calls_learn_the_result_of_a_relation():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3,))
    add = relay.var("add", _generic())
    func = run_infer_type(relay.Function([x, y, add], add(x, y)))
    assert func.body.checked_type == relay.TensorType((2, 3))
    mod = tvm.IRModule.from_expr(func)
    assert "where tvm.relay.type_relation.Broadcast(a, b, r)" in mod.astext()
    assert tvm.ir.structural_equal(relay.parse(mod.astext())["main"], func)


def test_operands_that_a_relation_refuses_are_an_error():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4,))
    add = relay.var("add", _generic())
    with pytest.raises(tvm.error.DiagnosticError):
        run_infer_type(relay.Function([x, y, add], add(x, y)))
