"""Which dimension a reduction is over decides its vectors, also where extents are alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, topi
from tvm.topi.x86.reduction import reduces_rows

RNG = np.random.default_rng(0)
TARGET = tvm.target.Target("llvm -mcpu=znver4")


@settings(max_examples=12, deadline=None)
@given(
    shape=st.lists(st.sampled_from([1, 3, 16, 48, 64, 100]), min_size=2, max_size=3),
    data=st.data(),
    square=st.booleans(),
    after=st.booleans(),
)
def test_sums_over_any_dimension(shape, data, square, after):
    if square:
        shape = [shape[0]] * len(shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = RNG.standard_normal(shape).astype("float32")
    source = te.placeholder(x.shape, "float32", "x")
    output = topi.sum(topi.multiply(source, source), axis)
    if after:
        output = topi.exp(output * -0.01)
    function = tvm.build(topi.schedule_for(output, "llvm"), [source, output], "llvm")
    result = tvm.nd.empty(tuple(int(n) for n in output.shape))
    function(tvm.nd.array(x), result)
    expected = (x.astype("float64") ** 2).sum(axis)
    np.testing.assert_allclose(
        result.numpy(), np.exp(expected * -0.01) if after else expected, rtol=1e-4
    )


@pytest.mark.parametrize(("axis", "rows"), [(0, False), (1, True)])
def test_rows_and_columns_of_a_square_are_told_apart(axis, rows):
    source = te.placeholder((512, 512), name="x")
    output = topi.sum(source, axis)
    assert reduces_rows(output) == rows
    with TARGET:
        text = str(tvm.lower(topi.schedule_for(output, TARGET), [source, output]))
    # Neighbours of a column are 512 apart; a vector of them is gathered.
    assert ", 512, 16)" not in text


@settings(max_examples=7, deadline=None)
@given(
    shape=st.lists(st.integers(1, 70), min_size=1, max_size=3),
    kind=st.sampled_from(["sum", "max", "argmax"]),
    negate=st.booleans(),
)
def test_everything_to_one_number(shape, kind, negate):
    x = RNG.standard_normal(shape).astype("float32")
    source = te.placeholder(x.shape, "float32", "x")
    output = getattr(topi, kind)(source, None)
    if negate:
        output = topi.negative(output)
    function = tvm.build(topi.schedule_for(output, "llvm"), [source, output], "llvm")
    result = tvm.nd.empty((), output.dtype)
    function(tvm.nd.array(x), result)
    expected = getattr(np, kind)(x.astype("float64"))
    np.testing.assert_allclose(result.numpy(), -expected if negate else expected, 1e-4, 1e-3)


@pytest.mark.parametrize("shape", [(512, 512), (40000,), (7, 3001)])
def test_many_elements_are_reduced_in_chunks(shape):
    x = RNG.standard_normal(shape).astype("float32")
    source = te.placeholder(x.shape, "float32", "x")
    output = topi.sum(source, None)
    function = tvm.build(topi.schedule_for(output, "llvm"), [source, output], "llvm")
    result = tvm.nd.empty(())
    function(tvm.nd.array(x), result)
    np.testing.assert_allclose(result.numpy(), x.astype("float64").sum(), rtol=1e-4, atol=1e-2)


@settings(max_examples=10, deadline=None)
@given(
    rows=st.lists(st.integers(1, 5), min_size=1, max_size=2),
    widths=st.lists(st.integers(1, 40), min_size=2, max_size=9),
)
def test_rows_joined_of_odd_pieces(rows, widths):
    pieces = [RNG.standard_normal((*rows, width)).astype("float32") for width in widths]
    sources = [te.placeholder(p.shape, "float32", f"x{i}") for i, p in enumerate(pieces)]
    output = topi.concatenate([topi.exp(sources[0]), *sources[1:]], -1)
    function = tvm.build(topi.schedule_for(output, "llvm"), [*sources, output], "llvm")
    result = tvm.nd.empty(tuple(int(n) for n in output.shape))
    function(*map(tvm.nd.array, pieces), result)
    expected = np.concatenate([np.exp(pieces[0]), *pieces[1:]], -1)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)


@settings(max_examples=10, deadline=None)
@given(
    shape=st.lists(st.integers(1, 40), min_size=2, max_size=4),
    data=st.data(),
)
def test_rows_padded_by_odd_pieces(shape, data):
    before, after = (
        [data.draw(st.integers(0, 3)) for _ in shape[:-1]] + [data.draw(st.integers(0, 20))]
        for _ in range(2)
    )
    x = RNG.standard_normal(shape).astype("float32")
    source = te.placeholder(x.shape, "float32", "x")
    output = topi.exp(topi.nn.pad(source, before, after, 0.5))
    function = tvm.build(topi.schedule_for(output, "llvm"), [source, output], "llvm")
    result = tvm.nd.empty(tuple(int(n) for n in output.shape))
    function(tvm.nd.array(x), result)
    expected = np.exp(np.pad(x, list(zip(before, after)), constant_values=0.5))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 12, 64, 197), (2, 30, 197)])
def test_each_piece_of_an_odd_row_is_vectors(shape):
    source = te.placeholder(shape, name="x")
    output = topi.nn.pad(source, [0] * len(shape), [0] * (len(shape) - 1) + [11])
    with TARGET:
        text = str(tvm.lower(topi.schedule_for(output, TARGET), [source, output]))
    # 197 elements are vectors, then a few of fewer lanes.
    assert "T.Ramp(" in text
    assert "if_then_else" not in text


def test_long_columns_are_reduced_several_vectors_wide():
    source = te.placeholder((300, 1000), name="x")
    output = topi.sum(source, 0)
    with TARGET:
        text = str(tvm.lower(topi.schedule_for(output, TARGET), [source, output]))
    # 125 vectors of 8 make 25 tiles of five.
    assert "in T.parallel(25)" in text
    windows = topi.nn.pool2d(
        te.placeholder((1, 64, 64, 64), name="x"),
        (2, 2),
        (2, 2),
        (1, 1),
        (0, 0, 0, 0),
        "max",
        layout="NHWC",
    )
    with TARGET:
        text = str(
            tvm.lower(topi.schedule_for(windows, TARGET), [*windows.op.input_tensors, windows])
        )
    assert "in T.parallel(4096)" in text
