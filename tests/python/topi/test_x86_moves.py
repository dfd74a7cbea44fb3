"""Schedules of what moves elements, and of columns and groups of channels, against references."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, topi
from tvm.topi.x86.column_function import is_column_function
from tvm.topi.x86.injective import find_transposed
from tvm.topi.x86.row_normalization import is_row_function

RNG = np.random.default_rng(0)
EXTENTS = st.sampled_from([1, 2, 3, 4, 7, 15, 16, 17, 32, 40, 65])


def random(*shape):
    return RNG.standard_normal(shape).astype("float32")


def scheduled(fn, *arrays):
    """What the schedule that is chosen for a function computes."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    output = fn(*inputs)
    function = tvm.build(topi.schedule_for(output, "llvm"), [*inputs, output], "llvm")
    result = tvm.nd.empty(tuple(int(n) for n in output.shape), output.dtype)
    function(*map(tvm.nd.array, arrays), result)
    return result.numpy()


@settings(max_examples=15, deadline=None)
@given(
    shape=st.lists(EXTENTS, min_size=2, max_size=4).filter(lambda s: np.prod(s) < 1e6),
    data=st.data(),
)
def test_dimensions_change_places(shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    x = random(*shape)
    got = scheduled(lambda t: topi.add(topi.transpose(t, order), 1.0), x)
    np.testing.assert_array_equal(got, x.transpose(order) + np.float32(1))


@pytest.mark.parametrize(
    ("shape", "far"), [((1, 64, 32, 32), True), ((1, 256, 32, 32), False), ((1, 64, 15, 15), False)]
)
def test_data_is_transposed_in_squares_along_the_dimension_in_which_it_is_stored(shape, far):
    x = random(*shape)
    tensor = te.placeholder(x.shape, name="x")
    moved = find_transposed(topi.transpose(tensor, (0, 2, 3, 1)))
    assert moved is not None
    # Planes of 32x32 are 4096 bytes apart, rows of 256 numbers 1024.
    assert moved.axis == 2
    assert moved.far == far
    assert find_transposed(topi.transpose(tensor, (0, 2, 1, 3))) is None
    got = scheduled(lambda t: topi.transpose(t, (0, 2, 3, 1)), x)
    np.testing.assert_array_equal(got, x.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_results_may_have_more_elements_than_an_int32_counts(dtype):
    rows = te.placeholder((tvm.tir.const(50_000, dtype), tvm.tir.const(50_000, dtype)), name="rows")
    row = te.placeholder((1, 50_000), name="row")
    # The row lies along the last dimension and is repeated over the first: nothing changes places.
    assert find_transposed(topi.add(rows, row)) is None
    moved = find_transposed(topi.add(topi.transpose(rows), row))
    assert moved is not None
    assert moved.axis == 0


@settings(max_examples=10, deadline=None)
@given(
    channels=st.integers(1, 9),
    image=st.sampled_from([(1, 1), (5, 7), (8, 8), (13, 3), (1, 40)]),
    slope=st.sampled_from(["channel", "image", "row", "element", "one"]),
)
def test_last_dimensions_that_lie_in_order_are_one_row(channels, image, slope):
    x = random(2, channels, *image)
    height, width = image
    shapes = {
        "channel": (channels, 1, 1),
        "image": (1, height, width),
        "row": (height, 1),
        "element": (2, channels, height, width),
        "one": (1,),
    }
    factor = random(*shapes[slope])
    got = scheduled(
        lambda t, f: topi.where(topi.greater(t, 0.0), t, topi.multiply(t, f)), x, factor
    )
    np.testing.assert_array_equal(got, np.where(x > 0, x, x * factor))


def test_a_factor_of_each_channel_leaves_images_whole():
    x, slope = te.placeholder((1, 8, 7, 7), name="x"), te.placeholder((8, 1, 1), name="slope")
    scaled = topi.multiply(x, slope)
    text = tvm.lower(topi.schedule_for(scaled, "llvm -mcpu=znver4"), [x, slope, scaled]).script()
    assert "T.Ramp(48" not in text  # 49 elements: three vectors and one more.
    stores = [line for line in text.splitlines() if line.strip().startswith("T_multiply_1[")]
    assert sum("T.Ramp" not in line.split("]")[0] for line in stores) == 1


@settings(max_examples=10, deadline=None)
@given(
    rank=st.integers(1, 4),
    widths=st.lists(st.sampled_from([1, 3, 16, 20, 48, 64]), min_size=1, max_size=4),
    data=st.data(),
)
def test_tensors_are_joined_along_any_dimension(rank, widths, data):
    axis = data.draw(st.integers(0, rank - 1))
    rest = [data.draw(st.integers(1, 20)) for _ in range(rank)]
    parts = [random(*rest[:axis], width, *rest[axis + 1 :]) for width in widths]
    got = scheduled(lambda *tensors: topi.concatenate(tensors, axis), *parts)
    np.testing.assert_array_equal(got, np.concatenate(parts, axis))


def test_whole_vectors_of_joined_tensors_come_from_one_of_them():
    """Where the parts are of whole vectors, which one is read is no question of each element."""
    target = tvm.target.Target("llvm -mcpu=znver4")
    parts = [te.placeholder((5, width), name=f"x{width}") for width in (64, 32)]
    joined = topi.concatenate(parts, 1)
    text = tvm.lower(topi.schedule_for(joined, target), [*parts, joined]).script()
    stores = [line.strip() for line in text.splitlines() if "T_concat_1[" in line]
    assert stores
    assert all(store.startswith("T_concat_1[T.Ramp(") for store in stores)


@settings(max_examples=7, deadline=None)
@given(shape=st.lists(st.integers(1, 40), min_size=2, max_size=4), data=st.data())
def test_borders_slices_and_rows_of_any_width(shape, data):
    x = random(*shape)
    border = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in shape]
    got = scheduled(lambda t: topi.add(topi.nn.pad(t, *map(list, zip(*border))), 1.0), x)
    np.testing.assert_array_equal(got, np.pad(x, border) + np.float32(1))
    begin = [data.draw(st.integers(0, n - 1)) for n in shape]
    got = scheduled(lambda t: topi.add(topi.strided_slice(t, begin, shape), 1.0), x)
    np.testing.assert_array_equal(got, x[tuple(slice(b, None) for b in begin)] + np.float32(1))
    bias = random(shape[0], *[1] * (len(shape) - 1))
    got = scheduled(lambda t, b: topi.where(topi.greater(t, b), t, topi.multiply(t, b)), x, bias)
    np.testing.assert_array_equal(got, np.where(x > bias, x, x * bias))


@settings(max_examples=10, deadline=None)
@given(
    shape=st.lists(st.sampled_from([1, 2, 5, 16, 21, 33, 64]), min_size=2, max_size=4),
    data=st.data(),
    logarithm=st.booleans(),
)
def test_softmax_over_any_dimension(shape, data, logarithm):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = random(*shape)
    operator = topi.nn.log_softmax if logarithm else topi.nn.softmax
    got = scheduled(lambda t: operator(t, axis), x)
    reference = torch.log_softmax if logarithm else torch.softmax
    expected = reference(torch.from_numpy(x).double(), axis)
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_columns_share_vectors():
    softmax = topi.nn.softmax(te.placeholder((2, 21, 9, 40), name="x"), 1)
    assert is_column_function([softmax])
    # Softmax over the columns of equal extents as well, whose dimensions only reads tell apart.
    square = topi.nn.softmax(te.placeholder((8, 8, 8), name="x"), 0)
    assert is_column_function([square])
    assert not is_column_function([topi.nn.softmax(te.placeholder((8, 8, 8), name="x"), 2)])


@settings(max_examples=7, deadline=None)
@given(
    batch=st.integers(1, 3),
    groups=st.sampled_from([1, 2, 8]),
    inner=st.sampled_from([1, 3, 4]),
    size=st.lists(st.sampled_from([2, 7, 16, 33]), min_size=1, max_size=2),
)
def test_groups_of_channels_are_rows(batch, groups, inner, size):
    x = random(batch, groups * inner, *size)
    gamma, beta = random(groups * inner), random(groups * inner)

    def norm(data, scale, shift):
        axes = list(range(2, data.ndim))
        output = topi.nn.group_norm(data, scale, shift, groups, 1, axes)
        assert is_row_function([output])
        return output

    got = scheduled(norm, x, gamma, beta)
    expected = torch.nn.functional.group_norm(
        *(torch.from_numpy(a).double() for a in [x]),
        groups,
        torch.from_numpy(gamma).double(),
        torch.from_numpy(beta).double(),
    )
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [[0, 2], [1, 3], [0, 1, 2, 3]])
def test_groups_that_are_no_rows_have_the_same_values(axes):
    """Channels last, and statistics over other dimensions than the last."""
    x = random(3, 6, 4, 5)
    channel = next(k for k in (1, 3) if k in axes) if 1 in axes or 3 in axes else 1
    count = x.shape[channel]
    gamma, beta = random(count), random(count)
    groups = 1 if count % 2 else 2
    got = scheduled(lambda *a: topi.nn.group_norm(*a, groups, channel, axes), x, gamma, beta)
    inner = count // groups
    split = x.astype("float64").reshape(*x.shape[:channel], groups, inner, *x.shape[channel + 1 :])
    over = {channel + 1} | {k if k < channel else k + 1 for k in axes if k != channel}
    mean, variance = (
        statistic(split, axis=tuple(over), keepdims=True) for statistic in (np.mean, np.var)
    )
    normed = ((split - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)
    spread = [-1 if k == channel else 1 for k in range(4)]
    expected = normed * gamma.reshape(spread) + beta.reshape(spread)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=12, deadline=None)
