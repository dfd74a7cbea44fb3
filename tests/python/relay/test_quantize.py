"""Networks written with integers by `relay.quantize`."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax, relay
from tvm.relax.transform import DeadCodeElimination, IntegerProducts
from tvm.relay.quantize import divergence_threshold, percentile_threshold, weight_threshold


def names(expr):
    found = []
    relay.expr_functor.post_order_visit(
        expr, lambda e: found.append(str(e.op.name)) if isinstance(e, relay.Call) else None
    )
    return found


def _network():
    rng = np.random.default_rng(0)

    def weight(*shape):
        return rng.standard_normal(shape).astype("float32") * 0.15

    params = {"w0": weight(8, 3, 3, 3), "w1": weight(16, 8, 3, 3), "wd": weight(10, 16)}
    params |= {"b": weight(16)}
    x = relay.var("x", shape=(1, 3, 12, 12))
    w = {name: relay.var(name, shape=value.shape) for name, value in params.items()}
    y = relay.nn.relu(relay.nn.conv2d(x, w["w0"], channels=8, kernel_size=3, padding=1))
    y = relay.nn.conv2d(y, w["w1"], channels=16, kernel_size=3, strides=2)
    y = relay.nn.relu(relay.nn.bias_add(y, w["b"]))
    y = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), w["wd"])
    return tvm.IRModule.from_expr(relay.Function([x, *w.values()], y)), params


def _images(count):
    rng = np.random.default_rng(1)
    return [{"x": rng.standard_normal((1, 3, 12, 12)).astype("float32")} for _ in range(count)]


def _run(mod, batch):
    return relay.create_executor("graph", mod=mod).evaluate()(batch["x"]).numpy()


def _reference(mod, params, batch):
    return _run(relay.quantize.prerequisite_optimize(mod, params), batch)


@pytest.mark.parametrize(
    "settings",
    [
        {"calibrate_mode": "global_scale", "global_scale": 4.0, "skip_conv_layers": None},
        {"calibrate_mode": "kl_divergence", "weight_scale": "max", "skip_dense_layer": False},
        {"calibrate_mode": "kl_divergence", "do_simulation": True},
        {"calibrate_mode": "percentile", "weight_scale": "max", "skip_conv_layers": None},
        {"calibrate_mode": "kl_divergence", "calibrate_chunk_by": 1, "skip_conv_layers": []},
    ],
)
def test_results_stay_near_those_of_the_real_network(settings):
    mod, params = _network()
    with relay.quantize.qconfig(**settings):
        quantised = relay.quantize.quantize(mod, params, dataset=_images(4))
    batch = _images(5)[-1]
    want = _reference(mod, params, batch)
    assert np.abs(_run(quantised, batch) - want).max() < 0.1 * np.abs(want).max()


def test_first_convolution_and_dense_layers_are_left_by_default():
    mod, params = _network()
    with relay.quantize.qconfig(global_scale=4.0):
        quantised = relay.quantize.quantize(mod, params)
    found = names(quantised["main"].body)
    assert found.count("qnn.conv2d") == 1 and found.count("nn.conv2d") == 1
    assert "nn.dense" in found and "qnn.dense" not in found


def test_operators_to_quantise_may_be_named():
    mod, params = _network()
    options = {"skip_conv_layers": None, "skip_dense_layer": False}
    with relay.quantize.qconfig(debug_enabled_ops=["nn.dense"], **options):
        found = names(relay.quantize.quantize(mod, params)["main"].body)
    assert "qnn.dense" in found and "qnn.conv2d" not in found


def test_a_quantised_network_is_built_and_exported(tmp_path):
    mod, params = _network()
    with relay.quantize.qconfig(calibrate_mode="kl_divergence", skip_conv_layers=None):
        quantised = relay.quantize.quantize(mod, params, dataset=_images(2))
    batch = _images(1)[0]
    path = str(tmp_path / "net.so")
    relay.build(quantised, "llvm").export_library(path)
    device = tvm.cpu()
    module = tvm.contrib.graph_executor.GraphModule(
        tvm.runtime.load_module(path)["default"](device)
    )
    module.run(**batch)
    want = _run(quantised, batch)
    np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-4, atol=1e-4)


def test_weights_have_room_up_to_the_largest_or_the_next_power_of_two():
    weight = np.array([0.3, -0.7], "float32")
    assert weight_threshold(weight, "max") == pytest.approx(0.7)
    assert weight_threshold(weight, "power2") == 1.0
    assert weight_threshold(np.zeros(3, "float32"), "power2") == 1.0


def test_thresholds_cut_off_rare_large_values():
    rng = np.random.default_rng(0)
    values = np.abs(np.concatenate([rng.standard_normal(100_000), [40.0]]))
    histogram, edges = np.histogram(values, 2048, (0, values.max()))
    found = divergence_threshold(histogram, edges[1], 128)
    assert 2.0 < found < 10.0
    flat = np.full(512, 100)
    assert divergence_threshold(flat, 1.0, 128) == 512


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"rounding is 'UPWARD', got 'TONEAREST'"):
        relay.quantize.qconfig(rounding="TONEAREST")
    with pytest.raises(ValueError, match="nbit_input is 2 to 8, got 16"):
        relay.quantize.qconfig(nbit_input=16)
    with pytest.raises(ValueError, match="calibrate_mode is one of"):
        relay.quantize.qconfig(calibrate_mode="max")
    with pytest.raises(TypeError, match="there is no setting 'nbits'"):
        relay.quantize.qconfig(nbits=8)
    mod, params = _network()
    with (
        relay.quantize.qconfig(calibrate_mode="kl_divergence"),
        pytest.raises(ValueError, match="needs a dataset of inputs by name"),
    ):
        relay.quantize.quantize(mod, params)
    with (
        relay.quantize.qconfig(calibrate_mode="kl_divergence"),
        pytest.raises(ValueError, match=r"the dataset lacks inputs \['x'\]"),
    ):
        relay.quantize.quantize(mod, params, dataset=[{"data": np.zeros((1, 3, 12, 12))}])


def test_integer_layers_become_products_of_bytes():
    mod, params = _network()
    with relay.quantize.qconfig(skip_conv_layers=None, skip_dense_layer=False):
        quantised = relay.quantize.quantize(mod, params)
    graph = tvm.get_global_func("relay.ToRelaxModule")(quantised, {})
    func = DeadCodeElimination()(IntegerProducts()(graph))["main"]
    values = [binding.value for block in func.body.blocks for binding in block.bindings]
    names = ("relax.nn.conv2d", "relax.nn.dense")
    products = [v for v in values if isinstance(v, relax.Call) and str(v.op.name) in names]
    assert [[str(arg.struct_info.dtype) for arg in call.args] for call in products] == [
        ["uint8", "int8"]
    ] * 3


def test_the_largest_of_many_values_are_left_out_by_their_share():
    rng = np.random.default_rng(0)
    values = rng.permutation(np.arange(1, 1001)).astype("float32") * np.where(
        rng.random(1000) < 0.5, -1, 1
    )
    assert percentile_threshold([values[:300], values[300:]], 0.99) == 991
    assert percentile_threshold([values], 1.0) == 1000
    assert percentile_threshold([np.zeros(3, "float32")]) == 1.0
