"""Where values of programs live, and copies between devices."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.annotation import on_device
from tvm.target import CompilationConfig, Target, VirtualDevice, make_compilation_config

CPU, GPU = VirtualDevice("cpu"), VirtualDevice("cuda")
CONFIG = CompilationConfig([Target("llvm"), Target("cuda")])
X, Y, Z = (relay.var(name, shape=(5, 7)) for name in "xyz")


def _planned(body, params=None, config=CONFIG):
    params = relay.analysis.free_vars(body) if params is None else params
    mod = tvm.IRModule.from_expr(relay.Function(params, body))
    return relay.transform.PlanDevices(config)(mod)["main"]


def _kind(expr):
    return {1: "cpu", 2: "gpu"}[expr.virtual_device_.device_type]


def _copies(func):
    """Operators whose results are copied, with the devices."""
    found = []

    def look(expr):
        if isinstance(expr, relay.Call) and str(getattr(expr.op, "name", "")) == "device_copy":
            source, target = (expr.attrs[f"{end}_virtual_device"] for end in ("src", "dst"))
            value = expr.args[0]
            while isinstance(value, relay.Call) and str(value.op.name) == "on_device":
                value = value.args[0]
            named = value if isinstance(value, relay.Var) else value.op
            name = str(getattr(named, "name_hint", None) or named.name)
            found.append((name, source.device_type, target.device_type))

    relay.analysis.post_order_visit(func, look)
    return found


def test_values_are_copied_where_marks_of_two_devices_meet():
    func = _planned(on_device(X + Y, CPU) - on_device(Z * relay.const(2.0), GPU))
    assert [_kind(p) for p in func.params] == ["cpu", "cpu", "gpu"]
    # What nothing places is on the default device, a processor.
    assert _kind(func) == _kind(func.body) == "cpu"
    assert _copies(func) == [("multiply", 2, 1)]
    copy = func.body.args[1]
    assert _kind(copy) == "cpu" and _kind(copy.args[0].args[0]) == "gpu"
    assert str(copy.virtual_device_.target.kind.name) == "llvm"


def test_everything_is_on_the_device_of_the_only_mark():
    func = _planned(on_device((X + Y) * relay.const(2.0), GPU))
    kinds = []
    relay.analysis.post_order_visit(
        func, lambda e: kinds.append(_kind(e)) if hasattr(e, "virtual_device_") else None
    )
    assert set(kinds) == {"gpu"} and _copies(func) == []


def test_the_program_stays_as_it_was():
    body = on_device(X + Y, GPU)
    _planned(body)
    assert X.virtual_device_.is_unconstrained and body.args[0].virtual_device_.is_unconstrained


@pytest.mark.parametrize(
    ("marked", "device", "copies"),
    [
        (lambda v: on_device(v, GPU), "gpu", []),
        # The result alone is placed, and so what it is made of, for nothing says otherwise.
        (lambda v: on_device(v, GPU, constrain_result=True, constrain_body=False), "gpu", []),
        (lambda v: on_device(on_device(v, CPU), GPU), "gpu", [("add", 1, 2)]),
    ],
)
def test_marks_of_a_result(marked, device, copies):
    func = _planned(marked(X + Y))
    assert _kind(func) == device and _copies(func) == copies


def test_a_bound_variable_lives_with_its_value_and_is_copied_where_it_is_used():
    v = relay.var("v")
    func = _planned(relay.Let(v, on_device(X + Y, CPU), on_device(v - Z, GPU)))
    assert _kind(func.body.var) == "cpu" and _kind(func.body) == "gpu"
    assert _copies(func) == [("v", 1, 2)]


def test_a_parameter_that_says_where_it_is():
    x = relay.expr.VarWithFields(X, virtual_device=GPU)
    func = _planned(on_device(x + Y, CPU))
    assert [_kind(p) for p in func.params] == ["gpu", "cpu"] and _copies(func) == [("x", 2, 1)]


def test_a_field_of_a_marked_tuple_is_marked():
    field = relay.TupleGetItem(on_device(relay.Tuple([X, Y]), GPU), 1)
    func = _planned(on_device(field, CPU))
    assert [_kind(p) for p in func.params] == ["gpu", "gpu"] and _kind(func) == "cpu"


def test_conditions_are_wanted_on_the_host():
    less = relay.less(relay.max(X), relay.const(1.0))
    func = _planned(relay.If(on_device(less, GPU), on_device(X + Y, GPU), X * Y))
    assert _copies(func) == [("less", 2, 1)]
    assert [_kind(p) for p in func.params] == ["gpu", "gpu"]
    assert _kind(func.body.cond) == "cpu" and _kind(func.body.true_branch) == "gpu"


def test_functions_have_a_device_for_each_parameter():
    f, v = relay.var("f"), relay.var("v", shape=(5, 7))
    inner = relay.Function([v], on_device(on_device(v, CPU) + relay.const(1.0), GPU))
    result = on_device(f(X), CPU, constrain_result=True, constrain_body=False)
    func = _planned(relay.Let(f, inner, result), [X])
    closure = func.body.value
    assert _kind(closure.params[0]) == "cpu" and _kind(closure) == "gpu"
    assert _copies(func) == [("v", 1, 2), ("f", 2, 1)]


def test_functions_of_a_module_are_planned_together():
    mod = tvm.IRModule()
    v = relay.var("v", shape=(5, 7))
    mod["twice"] = relay.Function([v], on_device(v + v, GPU))
    mod["main"] = relay.Function([X], mod.get_global_var("twice")(X))
    planned = relay.transform.PlanDevices(CONFIG)(mod)
    assert _kind(planned["main"].params[0]) == _kind(planned["main"]) == "gpu"


def test_cells_and_values_of_defined_types_are_in_one_place():
    cell = relay.var("cell")
    read = relay.Let(cell, relay.RefCreate(on_device(X + Y, GPU)), relay.RefRead(cell))
    assert _kind(_planned(read)) == "gpu"
    mod = tvm.IRModule()
    prelude = relay.Prelude(mod)
    _, cons, nil = mod.get_type("List")
    mod["main"] = relay.Function([], prelude.rev(cons(relay.const(1), cons(relay.const(2), nil()))))
    planned = relay.transform.PlanDevices(CONFIG)(mod)
    assert _kind(planned["rev"]) == "cpu"
    program = relay.vm.compile(planned, "llvm")
    found = tvm.runtime.vm.VirtualMachine(program, tvm.cpu()).run()
    assert int(found[0].numpy()) == 2


def test_a_constant_is_wherever_it_is_used():
    two = relay.const(2.0)
    func = _planned(on_device(X * two, GPU) + on_device(Y * two, CPU))
    kinds = []
    relay.analysis.post_order_visit(
        func, lambda e: kinds.append(_kind(e)) if isinstance(e, relay.Constant) else None
    )
    assert sorted(kinds) == ["cpu", "gpu"] and _copies(func) == [("multiply", 1, 2)]


def test_a_value_in_two_places_is_refused_by_name():
    both = on_device(X, CPU, constrain_result=True) + on_device(Y, GPU, constrain_result=True)
    message = r"argument 1 of add: 'on_device\(...\)' is on cuda\(0\), and cpu\(0\) is asked for"
    with pytest.raises(ValueError, match=message):
        _planned(both)
    with pytest.raises(ValueError, match="no target for cuda, only for cpu; add one"):
        _planned(on_device(X, GPU), config=CompilationConfig([Target("llvm")]))


def test_a_planned_program_is_text_that_is_read_again_and_planned_again():
    mod = tvm.IRModule.from_expr(relay.Function([X, Z], on_device(X + X, CPU) - on_device(Z, GPU)))
    planned = relay.transform.PlanDevices(CONFIG)(mod)
    text = planned.astext()
    assert "%x {virtual_device=meta[VirtualDevice]" in text
    again = relay.parse(text)
    tvm.ir.assert_structural_equal(again, planned)
    assert [_kind(p) for p in again["main"].params] == ["cpu", "gpu"]
    tvm.ir.assert_structural_equal(relay.transform.PlanDevices(CONFIG)(again), planned)
    # Types that are found and parts that are rewritten stay where they were.
    typed = relay.transform.Sequential(
        [relay.transform.InferType(), relay.transform.FoldConstant()]
    )(again)
    assert [_kind(p) for p in typed["main"].params] == ["cpu", "gpu"]


def test_a_program_on_one_of_several_devices_is_built_for_that_one():
    body = (X + Y) * relay.const(2.0)
    mod = tvm.IRModule.from_expr(relay.Function([X, Y], body))
    one = np.ones((5, 7), "float32")
    for program in (mod, relay.transform.PlanDevices(CONFIG)(mod)):
        lib = relay.build(program, {"cpu": "llvm", "cuda": "cuda"})
        executor = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
        executor.run(x=one, y=one)
        np.testing.assert_array_equal(executor.get_output(0).numpy(), 4 * one)
    split = tvm.IRModule.from_expr(relay.Function([X, Y], on_device(X, GPU) + on_device(Y, CPU)))
    message = r"several devices \(x on cuda\(0\), .* on cpu\(0\)\).*NDArray.copyto"
    for build in (relay.build, relay.vm.compile):
        with pytest.raises(ValueError, match=message):
            build(split, {"cpu": "llvm", "cuda": "cuda"})


def test_targets_of_a_program():
    one = make_compilation_config(tvm.transform.PassContext(), "cuda", "llvm")
    assert one.optional_homogeneous_target is not None
    assert one.default_primitive_virtual_device.device_type == 2
    assert one.host_virtual_device.device_type == 1
    several = make_compilation_config(None, {"cpu": "llvm", "cuda": "cuda"})
    assert several.optional_homogeneous_target is None
    assert several.default_primitive_virtual_device.device_type == 1
    with tvm.transform.PassContext(config={"relay.fallback_device_type": 2}) as context:
        chosen = make_compilation_config(context, ["llvm", "cuda"])
    assert chosen.default_primitive_virtual_device.device_type == 2
    with pytest.raises(ValueError, match="'llvm' and 'c' are for one type of device"):
        make_compilation_config(None, ["llvm", "c"])
    with pytest.raises(ValueError, match="give a target"):
        make_compilation_config(None, None)


def test_what_holds_of_two_devices():
    joined = VirtualDevice.join(CPU, VirtualDevice(memory_scope="global"))
    assert (joined.device_type, joined.memory_scope) == (1, "global")
    assert VirtualDevice.join(CPU, GPU) is None
    assert VirtualDevice.default(GPU, CPU).device_type == 2
    assert VirtualDevice.default(VirtualDevice(), CPU).device_type == 1
