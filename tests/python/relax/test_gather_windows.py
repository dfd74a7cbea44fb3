"""First convolutions of lines are products with their windows."""

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


def gathered(mod):
    return transform.DeadCodeElimination()(transform.GatherWindows()(mod))


@settings(max_examples=12, deadline=None)
@given(
    batch=st.integers(1, 3),
    channels=st.integers(1, 3),
    width=st.integers(1, 10),
    filters=st.sampled_from([32, 50]),
    stride=st.integers(1, 5),
    dilation=st.integers(1, 2),
    padding=st.integers(0, 4),
    places=st.sampled_from([64, 99, 131]),
    bias=st.booleans(),
)
def test_results_are_the_same(
    make_module, run, op_names, batch, channels, width, filters, stride, dilation, padding, places,
    bias,
):  # fmt: skip
    length = (places - 1) * stride + (width - 1) * dilation + 1 - 2 * padding
    x, weight, shift = random(batch, channels, length), random(filters, channels, width), 0.5

    def body(bb, data):
        conv = bb.emit(
            op.nn.conv1d(
                data, relax.const(weight), strides=stride, padding=padding, dilation=dilation
            )
        )
        return (
            op.add(conv, relax.const(np.full((1, filters, 1), shift, "float32"))) if bias else conv
        )

    mod = make_module(body, x.shape)
    assert ("nn.conv1d" in op_names(gathered(mod))) == (channels * width > 32)
    expected = torch.nn.functional.conv1d(
        torch.from_numpy(x), torch.from_numpy(weight), None, stride, padding, dilation
    )
    np.testing.assert_allclose(
        run(gathered(mod), x), expected.numpy() + shift * bias, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("between", "stays"),
    [
        ((torch.nn.ReLU(),), True),
        ((torch.nn.GroupNorm(32, 32), torch.nn.GELU()), False),
        ((torch.nn.GELU(), torch.nn.MaxPool1d(2)), False),
    ],
)
def test_what_follows_decides(between, stays):
    """A convolution wants channels that are neighbours, others of lines do not."""
    module = torch.nn.Sequential(
        torch.nn.Conv1d(1, 32, 10, 5), *between, torch.nn.Conv1d(32, 16, 3)
    ).eval()
    x = torch.randn(1, 1, 1000)
    network = felix.compile(module, (x,), cache=False)
    names = " ".join(kernel.name for kernel in network.kernels)
    assert ("as_strided" not in names) == stays, names
    with torch.no_grad():
        torch.testing.assert_close(network(x), module(x), rtol=1e-4, atol=1e-4)


def test_groups_and_computed_weights_stay_convolutions(make_module, op_names):
    def grouped(bb, data):
        return op.nn.conv1d(data, relax.const(random(32, 1, 3)), groups=2)

    def computed(bb, data, weight):
        return op.nn.conv1d(data, weight)

    assert op_names(gathered(make_module(grouped, (1, 2, 99)))) == ["nn.conv1d"]
    assert op_names(gathered(make_module(computed, (1, 2, 99), (32, 2, 3)))) == ["nn.conv1d"]
