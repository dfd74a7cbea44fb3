"""Functions of single expressions, types built anew, and casts."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay


def network() -> relay.Function:
    x, w = relay.var("x", shape=(3, 4)), relay.var("w", shape=(4, 4))
    y = relay.nn.relu(relay.nn.dense(x, w))
    return relay.Function([x, w], relay.add(y, relay.const(1.0)))


def typed(func: relay.Function) -> tvm.IRModule:
    return relay.transform.InferType()(tvm.IRModule.from_expr(func))


def run(func: relay.Function, *args: np.ndarray) -> np.ndarray:
    return relay.create_executor("graph").evaluate(func)(*args).numpy()


def names(expr: tvm.ir.RelayExpr) -> list[str]:
    found = []

    def look(node: tvm.ir.RelayExpr) -> None:
        if isinstance(node, relay.Call):
            found.append(str(node.op.name))

    relay.analysis.post_order_visit(expr, look)
    return found


def test_a_value_in_between_is_a_program_of_its_own() -> None:
    mod = typed(network())
    product = relay.analysis.extract_intermdeiate_expr(mod, 0)["main"]
    assert names(product.body) == ["nn.dense"]
    rng = np.random.default_rng(0)
    x, w = rng.random((3, 4)).astype("float32"), rng.random((4, 4)).astype("float32")
    np.testing.assert_allclose(run(product, x, w), x @ w.T, rtol=1e-5)
    with pytest.raises(IndexError, match="there are 3 values, from 0 on; got 3"):
        relay.analysis.extract_intermdeiate_expr(mod, 3)


def test_element_types_of_a_program_are_listed() -> None:
    x = relay.var("x", shape=(2,), dtype="int8")
    mod = typed(relay.Function([x], relay.greater(relay.cast(x, "float32"), relay.const(0.5))))
    assert relay.analysis.all_dtypes(mod["main"]) == {"int8", "float32", "bool"}


def test_operators_are_computed_in_another_type() -> None:
    func = typed(network())["main"]
    low = relay.transform.recast(func, "float16", "float32", ops=["nn.dense"])
    assert names(low.body)[:4] == ["cast", "cast", "nn.dense", "nn.relu"]
    rng = np.random.default_rng(0)
    x, w = rng.random((3, 4)).astype("float32"), rng.random((4, 4)).astype("float32")
    np.testing.assert_allclose(run(low, x, w), run(func, x, w), rtol=2e-3)
    kept = relay.transform.recast(func, "float16", "float32", ops=["nn.dense"], skip_layers=[-1])
    assert "cast" not in names(kept.body)


def test_expressions_go_through_passes_by_themselves() -> None:
    three = relay.transform.FoldConstantExpr(
        relay.add(relay.const(1.0), relay.const(2.0)), tvm.IRModule()
    )
    assert isinstance(three, relay.Constant) and float(three.data.numpy()) == 3.0
    body = network().body
    assert str(relay.transform.InferTypeLocal(body).dtype) == "float32"
    assert isinstance(relay.transform.ToANormalFormExpr(body), relay.Let)
    assert not isinstance(relay.transform.ToBasicBlockNormalFormExpr(body), relay.Let)


def test_readers_of_a_cast_get_one_each() -> None:
    x = relay.var("x", shape=(4,), dtype="int8")
    wide = relay.cast(x, "int32")
    both = relay.Tuple([relay.add(wide, wide), relay.multiply(wide, relay.const(3))])
    after = relay.transform.CanonicalizeCast()(typed(relay.Function([x], both)))["main"]
    assert names(after.body).count("cast") == 2


def test_integers_are_divided_towards_zero() -> None:
    a, b = np.array([-7, 7, 5], "int32"), np.array([2, -2, 3], "int32")
    x, y = (relay.var(name, shape=(3,), dtype="int32") for name in "xy")
    quotient = relay.Function([x, y], relay.op.trunc_divide(x, y))
    rest = relay.Function([x, y], relay.op.trunc_mod(x, y))
    np.testing.assert_array_equal(run(quotient, a, b), [-3, -3, 1])
    np.testing.assert_array_equal(run(rest, a, b), [-1, 1, 2])


def test_types_are_visited_and_built_anew() -> None:
    class Narrow(relay.TypeMutator):
        def visit_tensor_type(self, tt: relay.TensorType) -> relay.Type:
            return relay.TensorType(tt.shape, "int8")

    class Count(relay.TypeVisitor):
        def __init__(self) -> None:
            self.tensors = 0

        def visit_tensor_type(self, tt: relay.TensorType) -> None:
            self.tensors += 1

    pair = relay.TupleType([relay.scalar_type("float32"), relay.TensorType((2,), "float32")])
    func = relay.FuncType([pair, relay.RefType(pair)], relay.TensorType((2,), "float32"))
    count = Count()
    count.visit(func)
    assert count.tensors == 5
    narrow = Narrow().visit(func)
    assert {str(f.dtype) for f in narrow.arg_types[0].fields} == {"int8"}
    with pytest.raises(NotImplementedError, match="does not define visit_tuple_type"):
        relay.TypeFunctor().visit(pair)


def test_parameters_become_bytes_and_back() -> None:
    values = {"w": np.arange(6, dtype="float32").reshape(2, 3)}
    back = relay.load_param_dict(relay.save_param_dict(values))
    np.testing.assert_array_equal(back["w"].numpy(), values["w"])


def test_arrays_of_the_widest_types_become_narrower_constants() -> None:
    for make in (relay.const, tvm.relax.const):
        assert make(np.zeros(2)).data.dtype == "float32"
        assert make(np.array([1, 2])).data.dtype == make([1, 2]).data.dtype == "int32"
        assert make(np.zeros(2), "float64").data.dtype == "float64"
        assert make(np.zeros(2, "int8")).data.dtype == "int8"
        assert make(tvm.nd.array(np.zeros(2))).data.dtype == "float64"


def test_random_arrays_are_from_zero_to_one() -> None:
    values = relay.testing.rand("float64", 3, 2)
    assert values.shape == (3, 2) and values.dtype == "float64"
    assert ((values.numpy() >= 0) & (values.numpy() < 1)).all()
