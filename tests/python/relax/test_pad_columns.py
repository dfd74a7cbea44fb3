"""Products whose columns fill no vectors get columns of zeros."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import felix, relax
from tvm.relax import op, transform

RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.standard_normal(shape).astype("float32")


def padded(mod):
    return transform.DeadCodeElimination()(transform.PadColumns()(mod))


def convolution(data, filters, size=3, dtype="float32"):
    channels = int(data.struct_info.shape[3])
    weight = random(size, size, channels, filters).astype(dtype)
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    return op.nn.conv2d(data, relax.const(weight), padding=size // 2, **layouts)


@settings(max_examples=6, deadline=None)
@given(
    filters=st.sampled_from([1, 3, 5, 18, 21, 255]),
    channels=st.sampled_from([3, 16, 20]),
    batch=st.integers(1, 2),
)
def test_filters_that_fill_no_vectors_are_filled_up(
    make_module, run, op_names, filters, channels, batch
):
    bias, factor = random(1, 1, 1, filters), random(1)

    def body(bb, data):
        conv = bb.emit(convolution(data, filters))
        summed = bb.emit(op.nn.relu(bb.emit(op.add(conv, relax.const(bias)))))
        return op.multiply(summed, relax.const(factor))

    x = random(batch, 30, 30, channels)
    mod = make_module(body, x.shape)
    # One cut, behind all that follows.
    expected = ["nn.conv2d", "add", "nn.relu", "multiply"]
    # A single filter is a sum over each window.
    pays = filters > 1 and batch * 900 * filters * channels * 9 >= 1 << 17
    assert op_names(padded(mod)) == [*expected, *["strided_slice"] * pays]
    np.testing.assert_allclose(run(padded(mod), x), run(mod, x), rtol=1e-4, atol=1e-4)


@settings(max_examples=6, deadline=None)
@given(
    lead=st.sampled_from([(), (3,), (2, 2)]),
    rows=st.integers(30, 60),
    depth=st.integers(100, 130),
    columns=st.sampled_from([49, 50, 100, 197]),
)
def test_products_of_two_tensors_too(make_module, run, op_names, lead, rows, depth, columns):
    x, y = random(*lead, rows, depth), random(*lead, depth, columns)
    mod = make_module(lambda bb, a, b: op.nn.relu(bb.emit(op.matmul(a, b))), x.shape, y.shape)
    filled = padded(mod)
    if columns % 8 and np.prod(lead) * rows * depth * columns >= 1 << 17:
        assert op_names(filled) == ["nn.pad", "matmul", "nn.relu", "strided_slice"]
    np.testing.assert_allclose(run(filled, x, y), run(mod, x, y), rtol=1e-3, atol=1e-3)


@settings(max_examples=6, deadline=None)
@given(
    lead=st.sampled_from([(), (3,)]),
    rows=st.integers(1, 100),
    depth=st.integers(8, 80),
    columns=st.sampled_from([5, 21, 49, 64, 91, 196]),
)
def test_dense_layers_with_many_columns(make_module, run, op_names, lead, rows, depth, columns):
    weight, bias = relax.const(random(columns, depth)), relax.const(random(columns))

    def body(bb, data):
        return op.add(bb.emit(op.make_call("nn.dense", data, weight)), bias)

    x = random(*lead, rows, depth)
    mod = make_module(body, x.shape)
    pays = columns >= 32 and columns % 8 and np.prod(lead) * rows * depth * columns >= 1 << 17
    assert op_names(padded(mod)) == ["nn.dense", "add", *["strided_slice"] * bool(pays)]
    np.testing.assert_allclose(run(padded(mod), x), run(mod, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "kernel", "stride"), [(90, 9, 1), (18, 3, 2), (5, 5, 1)])
def test_depthwise_channels_are_columns(make_module, run, op_names, channels, kernel, stride):
    """Behind a convolution of as many filters no channel is added to the data again."""
    weight = relax.const(random(kernel, kernel, channels, 1))

    def depthwise(data):
        return op.nn.conv2d(
            data, weight, stride, kernel // 2, 1, channels, "NHWC", kernel_layout="HWOI"
        )

    x = random(2, 64, 64, channels)
    mod = make_module(lambda bb, data: op.nn.relu(bb.emit(depthwise(data))), x.shape)
    assert op_names(padded(mod)) == ["nn.pad", "nn.conv2d", "nn.relu", "strided_slice"]
    np.testing.assert_allclose(run(padded(mod), x), run(mod, x), rtol=1e-4, atol=1e-4)

    def block(bb, data):
        return depthwise(bb.emit(op.nn.relu(bb.emit(convolution(data, channels, 1)))))

    x = random(1, 64, 64, 16)
    mod = make_module(block, x.shape)
    assert op_names(padded(mod)) == ["nn.conv2d", "nn.relu", "nn.conv2d", "strided_slice"]
    np.testing.assert_allclose(run(padded(mod), x), run(mod, x), rtol=1e-4, atol=1e-4)


def test_residual_sums_are_on_all_columns(make_module, run, op_names):
    def body(bb, data):
        first = bb.emit(convolution(data, 18))
        second = bb.emit(convolution(data, 18, 1))
        return op.add(first, second)

    x = random(1, 40, 40, 16)
    mod = make_module(body, x.shape)
    assert op_names(padded(mod)) == ["nn.conv2d", "nn.conv2d", "add", "strided_slice"]
    np.testing.assert_allclose(run(padded(mod), x), run(mod, x), rtol=1e-4, atol=1e-4)


def test_integers_are_not_divided_by_columns_of_zeros(make_module, run):
    divisor = relax.const(np.full((1, 1, 1, 5), 3, "float32"))

    def body(bb, data):
        return op.divide(bb.emit(convolution(data, 5)), divisor)

    x = random(1, 40, 40, 16)
    mod = make_module(body, x.shape)
    assert np.isfinite(run(padded(mod), x)).all()
    np.testing.assert_allclose(run(padded(mod), x), run(mod, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("filters", "size"), [(24, 3), (16, 3), (5, 1)])
def test_whole_vectors_and_small_products_stay(make_module, op_names, filters, size):
    side = 8 if size == 1 else 40
    mod = make_module(lambda bb, data: convolution(data, filters, size), (1, side, side, 16))
    assert op_names(padded(mod)) == ["nn.conv2d"]


@pytest.mark.parametrize("kind", ["few filters", "odd depthwise", "transposed", "grouped"])
def test_weights_that_are_computed(kind):
    class Model(torch.nn.Module):
        def forward(self, x, w):
            w = w * 2
            if kind == "transposed":
                return torch.nn.functional.conv_transpose2d(x, w, stride=2, padding=1)
            if kind == "grouped":
                return torch.nn.functional.conv_transpose2d(x, w, groups=2, dilation=2)
            groups = x.shape[1] if kind == "odd depthwise" else 1
            return torch.nn.functional.conv2d(x, w, padding=1, groups=groups)

    channels = 52 if kind == "odd depthwise" else 12
    shapes = {"few filters": (5, 12, 3, 3), "odd depthwise": (52, 1, 3, 3)}
    x = torch.randn(1, channels, 20, 20)
    w = torch.randn(shapes.get(kind, (12, 6, 4, 4)))
    compiled = felix.compile(Model(), (x, w), cache=False)
    got = torch.from_numpy(compiled(x, w).numpy())
    torch.testing.assert_close(got, Model()(x, w), rtol=1e-4, atol=1e-4)


@settings(max_examples=7, deadline=None)
@given(
    lead=st.sampled_from([(2,), (2, 3)]),
    rows=st.integers(60, 80),
    depth=st.sampled_from([40, 64, 300]),
    columns=st.sampled_from([31, 49, 50, 77, 100, 197, 1003]),
    bias=st.booleans(),
)
def test_columns_may_end_inside_of_a_vector(
    make_module, run, op_names, lead, rows, depth, columns, bias
):
    """Scores of a few keys are not copied without what was put behind them."""
    x, y, z = random(*lead, rows, depth), random(*lead, depth, columns), random(columns)

    def body(bb, a, b, c):
        product = bb.emit(op.matmul(a, b))
        return op.add(product, c) if bias else op.nn.relu(product)

    mod = make_module(body, x.shape, y.shape, z.shape)
    kept = transform.DeadCodeElimination()(transform.PadColumns(True)(mod))
    stays = depth < 256 and columns not in (31, 77)
    assert ("nn.pad" not in op_names(kept)) == stays
    expected = x @ y + z if bias else np.maximum(x @ y, 0)
    np.testing.assert_allclose(run(kept, x, y, z), expected, rtol=1e-3, atol=1e-3)
