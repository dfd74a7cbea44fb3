"""What is known of the results of operators, from operands that are known in part."""

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.relax import op
from tvm.script import relax as R

N, M = tir.Var("n", "int64"), tir.Var("m", "int64")


def var(*args, **kwargs):
    return relax.Var("x", R.Tensor(*args, **kwargs))


@pytest.mark.parametrize(
    ("call", "info"),
    [
        (op.add(var((2, 3), "float32"), var((4, 1, 3), "float32")), R.Tensor((4, 2, 3), "float32")),
        (op.add(var((N, 3), "float32"), var((1, 3), "float32")), R.Tensor((N, 3), "float32")),
        (op.add(var("float32", ndim=2), var((2, 3), "float32")), R.Tensor("float32", ndim=2)),
        (op.less(var((2,), "int8"), var((2,), "int8")), R.Tensor((2,), "bool")),
        (op.matmul(var((N, 4), "float32"), var((4, M), "float32")), R.Tensor((N, M), "float32")),
        (op.concat([var((N, 2)), var((N, M))], axis=1), R.Tensor((N, M + 2))),
        (op.reshape(var((N, 4), "int8"), (-1,)), R.Tensor((N * 4,), "int8")),
        (op.sum(var((2, N, 3), "float32"), [1], True), R.Tensor((2, 1, 3), "float32")),
        (op.permute_dims(var("float32", ndim=3)), R.Tensor("float32", ndim=3)),
        (op.nn.conv2d(var((N, 3, 8, 8), "float32"), var((4, 3, 3, 3), "float32")),
         R.Tensor((N, 4, 6, 6), "float32")),
        (op.nn.max_pool2d(var((1, 3, 7, 7), "float32"), 2, ceil_mode=True),
         R.Tensor((1, 3, 4, 4), "float32")),
        (op.arange(2, 9, 3), R.Tensor((3,), "int64")),
        (op.shape_of(var((N, 2), "float32")), R.Shape((N, 2))),
    ],
)  # fmt: skip
def test_result_follows_from_what_is_known(call, info):
    tvm.ir.assert_structural_equal(relax.BlockBuilder().normalize(call).struct_info, info)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: op.add(var((2,), "float32"), var((3,), "float32")), "do not broadcast"),
        (lambda: op.add(var((2,), "float32"), var((2,), "int8")), "float32 and int8"),
        (lambda: op.exp(var((2,), "int32")), "floating-point"),
        (lambda: op.matmul(var((2, 3), "int8"), var((2, 3), "int8")), "columns"),
        (lambda: op.squeeze(var((2, 3), "int8"), [0]), "extent other than 1"),
        (lambda: op.nn.conv2d(var((1, 3, 8, 8), "int8"), var((4, 2, 3, 3), "int8")), "channels"),
        (lambda: op.reshape(var((2, 3), "int8"), (-1, -1)), "more than one -1"),
        (lambda: op.nn.layer_norm(*[var((2, 3), "float32")] * 3, axes=[5]), "axis 5"),
    ],
)
def test_operands_that_do_not_fit_are_refused(make, message):
    with pytest.raises(tvm.TVMError, match=message):
        make()


def test_operators_without_known_operands_wait():
    call = op.add(relax.Var("x"), relax.Var("y"))
    assert call.struct_info is None


def test_python_operators_are_graph_operators():
    x = var((2, 2), "float32")
    assert str((x + 1.0).op.name) == "relax.add"
    assert str((2.0 / x).op.name) == "relax.divide"
    assert str((-x).op.name) == "relax.negative"
    pair = relax.Tuple([x, x])
    assert pair[1].same_as(x)
    with pytest.raises(IndexError, match="out of range"):
        pair[2]


def test_base_check_and_lca_of_struct_info():
    check = relax.analysis.struct_info_base_check
    result = relax.analysis.BaseCheckResult
    wide, narrow = R.Tensor("float32", ndim=2), R.Tensor((N, 3), "float32")
    assert check(wide, narrow) == result.PASS
    assert check(narrow, wide) == result.FAIL_L2
    assert check(R.Tensor((2,), "int8"), narrow) == result.FAIL_L0
    other = R.Tensor((N, 4), "float32")
    tvm.ir.assert_structural_equal(relax.analysis.struct_info_lca(narrow, other), wide)


def test_impure_calls_and_free_variables_are_found():
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.add(x, x)
        R.print(y, format="{}")
        return y

    assert relax.analysis.contains_impure_call(main)
    assert [str(v.name_hint) for v in relax.analysis.free_vars(main.body)] == ["x"]
    assert relax.analysis.free_vars(main) == []


def test_constants_keep_their_values():
    data = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(relax.const(data).data.numpy(), data)


def test_layout_transform_gives_the_shape_of_the_map():
    call = op.layout_transform(var((8, 6), "float32"), lambda i, j: (j, i // 4, i % 4))
    tvm.ir.assert_structural_equal(call.struct_info, R.Tensor((6, 2, 4), "float32"))
    with pytest.raises(ValueError, match="a map of 3 indices"):
        op.layout_transform(var((8, 6), "float32"), lambda i, j, k: (i, j, k))
