"""Variances written as sums of squares, against PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import felix
from tvm.relax import op, transform

RNG = np.random.default_rng(0)


@settings(max_examples=12, deadline=None)
@given(
    shape=st.tuples(st.integers(2, 4), st.integers(2, 20), st.integers(2, 40)),
    axes=st.sampled_from([None, (0,), (-1,), (1, 2), (0, 2)]),
    keepdims=st.booleans(),
    kind=st.sampled_from(["variance", "std"]),
)
def test_results_are_the_same(make_module, run, shape, axes, keepdims, kind):
    function = getattr(op, kind)
    mod = make_module(lambda bb, x: function(x, axes, keepdims), shape)
    apart = transform.DecomposeVariance()(mod)
    assert f"R.{kind}" not in apart.script()
    # Far from zero, where a difference of mean squares would cancel.
    x = (RNG.standard_normal(shape) + 100).astype("float32")
    reference = np.var if kind == "variance" else np.std
    expected = reference(x.astype("float64"), axis=axes, keepdims=keepdims)
    np.testing.assert_allclose(run(apart, x), expected, rtol=1e-4)


@pytest.mark.parametrize("correction", [0, 1, 3, 31])
def test_corrections_lessen_the_divisor(correction):
    class Model(torch.nn.Module):
        def forward(self, x):
            return x.var(-1, correction=correction), x.std(-1, correction=correction)

    x = torch.from_numpy(RNG.standard_normal((6, 32)).astype("float32"))
    compiled = felix.compile(Model(), (x,), cache=False)
    for got, expected in zip(compiled(x), Model()(x), strict=True):
        torch.testing.assert_close(torch.from_numpy(got.numpy()), expected)


def test_reductions_take_in_what_they_alone_read():
    class Model(torch.nn.Module):
        def forward(self, x, y):
            return torch.cdist(x, y), (x - x.mean()).pow(2).sum(0), x.exp().amax(1), x.std()

    x, y = (torch.from_numpy(RNG.standard_normal((n, 48)).astype("float32")) for n in (24, 20))
    compiled = felix.compile(Model(), (x, y), cache=False)
    for got, expected in zip(compiled(x, y), Model()(x, y), strict=True):
        torch.testing.assert_close(torch.from_numpy(got.numpy()), expected, rtol=1e-4, atol=1e-5)
    # Distances (of more rows they would be products), a mean and sums of squares around it, an
    # extreme, and mean and root of the last.
    assert "6 kernels in 6 calls" in str(compiled)
