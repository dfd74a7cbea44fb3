"""Modules, functions, attributes, operators."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir


def make_func(value: int, **attrs):
    func = tir.PrimFunc([], tir.Evaluate(tvm.tir.const(value, "int32")))
    return func.with_attr(attrs) if attrs else func


def test_module_finds_functions_by_name_and_variable():
    mod = tvm.IRModule({"f": make_func(1), "g": make_func(2)})
    var = mod.get_global_var("g")
    assert mod["g"].same_as(mod[var])
    assert [v.name_hint for v in mod.get_global_vars()] == ["f", "g"]
    assert "f" in mod
    assert "h" not in mod


def test_missing_function_lists_the_names():
    mod = tvm.IRModule({"f": make_func(1), "g": make_func(2)})
    with pytest.raises(KeyError, match='no function "h"; the functions are: f, g'):
        mod["h"]
    with pytest.raises(KeyError, match="no function"):
        mod.get_global_var("h")


def test_update_func_replaces_one_function():
    mod = tvm.IRModule({"f": make_func(1), "g": make_func(2)})
    before = mod["g"]
    mod.update_func(mod.get_global_var("f"), make_func(3))
    assert tvm.ir.structural_equal(mod["f"], make_func(3))
    assert mod["g"].same_as(before)


def test_from_expr_takes_the_name_from_the_function():
    mod = tvm.IRModule.from_expr(make_func(1, global_symbol="run"))
    assert [v.name_hint for v in mod.get_global_vars()] == ["run"]
    assert "main" in tvm.IRModule.from_expr(make_func(1))


def test_with_attr_leaves_the_original_alone():
    func = make_func(1)
    tagged = func.with_attr("tag", "x")
    assert tagged.attrs["tag"] == "x"
    assert func.attrs is None or "tag" not in func.attrs
    assert "tag" not in tagged.with_attr("other", 1).without_attr("tag").attrs
    assert type(tagged) is tir.PrimFunc


def test_equal_modules_need_not_share_anything():
    first = tvm.IRModule({"f": make_func(1), "g": make_func(2)})
    second = tvm.IRModule({"g": make_func(2), "f": make_func(1)})
    tvm.ir.assert_structural_equal(first, second)
    assert tvm.ir.structural_hash(first) == tvm.ir.structural_hash(second)
    tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(first)), second)


def test_module_attributes_are_read_by_name():
    mod = tvm.IRModule({"f": make_func(1)}, attrs={"origin": "test"})
    assert mod.get_attr("origin") == "test"
    assert mod.get_attr("none") is None
    assert mod.with_attr("n", 3).get_attr("n") == 3
    assert mod.get_attr("n") is None


def test_module_prints_its_functions():
    text = tvm.IRModule({"f": make_func(1), "g": make_func(2)}).script()
    assert "@I.ir_module\nclass Module:\n" in text
    assert "def f(" in text and "def g(" in text


def test_operator_is_one_object_and_saved_by_name():
    op = tvm.ir.Op.get("tir.exp")
    assert op.same_as(tvm.ir.Op.get("tir.exp"))
    assert tvm.ir.load_json(tvm.ir.save_json(op)).same_as(op)
    with pytest.raises(ValueError, match='no operator "te.likely".*did you mean "tir.likely"'):
        tvm.ir.Op.get("te.likely")


@pytest.mark.parametrize(
    ("dtype", "value"), [("int8", 128), ("uint8", -1), ("int32", 2**31), ("bool", 2)]
)
def test_integer_literal_refuses_values_outside_its_type(dtype, value):
    with pytest.raises(ValueError, match="IntImm"):
        tvm.ir.IntImm(dtype, value)


def test_range_from_end_begin_or_extent():
    assert tvm.ir.Range(4) == tvm.ir.Range(0, 4)
    assert tvm.ir.Range(2, 6) == tvm.ir.Range.from_min_extent(2, 4)
    assert tvm.ir.Range(2, 6) != tvm.ir.Range(2, 7)
    n = tir.Var("n", "int32")
    assert tvm.ir.structural_equal(tvm.ir.Range(n, n + 4).min, n)


def test_types_compare_by_structure():
    assert tvm.ir.PrimType("int32") == tvm.ir.PrimType("int32")
    assert tvm.ir.PointerType(tvm.ir.PrimType("int8"), "global") == tvm.ir.PointerType(
        tvm.ir.PrimType("int8")
    )
    assert tvm.ir.TupleType([]) != tvm.ir.PrimType("int32")


def test_function_types_may_have_type_parameters():
    def identity(name):
        parameter = tvm.ir.TypeVar(name)
        return tvm.ir.FuncType([parameter], parameter, [parameter])

    assert identity("a") == identity("b")
    assert identity("a") != tvm.ir.FuncType([tvm.ir.PrimType("int32")], tvm.ir.PrimType("int32"))


def test_tensor_types_have_shape_and_type():
    n = tir.Var("n", "int32")
    assert tvm.ir.TensorType((2, 3)).concrete_shape == (2, 3)
    assert tvm.ir.TensorType((2, n), "int8") == tvm.ir.TensorType((2, n), "int8")
    with pytest.raises(TypeError, match="extents must be integer scalars"):
        tvm.ir.TensorType((1.5,))


def test_module_copies_attributes_and_functions_apart():
    mod = tvm.IRModule({"g": make_func(2), "f": make_func(1)}, attrs={"a": 1})
    assert [var.name_hint for var, _ in mod.functions_items()] == ["f", "g"]
    copy = mod.clone()
    del copy["f"]
    assert "f" in mod
    assert "f" not in copy
    changed = mod.with_attrs({"b": 2}).without_attr("a")
    assert (changed.get_attr("a"), changed.get_attr("b"), mod.get_attr("a")) == (None, 2, 1)
    assert tvm.ir.structural_equal(mod.without_attr("a"), tvm.IRModule(dict(mod.functions)))


def test_show_prints_the_script(capsys):
    for program in (make_func(1), tvm.IRModule({"f": make_func(1)})):
        program.show()
        assert capsys.readouterr().out == program.script() + "\n"
        assert program.astext() == program.script()


def test_attribute_of_an_operator_is_replaced_by_one_of_no_lower_level():
    op = tvm.ir.register_op("test.levels", "An operator for this test.")
    tvm.ir.register_op_attr("test.levels", "cost", 1, level=10)
    tvm.ir.register_op_attr("test.levels", "cost", 2, level=5)
    assert op.get_attr("cost") == 1
    tvm.ir.register_op_attr("test.levels", "cost", 3, level=11)
    assert op.get_attr("cost") == 3
    op.reset_attr("cost")
    assert not op.has_attr("cost")


def test_an_operator_is_made_by_its_first_attribute():
    pure = tir.CallEffectKind.Pure
    tvm.ir.register_op_attr("tir.test_first_attribute", "TCallEffectKind", pure)
    call = tir.call_intrin("float32", "tir.test_first_attribute", 1.0)
    assert tir.analysis.side_effect(call) == pure


def test_intrinsic_is_lowered_by_the_rule_of_its_target():
    @tvm.ir.register_intrin_lowering("tir.rsqrt", "default")
    def lower(call):
        return tir.call_pure_extern(call.dtype, "fast_rsqrt", call.args[0])

    try:
        x = tir.Var("x", "float32")
        func = tir.PrimFunc([x], tir.Evaluate(tir.rsqrt(x)))
        mod = tir.transform.LowerIntrin()(tvm.IRModule({"f": func}))
        assert "fast_rsqrt" in mod.script()
    finally:
        tvm.ir.Op.get("tir.rsqrt").reset_attr("default.FLowerIntrinsic")
    with pytest.raises(ValueError, match="no operator"):
        tvm.ir.register_intrin_lowering("tir.no_such", "default", f=lower)


def test_attributes_are_made_by_name():
    attrs = tvm.ir.make_node("DictAttrs", axis=1, layout="NCHW")
    assert (attrs["axis"], attrs["layout"]) == (1, "NCHW")
    assert tvm.ir.structural_equal(attrs, tvm.ir.DictAttrs({"axis": 1, "layout": "NCHW"}))


def test_attributes_by_name_are_members_too():
    attrs = tvm.ir.make_node("DictAttrs", axis=1, layout="NCHW")
    assert (attrs.axis, attrs.layout) == (1, "NCHW")
    with pytest.raises(AttributeError, match=r"no attribute 'axles'; there are .*'axis'"):
        _ = attrs.axles
    with pytest.raises(AttributeError):
        _ = tvm.ir.DictAttrs.__new__(tvm.ir.DictAttrs).axis


def test_a_text_lists_names_then_programs_then_graphs():
    text = """
