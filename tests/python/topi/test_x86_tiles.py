"""Hand-written CPU schedules with register tiles: right for any shape, tile and loop order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, topi
from tvm.topi import x86

TARGET = tvm.target.Target("llvm")
LANES = TARGET.vector_width // 32
TILES = st.builds(
    x86.RegisterTile, st.integers(1, 3), st.integers(1, 4), st.just(1), st.sampled_from([0, 2])
)


def run(schedule, tensors, arrays):
    function = tvm.build(schedule, tensors, TARGET, name="f")["f"]
    result = tvm.nd.empty(tuple(int(size) for size in tensors[-1].shape), "float32")
    function(*(tvm.nd.array(array) for array in arrays), result)
    return result.numpy()


def random(rng, *shape):
    return rng.standard_normal(shape).astype("float32")


@settings(max_examples=10, deadline=None)
@given(
    height=st.integers(3, 9),
    width=st.integers(3, 9),
    channels=st.sampled_from([3, 16, 20]),
    filters=st.sampled_from([LANES, 2 * LANES, LANES + 3]),
    stride=st.sampled_from([1, 2]),
    padding=st.sampled_from([0, 1]),
    tile=TILES,
    rows_outside=st.booleans(),
    relu=st.booleans(),
)
def test_convolution_matches_torch_for_any_tile_and_order(
    height, width, channels, filters, stride, padding, tile, rows_outside, relu
):
    rng = np.random.default_rng(0)
    data, weight = random(rng, 2, height, width, channels), random(rng, 3, 3, channels, filters)
    packed = x86.pack_conv2d_weight(weight, tile.vectors * LANES)
    A, W = te.placeholder(data.shape, name="A"), te.placeholder(packed.shape, name="W")
    C = x86.conv2d_nhwc_packed(A, W, stride, padding)
    output = topi.nn.relu(C) if relu else None
    schedule = x86.schedule_conv2d_nhwc_packed(C, tile, output, TARGET, rows_outside)
    got = run(schedule, [A, W, C if output is None else output], [data, packed])[..., :filters]
    expected = F.conv2d(
        torch.tensor(data).permute(0, 3, 1, 2),
        torch.tensor(weight).permute(3, 2, 0, 1),
        stride=stride,
        padding=padding,
    )
    expected = (expected.relu() if relu else expected).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=10, deadline=None)
@given(
    height=st.integers(5, 13),
    width=st.integers(5, 13),
    kernel=st.sampled_from([2, 3, 5]),
    tile_size=st.sampled_from([2, 3, 4]),
    channels=st.sampled_from([3, 8, 20]),
    filters=st.sampled_from([LANES, 2 * LANES, LANES + 3]),
    padding=st.sampled_from([0, 1, (0, 1, 2, 0)]),
    tile=TILES,
    chunk_rows=st.sampled_from([None, 1, 2]),
    relu=st.booleans(),
)
def test_winograd_convolution_matches_torch_for_any_tile_and_chunk(
    height, width, kernel, tile_size, channels, filters, padding, tile, chunk_rows, relu
):
    rng = np.random.default_rng(0)
    data = random(rng, 2, height, width, channels)
    weight = random(rng, kernel, kernel, channels, filters)
    packed = x86.pack_winograd_weight(weight, tile_size, tile.vectors * LANES)
    A, W = te.placeholder(data.shape, name="A"), te.placeholder(packed.shape, name="W")
    C = x86.conv2d_nhwc_winograd_packed(A, W, tile_size, kernel, padding)
    output = topi.nn.relu(C) if relu else C
    schedule = x86.schedule_conv2d_nhwc_winograd_packed(C, tile, chunk_rows, output, TARGET)
    got = run(schedule, [A, W, output], [data, packed])[..., :filters]
    top, left, bottom, right = (padding,) * 4 if isinstance(padding, int) else padding
    expected = F.conv2d(
        F.pad(torch.tensor(data).permute(0, 3, 1, 2), (left, right, top, bottom)),
        torch.tensor(weight).permute(3, 2, 0, 1),
    )
    expected = (expected.relu() if relu else expected).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=2e-3)


def test_winograd_refuses_a_kernel_that_is_not_square():
    with pytest.raises(ValueError, match="must be square, got 3 x 5"):
        x86.pack_winograd_weight(np.zeros((3, 5, 4, 8), "float32"), 4, 8)


@settings(max_examples=7, deadline=None)
@given(
    height=st.integers(3, 9),
    width=st.integers(3, 9),
    channels=st.sampled_from([LANES, 3 * LANES]),
    stride=st.sampled_from([1, 2]),
    tile=TILES,
)
def test_depthwise_convolution_matches_torch_for_any_tile(height, width, channels, stride, tile):
    rng = np.random.default_rng(0)
    data, weight = random(rng, 1, height, width, channels), random(rng, 3, 3, channels)
    A, W = te.placeholder(data.shape, name="A"), te.placeholder(weight.shape, name="W")
    C = x86.depthwise_conv2d_nhwc_packed(A, W, stride, 1)
    schedule = x86.schedule_depthwise_conv2d_nhwc_packed(C, tile, target=TARGET)
    got = run(schedule, [A, W, C], [data, weight])
    expected = F.conv2d(
        torch.tensor(data).permute(0, 3, 1, 2),
        torch.tensor(weight).permute(2, 0, 1)[:, None],
        stride=stride,
        padding=1,
        groups=channels,
    )
    np.testing.assert_allclose(got, expected.permute(0, 2, 3, 1).numpy(), rtol=1e-4, atol=1e-4)


@settings(max_examples=7, deadline=None)
@given(
    rows=st.integers(1, 9),
    depth=st.integers(1, 20),
    columns=st.integers(1, 3 * LANES),
    height=st.integers(1, 6),
    vectors=st.sampled_from([1, 2]),
    prefetch=st.sampled_from([0, 4]),
)
def test_matrix_product_matches_numpy_for_any_tile(rows, depth, columns, height, vectors, prefetch):
    rng = np.random.default_rng(0)
    data, weight = random(rng, rows, depth), random(rng, depth, columns)
    packed = x86.pack_matmul_weight(weight, vectors * LANES)
    A, W = te.placeholder(data.shape, name="A"), te.placeholder(packed.shape, name="W")
    C = x86.matmul_packed(A, W)
    tile = x86.RegisterTile(height, 1, vectors, prefetch)
    got = run(x86.schedule_matmul_packed(C, tile, target=TARGET), [A, W, C], [data, packed])
    np.testing.assert_allclose(got[:, :columns], data @ weight, rtol=1e-4, atol=1e-4)


def test_a_tile_that_would_spill_is_refused():
    with pytest.raises(ValueError, match="vector registers"):
        x86.RegisterTile(64, 1, 2).check(TARGET)


@pytest.mark.parametrize(("rows", "ahead"), [(8, True), (2048, False)])
def test_packed_weights_are_read_ahead_where_few_tiles_share_them(rows, ahead):
    data, weight = te.placeholder((rows, 64)), te.placeholder((4 * LANES, 64))
    product = topi.nn.dense(data, weight)
    scheduled = topi.schedule_args_for([data, weight, product], [1], TARGET)
    module = tvm.lower(scheduled.schedule, scheduled.args)
    assert ("prefetch" in str(module)) == ahead
    assert scheduled.packings[1].packed.op.name == "packed_weight"


def test_wide_units_get_tiles_that_read_less_of_the_second_cache():
    from tvm.topi.x86.tiles import fitting_rows

    def tile(cpu):
        target = tvm.target.Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
        return fitting_rows(target, 128, 48, 3072 * 64)

    # Both have 32 registers of 512 bits; one multiplies twice as fast.
    assert tile("sapphirerapids").vectors < tile("znver4").vectors


INTEL = tvm.target.Target(
    "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -num-cores=2 -l1-cache-bytes=49152"
    " -l2-cache-bytes=2097152"
)


def scheduled_text(height, channels, filters, window, groups=1, stride=1, target=INTEL):
    """The lowered program of a convolution whose weights are constant, and how these are stored."""
    data = te.placeholder((1, height, height, channels), name="data")
    weight = te.placeholder((window, window, channels // groups, filters), name="weight")
    conv = topi.nn.conv2d(data, weight, stride, window // 2, 1, "NHWC", "HWIO", groups=groups)
    with target:
        known = topi.schedule_args_for([data, weight, conv], {1}, target)
        return str(tvm.lower(known.schedule, known.args)), known.packings[1].packed.shape


def test_vectors_without_a_good_divisor_are_cut_into_tiles_with_a_remainder():
    # 49 vectors: by seven, a tile would have three pixels, and seven vectors to read for them.
    text, stored = scheduled_text(7, 784, 784, 1)
    assert [int(size) for size in stored] == [49, 1, 1, 784, 16]
    assert "prefetch" in text
    # Both panels of a tile are read ahead without a loop of their own.
    assert "packed_weight_row" not in text
    # With a good divisor, a tile's vectors lie side by side.
    _, stored = scheduled_text(14, 256, 64, 1)
    assert int(stored[-1]) > 16


def test_grouped_convolutions_copy_the_rows_of_a_tile_with_their_border():
    def border(text):
        return [line for line in text.splitlines() if "PadInput = T.allocate" in line]

    text, _ = scheduled_text(112, 64, 64, 3, groups=4, stride=2)
    (line,) = border(text)
    assert line.startswith(" " * 12)  # inside of the parallel loop
    # Weights that fill half of the second cache stay panel by panel.
    text, _ = scheduled_text(14, 4096, 4096, 3, groups=16)
    (line,) = border(text)
    assert not line.startswith(" " * 12)


@pytest.mark.parametrize("leading", [(13, 1), (1, 13), (3, 5), (7, 1, 1), (2, 1, 6), (1, 1)])
def test_rows_of_a_dense_layer_lie_along_any_axis(leading):
    from tvm.topi.x86.tiles import row_axis

    rng = np.random.default_rng(0)
    depth, columns = 20, 4 * LANES
    data, weight = random(rng, *leading, depth), random(rng, columns, depth)
    A, W = te.placeholder(data.shape, name="A"), te.placeholder(weight.shape, name="W")
    product = topi.nn.dense(A, W)
    longer = [axis for axis, extent in enumerate(leading) if extent > 1]
    assert row_axis(product) == (longer or [len(leading) - 1])[-1]
    scheduled = topi.schedule_args_for([A, W, product], [1], TARGET)
    packing = scheduled.packings[1]
    panels, _, block = (int(extent) for extent in packing.packed.shape)
    packed = np.ascontiguousarray(weight.reshape(panels, block, depth).transpose(0, 2, 1))
    got = run(scheduled.schedule, scheduled.args, [data, packed])
    np.testing.assert_allclose(got, data @ weight.T, rtol=1e-4, atol=1e-4)


@settings(max_examples=12, deadline=None)
@given(
    batch=st.sampled_from([0, 1, 3]),
    rows=st.integers(1, 9),
    columns=st.sampled_from([1, 16, 48, 50, 64]),
    depth=st.sampled_from([4, 16, 20, 64, 96]),
    function=st.booleans(),
)
def test_few_rows_read_columns_where_they_are(batch, rows, columns, depth, function):
    lead = (batch,) if batch else ()
    left = te.placeholder((*lead, rows, depth), name="left")
    right = te.placeholder((*lead, columns, depth), name="right")
    product = (topi.nn.batch_matmul if batch else topi.nn.dense)(left, right)
    result = topi.nn.relu(topi.subtract(product, 1.0)) if function else product
    rng = np.random.default_rng(columns)
    a, b = (
        rng.random(shape, dtype="float32")
        for shape in ((*lead, rows, depth), (*lead, columns, depth))
    )
    got = run(topi.schedule_for(result, TARGET), [left, right, result], [a, b])
    expected = a @ np.swapaxes(b, -1, -2)
    expected = np.maximum(expected - 1, 0) if function else expected
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=core-avx2"])
@settings(max_examples=12, deadline=None)
@given(
    batch=st.integers(1, 3),
    rows=st.integers(1, 30),
    depth=st.integers(1, 70),
    columns=st.one_of(st.integers(4, 90), st.sampled_from([197, 1030])),
    relu=st.booleans(),
)
def test_products_of_any_columns_read_where_they_are(target, batch, rows, depth, columns, relu):
    """Lanes of the last vector that are behind the last column are not read or written."""
    rng = np.random.default_rng(0)
    a, b = random(rng, batch, rows, depth), random(rng, batch, depth, columns)
    A, B = te.placeholder(a.shape, name="A"), te.placeholder(b.shape, name="B")
    C = topi.nn.batch_matmul(A, B, transpose_b=False)
    output = topi.nn.relu(C) if relu else C
    schedule = topi.schedule_for(output, target)
    function = tvm.build(schedule, [A, B, output], target, name="f")["f"]
    # Batches of one memory: what lies behind a result stays as it was.
    memory = torch.full((batch + 1, rows, columns), 7.0)
    out = tvm.nd.from_dlpack(torch.utils.dlpack.to_dlpack(memory[:batch]))
    function(tvm.nd.array(a), tvm.nd.array(b), out)
    expected = a.astype("float64") @ b
    np.testing.assert_allclose(
        memory[:batch].numpy(), np.maximum(expected, 0) if relu else expected, 1e-4, 1e-4
    )
    assert (memory[batch] == 7).all()


@pytest.mark.parametrize(("columns", "lanes"), [(197, 16), (200, 16), (72, 16), (12, 4), (32, 16)])
def test_columns_end_inside_of_the_widest_vectors(columns, lanes):
    """Narrow vectors that leave no remainder take longer than wide ones and their last pieces."""
    target = tvm.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids")
    A, B = te.placeholder((4, 128, 64)), te.placeholder((4, 64, columns))
    C = topi.nn.batch_matmul(A, B, transpose_b=False)
    fitted = x86.tiles.product_tile(C, target, ends_inside=True)
    assert fitted.lanes == lanes
    # The pieces are a panel of their own.
    assert columns // lanes % fitted.tile.vectors == 0
