"""relay.transform.gradient against differences of the function's values."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.testing import check_grad


def var(name, *shape):
    return relay.var(name, shape=shape, dtype="float32")


def function(expr):
    return relay.Function(relay.analysis.free_vars(expr), expr)


X, Y = var("x", 2, 3), var("y", 2, 3)
IMAGE, CHANNELS = var("image", 1, 2, 4, 4), relay.const(np.array([0.5, 2.0], "float32"))


@pytest.mark.parametrize(
    "expr",
    [
        relay.concatenate([X, X * Y], 1),
        relay.stack([X, Y], 0),
        relay.split(X, 3, 1)[1] * relay.split(X, 3, 1)[0],
        relay.nn.batch_norm(IMAGE, CHANNELS, CHANNELS, CHANNELS, CHANNELS)[0],
        relay.transpose(X),
        relay.const(1.0) / relay.sqrt(relay.const(2.0) + X * X) * (relay.const(3.0) - Y),
        relay.trunc(X) + Y,
        relay.sum(X * Y),
        relay.cumsum(X, 1, exclusive=True) * X,
        relay.cumsum(X * X),
        relay.nn.cross_entropy_with_logits(X, Y),
        relay.where(relay.greater(X, Y), X * Y, relay.const(0.0)),
    ],
    ids=["concatenate", "stack", "split", "batch_norm", "transpose", "numbers", "trunc", "sum",
         "exclusive", "flat cumsum", "cross_entropy", "where"],
)  # fmt: skip
def test_derivatives_are_what_values_change_by(expr):
    check_grad(function(expr))


def values_of(func, *values, mod=None):
    mod = tvm.IRModule() if mod is None else mod
    return relay.create_executor("debug", mod=mod).evaluate(func)(*values)


def test_tuples_have_derivatives_field_by_field():
    pair = relay.TupleType([relay.TensorType((2, 3)), relay.TensorType((2, 3))])
    both = relay.Var("both", pair)
    first, second = relay.TupleGetItem(both, 0), relay.TupleGetItem(both, 1)
    expr = relay.Tuple([first * second, relay.Tuple([first])])
    func = relay.testing.run_infer_type(relay.Function([both], expr))
    found = relay.transform.gradient(func)
    assert found.body.checked_type.fields[1].fields[0] == pair
    a, b = (np.random.default_rng(0).normal(size=(2, 3)).astype("float32") for _ in range(2))
    _, ((by_first, by_second),) = values_of(found, (tvm.nd.array(a), tvm.nd.array(b)))
    np.testing.assert_allclose(by_first.numpy(), b + 1, rtol=1e-6)
    np.testing.assert_allclose(by_second.numpy(), a, rtol=1e-6)
    whole = relay.testing.run_infer_type(relay.Function([both], both))
    _, ((by_first, _),) = values_of(relay.transform.gradient(whole), (a, b))
    np.testing.assert_array_equal(by_first.numpy(), np.ones((2, 3)))


def test_functions_that_are_called_are_differentiated_through():
    mod = tvm.IRModule()
    square = relay.GlobalVar("square")
    inner, v = var("v", 2, 3), var("local", 2, 3)
    mod[square] = relay.Function([inner], inner * inner)
    twice = relay.Var("twice")
    body = relay.Let(
        twice, relay.Function([v], v + v), relay.Call(twice, [relay.Call(square, [X])])
    )
    mod["main"] = relay.Function([X], body)
    mod = relay.transform.InferType()(mod)
    found = relay.transform.gradient(mod["main"], mod)
    x = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")
    value, (by_x,) = values_of(found, x)
    np.testing.assert_allclose(value.numpy(), 2 * x * x, rtol=1e-6)
    np.testing.assert_allclose(by_x.numpy(), 4 * x, rtol=1e-6)


COND = relay.var("cond", shape=(), dtype="bool")
SHARED = relay.exp(X)


@pytest.mark.parametrize(
    "expr",
    [
        relay.If(COND, X, X * X),
        relay.If(COND, X * Y, Y),
        relay.If(COND, SHARED * Y, SHARED) + SHARED,
        relay.If(COND, relay.Tuple([X, Y * Y]), relay.Tuple([Y, X * Y])),
        relay.If(relay.sum(X) > relay.const(0.0), relay.If(COND, X, Y), X * Y) * X,
        relay.Let(Z := relay.var("z"), X * Y, relay.If(COND, Z * Z, Z)),
    ],
)
@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_conditionals_have_the_derivatives_of_the_branch_that_is_taken(expr, kind):
    func = relay.Function([COND, X, Y], expr)
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(2, 3)).astype("float32") for _ in range(2))
    found = relay.transform.gradient(func)
    plain = relay.create_executor("debug").evaluate(func)

    def total(a, b):
        value = plain(cond, a, b)
        parts = value if isinstance(value, (list, tuple)) or hasattr(value, "tag") else [value]
        return sum(float(part.numpy().sum(dtype="float64")) for part in parts)

    for cond in (np.array(True), np.array(False)):
        _, (_, by_x, by_y) = relay.create_executor(kind, target="llvm").evaluate(found)(cond, x, y)
        step = 1e-2
        for derivative, which in ((by_x, 0), (by_y, 1)):
            for at in np.ndindex(2, 3):
                moved = []
                for sign in (1, -1):
                    values = [x.copy(), y.copy()]
                    values[which][at] += sign * step
                    moved.append(total(*values))
                wanted = (moved[0] - moved[1]) / (2 * step)
                assert derivative.numpy()[at] == pytest.approx(wanted, rel=2e-2, abs=2e-2)


def derivatives(mod, *args):
    """The result of a module's main, and its derivatives, for arrays."""
    mod = relay.transform.InferType()(mod)
    mod["main"] = relay.transform.gradient(mod["main"], mod)
    value, found = relay.create_executor(mod=mod).evaluate()(*args)
    return value.numpy(), [f.numpy() for f in found]


