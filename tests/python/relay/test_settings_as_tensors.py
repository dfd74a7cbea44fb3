"""Operators whose settings are tensors that are known when the program runs."""

import numpy as np
import pytest

from tvm import IRModule, relay
from tvm.ir import Op


def run(expr, *args):
    """The value on the machine, where every argument is one of the free variables in order."""
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor("vm", mod=IRModule.from_expr(func)).evaluate()(*args).numpy()


IMAGE = relay.var("image", shape=(1, 2, 4, 6))
DATA = np.random.default_rng(0).random((1, 2, 4, 6)).astype("float32")


@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
def test_images_of_sizes_that_come(method):
    size = relay.var("size", shape=(2,), dtype="int64")
    found = run(relay.image.resize2d(IMAGE, size, method=method), DATA, np.array([8, 9], "int64"))
    fixed = relay.image.resize2d(IMAGE, (8, 9), method=method)
    np.testing.assert_allclose(found, run(fixed, DATA), rtol=1e-5)
    typed = relay.testing.run_infer_type(relay.image.resize2d(IMAGE, size))
    assert [str(e) for e in typed.checked_type.shape] == ["1", "2", "?", "?"]


def test_upsampling_by_factors_that_come():
    height, width = (relay.var(n, shape=(), dtype="float32") for n in ("height", "width"))
    found = run(relay.nn.upsampling(IMAGE, height, width), DATA, np.float32(2), np.float32(3))
    np.testing.assert_allclose(found, DATA.repeat(2, 2).repeat(3, 3))
    volume = relay.var("volume", shape=(1, 2, 4, 6, 1))
    found = run(relay.nn.upsampling3d(volume, height, 2, 1), DATA[..., None], np.float32(2))
    fixed = relay.nn.upsampling3d(volume, 2, 2, 1)
    np.testing.assert_array_equal(found, run(fixed, DATA[..., None]))


def test_dense_tensors_of_shapes_that_come():
    shape = relay.var("shape", shape=(2,), dtype="int64")
    dense = relay.sparse_to_dense(
        relay.const([[0, 1], [2, 0]]), shape, relay.const([3.0, 4.0]), 0.5
    )
    expected = np.full((3, 2), 0.5)
    expected[0, 1], expected[2, 0] = 3, 4
    np.testing.assert_array_equal(run(dense, np.array([3, 2], "int64")), expected)


def test_constants_make_them_fixed():
    size = relay.shape_of(relay.var("like", shape=(8, 8)), "int64")
    expr = relay.image.resize2d(IMAGE, size)
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    fixed = relay.transform.DynamicToStatic()(IRModule.from_expr(func))["main"]
    assert fixed.body.op == Op.get("image.resize2d")
    assert list(fixed.body.checked_type.shape) == [1, 2, 8, 8]
    assert Op.get("image.resize2d").num_inputs == 1 and Op.get("nn.conv2d").num_inputs == 2


def test_squeeze_takes_axes_that_come_when_the_program_runs():
    x, axes = relay.var("x", shape=(1, 3, 1)), relay.var("axes", shape=(1,), dtype="int64")
    func = relay.Function([x, axes], relay.squeeze(x, axes))
    data = np.float32([[[1], [2], [3]]])
    run = relay.create_executor("vm").evaluate(func)
    for axis in (0, 2, -1):
        found = run(data, np.array([axis], "int64")).numpy()
        np.testing.assert_array_equal(found, data.squeeze(axis))
    known = relay.Function([x], relay.squeeze(x, relay.const([0, 2], "int64")))
    typed = relay.testing.run_infer_type(known)
    assert typed.ret_type == relay.TensorType((3,))
