"""Kernels that nobody tuned get good schedules by kind: found by tag and target, and right."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_topi import random_array
from tvm import te, tir, topi
from tvm.topi import schedule_registry

PROCESSORS = [
    tvm.target.Target(f"llvm -mcpu={name} -mtriple=x86_64-linux-gnu")
    for name in ("haswell", "skylake-avx512")
]
GPU = tvm.target.emulated("cuda", check_races=True)
HERE = tvm.target.Target("llvm")


def compute(fn, *arrays, target=HERE):
    """Value of `fn` under the schedule that the registry knows for it."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    output = fn(*inputs)
    schedule = topi.schedule_for(output, target)
    function = tvm.build(schedule, [*inputs, output], target, name="f")["f"]
    result = tvm.nd.array(np.full([int(n) for n in output.shape], 77, str(output.dtype)))
    function(*(tvm.nd.array(a) for a in arrays), result)
    return result.numpy()


def chw(array):
    return torch.tensor(array).permute(0, 3, 1, 2)


def nhwc(tensor):
    return tensor.permute(0, 2, 3, 1).numpy()


def with_epilogue(kind, tensor, *rest):
    if kind == "none":
        return tensor
    biased = topi.add(tensor, rest[0])
    if kind == "gate":
        return topi.multiply(biased, topi.tanh(topi.add(biased, rest[1])))
    return topi.nn.relu(biased) if kind == "relu" else topi.add(biased, rest[1])


def expected_epilogue(kind, array, *rest):
    if kind == "none":
        return array
    biased = array + rest[0]
    if kind == "gate":
        return biased * np.tanh(biased + rest[1])
    return np.maximum(biased, 0) if kind == "relu" else biased + rest[1]


def check_with_epilogue(epilogue, fn, data, weight, plain, rng):
    """Hold `fn` of data and weight, with elementwise work behind it, to the value without it."""
    bias, residual = random_array(rng, plain.shape[-1]), random_array(rng, *plain.shape)
    got = compute(
        lambda x, w, *rest: with_epilogue(epilogue, fn(x, w), *rest), data, weight, bias, residual
    )
    want = expected_epilogue(epilogue, plain, bias, residual)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


EPILOGUES = st.sampled_from(["none", "relu", "residual", "gate"])


@settings(max_examples=12, deadline=None)
@given(
    # 17 and 37 have no tile that divides them.
    size=st.tuples(st.integers(3, 9), st.sampled_from([3, 4, 8, 9, 17, 37])),
    channels=st.sampled_from([3, 16, 24]),
    filters=st.sampled_from([6, 8, 64, 320]),
    kernel=st.sampled_from([1, 3]),
    stride=st.sampled_from([1, 2]),
    epilogue=EPILOGUES,
)
def test_convolutions_match_torch(size, channels, filters, kernel, stride, epilogue):
    rng = np.random.default_rng(0)
    pad = kernel // 2
    data = random_array(rng, 2, *size, channels)
    weight = random_array(rng, kernel, kernel, channels, filters)
    plain = nhwc(F.conv2d(chw(data), torch.tensor(weight).permute(3, 2, 0, 1), None, stride, pad))
    convolve = partial(topi.nn.conv2d_nhwc, stride=stride, padding=pad)
    check_with_epilogue(epilogue, convolve, data, weight, plain, rng)


@settings(max_examples=7, deadline=None)
@given(
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    channels=st.sampled_from([6, 16, 40]),
    kernel=st.sampled_from([3, 7]),
    stride=st.sampled_from([1, 2]),
    epilogue=EPILOGUES,
)
def test_depthwise_convolutions_match_torch(size, channels, kernel, stride, epilogue):
    rng = np.random.default_rng(1)
    pad = kernel // 2
    data = random_array(rng, 1, *size, channels)
    weight = random_array(rng, kernel, kernel, channels, 1)
    filters = torch.tensor(weight).permute(2, 3, 0, 1)
    plain = nhwc(F.conv2d(chw(data), filters, None, stride, pad, groups=channels))
    convolve = partial(topi.nn.depthwise_conv2d_nhwc, stride=stride, padding=pad)
    check_with_epilogue(epilogue, convolve, data, weight, plain, rng)