def test_cells_and_functions_as_values():
    cell, done = relay.Var("cell"), relay.Var("done")
    twice = relay.RefWrite(cell, relay.RefRead(cell) * X)
    body = relay.Let(cell, relay.RefCreate(X), relay.Let(done, twice, relay.RefRead(cell)))
    x = np.random.default_rng(0).random((2, 3)).astype("float32")
    value, (by_x,) = derivatives(tvm.IRModule.from_expr(relay.Function([X], body)), x)
    np.testing.assert_allclose(value, x * x, rtol=1e-6)
    np.testing.assert_allclose(by_x, 2 * x, rtol=1e-6)
    apply = relay.var("f", relay.FuncType([X.type_annotation], X.type_annotation))
    applied = relay.Function([apply], apply(X))
    either = applied(relay.Function([Y], X * Y)) + applied(relay.Function([Y], relay.exp(Y)))
    _, (by_x,) = derivatives(tvm.IRModule.from_expr(relay.Function([X], either)), x)
    np.testing.assert_allclose(by_x, 2 * x + np.exp(x), rtol=1e-5)


def test_recursion_over_lists_and_numbers():
    mod = tvm.IRModule()
    prelude = relay.Prelude(mod)
    relay.testing.add_nat_definitions(prelude)
    _, cons, nil = mod.get_type("List")
    a, b = var("a", 2, 3), var("b", 2, 3)
    scale = relay.Function([a, b], relay.tanh(a) * b)
    folded = prelude.foldl(scale, X, cons(Y, cons(X, nil())))
    double = relay.Function([a], a + a)
    eight = prelude.nat_iterate(double, relay.testing.make_nat_expr(prelude, 3))
    mod["main"] = relay.Function([X, Y], eight(folded))
    x, y = np.random.default_rng(1).random((2, 2, 3))
    value, (by_x, by_y) = derivatives(mod, x.astype("float32"), y.astype("float32"))

    def expected(x, y):
        return 8 * np.tanh(np.tanh(x) * y) * x

    step = 1e-6
    np.testing.assert_allclose(value, expected(x, y), rtol=1e-5)
    for found, (dx, dy) in ((by_x, (step, 0)), (by_y, (0, step))):
        wanted = (expected(x + dx, y + dy) - expected(x - dx, y - dy)) / (2 * step)
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_derivatives_of_derivatives_with_cells():
    cell = relay.Var("cell")
    cubed = relay.Let(cell, relay.RefCreate(X * X), relay.RefRead(cell) * X)
    once = relay.transform.gradient(relay.testing.run_infer_type(relay.Function([X], cubed)))
    by_y = relay.TupleGetItem(relay.TupleGetItem(relay.Call(once, [Y]), 1), 0)
    y = np.random.default_rng(2).random((2, 3)).astype("float32")
    value, (second,) = derivatives(tvm.IRModule.from_expr(relay.Function([Y], by_y)), y)
    np.testing.assert_allclose(value, 3 * y * y, rtol=1e-5)
    np.testing.assert_allclose(second, 6 * y, rtol=1e-5)


