"""A row times a transposed matrix is the products of the matrix's rows with it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm.relax import op, transform

RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.standard_normal(shape).astype("float32")


def turned(mod):
    return transform.DeadCodeElimination()(transform.TurnRowProducts()(mod))


def scores(axes):
    def body(bb, row, keys):
        return op.matmul(row, bb.emit(op.permute_dims(keys, axes)))

    return body


@settings(max_examples=7, deadline=None)
@given(
    lead=st.sampled_from([(), (3,), (2, 4), (1, 1)]),
    depth=st.integers(1, 40),
    columns=st.integers(1, 40),
)
def test_results_are_the_same(make_module, run, op_names, lead, depth, columns):
    rank = len(lead) + 2
    axes = [*range(rank - 2), rank - 1, rank - 2]
    row, keys = random(*lead, 1, depth), random(*lead, columns, depth)
    mod = make_module(scores(axes), row.shape, keys.shape)
    assert op_names(turned(mod)) == ["reshape", "matmul", "reshape"]
    got = run(turned(mod), row, keys)
    assert got.shape == (*lead, 1, columns)
    np.testing.assert_allclose(got, row @ np.swapaxes(keys, -1, -2), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("row", "keys", "axes"),
    [
        ((2, 3, 8), (2, 5, 8), [0, 2, 1]),  # several rows
        ((2, 1, 8), (5, 2, 8), [1, 2, 0]),  # other dimensions move as well
        ((2, 1, 8), (1, 5, 8), [0, 2, 1]),  # one matrix for all
    ],
)
def test_other_products_stay(make_module, op_names, row, keys, axes):
    mod = make_module(scores(axes), row, keys)
    assert op_names(turned(mod)) == ["permute_dims", "matmul"]
