"""Arguments that programs written for TVM pass by name."""

from __future__ import annotations

import inspect
from operator import attrgetter

import pytest

import tvm

ARGUMENTS = {
    "build": "inputs args target target_host name binds",
    "device": "dev_type dev_id",
    "cpu": "dev_id",
    "cuda": "dev_id",
    "nd.array": "arr device",
    "nd.empty": "shape dtype device mem_scope",
    "nd.from_dlpack": "dltensor",
    "nd.NDArray.copyto": "target",
    "nd.NDArray.copyfrom": "source_array",
    "runtime.load_module": "path fmt",
    "runtime.load_param_dict": "param_bytes",
    "runtime.Module.save": "file_name fmt",
    "runtime.Module.export_library": "file_name fcompile addons workspace_dir",
    "runtime.Module.time_evaluator": "func_name dev number repeat min_repeat_ms",
    "ir.load_json": "json_str",
    "ir.register_op_attr": "op_name attr_key value level",
    "ir.register_intrin_lowering": "op_name target f level",
    "IRModule.from_expr": "expr",
    "IRModule.with_attr": "attr_key attr_value",
    "target.cuda": "model arch options",
    "testing.assert_allclose": "actual desired rtol atol verbose",
    "te.Stage.split": "parent factor nparts",
    "te.Stage.tile": "x_parent y_parent x_factor y_factor",
    "te.Stage.bind": "ivar thread_ivar",
    "te.Stage.vectorize": "var",
    "te.Stage.unroll": "var",
    "te.Stage.parallel": "var",
    "te.Stage.tensorize": "var tensor_intrin",
    "te.Stage.pragma": "var pragma_type pragma_value",
    "te.Stage.prefetch": "tensor var offset",
    "te.Stage.storage_align": "axis factor offset",
    "te.Schedule.cache_read": "tensor scope readers",
    "te.Schedule.rfactor": "tensor axis factor_axis",
    "te.Schedule.create_group": "outputs inputs include_inputs",
    "te.compute": "shape fcompute name tag attrs",
    "te.extern": "shape inputs fcompute name dtype in_buffers out_buffers tag attrs",
    "te.scan": "init update state_placeholder inputs name tag attrs",
    "te.decl_tensor_intrin": "op fcompute name binds scalar_params default_buffer_params",
    "tir.ret": "val",
    "tir.ceildiv": "lhs rhs",
    "tir.For": "loop_var min extent kind body thread_binding annotations",
    "tir.stmt_functor.post_order_visit": "stmt fvisit",
    "tir.stmt_functor.ir_transform": "stmt preorder postorder only_enable",
    "tir.analysis.verify_well_formed": "obj assert_mode",
    "tir.transform.StorageFlatten": "cache_line_size create_bound_attribute",
    "topi.sum": "data axis keepdims",
    "topi.argmax": "data axis keepdims select_last_index",
    "topi.transpose": "a axes",
    "topi.reshape": "a newshape",
    "topi.expand_dims": "a axis num_newaxis",
    "topi.squeeze": "a axis",
    "topi.split": "ary indices_or_sections axis",
    "topi.stack": "a axis",
    "topi.repeat": "a repeats axis",
    "topi.tile": "a reps",
    "topi.take": "a indices axis batch_dims mode",
    "topi.strided_slice": "a begin end strides axes slice_mode",
    "topi.gather_nd": "a indices batch_dims",
    "topi.layout_transform": "array src_layout dst_layout",
    "topi.searchsorted": "sorted_sequence values right out_dtype",
    "arith.Analyzer.bind": "var expr",
    "arith.Analyzer.can_prove": "expr",
}


@pytest.mark.parametrize("function", ARGUMENTS)
def test_arguments_have_the_names_and_the_order_of_tvm(function):
    expected = ARGUMENTS[function].split()
    names = list(inspect.signature(attrgetter(function)(tvm)).parameters)
    assert [name for name in names if name in expected] == expected


def test_a_stage_is_scheduled_by_names():
    te = tvm.te
    A = te.placeholder((64,), name="A")
    B = te.compute(shape=(64,), fcompute=lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(parent=B.op.axis[0], factor=8)
    s[B].pragma(var=outer, pragma_type="auto_unroll_max_step", pragma_value=4)
    s[B].vectorize(var=inner)
    assert "Ramp" in str(tvm.lower(s, args=[A, B]))
    assert tvm.target.cuda(arch="sm_80").arch == "sm_80"