def test_values_that_are_no_tensors_have_no_derivative():
    mod = tvm.IRModule()
    prelude = relay.Prelude(mod)
    header = mod.get_global_type_var("List")
    items = relay.var("items", header(relay.TensorType((2, 3))))
    mod["main"] = relay.Function([items], prelude.hd(items))
    with pytest.raises(TypeError, match="values of type .*List.* have no derivative"):
        derivatives(mod)


def test_one_hot_is_differentiated_by_its_values():
    on, off = relay.var("on", shape=()), relay.var("off", shape=())
    hot = relay.one_hot(relay.const([2, 0]), on, off, 3, -1, "float32")
    weight = np.arange(6, dtype="float32").reshape(2, 3)
    mod = tvm.IRModule.from_expr(relay.Function([on, off], hot * relay.const(weight)))
    _, (by_on, by_off) = derivatives(mod, np.float32(1), np.float32(0))
    assert by_on == 2 + 3 and by_off == 15 - 5


def test_the_pass_differentiates_every_function():
    mod = tvm.IRModule()
    mod["main"] = relay.Function([X], X * X)
    mod["other"] = relay.Function([Y], relay.sum(Y))
    found = relay.transform.FirstOrderGradient()(mod)
    x = np.random.default_rng(2).normal(size=(2, 3)).astype("float32")
    for name, wanted in (("main", 2 * x), ("other", np.ones_like(x))):
        _, (by,) = values_of(found[name], x)
        np.testing.assert_allclose(by.numpy(), wanted, rtol=1e-6)


def test_users_say_the_derivatives_of_operators():
    op = relay.op.register("test.halves", "the rows above and those below, doubled")
    op.set_num_inputs(1)
    op.add_type_rel(
        "Halves",
        lambda types, attrs: relay.TupleType([relay.TensorType((1, 3), types[0].dtype)] * 2),
    )

    @relay.op.register_compute("test.halves")
    def compute(attrs, inputs, out_type):
        (x,) = inputs
        return [
            tvm.te.compute((1, 3), lambda i, j, k=k: x(i + k, j) * tvm.tir.const(2, x.dtype))
            for k in range(2)
        ]

    @relay.op.register_gradient("test.halves")
    def derivative(call, head):
        return [relay.concatenate(head, 0) * relay.const(2.0, str(call.args[0].checked_type.dtype))]

    def halves(x):
        return relay.TupleWrapper(relay.Call(op, [x]), 2)

    check_grad(function(halves(X)[0] * halves(X)[1]))
    check_grad(function(halves(X)[0] * relay.const(3.0)))