@I.ir_module
class Module:
    @R.function
    def z(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
        return x

    @R.function
    def a(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
        return x

    @T.prim_func
    def m(A: T.Buffer((2,), "float32")):
        T.evaluate(0)

    e = R.ExternFunc("e")
"""
    module = tvm.script.from_source(text)
    printed = str(module)
    places = [printed.index(part) for part in ("e = R.", "def m(", "def a(", "def z(")]
    assert places == sorted(places)
    # A symbol that is the function's name is not said twice.
    assert "global_symbol" not in printed
    assert tvm.ir.structural_equal(tvm.script.from_source(printed), module)
    renamed = module["m"].with_attr("global_symbol", "other")
    assert '"global_symbol": "other"' in str(tvm.IRModule({"m": renamed}))


def test_attributes_are_asked_for_by_their_type():
    attrs = tvm.ir.make_node("DictAttrs", strides=[1, tir.IntImm("int32", 2)], groups=3, layout="N")
    assert attrs.get_int_tuple("strides") == (1, 2)
    assert attrs.get_int("groups") == 3 and attrs.get_str("layout") == "N"
    with pytest.raises(TypeError, match="layout has N, which is no number"):
        attrs.get_int("layout")


def test_an_operator_knows_how_well_it_is_supported():
    exp = tvm.ir.Op.get("tir.exp")
    assert exp.support_level == 10
    exp.set_support_level(3)
    assert exp.support_level == 3
    exp.reset_attr("support_level")
