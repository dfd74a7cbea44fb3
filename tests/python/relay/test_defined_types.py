"""Lists and other types that modules define, matches on them, loops, and programs as files."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.prelude import Prelude


@pytest.fixture(scope="module")
def library():
    mod = tvm.IRModule()
    Prelude(mod)
    mod.import_from_std("nat.rly")
    return relay.transform.InferType()(mod)


def numbers(library, items):
    _, cons, nil = library.get_type("List")
    result = nil()
    for item in reversed(items):
        result = cons(relay.const(item), result)
    return result


def run(library, expr, *args):
    mod = library.clone()
    mod["main"] = expr
    return relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm")).run(*args)


def listed(value):
    items = []
    while len(value) == 2:
        items.append(value[0].numpy().item())
        value = value[1]
    return items


def test_the_library_does_what_python_does(library):
    p = Prelude(library.clone())
    xs = numbers(library, [3, 1, 2])
    x, y = relay.var("x", "int32"), relay.var("y", "int32")
    double = relay.Function([x], x + x)
    small = relay.Function([x], x < relay.const(3))
    minus = relay.Function([x, y], x - y)
    assert listed(run(library, p.map(double, xs))) == [6, 2, 4]
    assert listed(run(library, p.filter(small, xs))) == [1, 2]
    assert listed(run(library, p.rev(xs))) == [2, 1, 3]
    assert listed(run(library, p.concat(xs, xs))) == [3, 1, 2, 3, 1, 2]
    assert run(library, p.foldl(minus, relay.const(0), xs)).numpy() == -6
    assert run(library, p.foldr(minus, relay.const(0), xs)).numpy() == 3 - (1 - 2)
    assert run(library, p.length(xs)).numpy() == 3
    assert run(library, p.nth(xs, relay.const(1))).numpy() == 1


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_natural_numbers_count(kind):
    prelude = Prelude(tvm.IRModule())
    relay.testing.add_nat_definitions(prelude)
    three, four = (relay.testing.make_nat_expr(prelude, n) for n in (3, 4))
    total = prelude.mod.get_global_var("nat_add")(three, four)
    executor = relay.create_executor(kind, mod=prelude.mod, target="llvm")
    assert relay.testing.count(prelude, executor.evaluate(total)) == 7
    assert relay.testing.count(prelude, relay.testing.make_nat_value(prelude, 5)) == 5
    with pytest.raises(ValueError, match="not negative, got -1"):
        relay.testing.make_nat_expr(prelude, -1)


def test_text_with_types_reads_back(library):
    text = library.astext()
    assert "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}" in text
    again = relay.transform.InferType()(relay.parse(text))
    tvm.ir.assert_structural_equal(again, library, map_free_vars=True)
    loaded = tvm.ir.load_json(tvm.ir.save_json(library))
    assert loaded.get_type("List")[1].tag == library.get_type("List")[1].tag


def test_matches_without_a_clause_are_found_and_named(library):
    header, cons, nil = library.get_type("List")
    x = relay.var("x", header(relay.scalar_type("int32")))
    only = relay.Match(
        x, [relay.Clause(relay.PatternConstructor(cons), relay.const(1))], complete=False
    )
    missing = relay.analysis.unmatched_cases(only, library)
    assert [str(case.constructor.name_hint) for case in missing] == ["Nil"]
    both = relay.Match(x, [*only.clauses, relay.Clause(relay.PatternWildcard(), relay.const(2))])
    assert relay.analysis.unmatched_cases(both, library) == []
    with pytest.raises(ValueError, match="no clause"):
        run(library, relay.bind(only, {x: nil()}))
    with pytest.raises(tvm.error.DiagnosticError, match="no constructor `Nothing`"):
        relay.parse("def @main(%x: int32) { match (%x) { Nothing => 1 } }")
    with pytest.raises(KeyError, match='no type "Set"'):
        library.get_type("Set")


def test_loops_and_recursive_functions():
    i, total = relay.var("i", "int32"), relay.var("total", "int32")
    step = relay.var("step", "int32")
    loop = relay.loops.while_loop(
        lambda i, t: i < relay.const(10), [i, total], lambda i, t: [i + relay.const(1), t + step]
    )
    ret = loop(relay.const(0), relay.const(0))
    func = relay.Function([step], relay.TupleGetItem(ret, 1))
    assert run(tvm.IRModule(), func, 3).numpy() == 30


def test_programs_are_saved_with_and_without_their_constants(tmp_path):
    data = np.arange(600, dtype="float32")
    x = relay.var("x", shape=(600,))
    func = relay.Function([x], relay.Tuple([x + relay.const(data), relay.nn.relu(x)]))
    program = relay.vm.compile(func, "llvm")
    code, lib = program.save()
    again = tvm.runtime.vm.VirtualMachine(tvm.runtime.vm.Executable.load_exec(code, lib))
    again.set_one_input("main", "x", data)
    again.invoke_stateful("main")
    np.testing.assert_allclose(again.get_outputs()[0].numpy(), data + data)
    program.move_late_bound_consts(tmp_path / "consts", byte_limit=256)
    program.mod.export_library(tmp_path / "net.so")
    loaded = tvm.runtime.vm.Executable(tvm.runtime.load_module(tmp_path / "net.so"))
    with pytest.raises(ValueError, match="missing"):
        tvm.runtime.vm.VirtualMachine(loaded).run(data)
    loaded.load_late_bound_consts(tmp_path / "consts")
    machine = tvm.runtime.vm.VirtualMachine(loaded)
    np.testing.assert_allclose(machine.run(x=data)[0].numpy(), data + data)
    with pytest.raises(ValueError, match="no parameter"):
        machine.run(z=data)
    assert machine.benchmark(tvm.cpu(), data, repeat=2, number=1).mean > 0


def test_features_and_counts():
    x = relay.var("x", shape=(1, 4))
    dense = relay.nn.dense(x, relay.var("w", shape=(4, 4)))
    body = relay.nn.dense(dense, relay.var("v", shape=(8, 4)))
    func = relay.transform.InferType()(tvm.IRModule.from_expr(body))["main"]
    assert relay.analysis.count_layers(func, ["nn.dense"]) == 2
    assert relay.analysis.get_total_mac_number(func) == 16 + 32
    assert relay.analysis.list_op_freqs(func) == {"nn.dense": 2}
    found = relay.analysis.detect_feature(func)
    assert relay.analysis.Feature.fCall in found and relay.analysis.Feature.fLet not in found
    assert relay.analysis.well_formed(func)
    v = relay.var("v", "int32")
    one = relay.const(1)
    assert not relay.analysis.well_formed(relay.Let(v, one, relay.Let(v, one, v)))


def test_a_call_graph_counts_uses(library):
    graph = relay.analysis.CallGraph(library)
    assert graph.is_recursive("foldr") and not graph.is_recursive("compose")
    assert graph["rev"] == {"rev_onto": 1} and graph.ref_count("rev_onto") == 2
    with pytest.raises(KeyError, match="nobody"):
        graph.ref_count("nobody")


def test_types_without_parameters_are_those_of_values(library):
    nat, zero, _ = library.get_type("nat")
    made = relay.Function([relay.var("n", nat)], zero(), nat())
    mod = library.clone()
    mod["main"] = made
    typed = relay.transform.InferType()(mod)["main"]
    assert typed.body.checked_type == nat()
    again = relay.parse(relay.transform.InferType()(mod).astext())
    tvm.ir.assert_structural_equal(again["main"].ret_type, nat())


def test_executors_that_look_inside_name_constructors_and_cells(library):
    value = relay.create_executor("debug", mod=library).evaluate(numbers(library, [3]))
    _, cons, nil = library.get_type("List")
    assert value.tag == cons.tag and value.constructor.name_hint == "Cons"
    assert value.fields[0].numpy() == 3 and value.fields[1].tag == nil.tag
    cell = relay.create_executor("debug").evaluate(relay.RefCreate(relay.const(5)))
    assert isinstance(cell, relay.backend.interpreter.RefValue) and cell.value.numpy() == 5
    x = relay.var("x", "float32")
    half = relay.Function([], relay.Function([x], x * relay.const(0.5)))
    assert relay.create_executor("debug").evaluate(half)()(np.float32(3)).numpy() == 1.5
