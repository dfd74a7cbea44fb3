"""Pieces of splits are slices, and elementwise kernels take them in."""

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


@settings(max_examples=30, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 4), st.integers(6, 12), st.integers(1, 5)),
    axis=st.sampled_from([1, -2]),
    cuts=st.one_of(
        st.integers(1, 3), st.lists(st.integers(0, 14), min_size=1, max_size=4).map(sorted)
    ),
)
def test_pieces_are_the_same(make_module, run, shape, axis, cuts):
    if isinstance(cuts, int):
        shape = (shape[0], shape[1] // cuts * cuts, shape[2])
    count = cuts if isinstance(cuts, int) else len(cuts) + 1

    def body(bb, x):
        pieces = bb.emit(op.split(x, cuts, axis))
        return relax.Tuple([bb.emit(op.exp(bb.emit(pieces[i]))) for i in range(count)])

    mod = make_module(body, shape)
    x = random(*shape)
    sliced = transform.DeadCodeElimination()(transform.SliceSplits()(mod))
    assert "R.split" not in sliced.script()
    for got, expected in zip(run(sliced, x), run(mod, x), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_many_pieces_and_open_sizes_stay_a_split(make_module):
    mod = make_module(lambda bb, x: bb.emit(op.split(x, 50, 1))[7], (1, 50, 8))
    assert transform.SliceSplits()(mod).script() == mod.script()


@pytest.mark.parametrize(
    ("function", "shape", "kernels"),
    [
        (torch.nn.functional.glu, (4, 20, 64), 1),
        (lambda x: x.chunk(3, -1)[0] + x.chunk(3, -1)[2], (1, 20, 96), 1),
        # A slice that two kernels read is computed once.
        (lambda x: torch.stack([x[:, :8] + 1, (x[:, :8] * x[:, 8:]).softmax(1)]), (4, 16), None),
    ],
)
def test_kernels_take_slices_in(function, shape, kernels):
    class Model(torch.nn.Module):
        def forward(self, x):
            return function(x)

    x = torch.from_numpy(random(*shape))
    compiled = felix.compile(Model(), (x,), cache=False)
    torch.testing.assert_close(torch.from_numpy(compiled(x).numpy()), function(x))
    if kernels is not None:
        assert str(compiled).count(f"{kernels} kernels in {kernels} calls") == 1
