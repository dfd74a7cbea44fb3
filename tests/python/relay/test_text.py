"""Relay's text format."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import testing


@pytest.mark.parametrize(
    "name", ["mlp", "resnet", "mobilenet", "dqn", "dcgan", "squeezenet", "inception_v3"]
)
def test_networks_come_back_from_their_text(name):
    mod, _ = getattr(testing, name).get_workload(batch_size=1)
    assert tvm.ir.structural_equal(relay.parse(mod.astext()), mod)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (42, "int16", "42i16"),
        (42, "int32", "42"),
        (3.0, "float32", "3f"),
        (1e-5, "float64", "1e-05f64"),
    ],
)
def test_scalars_have_the_spelling_of_their_type(value, dtype, text):
    constant = relay.const(value, dtype)
    assert constant.astext().splitlines()[-1] == text
    assert tvm.ir.structural_equal(relay.parse_expr(text), constant)


def test_arrays_are_kept_in_the_metadata():
    constant = relay.const(np.arange(6, dtype="float32"))
    text = relay.add(constant, constant).astext()
    assert "meta[relay.Constant][0]" in text
    assert "omitted" in str(relay.add(constant, constant))
    again = relay.parse_expr(text)
    np.testing.assert_array_equal(again.args[0].data.numpy(), np.arange(6))


def test_values_inside_of_branches_are_not_named_outside():
    x = relay.var("x", shape=())
    y = relay.exp(x)
    out = relay.Tuple([relay.If(relay.const(True), y + y, x), y])
    func = relay.Function([x], out)
    assert tvm.ir.structural_equal(relay.parse_expr(func.astext()), func)


def test_bindings_inside_of_an_operand_stand_in_parentheses():
    x, v = relay.var("x", "float32"), relay.var("v", "float32")
    squared = relay.Let(v, x + relay.const(1.0), v * v)
    func = relay.Function([x], squared + squared)
    text = func.astext(show_meta_data=False)
    assert "%0 = (\n    let %v: float32 = add(%x, 1f);\n    multiply(%v, %v)\n  );" in text
    tvm.ir.assert_structural_equal(relay.parse_expr(text), func)
    inline = """#[version = "0.0.5"]
fn (%x: float32) { add((let %z = %x; %1 = tanh(%z); multiply(%1, %z)), %x) }"""
    read = relay.parse_expr(inline)
    assert isinstance(read.body.args[0], relay.Let)
    tvm.ir.assert_structural_equal(relay.parse_expr(read.astext()), read)


def test_settings_at_their_defaults_are_left_out():
    x = relay.var("x")
    assert "nn.softmax(%x)" in relay.nn.softmax(x).astext()
    assert "axis=2" in relay.nn.softmax(x, axis=2).astext()


def test_mistakes_are_reported_with_their_place():
    source = "def @main(%x: float32) {\n  (%x, ad(%x, %x))\n}"
    with pytest.raises(tvm.error.DiagnosticError, match="text:2:8: there is no operator `ad`"):
        relay.parse(source, "text")


def test_operators_are_written_between_their_operands():
    x, y = relay.var("x"), relay.var("y")
    wanted = relay.Function([x, y], relay.add(x, relay.multiply(y, relay.const(2.0))))
    found = relay.parse_expr("fn (%x, %y) { %x + %y * 2f }")
    assert tvm.ir.structural_equal(found, wanted)


def test_the_parser_of_older_versions_reads_both_formats():
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(np.ones((2, 3), "float32"))))
    tvm.ir.assert_structural_equal(tvm.parser.parse(mod.astext()), mod)
    body = mod.astext().split("\n", 1)[1]
    tvm.ir.assert_structural_equal(tvm.parser.parse("// a comment\n" + body), mod)
    nothing = tvm.tir.PrimFunc([], tvm.tir.Evaluate(0))
    tvm.ir.assert_structural_equal(tvm.parser.parse(nothing.script()), nothing)


def test_functions_write_texts_too():
    constant = relay.const(np.arange(6, dtype="float32"))
    func = relay.Function([], relay.add(constant, constant))
    assert relay.astext(func) == func.astext()
    assert "omitted" in relay.pretty_print(func)
    assert relay.astext(func, annotate=lambda expr: "noted").count("noted") > 0


def test_comments_nest_and_free_variables_are_declared():
    assert relay.parse_expr("/* one /* within */ another */ 5 // and this").data.numpy() == 5
    total = relay.parse_expr("free_var %x: int32;\nfree_var %y: int32;\n%x + %y * %x")
    assert [str(v.name_hint) for v in relay.analysis.free_vars(total)] == ["x", "y"]
    with pytest.raises(tvm.error.DiagnosticError, match="1:3: the comment has no end"):
        relay.parse("5 /* /* */")


def test_free_variables_are_declared_before_an_expression():
    x, y = relay.var("x", shape=(3, 2)), relay.var("y")
    expr = relay.add(x, y)
    assert expr.astext().splitlines()[1:] == [
        "free_var %x: Tensor[(3, 2), float32];",
        "free_var %y;",
        "add(%x, %y)",
    ]
    back = relay.parse_expr(expr.astext())
    tvm.ir.assert_structural_equal(back, expr, map_free_vars=True)
    inside = relay.Function([x], expr)
    assert inside.astext().count("free_var") == 1
    tvm.ir.assert_structural_equal(relay.fromtext(inside.astext()), inside, map_free_vars=True)


def test_texts_may_import_the_library_and_name_types_of_elsewhere():
    mod = relay.parse(
        """#[version = "0.0.5"]
        import "prelude.rly"
        extern type Handle[A]
        def @main() -> int32 { @length(Cons(1, Cons(2, Nil))) }"""
    )
    assert relay.create_executor(mod=mod).evaluate()().numpy() == 2
    assert "Handle" in mod.type_definitions
    with pytest.raises(tvm.error.DiagnosticError, match="two type parameters `A`"):
        relay.parse("type Pair[A, A] { Both(A, A) }")
    with pytest.raises(tvm.error.DiagnosticError, match="%b is not defined"):
        relay.parse_expr("let %a = 1; %b")


def test_calls_know_their_place_in_the_text():
    mod = relay.parse("def @main(%x: int32) {\n  %x + negative(%x)\n}", "file.rly")
    total = mod["main"].body
    assert (total.span.line, total.span.column) == (2, 6)
    assert str(total.span.source_name.name) == "file.rly"
    assert total.args[1].span.column == 16


def test_attributes_are_numbers_however_they_are_given():
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], x).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    same = relay.Function([x], x, attrs={"Primitive": tvm.tir.IntImm("int64", 1)})
    assert func.attrs["Primitive"] == 1
    tvm.ir.assert_structural_equal(func, same)
    mod = tvm.IRModule.from_expr(func)
    tvm.ir.assert_structural_equal(relay.parse(mod.astext()), mod)


def test_numbers_without_an_end_are_written_and_read():
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.clip(x, -np.inf, np.inf))
    assert "a_min=-inff" in mod.astext()
    tvm.ir.assert_structural_equal(relay.parse(mod.astext()), mod)
    with pytest.raises(tvm.error.DiagnosticError, match="two parameters %x"):
        relay.parse("def @main(%x: int32, %x: int32) { %x }")
