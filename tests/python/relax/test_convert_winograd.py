"""Convolutions in Winograd's three steps: which ones, and that they keep the values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import relax
from tvm.relax import op, transform

RNG = np.random.default_rng(0)
STEPS = ["nn.winograd_input_transform", "nn.winograd_product", "nn.winograd_output_transform"]


def weights(*shape):
    return relax.const((RNG.standard_normal(shape) / np.sqrt(shape[1] * 9)).astype("float32"))


def convolution(x, channels=64, filters=64, kernel=3, **options):
    return op.nn.conv2d(x, weights(filters, channels, kernel, kernel), **options)


def converted(mod):
    return transform.OptimizeForInference(winograd=True)(mod)


def kernels(mod):
    """Operators of each kernel, transposes at the borders left out."""
    names = [group.op_names for group in relax.fused_groups(mod)]
    return [group for group in names if group != ["permute_dims"]]


@settings(max_examples=8, deadline=None)
@given(
    batch=st.integers(1, 2),
    height=st.integers(24, 33),
    width=st.integers(24, 33),
    channels=st.sampled_from([64, 80]),
    padding=st.sampled_from([1, [0, 2], [1, 0, 2, 1]]),
    seed=st.integers(0, 99),
)
def test_a_residual_block_keeps_its_values(
    make_module, run, batch, height, width, channels, padding, seed
):
    def body(bb, x):
        first = bb.emit(convolution(x, channels, channels, padding=padding))
        gate = bb.emit(op.sigmoid(bb.emit(op.add(first, weights(1, channels, 1, 1)))))
        return op.nn.relu(bb.emit(op.multiply(first, gate)))

    shape = (batch, channels, height, width)
    mod = make_module(body, shape)
    fast = converted(mod)
    assert [k[0] for k in kernels(fast)] == STEPS
    assert kernels(fast)[2][-1] == "nn.relu"
    x = np.random.default_rng(seed).standard_normal(shape).astype("float32")
    plain = transform.OptimizeForInference()(mod)
    np.testing.assert_allclose(run(fast, x), run(plain, x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda bb, x: convolution(x, strides=2),
        lambda bb, x: convolution(x, dilation=2),
        lambda bb, x: convolution(x, kernel=1),
        lambda bb, x: convolution(x, filters=24),
        lambda bb, x: op.nn.conv2d(x, weights(64, 2, 3, 3), groups=32),
        lambda bb, x: op.nn.conv2d(x, weights(64, 1, 3, 3), groups=64),
    ],
    ids=["strided", "dilated", "pointwise", "24 filters", "grouped", "depthwise"],
)
def test_other_convolutions_stay_as_they_are(make_module, make):
    mod = converted(make_module(make, (1, 64, 28, 28)))
    assert kernels(mod) == [["nn.conv2d"]]


def test_weights_that_are_inputs_stay_as_they_are(make_module):
    mod = make_module(
        lambda bb, x, w: op.nn.conv2d(x, w, padding=1), (1, 64, 28, 28), (64, 64, 3, 3)
    )
    assert ["nn.conv2d"] in kernels(converted(mod))


def test_an_image_too_small_to_win_stays_as_it_is(make_module):
    mod = make_module(lambda bb, x: convolution(x, 64, 64, padding=1), (1, 64, 2, 2))
    assert kernels(converted(mod)) == [["nn.conv2d"]]


def test_only_the_product_is_a_task(make_module):
    mod = make_module(lambda bb, x: op.nn.relu(bb.emit(convolution(x, padding=1))), (1, 64, 28, 28))
    assert [group.op_names for group in relax.extract_tasks(converted(mod))] == [STEPS[1:2]]
