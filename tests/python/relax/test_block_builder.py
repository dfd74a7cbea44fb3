"""Building graph functions, and their printed form."""

import numpy as np
import pytest

import tvm
from tvm import relax, te, topi
from tvm.relax import op

INFO = relax.TensorStructInfo((2, 3), "float32")


def two_step_module(params_at_the_end=False):
    builder = relax.BlockBuilder()
    x, y = relax.Var("x", INFO), relax.Var("y", INFO)
    with builder.function("main", None if params_at_the_end else [x, y]):
        with builder.dataflow():
            total = builder.emit(op.add(x, y))
            out = builder.emit_output(op.nn.relu(total))
        builder.emit_func_output(out, [x, y] if params_at_the_end else None)
    return builder.get()


def test_function_prints_as_python_like_text():
    assert repr(two_step_module()["main"]) == (
        "@R.function\n"
        'def main(x: R.Tensor((2, 3), dtype="float32"), y: R.Tensor((2, 3), dtype="float32"))'
        ' -> R.Tensor((2, 3), dtype="float32"):\n'
        "    with R.dataflow():\n"
        '        lv: R.Tensor((2, 3), dtype="float32") = R.add(x, y)\n'
        '        gv: R.Tensor((2, 3), dtype="float32") = R.nn.relu(lv)\n'
        "        R.output(gv)\n"
        "    return gv"
    )


def test_params_may_be_given_at_either_end():
    tvm.ir.assert_structural_equal(two_step_module(), two_step_module(params_at_the_end=True))


def test_variables_in_a_dataflow_block_are_dataflow_vars():
    block = two_step_module()["main"].body.blocks[0]
    inner, outer = (binding.var for binding in block.bindings)
    assert type(inner) is relax.DataflowVar
    assert isinstance(inner, relax.Var)
    assert type(outer) is relax.Var


def test_nested_calls_are_bound_one_by_one(make_module, op_names):
    mod = make_module(lambda bb, x: op.nn.relu(op.add(op.exp(x), x)), (2, 3))
    assert op_names(mod) == ["exp", "add", "nn.relu"]


def test_dataflow_value_as_function_output_becomes_visible(run):
    builder = relax.BlockBuilder()
    x = relax.Var("x", INFO)
    with builder.function("main", [x]):
        with builder.dataflow():
            local = builder.emit(op.negative(x))
        builder.emit_func_output(local)
    assert type(builder.get()["main"].body.body) is relax.Var
    data = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(run(builder.get(), data), -data)


def test_dataflow_value_as_function_output_keeps_its_name_and_its_uses(run):
    builder = relax.BlockBuilder()
    x = relax.Var("x", INFO)
    with builder.function("main", [x]):
        with builder.dataflow():
            local = builder.emit(op.negative(x))
            builder.emit_output(local)
            builder.emit_output(op.add(local, x))
        builder.emit_func_output(local)
    mod = builder.get()
    assert relax.analysis.well_formed(mod)
    lines = [line.strip() for line in mod["main"].script().splitlines()]
    assert 'gv1: R.Tensor((2, 3), dtype="float32") = R.add(lv, x)' in lines
    assert lines[-2:] == ["R.output(lv, gv, gv1)", "return lv"]
    data = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(run(mod, data), -data)


def test_kernels_of_emit_te_name_operands_by_their_variables():
    builder = relax.BlockBuilder()
    x = relax.Var("x", INFO)
    with builder.function("main", [x]):
        with builder.dataflow():
            once = builder.emit_te(topi.add, x, relax.const(np.ones((2, 3), "float32")))
            out = builder.emit_output(builder.emit_te(topi.nn.relu, once))
        builder.emit_func_output(out)
    mod = builder.get()
    names = {name: [str(p.name) for p in mod[name].params] for name in ("add", "relu")}
    assert [name.removeprefix("var_") for name in names["add"][:2]] == ["x", "B"]
    assert names["relu"][0].removeprefix("var_") == "lv"


