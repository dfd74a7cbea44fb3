"""What relay's operators compute, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import relay
from tvm.topi import testing as reference


def run(expr: relay.Expr, *values, kind: str = "graph"):
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    result = relay.create_executor(kind).evaluate(func)(*values)
    return result.numpy() if isinstance(result, tvm.nd.NDArray) else [r.numpy() for r in result]


@settings(max_examples=8, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    axes=st.sets(st.integers(0, 3), min_size=1, max_size=2),
    keepdims=st.booleans(),
    exclude=st.booleans(),
)
def test_sum_takes_axes_or_all_others(shape, axes, keepdims, exclude):
    axes = [a % len(shape) for a in axes]
    data = np.random.default_rng(0).normal(size=shape).astype("float32")
    over = tuple(k for k in range(len(shape)) if (k in axes) != exclude)
    found = run(relay.sum(relay.var("x", shape=shape), axes, keepdims, exclude), data)
    np.testing.assert_allclose(found, data.sum(over, keepdims=keepdims), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("settings_", "groups"),
    [({"strides": 2, "padding": 1}, 1), ({"padding": (1, 2)}, 4), ({"dilation": 2}, 2)],
)
def test_conv2d_matches_the_reference(settings_, groups):
    rng = np.random.default_rng(1)
    data = rng.normal(size=(2, 4, 9, 8)).astype("float32")
    weight = rng.normal(size=(8, 4 // groups, 3, 3)).astype("float32")
    expr = relay.nn.conv2d(relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape),
                           groups=groups, **settings_)  # fmt: skip
    spread = [1, 1, *[settings_.get("dilation", 1)] * 2]
    wanted = reference.conv2d_nchw_python(
        data, reference.dilate_python(weight, spread), settings_.get("strides", 1),
        settings_.get("padding", 0), groups,
    )  # fmt: skip
    np.testing.assert_allclose(run(expr, data, weight), wanted, rtol=1e-4, atol=1e-4)


def test_blocked_convolution_is_the_plain_one_laid_out_anew():
    rng = np.random.default_rng(2)
    data = rng.normal(size=(1, 8, 6, 6)).astype("float32")
    weight = rng.normal(size=(16, 8, 3, 3)).astype("float32")
    x, w = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
    blocked = relay.nn.contrib_conv2d_nchwc(
        relay.layout_transform(x, "NCHW", "NCHW4c"),
        relay.layout_transform(w, "OIHW", "OIHW4i8o"),
        padding=1, channels=16, kernel_size=3, data_layout="NCHW4c", kernel_layout="OIHW4i8o",
        out_layout="NCHW8c",
    )  # fmt: skip
    found = run(relay.layout_transform(blocked, "NCHW8c", "NCHW"), data, weight)
    wanted = reference.conv2d_nchw_python(data, weight, 1, 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("groups", "inputs"), [(1, 4), (8, 1)])
def test_blocks_of_weights_follow_from_their_shape(groups, inputs):
    rng = np.random.default_rng(5)
    data = rng.normal(size=(1, 8, 5, 6)).astype("float32")
    weight = rng.normal(size=(8, 8 // groups, 3, 3)).astype("float32")
    call = relay.nn.contrib_conv2d_nchwc if groups == 1 else relay.nn.contrib_depthwise_conv2d_nchwc
    packed = weight.reshape(2, 4, 8 // groups // inputs, inputs, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    expr = call(
        relay.layout_transform(relay.var("x", shape=data.shape), "NCHW", "NCHW4c"),
        relay.var("w", shape=packed.shape), padding=1, groups=groups, data_layout="NCHW4c",
    )  # fmt: skip
    found = run(relay.layout_transform(expr, "NCHW4c", "NCHW"), data, packed)
    wanted = reference.conv2d_nchw_python(data, weight, 1, 1, groups)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_convolutions_read_weights_whose_channels_are_divided_twice():
    rng = np.random.default_rng(6)
    data = rng.normal(size=(1, 16, 5, 6)).astype("float32")
    weight = rng.normal(size=(12, 16, 3, 3)).astype("float32")
    x, w = relay.var("x", shape=data.shape), relay.var("w", shape=(3, 3, 3, 2, 4, 4, 2))
    expr = relay.nn.conv2d(x, w, padding=1, channels=12, kernel_size=3,
                           kernel_layout="OHWI4i4o2i")  # fmt: skip
    # Input channel 8a + 2b + c is at I = a, i = b of four and c of two.
    packed = weight.reshape(3, 4, 2, 4, 2, 3, 3).transpose(0, 5, 6, 2, 3, 1, 4)
    wanted = reference.conv2d_nchw_python(data, weight, 1, 1)
    np.testing.assert_allclose(run(expr, data, packed), wanted, rtol=1e-4, atol=1e-4)
    there = relay.layout_transform(relay.var("w", shape=weight.shape), "OIHW", "OHWI4i4o2i")
    back = relay.layout_transform(there, "OHWI4i4o2i", "OIHW")
    np.testing.assert_array_equal(run(there, weight), packed)
    np.testing.assert_array_equal(run(back, weight), weight)


def test_transposed_convolution_matches_the_reference():
    rng = np.random.default_rng(3)
    data = rng.normal(size=(1, 3, 5, 6)).astype("float32")
    weight = rng.normal(size=(3, 4, 3, 3)).astype("float32")
    x, w = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
    expr = relay.nn.conv2d_transpose(x, w, channels=4, kernel_size=3, strides=2, padding=1,
                                     output_padding=1)  # fmt: skip
    wanted = reference.conv2d_transpose_nchw_python(data, weight, 2, 1, 1)
    np.testing.assert_allclose(run(expr, data, weight), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_matches_the_reference(kind):
    data = np.random.default_rng(4).normal(size=(1, 2, 9, 9)).astype("float32")
    expr = getattr(relay.nn, f"{kind}_pool2d")(
        relay.var("x", shape=data.shape), (3, 3), (2, 2), padding=(1, 1)
    )
    wanted = reference.poolnd_python(data, [3, 3], [2, 2], [1, 1], [1, 1], [1, 1], kind, False)
    np.testing.assert_allclose(run(expr, data), wanted, rtol=1e-5, atol=1e-6)


def test_winograd_in_three_dimensions_is_the_convolution():
    rng = np.random.default_rng(5)
    data = rng.normal(size=(1, 3, 6, 7, 8)).astype("float32")
    weight = rng.normal(size=(4, 3, 3, 3, 3)).astype("float32")
    x, w = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
    packed = relay.nn.contrib_conv3d_winograd_weight_transform(w, tile_size=2)
    expr = relay.nn.contrib_conv3d_winograd_without_weight_transform(
        x, packed, tile_size=2, padding=(1, 1, 1), channels=4, kernel_size=(3, 3, 3)
    )
    wanted = reference.conv3d_ncdhw_python(data, weight, 1, 1)
    np.testing.assert_allclose(run(expr, data, weight), wanted, rtol=1e-3, atol=1e-3)


def test_unique_gives_as_many_values_as_there_are():
    data = np.array([3, 1, 3, 2, 1], "int32")
    expr = relay.unique(relay.var("x", shape=(5,), dtype="int32"), True, True).astuple()
    values, first, inverse, count, counts = run(expr, data, kind="vm")
    np.testing.assert_array_equal(values, [1, 2, 3])
    np.testing.assert_array_equal(first, [1, 3, 0])
    np.testing.assert_array_equal(inverse, [2, 0, 2, 1, 0])
    np.testing.assert_array_equal(counts, [2, 1, 2])
    assert count == [3]


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_take_handles_indices_outside(mode):
    data = np.arange(12, dtype="float32").reshape(3, 4)
    indices = np.array([0, 5, -2], "int32")
    expr = relay.take(relay.var("x", shape=data.shape), relay.const(indices), axis=1, mode=mode)
    np.testing.assert_array_equal(run(expr, data), np.take(data, indices, 1, mode=mode))


def test_numbers_are_no_operands():
    with pytest.raises(TypeError, match=r"relay.const\(2"):
        relay.var("x", shape=(1,)) + 2


def test_an_operator_that_a_user_adds_is_typed_built_and_run():
    op = relay.op.register("test.scaled_add", "x + factor * y")
    op.set_num_inputs(2)
    op.add_argument("x", "Tensor", "").add_argument("y", "Tensor", "")
    op.add_type_rel("ScaledAdd", lambda types, attrs: types[0])

    @relay.op.register_compute("test.scaled_add")
    def compute(attrs, inputs, out_type):
        x, y = inputs
        factor = tvm.tir.const(attrs["factor"], x.dtype)
        return [tvm.te.compute(x.shape, lambda *i: x(*i) + factor * y(*i), name="scaled_add")]

    x, y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
    call = relay.Call(op, [x, y], {"factor": 2.0})
    a, b = (np.random.default_rng(k).normal(size=(3, 4)).astype("float32") for k in range(2))
    np.testing.assert_allclose(run(call, a, b), a + 2 * b, rtol=1e-6)


def test_negative_borders_take_away():
    data = np.random.default_rng(8).normal(size=(4, 5, 6)).astype("float32")
    widths = [(-1, 2), (1, -2), (0, -3)]
    found = run(relay.nn.pad(relay.var("x", shape=data.shape), widths, 7.0), data)
    wanted = np.pad(data[1:, :-2, :-3], [(0, 2), (1, 0), (0, 0)], constant_values=7.0)
    np.testing.assert_array_equal(found, wanted)


def test_means_of_integers_are_rounded_towards_zero():
    data = np.random.default_rng(9).integers(-50, 50, (1, 2, 6, 6)).astype("int32")
    x = relay.var("x", shape=data.shape, dtype="int32")
    sums = data.reshape(1, 2, 3, 2, 3, 2).sum((3, 5))
    wanted = np.trunc(sums / 4).astype("int32")
    np.testing.assert_array_equal(run(relay.nn.avg_pool2d(x, (2, 2), (2, 2)), data), wanted)
    np.testing.assert_array_equal(run(relay.nn.adaptive_avg_pool2d(x, (3, 3)), data), wanted)


def test_the_border_may_be_a_tensor_of_one_number():
    data = np.random.default_rng(10).normal(size=(2, 3)).astype("float32")
    value = relay.var("value", shape=(1,))
    padded = relay.nn.pad(relay.var("x", shape=data.shape), [(1, 0), (0, 2)], value)
    found = run(padded, data, np.array([4.0], "float32"))
    np.testing.assert_array_equal(found, np.pad(data, [(1, 0), (0, 2)], constant_values=4.0))


def test_scalar_constants_are_operands_of_every_operator():
    x = relay.var("x", shape=(4, 5))
    data = np.random.default_rng(0).uniform(size=(4, 5)).astype("float32")
    third = relay.take(x, relay.const(2, "int32"), axis=0)
    np.testing.assert_array_equal(run(third, data), data[2])
    flat = relay.take(x, relay.const(-1, "int32"), mode="wrap")
    np.testing.assert_array_equal(run(flat, data), data[-1, -1])

    holds = x > relay.const(0.5)
    one, zero = relay.const(1, "int64"), relay.const(0, "int64")
    for condition in (holds, relay.cast(holds, "int32")):
        found = run(relay.where(condition, one, zero), data)
        assert found.dtype == "int64"
        np.testing.assert_array_equal(found, data > 0.5)
        found = run(relay.where(condition, relay.const(2.0), x), data)
        np.testing.assert_array_equal(found, np.where(data > 0.5, np.float32(2), data))
    like = {"broadcast_to_like": relay.const(3.0), "collapse_sum_like": x}
    for name, value in like.items():
        call = getattr(relay, name)(value, x)
        np.testing.assert_array_equal(
            run(call, data), np.broadcast_to(3.0, (4, 5)) if name[0] == "b" else data
        )
    np.testing.assert_array_equal(
        run(relay.cast_like(relay.const(1, "int64"), x) + x, data), 1 + data
    )
    always = relay.where(relay.const(True), x, relay.const(0.0))
    np.testing.assert_array_equal(run(always, data), data)


@pytest.mark.parametrize("rank", [1, 3])
def test_convolutions_of_halves_of_any_rank_sum_in_float32(rank):
    shape = (1, 64, *(6,) * rank)
    rng = np.random.default_rng(0)
    data = rng.normal(size=shape).astype("float16")
    weight = rng.normal(size=(8, 64, *(3,) * rank)).astype("float16")
    conv = getattr(relay.nn, f"conv{rank}d")
    x, w = (relay.var(n, shape=v.shape, dtype="float16") for n, v in zip("xw", (data, weight)))
    found = run(conv(x, w, kernel_size=(3,) * rank, channels=8), data, weight)
    torch = pytest.importorskip("torch")
    exact = getattr(torch.nn.functional, f"conv{rank}d")(
        torch.from_numpy(data).double(), torch.from_numpy(weight).double()
    )
    np.testing.assert_allclose(found, exact.numpy(), rtol=1e-3, atol=1e-2)


def test_products_of_a_tensor_with_itself_build():
    x = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    a = relay.var("a", shape=x.shape)
    for product, expected in (
        (relay.nn.dense(a, a), x @ x.T),
        (relay.nn.matmul(a, a), x @ x),
        (relay.nn.relu(relay.nn.dense(a, a)), np.maximum(x @ x.T, 0)),
    ):
        func = relay.Function([a], product)
        found = relay.create_executor("graph", target="llvm").evaluate(func)(x)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_dense_layer_takes_its_weight_in_blocks_of_rows():
    rng = np.random.default_rng(0)
    data, weight = (rng.normal(size=s).astype("float32") for s in [(3, 10), (16, 10)])
    x = relay.var("x", shape=data.shape)
    blocks = relay.const(weight.reshape(2, 8, 10).transpose(0, 2, 1).copy())
    product = relay.nn.contrib_dense_pack(x, blocks, "NC8n")
    np.testing.assert_allclose(run(product, data), data @ weight.T, rtol=1e-5, atol=1e-5)
    for shape, layout in (((3, 9), "NC8n"), ((3, 10), "HW8h")):
        wrong = relay.nn.contrib_dense_pack(relay.var("x", shape=shape), blocks, layout)
        with pytest.raises(ValueError, match="contrib_dense_pack"):
            relay.transform.InferType()(tvm.IRModule.from_expr(wrong))


def test_places_that_are_set_may_be_constants():
    data, values = np.zeros((3, 4), "float32"), np.ones((3, 2), "float32")
    x, v = relay.var("x", shape=data.shape), relay.var("v", shape=values.shape)
    begin, end = relay.const([0, 1]), relay.const([3, 3])
    found = run(relay.strided_set(x, v, begin, end), data, values)
    np.testing.assert_array_equal(found, np.pad(values, ((0, 0), (1, 1))))


def test_a_convolution_of_a_tensor_with_itself_builds():
    x = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype("float32")
    a = relay.var("a", shape=x.shape)
    func = relay.Function([a], relay.nn.conv2d(a, a))
    found = relay.create_executor("graph", target="llvm").evaluate(func)(x).numpy()
    np.testing.assert_allclose(
        found[..., 0, 0], np.einsum("nchw,mchw->nm", x, x), rtol=1e-4, atol=1e-4
    )


def test_a_kind_of_schedule_says_how_an_operator_fuses():
    kinds = {"injective": 2, "broadcast": 1, "reduce": 3}
    for kind, pattern in kinds.items():
        relay.op.register(f"test.of_kind_{kind}")
        getattr(relay.op, f"register_{kind}_schedule")(f"test.of_kind_{kind}")
        assert int(relay.op.get(f"test.of_kind_{kind}").get_attr("TOpPattern")) == pattern
    relay.op.register("test.of_two_kinds")
    relay.op.register_pattern("test.of_two_kinds", relay.op.OpPattern.ELEMWISE)
    relay.op.register_injective_schedule("test.of_two_kinds")
    assert int(relay.op.get("test.of_two_kinds").get_attr("TOpPattern")) == 0


def test_modules_that_lie_within_others():
    assert relay.function.Function is relay.Function
    assert relay.op.tensor.add is relay.add
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = relay.nothing


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_depthwise_weights_with_several_filters_a_channel(rank):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(1, 4, *[6] * rank)).astype("float32")
    w = rng.normal(size=(4, 3, *[3] * rank)).astype("float32")
    data, weight = relay.var("x", shape=x.shape), relay.var("w", shape=w.shape)
    call = getattr(relay.nn, f"conv{rank}d")(
        data, weight, groups=4, channels=12, kernel_size=(3,) * rank
    )
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (3,) * rank, tuple(range(1, rank + 1)))
    letters = "uvw"[:rank]
    places = "xyz"[:rank]
    wanted = np.einsum(f"c{places}{letters},cm{letters}->cm{places}", windows, w)
    found = run(call, x, w)
    np.testing.assert_allclose(found[0], wanted.reshape(12, *[4] * rank), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("strides", "dilation", "groups", "output_padding"), [(2, 1, 1, 1), (1, 2, 1, 0), (2, 1, 2, 0)]
)
def test_transposed_convolutions_of_lines_images_and_volumes(
    rank, strides, dilation, groups, output_padding
):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2, 4, *[5] * rank)).astype("float32")
    weight = rng.standard_normal((4, 6 // groups, *[3] * rank)).astype("float32")
    x = relay.var("x", shape=data.shape)
    grow = getattr(relay.nn, f"conv{rank}d_transpose")
    expr = grow(
        x, relay.const(weight), channels=6, kernel_size=(3,) * rank, strides=(strides,) * rank,
        padding=(1,) * rank, dilation=(dilation,) * rank, groups=groups,
        output_padding=(output_padding,) * rank,
    )  # fmt: skip
    function = relay.Function([x], expr)
    want = getattr(torch.nn.functional, f"conv_transpose{rank}d")(
        torch.from_numpy(data), torch.from_numpy(weight), None, strides, 1, output_padding, groups,
        dilation,
    )  # fmt: skip
    got = relay.create_executor("graph", tvm.IRModule.from_expr(function)).evaluate()(data)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def _permuted(array, layout, wanted):
    return np.ascontiguousarray(array.transpose([layout.index(letter) for letter in wanted]))


@pytest.mark.parametrize(
    ("name", "data_layout", "kernel_layout", "out_layout"),
    [
        ("conv1d", "NWC", "WIO", ""),
        ("conv2d", "HWCN", "HWIO", ""),
        ("conv2d", "NCHW", "HWIO", "NHWC"),
        ("conv3d", "NDHWC", "DHWIO", ""),
        ("conv3d", "NDHWC", "OIDHW", "NCDHW"),
        ("conv1d_transpose", "NWC", "WIO", ""),
        ("conv2d_transpose", "NHWC", "HWIO", ""),
        ("conv2d_transpose", "NHWC", "IOHW", "NCHW"),
        ("conv3d_transpose", "NDHWC", "DHWIO", ""),
    ],
)
def test_convolutions_in_any_order_of_axes(name, data_layout, kernel_layout, out_layout):
    rng = np.random.default_rng(0)
    rank, transposed = int(name[4]), name.endswith("transpose")
    space = "DHW"[3 - rank :]
    data = rng.standard_normal((2, 4, *[6] * rank)).astype("float32")
    weight = rng.standard_normal((*((4, 3) if transposed else (3, 4)), *[3] * rank))
    weight = weight.astype("float32")
    given = _permuted(data, f"NC{space}", data_layout)
    kernel = _permuted(weight, f"{'IO' if transposed else 'OI'}{space}", kernel_layout)
    x = relay.var("x", shape=given.shape)
    expr = getattr(relay.nn, name)(
        x, relay.const(kernel), strides=(2,) * rank, padding=(1,) * rank, channels=3,
        kernel_size=(3,) * rank, data_layout=data_layout, kernel_layout=kernel_layout,
        out_layout=out_layout,
    )  # fmt: skip
    convolve = f"conv_transpose{rank}d" if transposed else f"conv{rank}d"
    want = getattr(torch.nn.functional, convolve)(
        torch.from_numpy(data), torch.from_numpy(weight), None, 2, 1
    ).numpy()
    want = _permuted(want, f"NC{space}", out_layout or data_layout)
    np.testing.assert_allclose(run(expr, given), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transpose_b", [False, True])
def test_products_of_a_first_operand_that_is_transposed(transpose_b):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype("float32") for shape in ((6, 4), (6, 5)))
    b = b.T.copy() if transpose_b else b
    want = a.T @ (b.T if transpose_b else b)
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    product = relay.nn.matmul(x, y, transpose_a=True, transpose_b=transpose_b)
    np.testing.assert_allclose(run(product, a, b), want, rtol=1e-5, atol=1e-5)
    pairs = [np.stack([array, array + 1]) for array in (a, b)]
    x, y = (relay.var(n, shape=array.shape) for n, array in zip("xy", pairs))
    batch = relay.nn.batch_matmul(x, y, transpose_a=True, transpose_b=transpose_b)
    second = pairs[1].swapaxes(1, 2) if transpose_b else pairs[1]
    want = pairs[0].swapaxes(1, 2) @ second
    np.testing.assert_allclose(run(batch, *pairs), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("groups", "padding"), [(1, (1, 1)), (2, (1, 1)), (1, (0, 1, 1, 2))])
def test_deformable_convolutions_are_those_of_the_operator_library(groups, padding):
    rng = np.random.default_rng(0)
    sizes = (2, 4, 7, 8), (4, 4 // groups, 3, 3)
    rows, columns = (
        (extent + sum(border) - 3) // 2 + 1
        for extent, border in zip((7, 8), ([padding[0], padding[-2]], [padding[1], padding[-1]]))
    )
    arrays = [rng.standard_normal(s).astype("float32")
              for s in (sizes[0], (2, 36, rows, columns), sizes[1])]  # fmt: skip
    tensors = [tvm.te.placeholder(array.shape) for array in arrays]
    result = tvm.topi.nn.deformable_conv2d_nchw(*tensors, 2, list(padding), 1, 2, groups)
    want = tvm.nd.empty([int(extent) for extent in result.shape])
    schedule = tvm.te.create_schedule(result.op)
    tvm.build(schedule, [*tensors, result], "llvm")(*map(tvm.nd.array, arrays), want)
    operands = [relay.var(f"x{k}", shape=array.shape) for k, array in enumerate(arrays)]
    expr = relay.nn.deformable_conv2d(
        *operands, strides=(2, 2), padding=padding, deformable_groups=2, groups=groups
    )
    np.testing.assert_allclose(run(expr, *arrays), want.numpy(), rtol=1e-4, atol=1e-4)
    if groups == 1 and len(padding) == 2:
        orders = (("NCHW", "NHWC"), ("NCHW", "NHWC"), ("OIHW", "HWIO"))
        arrays = [_permuted(array, *order) for array, order in zip(arrays, orders)]
        operands = [relay.var(f"x{k}", shape=array.shape) for k, array in enumerate(arrays)]
        expr = relay.nn.deformable_conv2d(
            *operands, strides=(2, 2), padding=padding, deformable_groups=2,
            data_layout="NHWC", kernel_layout="HWIO",
        )  # fmt: skip
        want = _permuted(want.numpy(), "NCHW", "NHWC")
        np.testing.assert_allclose(run(expr, *arrays), want, rtol=1e-4, atol=1e-4)
