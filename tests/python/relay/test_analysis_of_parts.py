"""What is told of programs that passes cut into parts."""

import numpy as np
import pytest

import tvm
from tvm import relay


def _typed(expr):
    return relay.transform.InferType()(tvm.IRModule.from_expr(expr))


def test_regions_of_fake_quantization_are_counted():
    x, w = (
        relay.var("x", shape=(1, 3, 8, 8), dtype="int8"),
        relay.var("w", shape=(4, 3, 2, 2), dtype="int8"),
    )
    one, zero = relay.const(0.5), relay.const(0)
    real = relay.qnn.op.dequantize(x, one, zero)
    conv = relay.nn.conv2d(real, relay.qnn.op.dequantize(w, one, zero))
    first = relay.qnn.op.quantize(relay.nn.relu(conv), one, zero)
    again = relay.nn.max_pool2d(relay.qnn.op.dequantize(first, one, zero))
    both = relay.concatenate([relay.reshape(again, (-1,)), relay.reshape(again, (-1,))], 0)
    found = relay.analysis.list_fake_quantized_op_freqs(
        _typed(relay.qnn.op.quantize(both, one, zero))
    )
    assert found == {
        "nn.conv2d": 1, "nn.relu": 1, "nn.max_pool2d": 1, "reshape": 2, "concatenate": 1,
    }  # fmt: skip


def test_a_region_that_reads_real_numbers_is_none():
    x, y = relay.var("x", shape=(4,), dtype="int8"), relay.var("y", shape=(4,))
    one, zero = relay.const(0.5), relay.const(0)
    mixed = relay.add(relay.qnn.op.dequantize(x, one, zero), y)
    func = _typed(relay.qnn.op.quantize(mixed, one, zero))
    assert relay.analysis.list_fake_quantized_op_freqs(func) == {}
    plain = _typed(relay.qnn.op.quantize(relay.const(np.ones(3, "float32")), one, zero))
    assert relay.analysis.list_fake_quantized_op_freqs(plain) == {}


def test_fused_functions_are_extracted_once_each():
    x = relay.var("x", shape=(1, 3, 8, 8))
    w1, w2 = relay.var("w1", shape=(3, 3, 1, 1)), relay.var("w2", shape=(3, 3, 1, 1))
    y = relay.nn.relu(relay.nn.conv2d(x, w1))
    mod = _typed(relay.nn.softmax(relay.nn.relu(relay.nn.conv2d(y, w2))))
    found = relay.analysis.extract_fused_functions(mod)
    names = sorted(str(func.body.op.name) for func in found.values())
    assert names == ["nn.relu", "nn.softmax"]
    fused = relay.transform.FuseOps(0)(mod)
    found = relay.analysis.extract_fused_functions(fused)
    names = sorted(str(func.body.op.name) for func in found.values())
    assert names == ["nn.conv2d", "nn.relu", "nn.softmax"]


def test_names_for_what_branches_share():
    x = relay.var("x", shape=())
    shared = relay.add(x, x)
    branch = relay.If(relay.less(x, relay.const(1.0)), shared, relay.multiply(shared, x))
    func = _typed(branch)["main"]
    assert not relay.analysis.check_basic_block_normal_form(func)
    named = relay.transform.ToBasicBlockNormalForm()(_typed(branch))["main"]
    assert relay.analysis.check_basic_block_normal_form(named)


def _partitioned():
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    a = relay.annotation.compiler_begin(relay.exp(x), "other")
    b = relay.annotation.compiler_begin(y, "other")
    part = relay.annotation.compiler_end(relay.subtract(a, b), "other")
    mod = _typed(relay.Function([x, y], relay.nn.relu(part)))
    return relay.transform.PartitionGraph()(mod)


def test_calibration_gives_what_parts_read_and_give():
    mod = _partitioned()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=4).astype("float32"), rng.normal(size=4).astype("float32")
    found = relay.analysis.get_calibration_data(mod, {"x": x, "y": tvm.nd.array(y)})
    assert len(found) == 1
    (part, data) = next(iter(found.items()))
    assert mod[part].attrs["Compiler"] == "other"
    inputs = sorted((array.numpy() for array in data["inputs"]), key=lambda a: not (a == y).all())
    np.testing.assert_array_equal(inputs[0], y)
    np.testing.assert_allclose(inputs[1], np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(data["outputs"][0].numpy(), np.exp(x) - y, rtol=1e-5, atol=1e-6)


def test_calibration_asks_for_all_inputs():
    with pytest.raises(ValueError, match=r"no data for \['y'\]"):
        relay.analysis.get_calibration_data(_partitioned(), {"x": np.ones(4, "float32")})
