"""Graph expressions written out node by node."""

from __future__ import annotations

import pytest

import tvm
from tvm import relax
from tvm.relax.testing import dump_ast
from tvm.script import relax as R


@R.function
def program(x: R.Tensor((4, "n"), "float32")):
    with R.dataflow():
        y = R.nn.softmax(x, axis=1)
        z = R.match_cast(y, R.Tensor((4, "m"), "float32"))
        R.output(z)
    return (z, R.shape([1, 2]), R.prim_value(3), R.str("a"))


def test_short_nodes_take_one_line() -> None:
    assert dump_ast(relax.Var("v")) == 'Var(name_hint="v")'
    var = relax.Var("v", relax.TensorStructInfo(dtype="float32", ndim=2))
    assert dump_ast(var, include_struct_info_annotations=False) == 'Var(name_hint="v")'
    assert dump_ast(var, indent_str="  ") == (
        'Var(\n  name_hint="v",\n  struct_info=TensorStructInfo(\n    dtype=float32,\n'
        "    ndim=2\n  )\n)"
    )
    assert "_checked_type_=DynTensorType(" in dump_ast(var, include_type_annotations=True)


def test_every_part_of_a_function_is_there() -> None:
    text = dump_ast(program, include_struct_info_annotations=False)
    for part in (
        "Function(", "DataflowBlock(", "VarBinding(", "MatchCast(", 'DataflowVar(name_hint="y")',
        'op=Op(name="relax.nn.softmax")', 'attrs={"axis": 1}', "ShapeExpr(", "is_pure=1",
        "PrimValue(value=PrimExpr(value=`T.int64(3)`))", 'StringImm(value="a")',
        "ret_struct_info=TupleStructInfo(",
    ):  # fmt: skip
        assert part in text, part
    assert "attrs" not in dump_ast(program.body.blocks[0], include_call_attrs=False)
    assert text.count("(") == text.count(")")


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="PrimFunc is no graph expression"):
        dump_ast(tvm.tir.PrimFunc([], tvm.tir.Evaluate(0)))