@given(
    rows=st.integers(1, 5),
    width=st.integers(16, 330),
    name=st.sampled_from(["softmax", "sum", "max", "layer_norm"]),
)
def test_rows_of_any_width(rows, width, name):
    x = random(rows, width)
    gamma, beta = random(width), random(width)
    functions = {
        "softmax": (topi.nn.softmax, lambda t: torch.softmax(t, -1)),
        "sum": (lambda t: topi.sum(t, -1), lambda t: t.sum(-1)),
        "max": (lambda t: topi.max(t, -1), lambda t: t.amax(-1)),
    }
    if name == "layer_norm":
        got = scheduled(lambda t, g, b: topi.nn.layer_norm(t, g, b, axis=[1]), x, gamma, beta)
        expected = torch.nn.functional.layer_norm(
            torch.from_numpy(x), (width,), torch.from_numpy(gamma), torch.from_numpy(beta)
        )
    else:
        ours, theirs = functions[name]
        got, expected = scheduled(ours, x), theirs(torch.from_numpy(x))
    np.testing.assert_allclose(got, expected.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("width", [49, 77, 197])
def test_the_ends_of_rows_are_vectors(width):
    """No loop goes over single elements, and what is kept of short rows needs no memory."""
    target = tvm.target.Target("llvm -mcpu=znver4")
    x = te.placeholder((64, width), name="x")
    y = topi.nn.softmax(x)
    with target:
        text = tvm.lower(topi.schedule_for(y, target), [x, y]).script()
    assert "_lane in" not in text
    # Loops of the maximum, the powers, the sum and the result, if any.
    assert text.count("for ") <= 1
