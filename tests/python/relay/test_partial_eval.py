"""What is known of a program, done beforehand."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import DeadCodeElimination, PartialEvaluate


def done(func, mod=None, inline_once=True):
    mod = tvm.IRModule() if mod is None else mod
    mod["main"] = func
    run = tvm.transform.Sequential(
        [PartialEvaluate(), DeadCodeElimination(inline_once, ignore_impurity=True)]
    )
    with tvm.transform.PassContext(opt_level=3):
        return run(mod)


def value(mod, *args):
    return relay.create_executor("debug", mod=mod, target="llvm").evaluate()(*args)


def kinds(mod):
    found = set()
    relay.analysis.post_order_visit(mod["main"], lambda e: found.add(type(e).__name__))
    return found


def test_fields_of_tuples():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    pair = relay.var("pair")
    func = relay.Function([x, y], relay.Let(pair, relay.Tuple([x, y]), relay.TupleGetItem(pair, 1)))
    mod = done(func)
    assert mod["main"].body.same_as(mod["main"].params[1])


def test_constants_and_branches():
    x = relay.var("x", shape=())
    cond = relay.less(relay.const(1.0) + relay.const(2.0), relay.const(4.0))
    mod = done(relay.Function([x], relay.If(cond, x * x, x)))
    assert "If" not in kinds(mod) and "Constant" not in kinds(mod)
    assert float(value(mod, np.float32(3)).numpy()) == 9
    mod = done(relay.Function([x], relay.If(x < relay.const(0.0), relay.const(1.0), x)))
    assert "If" in kinds(mod)
    assert float(value(mod, np.float32(-3)).numpy()) == 1


def test_references():
    x = relay.var("x", shape=())
    r, u = relay.var("r"), relay.var("u")
    read = relay.RefRead(r) * relay.const(2.0)
    body = relay.Let(r, relay.RefCreate(relay.const(1.0)), relay.Let(u, relay.RefWrite(r, x), read))
    mod = done(relay.Function([x], body))
    assert "RefRead" not in kinds(mod)
    assert float(value(mod, np.float32(3)).numpy()) == 6


def test_references_after_branches_are_read_again():
    x = relay.var("x", shape=())
    r, u = relay.var("r"), relay.var("u")
    branch = relay.If(x < relay.const(0.0), relay.RefWrite(r, relay.const(5.0)), relay.Tuple([]))
    body = relay.Let(r, relay.RefCreate(relay.const(1.0)), relay.Let(u, branch, relay.RefRead(r)))
    func = relay.Function([x], body)
    mod = tvm.IRModule.from_expr(func)
    mod = PartialEvaluate()(mod)
    assert "RefRead" in kinds(mod)
    assert float(value(mod, np.float32(-3)).numpy()) == 5
    assert float(value(mod, np.float32(3)).numpy()) == 1


def test_functions_as_values():
    x = relay.var("x", shape=())
    y, g, f = relay.var("y"), relay.var("g"), relay.var("f")
    twice = relay.Function([g, y], g(g(y)))
    z = relay.var("z")
    body = relay.Let(f, twice, f(relay.Function([z], z + x), relay.const(1.0)))
    mod = done(relay.Function([x], body))
    assert "Let" not in kinds(mod)
    assert float(value(mod, np.float32(3)).numpy()) == 7


def power(mod, count):
    """x to a power that is counted by a list of so many elements."""
    prelude = relay.prelude.Prelude(mod)
    _, cons, nil = prelude.mod.get_type("List")
    kind = prelude.mod.get_global_type_var("List")(relay.scalar_type("float32"))
    x, l, rest = relay.var("x", shape=()), relay.Var("l", kind), relay.Var("rest")
    name = relay.GlobalVar("power")
    clauses = [
        relay.Clause(relay.PatternConstructor(nil, []), relay.const(1.0)),
        relay.Clause(
            relay.PatternConstructor(cons, [relay.PatternWildcard(), relay.PatternVar(rest)]),
            x * name(x, rest),
        ),
    ]
    mod[name] = relay.Function([x, l], relay.Match(l, clauses), relay.scalar_type("float32"))
    made = nil()
    for _ in range(count):
        made = cons(relay.const(0.0), made)
    return name, made


@pytest.mark.parametrize("count", (0, 5))
def test_recursion_over_known_values_is_written_out(count):
    mod = tvm.IRModule()
    name, made = power(mod, count)
    y = relay.var("y", shape=())
    mod = done(relay.Function([y], name(y, made)), mod)
    assert not kinds(mod) & {"Match", "GlobalVar", "Constructor"}
    assert float(value(mod, np.float32(2)).numpy()) == 2.0**count


def test_recursion_over_unknown_values_stays():
    mod = tvm.IRModule()
    name, made = power(mod, 3)
    kind = mod[name].params[1].type_annotation
    y, l = relay.var("y", shape=()), relay.Var("l", kind)
    mod = done(relay.Function([y, l], name(y, l)), mod)
    assert "GlobalVar" in kinds(mod)
    mod = mod.clone()
    mod["main2"] = relay.Function(
        [], mod.get_global_var("main")(relay.const(2.0), made), relay.scalar_type("float32")
    )
    interpreter = relay.create_executor("debug", mod=mod, target="llvm")
    assert float(interpreter.evaluate(mod.get_global_var("main2"))().numpy()) == 8


def test_loops_by_let():
    """A function that calls itself by the name that let gives it."""
    i, x, loop = relay.var("i", shape=(), dtype="int32"), relay.var("x", shape=()), relay.var("f")
    cond = relay.equal(i, relay.const(0, "int32"))
    again = loop(i - relay.const(1, "int32"), x + x)
    step = relay.Function([i, x], relay.If(cond, x, again), relay.scalar_type("float32"))
    y, n = relay.var("y", shape=()), relay.var("n", shape=(), dtype="int32")
    mod = done(relay.Function([y], relay.Let(loop, step, loop(relay.const(4, "int32"), y))))
    assert "If" not in kinds(mod)
    assert float(value(mod, np.float32(3)).numpy()) == 48
    mod = done(relay.Function([n, y], relay.Let(loop, step, loop(n, y))))
    assert "If" in kinds(mod)
    assert float(value(mod, np.int32(3), np.float32(3)).numpy()) == 24
