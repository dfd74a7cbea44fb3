"""Programs in other layouts, with scales in weights and products joined, compute the same."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.testing.temp_op_attr import TempOpAttr


def network(layout: str = "NCHW") -> relay.Function:
    x = relay.var("x", shape=(1, 16, 12, 12) if layout == "NCHW" else (1, 12, 12, 16))
    w = relay.var("w", shape=(32, 16, 3, 3) if layout == "NCHW" else (3, 3, 16, 32))
    bias, other = relay.var("bias", shape=(32,)), relay.var("other", shape=(1,))
    axis = layout.index("C")
    kernel = "OIHW" if layout == "NCHW" else "HWIO"
    y = relay.nn.conv2d(x, w, padding=1, channels=32, kernel_size=3, data_layout=layout,
                        kernel_layout=kernel)  # fmt: skip
    y = relay.nn.relu(relay.nn.bias_add(y, bias, axis=axis)) * other
    widths = [(1, 1) if letter in "HW" else (0, 0) for letter in layout]
    y = relay.nn.max_pool2d(relay.nn.pad(y, widths), (2, 2), (2, 2), layout=layout)
    y = relay.concatenate([y, relay.exp(relay.negative(y))], axis=axis)
    y = relay.strided_slice(y, begin=[16], end=[48], strides=[1], axes=[axis])
    kept = relay.mean(y, axis=[axis], exclude=True)
    return relay.Function([x, w, bias, other], relay.Tuple([y, kept, relay.sum(y, axis=axis)]))


def values(func: relay.Function) -> list:
    rng = np.random.default_rng(0)
    shapes = [[int(e) for e in p.type_annotation.shape] for p in func.params]
    return [rng.standard_normal(s).astype("float32") / 4 for s in shapes]


def results(mod: tvm.IRModule, arrays: list) -> list:
    return [r.numpy() for r in relay.create_executor("graph", mod=mod).evaluate()(*arrays)]


def transforms(mod: tvm.IRModule) -> int:
    return relay.analysis.list_op_freqs(mod).get("layout_transform", 0)


@pytest.mark.parametrize(("layout", "wanted"), [("NCHW", "NHWC"), ("NHWC", "NCHW")])
def test_converted_networks_compute_the_same(layout, wanted):
    func = network(layout)
    mod = tvm.IRModule.from_expr(func)
    new = relay.transform.ConvertLayout({"nn.conv2d": [wanted, "default"]})(mod)
    conv = []
    relay.analysis.post_order_visit(
        new["main"],
        lambda e: conv.append(e) if isinstance(e, relay.Call) and str(e.op.name) == "nn.conv2d"
        else None,
    )  # fmt: skip
    assert str(conv[0].attrs["data_layout"]) == wanted
    # The data, the weights, the bias, and one result that keeps its four axes.
    assert transforms(new) <= 5
    for a, b in zip(results(mod, values(func)), results(new, values(func))):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_blocked_layouts_spread_and_compute_the_same(layout):
    func = network(layout)
    mod = relay.transform.CanonicalizeOps()(tvm.IRModule.from_expr(func))

    def blocked(attrs, inputs, types, out_type):
        return relay.nn.conv2d(*inputs, **{**dict(attrs), "data_layout": "NCHW8c"})

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", blocked):
        new = relay.transform.AlterOpLayout()(mod)
    assert "NCHW8c" in str(new) and "1, 4, 14, 14, 8" in str(new)
    for a, b in zip(results(mod, values(func)), results(new, values(func))):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_a_layout_without_default_weights_is_named():
    with pytest.raises(ValueError, match="NCHW4c"):
        relay.transform.ConvertLayout({"nn.conv2d": ["NCHW4c", "default"]})(
            tvm.IRModule.from_expr(network())
        )


@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("fold", ["ForwardFoldScaleAxis", "BackwardFoldScaleAxis"])
def test_scales_become_part_of_weights(fold, groups):
    rng = np.random.default_rng(1)
    x = relay.var("x", shape=(2, 8, 6, 6))
    w = relay.const(rng.standard_normal((8, 8 // groups, 3, 3)).astype("float32"))
    scale = relay.const(rng.uniform(0.5, 2, (8, 1, 1)).astype("float32"))
    bias = relay.const(rng.standard_normal((8, 1, 1)).astype("float32"))
    if fold.startswith("Forward"):
        y = relay.nn.conv2d(relay.nn.relu(x * scale) + bias, w, groups=groups)
    else:
        y = relay.nn.relu(relay.nn.conv2d(x, w, groups=groups) + bias) * scale
    mod = tvm.IRModule.from_expr(y)
    new = getattr(relay.transform, fold)()(mod)
    new = relay.transform.FoldConstant()(new)
    assert "multiply" not in relay.analysis.list_op_freqs(new)
    array = rng.standard_normal((2, 8, 6, 6)).astype("float32")
    before, after = (
        relay.create_executor("graph", mod=m).evaluate()(array).numpy() for m in (mod, new)
    )
    np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-4)


def test_scales_stay_where_something_else_needs_them():
    x = relay.var("x", shape=(2, 8, 6, 6))
    w = relay.var("w", shape=(8, 8, 3, 3))
    conv = relay.nn.conv2d(x, w)
    twice = relay.Tuple([conv, conv * relay.const(np.full((8, 1, 1), 2, "float32"))])
    negative = relay.nn.relu(conv) * relay.const(np.full((8, 1, 1), -1, "float32"))
    for expr in (twice, negative):
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(expr))
        tvm.ir.assert_structural_equal(relay.transform.BackwardFoldScaleAxis()(mod), mod)


def branches(kind: str) -> relay.Expr:
    x = relay.var("x", shape=(2, 4, 8) if kind == "batch_matmul" else (2, 8))
    shapes = [(4, 8), (4, 8)] if kind == "dense" else [(2, 3, 8), (2, 5, 8)]
    call = getattr(relay.nn, kind)
    return relay.Tuple([
        relay.nn.relu(call(x, relay.var(f"w{k}", shape=shape)) + relay.const(1.0))
        for k, shape in enumerate(shapes)
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "combine", "joined"),
    [
        ("dense", relay.transform.CombineParallelDense(2, True), "nn.batch_matmul"),
        ("dense", relay.transform.CombineParallelDense(2, False), "nn.dense"),
        ("batch_matmul", relay.transform.CombineParallelBatchMatmul(2), "nn.batch_matmul"),
    ],
)
def test_parallel_products_become_one(kind, combine, joined):
    mod = tvm.IRModule.from_expr(branches(kind))
    new = combine(mod)
    counts = relay.analysis.list_op_freqs(new)
    assert counts[joined] == counts["nn.relu"] == 1
    arrays = values(mod["main"])
    for a, b in zip(results(mod, arrays), results(new, arrays)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_products_of_unknown_shapes_and_constant_factors():
    x = relay.var("x", shape=(relay.Any(), 8))
    pair = [relay.nn.dense(x, relay.var(f"w{k}", shape=(4, 8))) for k in range(2)]
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Tuple(pair)))
    tvm.ir.assert_structural_equal(relay.transform.CombineParallelDense(2)(mod), mod)
    image = relay.var("image", shape=(1, 2, 3, 4))
    call = relay.nn.upsampling(image, relay.const(2), 3.0)
    assert list(relay.testing.run_infer_type(call).checked_type.concrete_shape) == [1, 2, 6, 12]


def test_slopes_of_channels_follow_the_layout():
    x, w, slope = (relay.var(n, shape=s) for n, s in
                   (("x", (1, 8, 6, 6)), ("w", (8, 8, 3, 3)), ("slope", (8,))))  # fmt: skip
    y = relay.nn.prelu(relay.nn.conv2d(x, w, channels=8, kernel_size=3), slope)
    func = relay.Function([x, w, slope], relay.nn.conv2d(y, w, channels=8, kernel_size=3))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    data, weight, factors = values(func)
    found = relay.create_executor("graph", mod=mod).evaluate()(data, weight, factors).numpy()
    plain = relay.nn.conv2d(x, w, channels=8, kernel_size=3)
    before = relay.create_executor().evaluate(relay.Function([x, w], plain))
    rows = before(data, weight).numpy()
    bent = np.where(rows > 0, rows, rows * factors[:, None, None])
    small = relay.var("x", shape=(1, 8, 4, 4))
    last = relay.Function([small, w], relay.nn.conv2d(small, w, channels=8, kernel_size=3))
    expected = relay.create_executor().evaluate(last)(bent, weight).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_layers_may_be_left_in_their_layout():
    x, w = relay.var("x", shape=(1, 8, 6, 6)), relay.var("w", shape=(8, 8, 3, 3))
    y = relay.nn.conv2d(x, w, channels=8, kernel_size=3)
    func = relay.Function([x, w], relay.nn.conv2d(y, w, channels=8, kernel_size=3))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    convert = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
    with relay.transform.LayoutConfig(skip_layers=[0]) as config:
        text = convert(mod).astext()
    assert config.skip_counter == 2 and relay.transform.LayoutConfig.current is None
    assert text.count('data_layout="NHWC"') == 1
    first, second = (line for line in text.splitlines() if "nn.conv2d(" in line)
    assert "NHWC" not in first and "NHWC" in second


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("behind", ["add", "concatenate", "pool"])
def test_quantised_networks_follow_the_layout(behind, per_channel):
    const, qnn = relay.const, relay.qnn.op
    x = relay.var("x", shape=(1, 4, 6, 6), dtype="int8")
    w = relay.var("w", shape=(8, 4, 3, 3), dtype="int8")
    scales = const(np.linspace(0.5, 1, 8).astype("float32")) if per_channel else const(1.0)
    y = qnn.conv2d(x, w, const(1), const(0), const(1.0), scales, channels=8, kernel_size=(3, 3),
                   padding=(1, 1))  # fmt: skip
    y = qnn.requantize(y, scales, const(0), const(20.0), const(2), out_dtype="int8", axis=1)
    if behind == "add":
        y = qnn.add(y, y, *[const(20.0), const(2)] * 2, const(30.0), const(1))
    elif behind == "concatenate":
        y = qnn.concatenate([y, y], [const(20.0)] * 2, [const(2)] * 2, const(25.0), const(1), 1)
    else:
        y = relay.nn.relu(qnn.dequantize(relay.nn.max_pool2d(y, (2, 2)), const(20.0), const(2)))
    before = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], y)))
    after = relay.transform.ConvertLayout({"qnn.conv2d": ["NHWC", "default"]})(before)
    assert transforms(after) == 3 and 'data_layout="NHWC"' in after.astext()
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, [int(e) for e in p.type_annotation.shape]).astype("int8")
              for p in (x, w)]  # fmt: skip
    found = [relay.create_executor("graph", mod=m).evaluate()(*arrays) for m in (before, after)]
    np.testing.assert_array_equal(found[0].numpy(), found[1].numpy())