@settings(max_examples=15, deadline=None)
@given(
    form=st.sampled_from(["dense", "dense_3d", "NN", "NT", "TN", "batch_NN", "batch_NT"]),
    rows=st.sampled_from([1, 5, 12, 49]),
    columns=st.sampled_from([10, 16, 320]),
    depth=st.sampled_from([5, 16, 40]),
    epilogue=EPILOGUES,
)
def test_products_match_numpy(form, rows, columns, depth, epilogue):
    rng = np.random.default_rng(2)
    batch = (3,) if "batch" in form or form == "dense_3d" else ()
    left, right = random_array(rng, *batch, rows, depth), random_array(rng, depth, columns)
    if "batch" in form:
        right = random_array(rng, *batch, depth, columns)
    plain = left @ right
    turned = form in ("dense", "dense_3d", "NT", "batch_NT")
    b = np.ascontiguousarray(right.swapaxes(-1, -2)) if turned else right
    a = np.ascontiguousarray(left.T) if form == "TN" else left
    functions = {
        "dense": topi.nn.dense,
        "dense_3d": topi.nn.dense,
        "NN": topi.nn.matmul,
        "NT": lambda x, y: topi.nn.matmul(x, y, transpose_b=True),
        "TN": lambda x, y: topi.nn.matmul(x, y, transpose_a=True),
        "batch_NN": lambda x, y: topi.nn.batch_matmul(x, y, transpose_b=False),
        "batch_NT": topi.nn.batch_matmul,
    }
    check_with_epilogue(epilogue, functions[form], a, b, plain, rng)


@pytest.mark.parametrize(
    ("rows", "depth", "copied"), [(128, 64, True), (16, 64, True), (2, 64, False), (8, 768, False)]
)
def test_a_right_side_against_its_vectors_is_copied_where_many_rows_share_it(rows, depth, copied):
    a, b = te.placeholder((2, rows, depth), name="a"), te.placeholder((2, 64, depth), name="b")
    schedule = topi.schedule_for([topi.nn.batch_matmul(a, b)], "llvm -mcpu=skylake-avx512")
    assert ("b.global" in [str(stage.op.name) for stage in schedule.stages]) == copied


@settings(max_examples=12, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7), st.integers(1, 40)),
    axes=st.sampled_from([(1, 2), (3,), (2, 3), (0,), (0, 1, 2, 3)]),
    kind=st.sampled_from(["sum", "max", "mean"]),
    keepdims=st.booleans(),
)
def test_reductions_match_numpy(shape, axes, kind, keepdims):
    data = random_array(np.random.default_rng(3), *shape)
    if kind == "mean":
        fn, want = topi.sum, data.sum(axes, keepdims=keepdims) * np.float32(0.5)
        got = compute(lambda x: topi.multiply(fn(x, axes, keepdims), 0.5), data)
    else:
        fn, want = getattr(topi, kind), getattr(data, kind)(axes, keepdims=keepdims)
        got = compute(lambda x: fn(x, axes, keepdims), data)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels", [5, 16, 64])
def test_pools_match_torch(channels):
    data = random_array(np.random.default_rng(4), 1, 9, 9, channels)
    largest = compute(lambda x: topi.nn.max_pool2d(x, 3, 2, padding=1, layout="NHWC"), data)
    np.testing.assert_allclose(largest, nhwc(F.max_pool2d(chw(data), 3, 2, 1)))
    mean = compute(lambda x: topi.nn.adaptive_avg_pool2d(x, 1, layout="NHWC"), data)
    np.testing.assert_allclose(mean, nhwc(F.adaptive_avg_pool2d(chw(data), 1)), rtol=1e-4)


