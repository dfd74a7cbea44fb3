"""Quantised ONNX models: the forms that quantisers write, compiled, against PyTorch's operators."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from tvm import felix, relax
from tvm.relax.fused_group import fused_groups

rng = np.random.default_rng(3)
MICROSOFT = "com.microsoft"


def model_of(nodes, shape, **arrays):
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(op, inputs, output, domain="", **attributes):
    return helper.make_node(op, inputs.split(), [output], domain=domain, **attributes)


def parameters(zero=7, dtype="uint8"):
    return {
        "s": np.float32(0.04),
        "z": np.array(zero, dtype),
        "ws": rng.uniform(0.002, 0.01, 16).astype("float32"),
        "wz": np.zeros(16, "int8"),
        "w": rng.integers(-127, 128, (16, 8, 3, 3)).astype("int8"),
        "b": rng.integers(-900, 900, 16).astype("int32"),
    }


def check(model, shape, integers=True, step=0.04):
    x = rng.normal(size=shape).astype("float32")
    network = felix.from_onnx(model, cache=False)
    with torch.no_grad():
        expected = network.forward(torch.tensor(x)).numpy()
    difference = np.abs(network(x) - expected)
    assert difference.max() <= 1.01 * step
    assert (difference > step / 2).mean() < 0.02
    mod = relax.frontend.onnx.from_onnx(model, {"x": shape})
    fused = relax.transform.OptimizeForInference()(mod)
    texts = [str(group.function) for group in fused_groups(fused)]
    product = [text for text in texts if "R.nn.conv2d" in text or "R.nn.dense" in text]
    assert all(('dtype="int8"' in text) == integers for text in product)


@pytest.mark.parametrize("dtype, zero", [("uint8", 0), ("uint8", 130), ("int8", -128)])
def test_quantize_and_dequantize_around_a_convolution(dtype, zero):
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w ws wz", "dw", axis=0),
        node("DequantizeLinear", "b bs", "db", axis=0),
        node("Conv", "d dw db", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("QuantizeLinear", "r s z", "qr"),
        node("DequantizeLinear", "qr s z", "y"),
    ]
    given = parameters(zero, dtype)
    given["bs"] = given["ws"] * given["s"]
    check(model_of(nodes, (1, 8, 6, 6), **given), (1, 8, 6, 6))


def test_qlinear_conv_and_its_neighbours():
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("QLinearConv", "q s z w ws wz s z b", "c", pads=[1, 1, 1, 1]),
        node("QLinearAdd", "c s z c s z s z", "a", MICROSOFT),
        node("QLinearSigmoid", "a s z s z", "g", MICROSOFT),
        node("QLinearMul", "g s z a s z s z", "m", MICROSOFT),
        node("QLinearConcat", "s z m s z a s z", "k", MICROSOFT, axis=1),
        node("QLinearAveragePool", "k s z s z", "v", MICROSOFT, kernel_shape=[2, 2]),
        node("QLinearGlobalAveragePool", "v s z s z", "p", MICROSOFT),
        node("DequantizeLinear", "p s z", "y"),
    ]
    check(model_of(nodes, (1, 8, 6, 6), **parameters()), (1, 8, 6, 6))


@pytest.mark.parametrize("turned", [0, 1])
def test_qgemm_and_qlinear_matmul(turned):
    given = parameters()
    weight = rng.integers(-127, 128, (12, 16)).astype("int8")
    given |= {"w": weight.T if turned else weight, "v": weight, "one": np.float32(0.01)}
    given |= {"none": np.int8(0)}
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("QGemm", "q s z w ws wz b s z", "g", MICROSOFT, transB=turned),
        node("QLinearMatMul", "q s z v one none s z", "m"),
        node("QLinearAdd", "g s z m s z s z", "a", MICROSOFT),
        node("DequantizeLinear", "a s z", "y"),
    ]
    check(model_of(nodes, (5, 12), **given), (5, 12), step=0.12)


def test_dynamic_quantisation_is_a_product_of_integers():
    given = {
        "w": rng.integers(-127, 128, (12, 16)).astype("int8"),
        "wz": np.int8(0),
        "ws": np.float32(0.01),
    }
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", "q w z wz", "i"),
        node("Cast", "i", "f", to=TensorProto.FLOAT),
        node("Mul", "s ws", "t"),
        node("Mul", "f t", "y"),
    ]
    check(model_of(nodes, (3, 5, 12), **given), (3, 5, 12), step=0.02)


@pytest.mark.parametrize("with_zero", [True, False])
@pytest.mark.parametrize("shape", [(5, 24), (2, 3, 24)])
def test_dynamic_quantisation_of_any_rank_is_a_product_of_integers(shape, with_zero):
    zero = {"wz": np.zeros((), "int8")} if with_zero else {}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", "q w z wz" if with_zero else "q w z", "t"),
        node("Cast", "t", "r", to=TensorProto.FLOAT),
        node("Mul", "r s", "y"),
    ]
    w = rng.integers(-128, 128, (24, 32)).astype("int8")
    model = model_of(nodes, shape, w=w, **zero)
    check(model, shape, step=1.0)
    mod = relax.frontend.onnx.from_onnx(model, {"x": shape})
    fused = relax.transform.OptimizeForInference()(mod)
    texts = [str(group.function) for group in fused_groups(fused)]
    assert any("R.nn.dense" in text for text in texts)
    assert not any("R.matmul" in text for text in texts)


def test_weights_around_another_zero_point_stay_real():
    given = parameters() | {"wz": np.full(16, 3, "int8")}
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("DequantizeLinear", "w ws wz", "dw", axis=0),
        node("Conv", "d dw", "y"),
    ]
    check(model_of(nodes, (1, 8, 6, 6), **given), (1, 8, 6, 6), integers=False)
