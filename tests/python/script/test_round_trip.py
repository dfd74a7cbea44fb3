"""Every program is what its text reads as, at every stage of lowering."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_script import RoundTrips, check_round_trip
from testing_te import PROGRAMS, random_gpu_schedule, random_schedule
from tvm import te, topi
from tvm.error import ScheduleError, TVMError


def tensor(*shape, dtype="float32"):
    return te.placeholder(shape, dtype, "x")


def check_lowering(schedule, args, target):
    instrument = RoundTrips()
    context = tvm.transform.PassContext(instruments=[instrument])
    # A random schedule may be refused at any stage; the stages before it are checked.
    with context, contextlib.suppress(TVMError):
        tvm.build(schedule, args, target=target)
        assert instrument.count > 10
    for error in instrument.errors[:1]:
        raise error


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(sorted(PROGRAMS)), st.integers(0, 10**6))
def test_all_stages_of_random_cpu_schedules_come_back(name, seed):
    rng = random.Random(seed)
    program = PROGRAMS[name](rng)
    schedule = random_schedule(program, rng)
    check_lowering(schedule, [*program.inputs, *program.outputs], "stackvm")


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(sorted(set(PROGRAMS) - {"scan"})), st.integers(0, 10**6))
def test_all_stages_of_random_gpu_schedules_come_back(name, seed):
    rng = random.Random(seed)
    program = PROGRAMS[name](rng)
    try:
        schedule = random_gpu_schedule(program, rng)
    except ScheduleError:
        return
    args = [*program.inputs, *program.outputs]
    check_lowering(schedule, args, tvm.target.emulated("cuda"))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(set(PROGRAMS) - {"scan"})), st.integers(0, 10**6))
def test_blocks_of_random_programs_come_back(name, seed):
    program = PROGRAMS[name](random.Random(seed))
    func = te.create_prim_func([*program.inputs, *program.outputs])
    check_round_trip(func)
    check_round_trip(tvm.IRModule({"main": func}))


UNARY = """
    abs acos acosh asin asinh atan atanh ceil cos cosh erf exp fast_erf fast_exp fast_tanh
    floor isfinite isinf isnan log log10 log2 negative relu round rsqrt sigmoid sign sin sinh
    sqrt tan tanh trunc gelu selu silu mish elu softplus softsign hardsigmoid hardswish
    hardtanh relu6
""".split()  # noqa: SIM905
BINARY = """
    add subtract multiply divide maximum minimum power mod floor_mod equal not_equal greater
    greater_equal less less_equal log_add_exp
""".split()  # noqa: SIM905
INTEGER = """
    bitwise_and bitwise_or bitwise_xor left_shift right_shift floor_divide
""".split()  # noqa: SIM905
REDUCTIONS = ["sum", "max", "min", "prod", "mean", "argmax", "argmin"]
X = (2, 4, 6, 6)
OTHERS = {
    "cast": lambda x: topi.cast(x, "float16"),
    "bfloat16": lambda x: topi.cast(x, "bfloat16"),
    "float64": lambda x: topi.exp(topi.cast(x, "float64")),
    "uint8": lambda x: topi.add(topi.cast(x, "uint8"), topi.full(X, "uint8", 3)),
    "bool": lambda x: topi.logical_not(topi.cast(x, "bool")),
    "clip": lambda x: topi.clip(x, -1.0, 1.0),
    "leaky_relu": lambda x: topi.nn.leaky_relu(x, 0.1),
    "transpose": lambda x: topi.transpose(x, (0, 2, 3, 1)),
    "reshape": lambda x: topi.reshape(x, (4, 72)),
    "concatenate": lambda x: topi.concatenate((x, x), 1),
    "split": lambda x: topi.split(x, 2, 1)[1],
    "strided_slice": lambda x: topi.strided_slice(x, [0, 1], [2, 4], [1, 2]),
    "tile": lambda x: topi.tile(x, (1, 2, 1, 1)),
    "flip": lambda x: topi.flip(x, 2),
    "take": lambda x: topi.take(x, tensor(3, dtype="int32"), 1),
    "where": lambda x: topi.where(topi.greater(x, topi.zeros_like(x)), x, x),
    "one_hot": lambda x: topi.one_hot(tensor(3, dtype="int32"), 1, 0, 5, -1, "float32"),
    "tril": lambda x: topi.tril(tensor(4, 4)),
    "arange": lambda x: topi.arange(0, 8, 1, "int64"),
    "cumsum": lambda x: topi.cumsum(x, 1),
    "layout_transform": lambda x: topi.layout_transform(x, "NCHW", "NCHW2c"),
    "dense": lambda x: topi.nn.dense(tensor(4, 8), tensor(5, 8), tensor(5)),
    "batch_matmul": lambda x: topi.nn.batch_matmul(tensor(2, 4, 8), tensor(2, 5, 8)),
    "conv2d_nchw": lambda x: topi.nn.conv2d_nchw(x, tensor(3, 4, 3, 3), 1, 1, 1),
    "depthwise": lambda x: topi.nn.depthwise_conv2d_nchw(x, tensor(4, 1, 3, 3), 1, 1, 1),
    "max_pool": lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"),
    "avg_pool": lambda x: topi.nn.pool2d(x, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "avg"),
    "softmax": lambda x: topi.nn.softmax(x, 1),
    "log_softmax": lambda x: topi.nn.log_softmax(tensor(4, 8)),
    "layer_norm": lambda x: topi.nn.layer_norm(x, tensor(6), tensor(6), [3]),
    "pad": lambda x: topi.nn.pad(x, [0, 0, 1, 1], [0, 0, 1, 1], -1.0),
    "dilate": lambda x: topi.nn.dilate(x, [1, 1, 2, 2]),
    "upsampling": lambda x: topi.nn.upsampling(x, 2, 2),
}


@pytest.mark.parametrize("name", [*UNARY, *BINARY, *INTEGER, *REDUCTIONS, *OTHERS])
def test_operators_of_topi_come_back_as_blocks(name):
    x = tensor(*X)
    if name in UNARY:
        out = (getattr(topi, name, None) or getattr(topi.nn, name))(x)
    elif name in BINARY:
        out = getattr(topi, name)(x, tensor(4, 1, 6))
    elif name in INTEGER:
        out = getattr(topi, name)(tensor(*X, dtype="int32"), tensor(*X, dtype="int32"))
    elif name in REDUCTIONS:
        out = getattr(topi, name)(x, axis=1)
    else:
        out = OTHERS[name](x)
    args = inputs_of(out)
    check_round_trip(te.create_prim_func([*args, out]))
    check_round_trip(tvm.lower(te.create_schedule(out.op), [*args, out]))


def inputs_of(out):
    found, waiting = [], [out.op]
    while waiting:
        op = waiting.pop()
        if isinstance(op, te.PlaceholderOp) and not any(t.op.same_as(op) for t in found):
            found.append(op.output(0))
        waiting += [t.op for t in op.input_tensors]
    return found


def test_symbolic_extents_come_back():
    n, m = te.var("n"), te.size_var("m", "int64")
    A, B = te.placeholder((n, 4), name="A"), te.placeholder((m,), name="B")
    C = te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="C")
    D = te.compute((m,), lambda i: B[i] + 1.0, name="D")
    check_round_trip(te.create_prim_func([A, C]))
    s = te.create_schedule(C.op)
    s[C].vectorize(s[C].split(C.op.axis[0], 8)[1])
    check_round_trip(tvm.lower(s, [A, C, n]))
    check_round_trip(tvm.lower(te.create_schedule(D.op), [B, D]))
