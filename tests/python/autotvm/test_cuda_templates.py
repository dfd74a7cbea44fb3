"""Templates for GPUs: their points compute what they should, on the emulated device."""

import numpy as np
import pytest
import torch

import tvm
from tvm import autotvm, te, topi
from tvm.autotvm.task.space import FallbackConfigEntity
from tvm.topi.cuda import AxisTile, schedule_sum_by_threads, schedule_tiled_sums

GPU = tvm.target.emulated("cuda -arch=sm_80")


def _tensor(*shape):
    return ("TENSOR", shape, "float32")


def _points(task, count):
    """A few points that fit the device, and the one for what was not tuned."""
    rng = np.random.default_rng(0)
    found = [FallbackConfigEntity()]
    while len(found) <= count:
        config = task.config_space.get(int(rng.integers(task.config_space.range_length)))
        try:
            task.instantiate(config)
        except autotvm.InstantiationError:
            continue
        found.append(config)
    return found


def _check(name, args, shapes, compute, count=2):
    task = autotvm.task.create(name, args, GPU)
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    want = compute(*map(torch.from_numpy, arrays)).numpy()
    for config in _points(task, count):
        schedule, tensors = task.instantiate(config)
        function = tvm.build(schedule, tensors, target=GPU)
        out = tvm.nd.array(np.full(want.shape, np.nan, "float32"))
        function(*map(tvm.nd.array, arrays), out)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-4, atol=1e-4)
    return task


@pytest.mark.parametrize(
    ("name", "data", "kernel", "stride", "padding", "groups"),
    [
        ("conv2d_nchw.cuda", (1, 4, 9, 10), (6, 4, 3, 3), 2, 1, 1),
        ("group_conv2d_nchw.cuda", (1, 8, 6, 6), (6, 4, 3, 3), 1, 1, 2),
        ("depthwise_conv2d_nchw.cuda", (2, 6, 8, 8), (6, 1, 3, 3), 1, 1, 6),
        ("conv3d_ncdhw.cuda", (1, 3, 4, 6, 6), (4, 3, 3, 3, 3), 1, 1, 1),
    ],
)
def test_convolutions(name, data, kernel, stride, padding, groups):
    rank = len(data) - 2
    sizes = ((stride,) * rank, (padding,) * (2 * rank), (1,) * rank)
    named = [groups] if name in ("group_conv2d_nchw.cuda", "conv3d_ncdhw.cuda") else []
    convolve = getattr(torch.nn.functional, f"conv{rank}d")
    task = _check(
        name,
        [_tensor(*data), _tensor(*kernel), *sizes, *named, "float32"],
        [data, kernel],
        lambda x, w: convolve(x, w, None, stride, padding, 1, groups),
    )
    tiles = ["tile_f", *(["tile_d"] if rank == 3 else []), "tile_y", "tile_x"]
    sums = ["tile_rc", *(["tile_rd"] if rank == 3 else []), "tile_ry", "tile_rx"]
    sums = [] if name.startswith("depthwise") else sums
    unroll = ["auto_unroll_max_step", "unroll_explicit"]
    assert list(task.config_space.space_map) == [*tiles, *sums, *unroll]


@pytest.mark.parametrize("name", ["dense_small_batch.gpu", "dense_large_batch.gpu"])
@pytest.mark.parametrize("bias", [False, True])
def test_dense_layers(name, bias):
    operands = [_tensor(12, 36), _tensor(20, 36)]
    _check(
        name,
        [*operands, _tensor(20) if bias else None, "float32"],
        [(12, 36), (20, 36), *([(20,)] if bias else [])],
        lambda x, w, *b: torch.nn.functional.linear(x, w, *b),
    )


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, True), (True, False)])
def test_batches_of_products(transpose_a, transpose_b):
    a, b = (2, 12, 8) if transpose_a else (2, 8, 12), (2, 20, 12) if transpose_b else (2, 12, 20)
    _check(
        "batch_matmul.cuda",
        [_tensor(*a), _tensor(*b), (2, 8, 20), "float32", transpose_a, transpose_b],
        [a, b],
        lambda x, y: (x.mT if transpose_a else x) @ (y.mT if transpose_b else y),
    )


