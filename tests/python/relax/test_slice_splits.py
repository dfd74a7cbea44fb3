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


@settings(max_examples=15, deadline=None)
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


@settings(max_examples=12, deadline=None)
@given(
    data=st.data(),
    width=st.sampled_from([3, 8, 16, 33]),
    steps=st.lists(st.sampled_from([1, 2]), min_size=3, max_size=3),
    axis=st.integers(0, 2),
)
def test_a_concatenation_takes_in_the_slices_it_joins(
    make_module, run, op_names, data, width, steps, axis
):
    """Patches that become one, and what rotations and shuffles put together."""
    shape = (6, 8, width)
    count = data.draw(st.integers(2, 4))
    begins = [[data.draw(st.integers(0, 1)) for _ in shape] for _ in range(count)]
    extents = [(size - 1) // step for size, step in zip(shape, steps)]
    ends = [
        [b + extent * step for b, extent, step in zip(begin, extents, steps)] for begin in begins
    ]

    def body(bb, x):
        pieces = [
            bb.emit(op.strided_slice(x, [0, 1, 2], begin, end, steps))
            for begin, end in zip(begins, ends)
        ]
        return op.concat(pieces, axis)

    mod = make_module(body, shape)
    x = random(*shape)
    pieces = [
        x[tuple(slice(b, e, s) for b, e, s in zip(begin, end, steps))]
        for begin, end in zip(begins, ends)
    ]
    fused = transform.FuseOps()(mod)
    # Rows whose neighbours are apart are moved first.
    assert len(op_names(fused)) == (1 if steps[2] == 1 else 1 + count)
    np.testing.assert_array_equal(run(fused, x), np.concatenate(pieces, axis))


def test_slices_that_others_read_stay_apart(make_module, run, op_names):
    def body(bb, x):
        left, right = (bb.emit(op.strided_slice(x, [1], [k], [k + 4])) for k in (0, 4))
        joined = bb.emit(op.concat([right, left], 0))
        return op.matmul(joined, bb.emit(op.permute_dims(left)))

    x = random(5, 8)
    fused = transform.FuseOps()(make_module(body, x.shape))
    assert op_names(fused).count("strided_slice") == 1
    expected = np.concatenate([x[:, 4:], x[:, :4]]) @ x[:, :4].T
    np.testing.assert_allclose(run(fused, x), expected, rtol=1e-5, atol=1e-6)


def test_many_slices_are_moved_first(make_module, run, op_names):
    def body(bb, x):
        return op.concat([bb.emit(op.strided_slice(x, [0], [k], [k + 2])) for k in range(9)], 1)

    x = random(11, 16)
    fused = transform.FuseOps()(make_module(body, x.shape))
    assert len(op_names(fused)) == 10
    np.testing.assert_array_equal(
        run(fused, x), np.concatenate([x[k : k + 2] for k in range(9)], 1)
    )
