"""Pools of ONNX whose windows round up, or whose sides are padded differently, are one kernel."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tvm import felix
from tvm.relax.frontend.onnx import OnnxModule


def model_of(kind, shape, **attributes):
    node = helper.make_node(kind, ["x"], ["y"], **attributes)
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in (("x", shape), ("y", None))
    )
    graph = helper.make_graph([node], "pool", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=8)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    "shape, attributes",
    [
        ((1, 4, 14, 14), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ((1, 4, 9, 11), {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1}),
        ((1, 4, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]}),
        ((1, 4, 8, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 4, 8, 9), {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((2, 3, 17), {"kernel_shape": [4], "strides": [3], "ceil_mode": 1, "pads": [1, 1]}),
    ],
)
def test_pools_equal_the_reference(kind, shape, attributes):
    model = model_of(kind, shape, **attributes)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    found = felix.from_onnx(model, cache=False)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_rounding_up_is_one_kernel(kind):
    model = model_of(kind, (1, 8, 14, 14), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    network = felix.compile(OnnxModule(model).eval(), (torch.randn(1, 8, 14, 14),), cache=False)
    names = [use.name for use in network.kernels]
    assert sum("pool2d" in name for name in names) == 1
    assert not any("slice" in name or "concat" in name for name in names), names