def test_more_threads_than_a_block_has_are_refused():
    task = autotvm.task.create(
        "dense_large_batch.gpu", [_tensor(64, 8), _tensor(64, 8), None, "float32"], GPU
    )
    x, y = (task.config_space.space_map[f"tile_{axis}"] for axis in "xy")
    wide = [next(k for k in range(len(s)) if list(s[k].size)[1:] == [1, 64, 1]) for s in (x, y)]
    config = task.config_space.get(wide[0] + wide[1] * len(x))
    with pytest.raises(autotvm.InstantiationError, match="4096 threads, a block has 1024 at most"):
        task.instantiate(config)


def test_groups_of_volumes_are_refused():
    args = [_tensor(1, 4, 4, 4, 4), _tensor(4, 2, 1, 1, 1), (1,) * 3, (0,) * 6, (1,) * 3, 2]
    with pytest.raises(ValueError, match="conv3d_ncdhw.cuda: channels are in one group, got 2"):
        autotvm.task.create("conv3d_ncdhw.cuda", [*args, "float32"], GPU)


def test_kernels_compile_for_the_device():
    args = [_tensor(1, 16, 14, 14), _tensor(32, 16, 3, 3), (1, 1), (1,) * 4, (1, 1), "float32"]
    task = autotvm.task.create("conv2d_nchw.cuda", args, "cuda -arch=sm_80")
    schedule, tensors = task.instantiate(FallbackConfigEntity())
    source = tvm.build(schedule, tensors, target=task.target).imported_modules[0].get_source()
    assert "__shared__" in source and "threadIdx.z" in source


def test_tiles_and_steps_are_of_the_axes():
    a, b = te.placeholder((8, 4), name="a"), te.placeholder((8, 4), name="b")
    product = topi.nn.dense(a, b)
    with pytest.raises(ValueError, match="a sum of 2 axes over 1 has as many tiles and steps"):
        schedule_tiled_sums(product, [AxisTile()], [2])
    scaled = topi.multiply(product, 2.0)
    for schedule in (
        schedule_tiled_sums(product, [AxisTile(1, 2, 2), AxisTile(2, 2, 1)], [3], scaled),
        schedule_sum_by_threads(product, 2, scaled),
    ):
        x, y = (np.random.default_rng(k).standard_normal((8, 4)).astype("float32") for k in (0, 1))
        out = tvm.nd.empty((8, 8))
        tvm.build(schedule, [a, b, scaled], GPU)(tvm.nd.array(x), tvm.nd.array(y), out)
        np.testing.assert_allclose(out.numpy(), 2 * x @ y.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "args", "shapes"),
    [
        ("dense_large_batch.gpu", [None], [(32, 24), (16, 24)]),
        ("dense_small_batch.gpu", [None], [(2, 24), (16, 24)]),
        ("conv2d_nchw.cuda", [(1, 1), (1,) * 4, (1, 1)], [(1, 4, 6, 6), (4, 4, 3, 3)]),
    ],
)
def test_halves_are_added_up_in_float32(name, args, shapes):
    tensors = [("TENSOR", shape, "float16") for shape in shapes]
    task = autotvm.task.create(name, [*tensors, *args, "float16"], GPU)
    schedule, arguments = task.instantiate(FallbackConfigEntity())
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float16") for shape in shapes]
    x, w = (torch.from_numpy(array).float() for array in arrays)
    if name.startswith("dense"):
        want = torch.nn.functional.linear(x, w)
    else:
        want = torch.nn.functional.conv2d(x, w, padding=1)
    out = tvm.nd.empty(tuple(want.shape), "float16")
    tvm.build(schedule, arguments, GPU)(*map(tvm.nd.array, arrays), out)
    np.testing.assert_allclose(out.numpy(), want.numpy().astype("float16"), rtol=1e-3, atol=1e-3)
