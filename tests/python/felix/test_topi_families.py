"""Operators of every family of topi can be searched: sketches come out, and compute the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tvm
from testing_sketches import MAX_SKETCHES, random_config
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import LayoutRewriteOption, pack_array
from tvm.felix import ffi

nn = topi.nn
FAMILIES = {
    "conv1d": (lambda x, w: nn.conv1d_nwc(x, w, 2, 1), (1, 16, 8), (3, 8, 12)),
    "conv2d_nchw": (lambda x, w: nn.conv2d_nchw(x, w, 1, 1), (1, 8, 8, 8), (8, 8, 3, 3)),
    "group_conv2d": (
        lambda x, w: topi.relu(nn.group_conv2d_nhwc(x, w, 1, 1, 1, 2)),
        (1, 8, 8, 8),
        (3, 3, 4, 12),
    ),
    "conv3d": (lambda x, w: nn.conv3d_ndhwc(x, w, 1, 1), (1, 4, 6, 6, 4), (3, 3, 3, 4, 8)),
    "dilated_conv2d": (
        lambda x, w: nn.conv2d_nhwc(x, w, 1, 2, 2),
        (1, 8, 8, 8),
        (3, 3, 8, 8),
    ),
    "conv2d_transpose": (
        lambda x, w: topi.relu(nn.conv2d_transpose_nhwc(x, w, 2, 1)),
        (1, 4, 4, 8),
        (4, 4, 8, 8),
    ),
    "winograd": (
        lambda x, w: nn.conv2d_winograd_nhwc(x, w, 1, 1, tile_size=2),
        (1, 8, 8, 8),
        (3, 3, 8, 8),
    ),
    "batch_matmul": (nn.batch_matmul, (3, 8, 12), (3, 16, 12)),
    "einsum": (lambda x, y: topi.einsum("bqhd,bkhd->bhqk", x, y), (1, 8, 2, 8), (1, 6, 2, 8)),
    "avg_pool3d": (
        lambda x: nn.pool3d(x, 2, 2, 1, 0, "avg", layout="NDHWC"),
        (1, 4, 4, 4, 16),
    ),
    "adaptive_pool": (lambda x: nn.adaptive_avg_pool2d(x, (3, 2)), (1, 7, 7, 16)),
    "mean": (lambda x: topi.mean(x, (1, 2)), (2, 6, 6, 16)),
    "layer_norm": (nn.layer_norm, (12, 32), (32,), (32,)),
    "argmax": (lambda x: topi.argmax(x, 1), (6, 24)),
    "resize": (lambda x: topi.image.resize2d(x, None, (12, 12), "NHWC"), (1, 6, 6, 8)),
    "movement": (
        lambda x: topi.concatenate([topi.transpose(x, (1, 0)), topi.reshape(x, (16, -1))], 0),
        (8, 16),
    ),
}


def run(task, state, arrays):
    """Result of the task under a state."""
    sch, args = task.compute_dag.apply_steps_from_state(
        state, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    )
    arrays = list(arrays)
    for transform in task.compute_dag.layout_transforms(state):
        index = int(transform.tensor_index)
        arrays[index] = pack_array(arrays[index], transform)
    out = tvm.nd.array(np.full([int(s) for s in args[-1].shape], 77, str(args[-1].dtype)))
    tvm.build(sch, args, target="llvm")(*(tvm.nd.array(x) for x in arrays), out)
    return out.numpy()


@pytest.mark.parametrize("name", FAMILIES)
def test_family_has_sketches_that_compute_the_same(name):
    fn, *shapes = FAMILIES[name]
    tensors = [te.placeholder(shape, name=f"x{k}") for k, shape in enumerate(shapes)]
    task = auto_scheduler.SearchTask(
        compute_dag=[*tensors, fn(*tensors)],
        target="llvm",
        layout_rewrite_option=LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
    )
    sketches, failures = ffi.generate_all_sym_sketches(task, MAX_SKETCHES)
    assert failures == []
    assert len(sketches) >= 1
    values = np.random.default_rng(0)
    arrays = [values.uniform(-1, 1, shape).astype("float32") for shape in shapes]
    expected = run(task, task.compute_dag.init_state, arrays)
    rng = random.Random(name)
    for sketch in sketches:
        state = ffi.state_from_config(task, sketch, random_config(sketch, rng))
        np.testing.assert_allclose(
            run(task, state, arrays), expected, rtol=1e-4, atol=1e-4, err_msg=str(state)
        )
