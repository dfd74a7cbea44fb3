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
    assert text.startswith("@I.ir_module\nclass Module:\n")
    assert "def f" in text or "# f" in text


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
