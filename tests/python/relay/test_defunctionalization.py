"""Programs without functions as values, compared with those that have them."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.prelude import Prelude
from tvm.relay.transform import Defunctionalization


def value(mod, *args):
    return relay.create_executor("vm", mod=mod).evaluate(mod.get_global_var("main"))(*args)


def has_functions_as_values(func):
    found = []

    def look(expr):
        parts = expr.args if isinstance(expr, relay.Call) else ()
        found.extend(p for p in parts if isinstance(p.checked_type, relay.FuncType))
        if isinstance(expr, relay.Call) and isinstance(expr.op, (relay.Var, relay.Function)):
            found.append(expr.op)

    relay.analysis.post_order_visit(func.body, look)
    return bool(found)


def without_functions(mod):
    mod = relay.transform.InferType()(mod)
    known = {str(gv.name_hint) for gv in mod.get_global_vars()}
    mod["main"] = Defunctionalization(mod["main"], mod)
    mod = relay.transform.InferType()(mod)
    new = [f for gv, f in mod.functions.items() if str(gv.name_hint) not in known]
    assert not any(map(has_functions_as_values, [mod["main"], *new]))
    return mod


SOURCE = """#[version = "0.0.5"]
def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
def @half(%x: float32) -> float32 { %x * 0.5f }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C {
  fn (%x: A) -> C { %f(%g(%x)) }
}
def @main(%n: int32, %x: float32) -> (float32, int32) {
  let %add = fn (%y: float32) -> float32 { %y + %x };
  let %go = fn (%k: int32, %y: float32) -> float32 {
    if (%k == 0) { %y } else { %go(%k - 1, %add(%y)) }
  };
  let %cell = ref(%add);
  ref_write(%cell, @compose(@half, %add));
  let %f = ref_read(%cell);
  let %a = @twice(%f, %go(%n, %x));
  (if (%n == 1) { @half(%a) } else { %f(%a) }, @twice(fn (%i: int32) -> int32 { %i * %n }, 3))
}
"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_closures_cells_and_generic_functions_compute_the_same(n):
    mod = relay.parse(SOURCE)
    args = np.int32(n), np.float32(1.25)
    x = 1.25
    f = lambda y: 0.5 * (y + x)  # noqa: E731
    a = f(f(x + n * x))
    expected = (0.5 * a if n == 1 else f(a), 3 * n * n)
    new = without_functions(mod)
    for found in (value(relay.parse(SOURCE), *args), value(new, *args)):
        np.testing.assert_allclose(found[0].numpy(), expected[0], rtol=1e-6)
        assert found[1].numpy() == expected[1]


def test_functions_over_lists():
    mod = tvm.IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    scale, x, y = (relay.var(n, "int32") for n in ("scale", "x", "y"))
    items = cons(relay.const(1), cons(relay.const(2), cons(relay.const(3), nil())))
    scaled = p.map(relay.Function([x], x * scale, relay.scalar_type("int32")), items)
    minus = relay.Function([x, y], x - y, relay.scalar_type("int32"))
    mod["main"] = relay.Function([scale], p.foldl(minus, relay.const(100), scaled))
    new = without_functions(mod)
    assert value(new, np.int32(7)).numpy() == 100 - 7 * (1 + 2 + 3)


def test_functions_that_nothing_makes():
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "type List[A] { Cons(A, List[A]), Nil, }\n"
        "def @first(%fs: List[fn (int32) -> int32]) -> int32 {\n"
        "  match (%fs) { Cons(%f, _) => %f(1), Nil => 7, }\n}\n"
        "def @main() -> int32 { @first(Nil) }"
    )
    assert value(without_functions(mod)).numpy() == 7


def test_what_cannot_be_written_so_is_refused():
    f = relay.var("f", relay.FuncType([relay.scalar_type("int32")], relay.scalar_type("int32")))
    with pytest.raises(tvm.error.ValueError, match="nor take or give functions"):
        Defunctionalization(relay.Function([f], f(relay.const(1))), tvm.IRModule())
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "def @id[A](%x: A) -> A { %x }\n"
        "def @call(%f: fn (int32) -> int32) -> int32 { %f(1) }\n"
        "def @main() -> int32 { @call(@id) }"
    )
    with pytest.raises(tvm.error.ValueError, match="generic function"):
        Defunctionalization(mod["main"], mod)