@pytest.mark.parametrize("shape", [(3, 64), (2, 5, 48), (4, 7)])
@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_softmax_matches_torch(shape, function):
    data = random_array(np.random.default_rng(5), *shape)
    got = compute(getattr(topi.nn, function), data)
    np.testing.assert_allclose(
        got, getattr(F, function)(torch.tensor(data), -1).numpy(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("target", PROCESSORS, ids=lambda t: str(t.attrs["mcpu"]))
def test_a_convolution_keeps_its_results_in_the_registers_of_the_processor(target):
    x, w = te.placeholder((1, 56, 56, 64), name="x"), te.placeholder((3, 3, 64, 64), name="w")
    conv = topi.nn.conv2d_nhwc(x, w, 1, 1)
    schedule = topi.schedule_for(topi.nn.relu(conv), target)
    with target:
        body = tvm.lower(schedule, [x, w], simple_mode=True)
    updates: set[int] = set()

    def visit(node):
        if isinstance(node, tir.BufferStore) and str(node.buffer.name) == conv.op.name:
            (index,) = node.indices
            updates.add(int(index.base if isinstance(index, tir.Ramp) else index))

    tir.stmt_functor.post_order_visit(body["main"].body, visit)
    # Results and at least one weight and one input vector fit into the registers.
    assert 8 <= len(updates) <= target.num_vector_registers - 2


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda x: topi.nn.relu(topi.add(x, 1.0)), [(3, 70)]),
        (lambda x: topi.sum(x, 1), [(6, 100)]),
        (topi.nn.softmax, [(4, 33)]),
        (lambda x, w: topi.nn.relu(topi.nn.conv2d_nchw(x, w, 1, 1)), [(1, 4, 9, 9), (8, 4, 3, 3)]),
        (lambda x, w: topi.nn.relu(topi.nn.conv2d_nhwc(x, w, 1, 1)), [(1, 5, 5, 4), (3, 3, 4, 8)]),
        (topi.nn.dense, [(3, 16), (10, 16)]),
        (topi.nn.batch_matmul, [(2, 3, 8), (2, 5, 8)]),
    ],
    ids=["injective", "reduce", "softmax", "conv2d_nchw", "conv2d_nhwc", "dense", "batch_matmul"],
)
def test_gpu_schedules_compute_what_the_processor_does(fn, shapes):
    rng = np.random.default_rng(6)
    arrays = [random_array(rng, *shape) for shape in shapes]
    np.testing.assert_allclose(
        compute(fn, *arrays, target=GPU), compute(fn, *arrays), rtol=1e-4, atol=1e-5
    )


def test_what_reads_a_product_in_several_places_has_its_schedule():
    """x^3 and x of an activation that is written out, as networks of language models write it."""
    x, w = te.placeholder((64, 64), name="x"), te.placeholder((64, 64), name="w")
    dense = topi.nn.dense(x, w)
    cube = topi.multiply(dense, topi.multiply(dense, dense))
    output = topi.multiply(dense, topi.tanh(topi.add(dense, topi.multiply(cube, 0.044715))))
    assert schedule_registry.is_elementwise_of(dense, [output])
    # Means of rows are not at the place of an element.
    assert not schedule_registry.is_elementwise_of(
        dense, [topi.subtract(dense, topi.sum(dense, 1, keepdims=True))]
    )
    turned = topi.add(dense, topi.transpose(dense))
    assert not schedule_registry.is_elementwise_of(dense, [turned])


def test_a_rule_that_declines_leaves_the_default():
    x = te.placeholder((3, 5), name="x")
    declined = topi.schedule_for(topi.nn.dense(x, te.placeholder((3, 5), name="w")), HERE)
    assert declined.stages[-1].op.name == "T_matmul_NT"


def test_a_second_rule_for_the_same_kind_is_refused():
    with pytest.raises(ValueError, match="a schedule for 'dense' on 'cpu' already"):
        topi.register_schedule("dense", "cpu")(lambda *_: None)