def test_registered_derivatives_come_first_and_are_one_for_each_operand():
    before = tvm.ir.Op.get("sign").get_attr("FPrimalGradient")
    assert before is None
    relay.op.register_gradient("sign", lambda call, head: [head * relay.const(7.0)])
    try:
        func = relay.transform.gradient(function(relay.sign(X)))
        _, (found,) = values_of(func, np.full((2, 3), -4, "float32"))
        np.testing.assert_array_equal(found.numpy(), np.full((2, 3), 7, "float32"))
        relay.op.register_gradient("sign", lambda call, head: [], level=11)
        with pytest.raises(ValueError, match="sign.*gives 0 derivatives, and the call has 1 oper"):
            relay.transform.gradient(function(relay.sign(X)))
    finally:
        tvm.ir.Op.get("sign").reset_attr("FPrimalGradient")


def _operators(func):
    found = []

    def look(node):
        if isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op):
            found.append(str(node.op.name))

    relay.analysis.post_order_visit(func, look)
    return found


@pytest.mark.parametrize(
    ("expr", "kept"),
    [
        (X * Y + relay.zeros_like(X), ["multiply"]),
        (X - relay.zeros((3,), "float32"), []),
        (relay.ones((2, 3), "float32") * (X - Y) / relay.ones_like(X), ["subtract"]),
        (relay.exp(X) * relay.reshape(relay.zeros((3, 2), "float32"), (2, 3)) + Y, []),
        (relay.zeros((2, 3), "float32") / X + relay.zeros((2, 1), "float32"), ["full"]),
        (relay.zeros((2, 3), "float32") + relay.var("row", shape=(3,)), ["zeros", "add"]),
    ],
)
def test_zeros_and_ones_are_made_where_they_are_read(expr, kept):
    func = function(expr)
    mod = relay.transform.LazyGradientInit()(tvm.IRModule.from_expr(func))
    assert _operators(mod["main"]) == kept
    rng = np.random.default_rng(0)
    values = [rng.normal(size=p.checked_type.concrete_shape).astype("float32") for p in func.params]
    np.testing.assert_allclose(
        values_of(mod["main"], *values).numpy(), values_of(func, *values).numpy(), rtol=1e-6
    )


def test_gradients_stay_what_they_are_without_zeros_and_ones():
    func = relay.transform.gradient(function(X * Y + relay.exp(X)))
    mod = relay.transform.LazyGradientInit()(tvm.IRModule.from_expr(func))
    assert mod["main"].checked_type == func.checked_type
    values = [np.random.default_rng(k).normal(size=(2, 3)).astype("float32") for k in range(2)]
    (a, found), (b, wanted) = (values_of(f, *values) for f in (mod["main"], func))
    for one, other in zip([a, *found], [b, *wanted]):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)


def test_a_gradient_that_a_user_registers():
    op = relay.op.register("test.own_gradient")
    op.set_num_inputs(2)
    op.add_argument("x", "Tensor", "").add_argument("y", "Tensor", "")
    op.add_type_rel("OwnGradient", lambda types, attrs: types[0])

    @relay.op.register_compute("test.own_gradient")
    def compute(attrs, inputs, out_type):
        x, y = inputs
        return [tvm.te.compute(x.shape, lambda *i: x(*i) * y(*i))]

    # Not the derivatives of what is computed, so that one sees whose they are.
    @relay.op.register_gradient("test.own_gradient")
    def derivatives(call, head):
        x, y = call.args
        return [head * y * relay.const(10.0), head * x]

    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    func = relay.Function([x, y], relay.sum(relay.exp(relay.Call(op, [x, y]))))
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]
    mod = tvm.IRModule.from_expr(relay.transform.gradient(typed))
    a, b = np.array([1, 2], "float32"), np.array([1, 0.5], "float32")
    _, (by_x, by_y) = relay.create_executor("debug", mod, tvm.cpu(), "llvm").evaluate()(a, b)
    np.testing.assert_allclose(by_x.numpy(), 10 * b * np.exp(a * b), rtol=1e-5)
    np.testing.assert_allclose(by_y.numpy(), a * np.exp(a * b), rtol=1e-5)
