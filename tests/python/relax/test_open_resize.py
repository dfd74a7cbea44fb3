"""ONNX's Resize of images whose height and width are open, against the reference evaluator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import tvm
from tvm import relax
from tvm.relax.frontend.onnx import OnnxError, from_onnx


def model(inputs, initializers, **attrs):
    """One Resize of an image (1, 2, H, W)."""
    node = helper.make_node("Resize", inputs, ["y"], **attrs)
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


WHERE = "coordinate_transformation_mode"
SCALES = np.array([1, 1, 2, 1.5], "float32")
CASES = [
    ("scales", {"mode": "nearest", WHERE: "asymmetric", "nearest_mode": "floor"}),
    ("scales", {"mode": "linear", WHERE: "half_pixel"}),
    ("scales", {"mode": "cubic", WHERE: "half_pixel", "exclude_outside": 1}),
    ("scales", {"mode": "linear", WHERE: "align_corners"}),
    ("sizes", {"mode": "linear", WHERE: "pytorch_half_pixel"}),
    ("sizes", {"mode": "nearest", WHERE: "half_pixel"}),
]


@pytest.mark.parametrize(("given", "attrs"), CASES, ids=str)
def test_open_images(given, attrs):
    if given == "scales":
        resize = model(["x", "", "scales"], {"scales": SCALES}, **attrs)
    else:
        sizes = np.array([1, 2, 9, 8], "int64")
        resize = model(["x", "", "", "sizes"], {"sizes": sizes}, **attrs)
    machine = relax.VirtualMachine(relax.build(from_onnx(resize)), tvm.cpu())
    reference = ReferenceEvaluator(resize)
    for height, width in ((4, 6), (7, 10)):
        x = np.random.default_rng(height).standard_normal((1, 2, height, width)).astype("float32")
        (want,) = reference.run(None, {"x": x})
        got = machine["main"](tvm.nd.array(x)).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_to_the_size_of_another_image():
    nodes = [
        helper.make_node("Shape", ["z"], ["shape"]),
        helper.make_node("Resize", ["x", "", "", "shape"], ["y"], mode="linear"),
    ]
    graph = helper.make_graph(
        nodes,
        "like",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "h", "w"]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2, "height", "width"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    like = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    machine = relax.VirtualMachine(relax.build(from_onnx(like)), tvm.cpu())
    draw = np.random.default_rng(0).standard_normal
    for small, large in (((4, 6), (9, 7)), ((5, 3), (5, 8))):
        x, z = (draw((1, 2, *size)).astype("float32") for size in (small, large))
        (want,) = ReferenceEvaluator(like).run(None, {"x": x, "z": z})
        got = machine["main"](tvm.nd.array(x), tvm.nd.array(z)).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_scales_that_are_no_ratio_are_refused_by_name():
    scales = np.array([1, 1, np.pi, 1], "float32")
    with pytest.raises(OnnxError, match=r"open size by 3\.14.*shape_dict"):
        from_onnx(model(["x", "", "scales"], {"scales": scales}, mode="nearest"))