def compute_packed(fn, weight_at, *arrays, target=HERE):
    """Value of `fn` with one input a constant that may be stored anew, and whether it is."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    output = fn(*inputs)
    known = topi.schedule_args_for([*inputs, output], {weight_at}, target)
    stored = [
        known.packings[i].pack(array) if i in known.packings else array
        for i, array in enumerate(arrays)
    ]
    assert [a.shape for a in stored] == [tuple(map(int, t.shape)) for t in known.args[:-1]]
    function = tvm.build(known.schedule, list(known.args), target, name="f")["f"]
    result = tvm.nd.array(np.full([int(n) for n in output.shape], 77, str(output.dtype)))
    function(*(tvm.nd.array(a) for a in stored), result)
    return result.numpy(), weight_at in known.packings


@settings(deadline=None, max_examples=6)
@given(
    rows=st.sampled_from([1, 5, 13, 49, 50]),
    depth=st.integers(1, 40),
    columns=st.sampled_from([8, 20, 48, 80, 96, 1000]),
    lead=st.sampled_from([(), (3,)]),
)
def test_constant_dense_weights_are_packed_for_the_tile(rows, depth, columns, lead):
    rng = np.random.default_rng(rows + depth + columns)
    data = random_array(rng, *lead, rows, depth)
    weight, bias = random_array(rng, columns, depth), random_array(rng, columns)

    def fn(x, w, b):
        return topi.nn.relu(topi.add(topi.nn.dense(x, w), b))

    result, packed = compute_packed(fn, 1, data, weight, bias)
    assert packed
    expected = np.maximum(data @ weight.T + bias, 0)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("groups", "channels", "filters"), [(1, 6, 32), (2, 8, 32), (4, 64, 64)])
@pytest.mark.parametrize("stride", [1, 2])
def test_constant_convolution_weights_are_packed_for_the_tile(groups, channels, filters, stride):
    rng = np.random.default_rng(groups)
    data = random_array(rng, 1, 9, 7, channels)
    weight = random_array(rng, 3, 3, channels // groups, filters)

    def fn(x, w):
        conv = topi.nn.conv2d(x, w, stride, 1, 1, "NHWC", "HWIO", groups=groups)
        return topi.nn.relu(conv)

    result, packed = compute_packed(fn, 1, data, weight)
    assert packed
    torch_weight = torch.tensor(weight).permute(3, 2, 0, 1)
    expected = F.conv2d(chw(data), torch_weight, None, stride, 1, 1, groups).relu()
    np.testing.assert_allclose(result, nhwc(expected), rtol=1e-4, atol=1e-4)


@settings(deadline=None, max_examples=7)
@given(
    height=st.integers(1, 15),
    width=st.integers(1, 15),
    channels=st.sampled_from([4, 24, 64]),
    vectors=st.sampled_from([3, 7, 11, 13, 49]),
    window=st.sampled_from([1, 3]),
    stride=st.sampled_from([1, 2]),
)
def test_tiles_of_constant_weights_may_leave_any_remainder(
    height, width, channels, vectors, window, stride
):
    filters = vectors * HERE.vector_width // 32
    rng = np.random.default_rng(height * width + vectors)
    data = random_array(rng, 1, height, width, channels)
    weight = random_array(rng, window, window, channels, filters)
    residual = random_array(rng, 1, *(-(-size // stride) for size in (height, width)), filters)

    def fn(x, w, r):
        conv = topi.nn.conv2d(x, w, stride, window // 2, 1, "NHWC", "HWIO")
        return topi.nn.relu(topi.add(conv, r))

    result, packed = compute_packed(fn, 1, data, weight, residual)
    assert packed
    torch_weight = torch.tensor(weight).permute(3, 2, 0, 1)
    conv = F.conv2d(chw(data), torch_weight, None, stride, window // 2)
    expected = np.maximum(nhwc(conv) + residual, 0)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=2e-4)


@settings(deadline=None, max_examples=7)
@given(
    batch=st.sampled_from([1, 2]),
    height=st.integers(3, 18),
    width=st.integers(3, 30),
    groups=st.sampled_from([2, 3, 7]),
    per_group=st.sampled_from([4, 8, 16, 24, 48]),
    window=st.sampled_from([1, 3, 5]),
    stride=st.sampled_from([1, 2]),
)
def test_grouped_convolutions_match_torch(batch, height, width, groups, per_group, window, stride):
    rng = np.random.default_rng(height * width + groups)
    channels = groups * per_group
    data = random_array(rng, batch, height, width, channels)
    weight = random_array(rng, window, window, per_group, channels)

    def fn(x, w):
        pad = window // 2
        return topi.nn.relu(topi.nn.conv2d(x, w, stride, pad, 1, "NHWC", "HWIO", groups=groups))

    result, packed = compute_packed(fn, 1, data, weight)
    assert packed
    torch_weight = torch.tensor(weight).permute(3, 2, 0, 1)
    expected = F.conv2d(chw(data), torch_weight, None, stride, window // 2, 1, groups).relu()
    np.testing.assert_allclose(result, nhwc(expected), rtol=1e-4, atol=2e-4)


def test_weights_that_another_stage_reads_are_not_packed():
    rng = np.random.default_rng(0)
    data, weight = random_array(rng, 4, 16), random_array(rng, 4, 16)

    def fn(x, w):
        return topi.add(topi.nn.dense(x, w), topi.sum(w))

    inputs = [te.placeholder((4, 16), name="x"), te.placeholder((4, 16), name="w")]
    known = topi.schedule_args_for([*inputs, fn(*inputs)], {1}, HERE)
    assert not known.packings
    np.testing.assert_allclose(
        compute(fn, data, weight), data @ weight.T + weight.sum(), rtol=1e-4, atol=1e-4
    )


def test_constant_data_is_not_taken_for_weights():
    inputs = [te.placeholder((1, 10, 10, 3), name="x"), te.placeholder((4, 3), name="w")]
    known = topi.schedule_args_for([*inputs, topi.nn.dense(*inputs)], {0, 1}, HERE)
    assert set(known.packings) <= {1}


@settings(deadline=None, max_examples=7)
@given(
    lead=st.sampled_from([(5,), (2, 3), (1, 1)]),
    width=st.integers(1, 150),
    kind=st.sampled_from(["layer_norm", "rms_norm", "softmax"]),
)
def test_functions_of_rows_of_any_width_match_torch(lead, width, kind):
    rng = np.random.default_rng(width)
    data = random_array(rng, *lead, width)
    gamma, beta = random_array(rng, width), random_array(rng, width)
    axis = len(lead)
    x, g, b = (torch.tensor(a) for a in (data, gamma, beta))
    if kind == "layer_norm":
        got = compute(lambda *a: topi.nn.layer_norm(*a, [axis], 1e-5), data, gamma, beta)
        want = F.layer_norm(x, [width], g, b, 1e-5)
    elif kind == "rms_norm":
        got = compute(lambda *a: topi.nn.rms_norm(*a, [axis], 1e-5), data, gamma)
        want = F.rms_norm(x, [width], g, 1e-5)
    else:
        got, want = compute(lambda a: topi.nn.softmax(a), data), F.softmax(x, -1)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-4)


def test_rows_over_several_dimensions_are_normalised_together():
    rng = np.random.default_rng(0)
    data = random_array(rng, 3, 5, 6, 7)
    gamma, beta = random_array(rng, 6, 7), random_array(rng, 6, 7)
    got = compute(lambda *a: topi.nn.layer_norm(*a, [2, 3], 1e-5), data, gamma, beta)
    x, g, b = (torch.tensor(a) for a in (data, gamma, beta))
    want = F.layer_norm(x, [6, 7], g, b)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-4)


def test_a_function_of_rows_keeps_them_in_parallel():
    x = te.placeholder((64, 49, 96), name="x")
    g = te.placeholder((96,), name="g")
    output = topi.nn.rms_norm(x, g, [2], 1e-5)
    assert topi.x86.is_row_function([output])
    assert not topi.x86.is_row_function([topi.nn.softmax(x, 1)])
