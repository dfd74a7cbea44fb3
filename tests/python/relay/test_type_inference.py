"""Types of relay programs."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay, te
from tvm.relay.testing import run_infer_type


def test_weights_of_a_convolution_follow_from_its_settings():
    n = te.size_var("n")
    data, weight = relay.var("data", shape=(n, 10, 32, 32)), relay.var("weight")
    out = run_infer_type(relay.nn.conv2d(data, weight, channels=4, kernel_size=3, padding=1))
    assert out.checked_type == relay.TensorType((n, 4, 32, 32))
    assert out.args[1].checked_type == relay.TensorType((4, 10, 3, 3))


@pytest.mark.parametrize(
    ("shape", "newshape", "result"),
    [
        ((2, 3, 4), (0, -1), (2, 12)),
        ((2, 3, 4), (-3, -2), (6, 4)),
        ((2, 3, 4), (2, -4, -1, 3, -2), (2, 1, 3, 4)),
        ((1,), (), ()),
    ],
)
def test_reshape_reads_its_special_values(shape, newshape, result):
    out = run_infer_type(relay.reshape(relay.var("x", shape=shape), newshape))
    assert out.checked_type == relay.TensorType(result)


def test_unknown_extents_stay_unknown_where_they_matter():
    x = relay.var("x", shape=(relay.Any(), 4))
    out = run_infer_type(relay.concatenate([x, x], axis=0))
    assert isinstance(out.checked_type.shape[0], relay.Any)
    assert int(out.checked_type.shape[1]) == 4


def test_a_recursive_function_is_typed_by_its_own_text():
    mod = relay.parse("""
        def @count(%i: int32) -> int32 {
          if (equal(%i, 0)) { 0 } else { add(@count(subtract(%i, 1)), 1) }
        }
        def @main(%n: int32) { @count(%n) }
    """)
    typed = relay.transform.InferType()(mod)
    assert typed["main"].checked_type == relay.FuncType(
        [relay.scalar_type("int32")], relay.scalar_type("int32")
    )


def test_a_mismatch_names_the_operator_and_the_shapes():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4, 3))
    with pytest.raises(tvm.TVMError, match=r"relay.add: shapes \[2, 3\] and \[4, 3\]") as raised:
        run_infer_type(relay.add(x, y))
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, tvm.error.DiagnosticError)


def test_a_variable_of_unknown_type_is_reported():
    with pytest.raises(tvm.TVMError, match="operand 0 is not known"):
        run_infer_type(relay.sum(relay.var("x")))


def test_shape_and_annotation_together_are_refused():
    with pytest.raises(ValueError, match="not both"):
        relay.var("x", relay.TensorType((1,)), shape=(1,))


def test_generic_functions_are_values_of_each_of_their_types():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    x, f, y = relay.Var("x", a), relay.Var("f", relay.FuncType([b], b)), relay.Var("y", b)
    same = relay.Function([x], x, a, [a])
    applied = relay.Function([f, y], f(y), b, [b])
    assert run_infer_type(applied(same, relay.const(0))).checked_type == relay.scalar_type("int32")
    given = run_infer_type(relay.Function([], same, relay.FuncType([b], b), [b]))
    assert given.checked_type == relay.FuncType([], relay.FuncType([b], b), [b])
    choice, z = relay.FuncType([], relay.scalar_type("bool")), relay.Var("z")
    c, either = relay.Var("c", choice), relay.Function([z], z)
    chosen = relay.Function([c], relay.If(c(), same, either), relay.FuncType([b], b), [b])
    assert run_infer_type(chosen).checked_type.ret_type == relay.FuncType([b], b)


def test_variables_are_what_results_ask_for():
    number = relay.scalar_type("int32")
    x, f = relay.Var("x", number), relay.Var("f")
    typed = run_infer_type(relay.Function([x, f], f(x), number))
    assert typed.checked_type == relay.FuncType([number, relay.FuncType([number], number)], number)
    y, z = relay.Var("y"), relay.Var("z")
    both = relay.Function([y, z], relay.Tuple([y, z]), relay.TupleType([number, number]))
    assert list(run_infer_type(both).checked_type.arg_types) == [number, number]


def test_operators_of_users_may_name_a_rule_for_their_type():
    for name, count in (("Identity", 1), ("Broadcast", 2), ("BroadcastComp", 2)):
        op = relay.op.get(f"mine.{name}") if tvm.ir.Op.exists(f"mine.{name}") else (
            tvm.ir.op.register_op(f"mine.{name}"))  # fmt: skip
        op.set_num_inputs(count).add_type_rel(name)
        args = [relay.var(f"v{k}", shape=s) for k, s in enumerate([(3, 1), (2,)][:count])]
        type_ = run_infer_type(relay.Call(op, args)).checked_type
        assert [int(e) for e in type_.shape] == ([3, 1] if count == 1 else [3, 2])
        assert str(type_.dtype) == ("bool" if name == "BroadcastComp" else "float32")
        assert op.num_inputs == count
    assert relay.op.get("add").support_level == 1 and relay.op.get("round").support_level == 3


def test_flattened_extents_are_a_product_as_it_is_written():
    n, m = tvm.te.size_var("n"), tvm.te.size_var("m")
    x = relay.var("x", shape=(n, 2, m, 3))
    typed = relay.transform.InferTypeLocal(relay.nn.batch_flatten(x))
    assert typed == relay.TensorType((n, (2 * m) * 3))
    open_ = relay.var("y", shape=(2, relay.Any(), 3))
    assert isinstance(relay.transform.InferTypeLocal(relay.nn.batch_flatten(open_)).shape[1],
                      relay.Any)  # fmt: skip
