"""Functions that hand their result on, compared with those that return it."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.prelude import Prelude
from tvm.relay.testing import add_nat_definitions, make_nat_expr, run_infer_type
from tvm.relay.transform import ToCPS, to_cps, un_cps


def value(mod, *args):
    return relay.create_executor("vm", mod=mod).evaluate(mod.get_global_var("main"))(*args).numpy()


def test_the_type_takes_a_continuation_for_every_answer():
    x = relay.var("x", shape=(2, 3))
    func = run_infer_type(to_cps(relay.Function([x], relay.nn.relu(x))))
    (answer,) = func.type_params
    tensor = relay.TensorType((2, 3))
    assert func.checked_type == relay.FuncType(
        [tensor, relay.FuncType([tensor], answer)], answer, [answer]
    )
    back = run_infer_type(un_cps(func))
    assert back.checked_type == relay.FuncType([tensor], tensor)


def test_functions_of_functions_take_continuations_too():
    t = relay.TypeVar("t")
    x, f = relay.var("x", t), relay.var("f", relay.FuncType([t], t))
    twice = run_infer_type(relay.Function([f, x], f(f(x)), t, [t]))
    new = run_infer_type(to_cps(twice))
    own, answer = new.type_params
    k = relay.FuncType([own], answer)
    assert new.params[0].type_annotation == relay.FuncType([own, k], answer)
    assert new.params[1].type_annotation == own and new.params[2].type_annotation == k


def test_recursion_over_defined_types():
    mod = tvm.IRModule()
    p = Prelude(mod)
    add_nat_definitions(p)
    x, i = relay.var("x", shape=(3, 4)), relay.var("i", shape=(3, 4))
    double = relay.Function([x], x + x)
    count = make_nat_expr(p, 3)
    mod["main"] = relay.Function([i], mod.get_global_var("nat_iterate")(double, count)(i))
    mod = relay.transform.InferType()(mod)
    new = to_cps(mod["main"], mod=mod)
    assert any(str(gv.name_hint) == "nat_iterate_cps" for gv in mod.get_global_vars())
    mod["main"] = un_cps(new)
    data = np.random.default_rng(0).random((3, 4)).astype("float32")
    np.testing.assert_array_equal(value(mod, data), 8 * data)


def bound_values(func):
    lets = []
    relay.analysis.post_order_visit(
        func, lambda e: lets.append(e) if isinstance(e, relay.Let) else None
    )
    return [let.value for let in lets]


def calls_a_function(expr):
    return isinstance(expr, relay.Call) and not isinstance(expr.op, (tvm.ir.Op, relay.Constructor))


SOURCE = """#[version = "0.0.5"]
type Shape {
  Square(Tensor[(), float32]),
  Box(Tensor[(), float32], Tensor[(), float32]),
}
def @area(%s: Shape) -> float32 {
  match (%s) {
    Square(%a) => @product(%a, %a),
    Box(%a, %b) => @product(%a, %b),
  }
}
def @product(%a: float32, %b: float32) -> float32 { %a * %b }
def @power(%n: int32, %x: float32) -> float32 {
  if (%n == 0) { 1f } else { @product(%x, @power(%n - 1, %x)) }
}
def @main(%n: int32, %x: float32) -> float32 {
  let %cell = ref(%x);
  let %go = fn (%k: int32) -> float32 {
    if (%k == 0) { ref_read(%cell) } else {
      ref_write(%cell, @product(ref_read(%cell), 2f));
      %go(%k - 1)
    }
  };
  let %pair = (%go(%n), @power(%n, %x));
  @area(Box(%pair.0, %pair.1)) + @area(Square(%x))
}
"""


@pytest.mark.parametrize("n", [0, 1, 4])
def test_branches_cells_matches_and_recursion_compute_the_same(n):
    mod = relay.transform.InferType()(relay.parse(SOURCE))
    new = ToCPS()(mod)
    for gv in mod.get_global_vars():
        name = str(gv.name_hint)
        assert len(new[name].params) == len(mod[name].params) + 1
    # Every call of a function is the last thing in its block.
    for name in ("main", "area", "power"):
        assert not any(map(calls_a_function, bound_values(new[name])))
    new["main"] = un_cps(new["main"])
    args = np.int32(n), np.float32(1.5)
    expected = 1.5 * 2**n * 1.5**n + 1.5**2
    np.testing.assert_allclose(value(mod, *args), expected, rtol=1e-6)
    np.testing.assert_allclose(value(new, *args), expected, rtol=1e-6)


def test_what_has_no_such_form_is_refused():
    x = relay.var("x", shape=(2,))
    with pytest.raises(tvm.error.TypeError, match="no continuation"):
        un_cps(relay.Function([x], x))
    mod = relay.parse(
        '#[version = "0.0.5"]\ntype Task { Do(fn (int32) -> int32) }\n'
        "def @main(%f: fn (int32) -> int32) -> Task { Do(%f) }"
    )
    with pytest.raises(tvm.error.ValueError, match="'Do' holds functions"):
        ToCPS()(mod)
