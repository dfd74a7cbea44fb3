"""Templates of the operator library: their points compute what they should."""

import numpy as np
import pytest
import torch

import tvm
from tvm import autotvm
from tvm.autotvm.task.space import FallbackConfigEntity

CPU = "llvm"


def _tensor(*shape):
    return ("TENSOR", shape, "float32")


def _blocked(array, data_block):
    n, c, h, w = array.shape
    return array.reshape(n, c // data_block, data_block, h, w).transpose(0, 1, 3, 4, 2)


def _run(task, config, arrays):
    schedule, args = task.instantiate(config)
    function = tvm.build(schedule, args, target=task.target)
    out = tvm.nd.empty([int(e) for e in args[-1].shape], args[-1].dtype)
    function(*map(tvm.nd.array, arrays), out)
    return out.numpy()


def _points(task, count):
    """A few points of the space, and the one that the template takes without records."""
    rng = np.random.default_rng(0)
    space = task.config_space
    chosen = [i for i in rng.permutation(space.range_length) if space.is_index_valid(int(i))]
    return [space.get(int(i)) for i in chosen[:count]] + [FallbackConfigEntity()]


@pytest.mark.parametrize(
    ("data", "kernel", "stride", "padding", "dilation"),
    [
        ((1, 3, 15, 13), (8, 3, 3, 3), 2, 1, 1),
        ((2, 8, 9, 9), (12, 8, 1, 1), 1, 0, 1),
        ((1, 4, 11, 12), (4, 4, 3, 2), 1, 2, 2),
    ],
)
def test_convolution_in_blocks_is_the_convolution(data, kernel, stride, padding, dilation):
    args = [
        *(_tensor(*data), _tensor(*kernel)),
        *((stride,) * 2, (padding,) * 4, (dilation,) * 2, "NCHW", "NCHW", "float32"),
    ]
    task = autotvm.task.create("conv2d_NCHWc.x86", args, CPU)
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in (data, kernel))
    want = torch.nn.functional.conv2d(
        torch.from_numpy(x), torch.from_numpy(w), None, stride, padding, dilation
    ).numpy()
    for config in _points(task, 4):
        schedule, _ = task.instantiate(config)
        ic, oc = (int(config[knob].size[-1]) for knob in ("tile_ic", "tile_oc"))
        o, i, h, k = kernel
        packed = w.reshape(o // oc, oc, i // ic, ic, h, k).transpose(0, 2, 4, 5, 3, 1)
        got = _run(task, config, [_blocked(x, ic), np.ascontiguousarray(packed)])
        np.testing.assert_allclose(got, _blocked(want, oc), rtol=1e-4, atol=1e-4)


def test_depthwise_convolution_stores_data_and_kernel_in_the_same_blocks():
    data, kernel = (1, 12, 10, 10), (12, 1, 3, 3)
    args = [
        *(_tensor(*data), _tensor(*kernel)),
        *((2, 2), (1, 1, 1, 1), (1, 1), "NCHW", "NCHW", "float32"),
    ]
    task = autotvm.task.create("depthwise_conv2d_NCHWc.x86", args, CPU)
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in (data, kernel))
    want = torch.nn.functional.conv2d(
        torch.from_numpy(x), torch.from_numpy(w), None, 2, 1, groups=12
    ).numpy()
    for config in _points(task, 3):
        schedule, _ = task.instantiate(config)
        block = int(config["tile_ic"].size[-1])
        assert int(config["tile_oc"].size[-1]) == block
        packed = w.reshape(12 // block, block, 1, 1, 3, 3).transpose(0, 2, 4, 5, 3, 1)
        got = _run(task, config, [_blocked(x, block), np.ascontiguousarray(packed)])
        np.testing.assert_allclose(got, _blocked(want, block), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["dense_nopack.x86", "dense_pack.x86"])
def test_dense_templates_multiply_by_the_transposed_weights(name):
    task = autotvm.task.create(name, [_tensor(6, 32), _tensor(24, 32), None, "float32"], CPU)
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in ((6, 32), (24, 32)))
    for config in _points(task, 4):
        schedule, args = task.instantiate(config)
        weight = w
        if name == "dense_pack.x86":
            block = int(config["tile_x"].size[-1])
            weight = np.ascontiguousarray(w.reshape(24 // block, block, 32).transpose(0, 2, 1))
        np.testing.assert_allclose(_run(task, config, [x, weight]), x @ w.T, rtol=1e-4, atol=1e-4)


def test_batch_matmul_template_multiplies_rows():
    shapes = (3, 4, 16), (3, 10, 16)
    args = [*(_tensor(*s) for s in shapes), (3, 4, 10), "float32", False, True]
    task = autotvm.task.create("batch_matmul.x86", args, CPU)
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(shape).astype("float32") for shape in shapes)
    for config in _points(task, 3):
        want = a @ b.transpose(0, 2, 1)
        np.testing.assert_allclose(_run(task, config, [a, b]), want, rtol=1e-4, atol=1e-4)


def test_layouts_and_transpositions_that_templates_lack_are_refused():
    conv = [_tensor(1, 4, 8, 8), _tensor(4, 4, 3, 3), (1, 1), (1,) * 4, (1, 1)]
    with pytest.raises(ValueError, match="are in layout NCHW, got NHWC"):
        autotvm.task.create("conv2d_NCHWc.x86", [*conv, "NHWC", "NHWC", "float32"], CPU)
    product = [_tensor(1, 4, 8), _tensor(1, 8, 4), None, "float32", False, False]
    with pytest.raises(ValueError, match="summed dimension last"):
        autotvm.task.create("batch_matmul.x86", product, CPU)
