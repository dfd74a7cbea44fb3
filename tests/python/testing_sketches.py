"""Small workloads of every operator family, their sketches, and random valid tile sizes."""

from __future__ import annotations

from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import LayoutRewriteOption
from tvm.felix import ffi

MAX_SKETCHES = 8


def _placeholder(*shape, name):
    return te.placeholder(shape, name=name)


def conv(h, ci, co, kernel, stride, pad):
    data = _placeholder(1, h, h, ci, name="data")
    weight = _placeholder(kernel, kernel, ci, co, name="weight")
    bias = _placeholder(co, name="bias")
    out = topi.nn.conv2d_nhwc(data, weight, stride, pad)
    return [data, weight, bias, topi.relu(topi.add(out, bias))]


def depthwise(h, c, stride):
    data = _placeholder(1, h, h, c, name="data")
    weight = _placeholder(3, 3, c, 1, name="weight")
    bias = _placeholder(c, name="bias")
    out = topi.nn.depthwise_conv2d_nhwc(data, weight, stride, 1)
    return [data, weight, bias, topi.relu6(topi.add(out, bias))]


def dense(n, m, k):
    data, weight = _placeholder(n, k, name="data"), _placeholder(m, k, name="weight")
    bias = _placeholder(m, name="bias")
    return [data, weight, bias, topi.nn.dense(data, weight, bias)]


def matmul(n, m, k):
    a, b = _placeholder(n, k, name="A"), _placeholder(k, m, name="B")
    return [a, b, topi.nn.matmul(a, b)]


def two_matmuls(n):
    a, b, d = (_placeholder(n, n, name=name) for name in "ABD")
    return [a, b, d, topi.nn.matmul(topi.nn.matmul(a, b), d)]


def max_pool(h, c, pad):
    data = _placeholder(1, h, h, c, name="data")
    return [data, topi.nn.max_pool2d(data, 3, 2, pad)]


def global_pool(h, c):
    data = _placeholder(1, h, h, c, name="data")
    return [data, topi.nn.adaptive_avg_pool2d(data, 1)]


def softmax(n, m):
    data = _placeholder(n, m, name="data")
    return [data, topi.nn.softmax(data)]


def chain(n, m):
    a, b = _placeholder(n, m, name="A"), _placeholder(n, m, name="B")
    return [a, b, topi.relu(topi.multiply(topi.add(a, b), b))]


def gather(rows, n, m):
    table, index = _placeholder(rows, m, name="table"), te.placeholder((n,), "int64", name="index")
    other = _placeholder(n, m, name="other")
    return [table, index, other, topi.add(topi.take(table, index, axis=0), other)]


CASES = {
    "conv3x3": conv(14, 8, 16, 3, 1, 1),
    "conv1x1": conv(14, 16, 24, 1, 1, 0),
    "stem": conv(28, 3, 16, 7, 2, 3),
    "depthwise": depthwise(14, 16, 1),
    "depthwise_stride2": depthwise(14, 24, 2),
    "dense": dense(4, 48, 32),
    "dense_one_row": dense(1, 40, 64),
    "matmul": matmul(24, 32, 40),
    # No divisor of these rows and steps makes a tile.
    "matmul_tokens": matmul(37, 32, 53),
    "two_matmuls": two_matmuls(16),
    "max_pool": max_pool(16, 16, 1),
    "global_pool": global_pool(7, 32),
    "softmax": softmax(6, 40),
    "gather": gather(90, 12, 32),
    "softmax_one_row": softmax(1, 48),
    "chain": chain(12, 40),
}


def random_inputs(tensors, rng):
    """Values of magnitude below 1; integers are places, some of them outside of small arrays."""
    shapes = [([int(s) for s in tensor.shape], str(tensor.dtype)) for tensor in tensors]
    return [
        rng.integers(0, 100, shape, dtype)
        if dtype.startswith("int")
        else rng.uniform(-1, 1, shape).astype(dtype)
        for shape, dtype in shapes
    ]


def make_task(name, target="llvm"):
    return auto_scheduler.SearchTask(
        compute_dag=CASES[name],
        target=target,
        layout_rewrite_option=LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
    )


def sketches_of(task):
    return ffi.generate_all_sym_sketches(task, MAX_SKETCHES)


def random_config(sketch, rng):
    """Random lengths whose product divides the extent of each split."""
    splits = [step for step in sketch.transform_steps if hasattr(step, "lengths")]
    return _random_lengths([(step.extent, step.lengths) for step in splits], rng)


def random_knobs(context, rng):
    """Random values of all knobs, also of those whose tiles need not divide their loop."""
    return _random_lengths([(g.extent_expr, g.vars) for g in context.split_groups], rng)


def _random_lengths(splits, rng):
    config = {}
    for extent, lengths in splits:
        rest = int(extent)
        names = [str(length.name) for length in lengths]
        for name in rng.sample(names, len(names)):
            size = rng.choice([d for d in range(1, rest + 1) if rest % d == 0])
            config[name] = size
            rest //= size
    return config
