"""Default schedules for processors."""

import numpy as np
import pytest

import tvm
from tvm import dlight as dl
from tvm import te


def _product(rows, depth, by_columns):
    shape = (depth, rows) if by_columns else (rows, depth)
    matrix, vector = te.placeholder(shape, name="A"), te.placeholder((depth,), name="x")
    k = te.reduce_axis((0, depth), "k")
    y = te.compute(
        (rows,),
        lambda i: te.sum((matrix[k, i] if by_columns else matrix[i, k]) * vector[k], axis=k),
        name="y",
    )
    z = te.compute((rows,), lambda i: y[i] + 1.0, name="z")
    return tvm.IRModule({"main": te.create_prim_func([matrix, vector, z])})


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize(("rows", "depth"), [(37, 130), (64, 128)])
def test_a_product_of_matrix_and_vector_runs_in_vectors(rows, depth, by_columns):
    with tvm.target.Target("llvm"):
        mod = dl.ApplyDefaultSchedule(dl.cpu.GEMV())(_product(rows, depth, by_columns))
    text = mod.script()
    assert mod["main"].attrs["tir.is_scheduled"]
    assert "T.parallel" in text
    assert "T.vectorized(16)" in text
    # Partial sums in lanes only where rows lie along the sum.
    assert ("y_rf" in text) is not by_columns
    rng = np.random.default_rng(0)
    a = rng.standard_normal((depth, rows) if by_columns else (rows, depth)).astype("float32")
    x = rng.standard_normal(depth).astype("float32")
    out = tvm.nd.empty((rows,))
    tvm.build(mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(x), out)
    expected = (a.T if by_columns else a) @ x + 1
    # Sums of 130 products in another order.
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_rules_for_processors_leave_other_targets_alone():
    with tvm.target.Target("cuda"):
        mod = dl.ApplyDefaultSchedule(dl.cpu.GEMV())(_product(64, 64, False))
    assert "tir.is_scheduled" not in mod["main"].attrs
