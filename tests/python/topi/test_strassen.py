"""Seven products of half the size: against numpy, for any number of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, topi
from tvm.topi import nn

TARGET = tvm.target.Target("llvm")


@settings(max_examples=7, deadline=None)
@given(
    rows=st.integers(1, 150),
    depth=st.sampled_from([2, 34, 64]),
    panels=st.integers(1, 3),
    block=st.sampled_from([32, 48]),
    seed=st.integers(0, 99),
)
def test_product_with_a_function_of_it(rows, depth, panels, block, seed):
    rng = np.random.default_rng(seed)
    columns = 2 * panels * block
    a = rng.standard_normal((rows, depth)).astype("float32")
    b = rng.standard_normal((depth, columns)).astype("float32")
    c = rng.standard_normal(columns).astype("float32")
    packed = nn.strassen_weight(b, block)
    data, weight, bias = (
        te.placeholder(x.shape, name=name) for x, name in ((a, "a"), (packed, "b"), (c, "c"))
    )
    out = nn.relu(topi.add(nn.strassen_product(data, weight), bias))
    function = tvm.build(topi.schedule_for(out, TARGET), [data, weight, bias, out], TARGET)
    result = tvm.nd.empty((rows, columns), "float32")
    function(*map(tvm.nd.array, (a, packed, c)), result)
    expected = np.maximum(a.astype("float64") @ b + c, 0)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5 * depth)


@pytest.mark.parametrize("rows", [129, 4096])
def test_blocks_of_rows_stand_outside_where_their_sums_would_leave_the_cache(rows):
    rng = np.random.default_rng(rows)
    a = rng.standard_normal((rows, 256)).astype("float32")
    b = rng.standard_normal((256, 96)).astype("float32")
    packed = nn.strassen_weight(b, 48)
    data, weight = te.placeholder(a.shape, name="a"), te.placeholder(packed.shape, name="b")
    out = nn.strassen_product(data, weight)
    function = tvm.build(topi.schedule_for(out, TARGET), [data, weight, out], TARGET)
    result = tvm.nd.empty((rows, 96), "float32")
    function(tvm.nd.array(a), tvm.nd.array(packed), result)
    np.testing.assert_allclose(result.numpy(), a.astype("float64") @ b, rtol=1e-4, atol=1e-3)


def test_rows_fill_their_blocks():
    assert nn.strassen_half_rows(128) == 32
    assert nn.strassen_half_rows(196) == 14
    assert nn.strassen_half_rows(1) == 1
    # Of 262 rows blocks of one row are full; of 264 those of 22 are, which read weights less often.
    assert nn.strassen_half_rows(261) == 22
    assert nn.strassen_block(3072) == 48
    assert nn.strassen_block(1024) == 32
    assert nn.strassen_block(100) is None


def test_weights_that_have_no_halves_are_refused():
    with pytest.raises(ValueError, match="7 x 96 have no halves"):
        nn.strassen_weight(np.zeros((7, 96), "float32"), 48)
    data, weight = te.placeholder((4, 6)), te.placeholder((7, 1, 4, 32))
    with pytest.raises(ValueError, match="6 columns does not fit weights of 8 rows"):
        nn.strassen_product(data, weight)