def test_emit_te_shares_equal_kernels_and_numbers_others_of_the_name(run):
    builder = relax.BlockBuilder()
    x = relax.Var("x", INFO)
    with builder.function("main", [x]):
        with builder.dataflow():
            once = builder.emit_te(topi.add, x, x)
            twice = builder.emit_te(topi.add, once, x)
            out = builder.emit_output(builder.emit_te(topi.add, twice, 1.0))
        builder.emit_func_output(out)
    mod = builder.get()
    assert {str(g.name_hint) for g in mod.get_global_vars()} == {"main", "add", "add1"}
    data = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(run(mod, data), 3 * data + 1)


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (2.5, "float32", ()),
        (3, "int32", ()),
        (True, "bool", ()),
        (np.zeros((2, 3)), "float32", (2, 3)),
        (tvm.nd.array(np.zeros((2, 3))), "float64", (2, 3)),
        (np.zeros((2, 3), "int8"), "int8", (2, 3)),
    ],
)
def test_const_keeps_type_shape_and_value(value, dtype, shape):
    constant = relax.const(value)
    assert str(constant.struct_info.dtype) == dtype
    assert tuple(constant.data.shape) == shape
    expected = value.numpy() if isinstance(value, tvm.nd.NDArray) else value
    np.testing.assert_array_equal(constant.data.numpy(), expected)


def test_const_refuses_a_value_of_another_shape():
    with pytest.raises(ValueError, match=r"shape \(3, 2\), the struct info says \(2, 3\)"):
        relax.const(np.zeros((3, 2)), INFO)


def test_builder_refuses_calls_out_of_scope():
    builder = relax.BlockBuilder()
    with pytest.raises(ValueError, match="only inside bb.function"):
        builder.emit(relax.Var("x", INFO))
    with (
        pytest.raises(ValueError, match="only inside a dataflow block"),
        builder.function("main", []),
    ):
        builder.emit_output(relax.const(1.0))


def test_the_module_has_functions_whose_output_is_known_and_keeps_infos():
    given = tvm.IRModule()
    builder = relax.BlockBuilder(given)
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.exp(x)))
        inside = builder.get()
    assert "main" in inside
    assert builder.get().same_as(inside)
    device = tvm.ir.VDevice("llvm")
    inside.update_global_info("vdevice", [device])
    with builder.function("other", [x]):
        builder.emit_func_output(x)
    after = builder.get()
    assert "other" in after
    assert "other" not in inside
    assert after.global_infos["vdevice"][0].same_as(device)
    assert not len(given.functions)


def test_function_without_output_is_refused():
    builder = relax.BlockBuilder()
    with pytest.raises(ValueError, match="'main' has no output"), builder.function("main", []):
        pass


def test_operator_checks_shapes_when_it_is_called():
    x = relax.Var("x", INFO)
    with pytest.raises(ValueError, match=r"3\) columns, .* rows"):
        op.matmul(x, x)


def test_struct_info_takes_a_torch_size():
    torch = pytest.importorskip("torch")
    info = relax.TensorStructInfo(torch.zeros(2, 3).shape, "float32")
    tvm.ir.assert_structural_equal(info, INFO)


def test_struct_info_refuses_a_rank_that_contradicts_the_shape():
    with pytest.raises(ValueError, match="ndim is 3 but the shape has 2 extents"):
        relax.TensorStructInfo((2, 3), "float32", ndim=3)


def test_tuple_field_out_of_range_is_refused():
    x = relax.Var("x", INFO)
    with pytest.raises(IndexError, match="field 2 of a tuple of 2"):
        relax.TupleGetItem(relax.Tuple([x, x]), 2)


def test_a_te_function_without_a_name():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with builder.function("main", [x]):
        out = builder.emit_te(lambda a: te.compute(a.shape, lambda i: a[i] * 2.0), x)
        builder.emit_func_output(out)
    mod = builder.get()
    assert "lambda" in [str(gvar.name_hint) for gvar in mod.get_global_vars()]
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    np.testing.assert_allclose(machine["main"](tvm.nd.array(np.ones(3, "float32"))).numpy(), 2)


def test_settings_that_are_not_given_are_none():
    x = relax.Var("x", INFO)
    call = op.permute_dims(x)
    assert call.attrs.axes is None and "axes" not in call.attrs
    assert op.sum(x).attrs.axis is None and op.cumsum(x).attrs.dtype is None
    square = relax.Var("x", relax.TensorStructInfo((2, 2)))
    assert op.matmul(square, square).attrs.out_dtype is None
    assert op.matmul(square, square, "float64").attrs.out_dtype == "float64"
    with pytest.raises(AttributeError, match="there is no attribute 'axis_of_nothing'"):
        _ = call.attrs.axis_of_nothing
