"""Whether the programs that Felix's space for GPUs admits are right, free of races, and compile.

    python benchmarks/gpu_space.py --points 4 --json space.json

Operators of networks, all sketches of each, points that meet the constraints. At small sizes a
program runs in the emulator, which reports races and accesses out of bounds, and its result is
compared with the unscheduled program's. At sizes of networks it is compiled by NVRTC; a program
that spills registers, or takes more shared memory than a block can have, counts as refused. No GPU
is needed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import tvm
from tvm import auto_scheduler, felix, te, topi
from tvm.auto_scheduler import MeasureInput, measure_jobs
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix.perf_func import SketchPerfFunc

Tensors = list[te.Tensor]


def _tensor(*shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name="x")


def _product(batch: int, n: int, m: int, k: int, dtype: str) -> Tensors:
    """A product with sums of float32, batched where there is more than one."""
    lead = (batch,) if batch > 1 else ()
    a = te.placeholder((*lead, n, k), dtype, name="A")
    b = te.placeholder((*lead, k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    result = te.compute(
        (*lead, n, m),
        lambda *i: te.sum(
            a(*i[:-1], r).astype("float32") * b(*i[:-2], r, i[-1]).astype("float32"), axis=r
        ),
        name="C",
    )
    return [a, b, result]


def _dense(n: int, m: int, k: int, dtype: str) -> Tensors:
    a, b, result = _product(1, n, m, k, dtype)
    bias = te.placeholder((m,), "float32", name="bias")
    out = te.compute(
        (n, m),
        lambda i, j: tvm.tir.max(result[i, j] + bias[j], tvm.tir.const(0, "float32")).astype(dtype),
        name="out",
    )
    return [a, b, bias, out]


def _conv(
    batch: int, size: int, cin: int, cout: int, window: int, stride: int, dtype: str
) -> Tensors:
    data = te.placeholder((batch, size, size, cin), dtype, name="data")
    weight = te.placeholder((window, window, cin, cout), dtype, name="weight")
    out = topi.nn.conv2d_nhwc(data, weight, stride, window // 2, 1, out_dtype="float32")
    return [data, weight, topi.nn.relu(out)]


def _depthwise(size: int, channels: int) -> Tensors:
    data = te.placeholder((1, size, size, channels), name="data")
    weight = te.placeholder((3, 3, channels, 1), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nhwc(data, weight, 1, 1, 1)]


def _pool(size: int, channels: int) -> Tensors:
    data = _tensor(1, size, size, channels)
    return [data, topi.nn.pool2d(data, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "max", layout="NHWC")]


def _softmax(rows: int, columns: int) -> Tensors:
    data = _tensor(rows, columns)
    return [data, topi.nn.softmax(data)]


def _layer_norm(rows: int, columns: int) -> Tensors:
    data, scale, shift = _tensor(rows, columns), _tensor(columns), _tensor(columns)
    return [data, scale, shift, topi.nn.layer_norm(data, scale, shift, [1], 1e-5)]


def _transposed(size: int, cin: int, cout: int) -> Tensors:
    data = te.placeholder((1, cin, size, size), name="data")
    weight = te.placeholder((cin, cout, 4, 4), name="weight")
    out = topi.nn.conv2d_transpose_nchw(data, weight, (2, 2), (1, 1, 1, 1), "float32", (0, 0))
    return [data, weight, out]


def _general_conv(
    rank: int, size: int, cin: int, cout: int, window: int, **options: Any
) -> Tensors:
    """A convolution over channels-last lines, images or volumes, of one in a batch."""
    letters, dtype = "DHW"[3 - rank :], options.pop("dtype", "float32")
    groups, pads = options.get("groups", 1), [options.pop("padding")] * rank
    data = te.placeholder((1, *[size] * rank, cin), dtype, name="data")
    weight = te.placeholder((*[window] * rank, cin // groups, cout), dtype, name="weight")
    stride, dilation = options.pop("stride", 1), options.pop("dilation", 1)
    out = topi.nn.conv(
        data,
        weight,
        [stride] * rank,
        [*pads, *pads],
        [dilation] * rank,
        groups=groups,
        data_layout=f"N{letters}C",
        kernel_layout=f"{letters}IO",
        out_dtype="float32",
    )
    return [data, weight, topi.nn.relu(out)]


def _depthwise_stride(size: int, channels: int, window: int, stride: int, dtype: str) -> Tensors:
    data = te.placeholder((1, size, size, channels), dtype, name="data")
    weight = te.placeholder((window, window, channels, 1), dtype, name="weight")
    out = topi.nn.depthwise_conv2d_nhwc(data, weight, stride, window // 2, 1)
    return [data, weight, topi.nn.relu(out)]


def _conv_nchw(batch: int, size: int, cin: int, cout: int, window: int, dtype: str) -> Tensors:
    data = te.placeholder((batch, cin, size, size), dtype, name="data")
    weight = te.placeholder((cout, cin, window, window), dtype, name="weight")
    return [data, weight, topi.nn.conv2d_nchw(data, weight, 1, window // 2, 1, "float32")]


def _transposed_product(batch: int, n: int, m: int, k: int, a_first: bool, dtype: str) -> Tensors:
    """A batched product of (k, n) or (n, k) with (m, k)."""
    a = te.placeholder((batch, k, n) if a_first else (batch, n, k), dtype, name="A")
    b = te.placeholder((batch, m, k), dtype, name="B")
    out = topi.nn.batch_matmul(a, b, out_dtype="float32", transpose_a=a_first, transpose_b=True)
    return [a, b, out]


def _weight_product(n: int, m: int, k: int, dtype: str, out_dtype: str) -> Tensors:
    """`topi.nn.dense` with a weight of (outputs, inputs)."""
    data, weight = _tensor(n, k, dtype=dtype), te.placeholder((m, k), dtype, name="w")
    return [data, weight, topi.nn.dense(data, weight, out_dtype=out_dtype)]


def _unary(make: Callable[[te.Tensor], te.Tensor], *shape: int, dtype: str = "float32") -> Tensors:
    data = _tensor(*shape, dtype=dtype)
    return [data, make(data)]


def _gelu(x: te.Tensor) -> te.Tensor:
    half, one = tvm.tir.const(0.5, x.dtype), tvm.tir.const(1.0, x.dtype)
    root = tvm.tir.const(0.5**0.5, x.dtype)
    return te.compute(x.shape, lambda *i: half * x(*i) * (one + tvm.tir.erf(x(*i) * root)))


def _group_norm(size: int, channels: int) -> Tensors:
    data, scale, shift = _tensor(2, channels, size, size), _tensor(channels), _tensor(channels)
    return [data, scale, shift, topi.nn.group_norm(data, scale, shift, 4, 1, [2, 3], 1e-5)]


def _transpose_add(rows: int, columns: int) -> Tensors:
    data, other = _tensor(rows, columns), _tensor(columns, rows)
    return [data, other, topi.add(topi.transpose(data), other)]


# (name, small, of networks)
WORKLOADS: list[tuple[str, Callable[[], Tensors], Callable[[], Tensors]]] = [
    *(
        case
        for dtype in ("float32", "float16")
        for case in (
            (
                f"matmul {dtype}",
                lambda dtype=dtype: _product(1, 64, 48, 32, dtype),
                lambda dtype=dtype: _product(1, 1024, 1024, 1024, dtype),
            ),
            (
                f"dense {dtype}",
                lambda dtype=dtype: _dense(32, 64, 64, dtype),
                lambda dtype=dtype: _dense(128, 3072, 768, dtype),
            ),
            (
                f"batch_matmul {dtype}",
                lambda dtype=dtype: _product(3, 32, 48, 32, dtype),
                lambda dtype=dtype: _product(12, 128, 128, 64, dtype),
            ),
            (
                f"conv3x3 {dtype}",
                lambda dtype=dtype: _conv(1, 16, 16, 16, 3, 1, dtype),
                lambda dtype=dtype: _conv(16, 28, 128, 128, 3, 1, dtype),
            ),
            (
                f"conv1x1 {dtype}",
                lambda dtype=dtype: _conv(1, 16, 32, 16, 1, 1, dtype),
                lambda dtype=dtype: _conv(16, 28, 512, 128, 1, 1, dtype),
            ),
            (
                f"stem {dtype}",
                lambda dtype=dtype: _conv(1, 20, 3, 16, 7, 2, dtype),
                lambda dtype=dtype: _conv(1, 224, 3, 64, 7, 2, dtype),
            ),
        )
    ),
    ("depthwise float32", lambda: _depthwise(12, 16), lambda: _depthwise(56, 144)),
    ("max_pool float32", lambda: _pool(13, 16), lambda: _pool(112, 64)),
    ("softmax float32", lambda: _softmax(12, 40), lambda: _softmax(1536, 128)),
    ("layer_norm float32", lambda: _layer_norm(6, 64), lambda: _layer_norm(128, 768)),
    ("transposed float32", lambda: _transposed(6, 8, 8), lambda: _transposed(16, 256, 128)),
    ("transpose_add float32", lambda: _transpose_add(24, 40), lambda: _transpose_add(1024, 768)),
    *(
        case
        for dtype in ("float32", "float16")
        for case in (
            (
                f"depthwise5x5_stride2 {dtype}",
                lambda dtype=dtype: _depthwise_stride(13, 24, 5, 2, dtype),
                lambda dtype=dtype: _depthwise_stride(112, 96, 5, 2, dtype),
            ),
            (
                f"dilated {dtype}",
                lambda dtype=dtype: _general_conv(
                    2, 16, 16, 16, 3, padding=2, dilation=2, dtype=dtype
                ),
                lambda dtype=dtype: _general_conv(
                    2, 64, 128, 128, 3, padding=2, dilation=2, dtype=dtype
                ),
            ),
            (
                f"conv1d {dtype}",
                lambda dtype=dtype: _general_conv(1, 32, 16, 32, 5, padding=2, dtype=dtype),
                lambda dtype=dtype: _general_conv(1, 2048, 128, 256, 5, padding=2, dtype=dtype),
            ),
            (
                f"conv3d {dtype}",
                lambda dtype=dtype: _general_conv(3, 5, 4, 8, 3, padding=1, dtype=dtype),
                lambda dtype=dtype: _general_conv(3, 16, 64, 64, 3, padding=1, dtype=dtype),
            ),
            (
                f"grouped {dtype}",
                lambda dtype=dtype: _general_conv(
                    2, 8, 16, 32, 3, padding=1, groups=4, dtype=dtype
                ),
                lambda dtype=dtype: _general_conv(
                    2, 28, 256, 256, 3, padding=1, groups=32, dtype=dtype
                ),
            ),
            (
                f"conv3x3_7x7 {dtype}",
                lambda dtype=dtype: _conv(1, 7, 32, 16, 3, 1, dtype),
                lambda dtype=dtype: _conv(1, 7, 512, 512, 3, 1, dtype),
            ),
            (
                f"conv3x3_nchw {dtype}",
                lambda dtype=dtype: _conv_nchw(1, 9, 8, 16, 3, dtype),
                lambda dtype=dtype: _conv_nchw(4, 28, 128, 128, 3, dtype),
            ),
            (
                f"batch_matmul_tt {dtype}",
                lambda dtype=dtype: _transposed_product(2, 32, 48, 32, True, dtype),
                lambda dtype=dtype: _transposed_product(16, 256, 256, 64, True, dtype),
            ),
            (
                f"batch_matmul_nt {dtype}",
                lambda dtype=dtype: _transposed_product(2, 32, 48, 32, False, dtype),
                lambda dtype=dtype: _transposed_product(16, 384, 384, 64, False, dtype),
            ),
            (
                f"dense_row {dtype}",
                lambda dtype=dtype: _weight_product(1, 40, 512, dtype, "float32"),
                lambda dtype=dtype: _weight_product(1, 4096, 4096, dtype, "float32"),
            ),
            (
                f"dense_odd {dtype}",
                lambda dtype=dtype: _weight_product(13, 37, 51, dtype, "float32"),
                lambda dtype=dtype: _weight_product(197, 1009, 768, dtype, "float32"),
            ),
            (
                f"matmul_tokens {dtype}",
                lambda dtype=dtype: _product(1, 37, 64, 48, dtype),
                lambda dtype=dtype: _product(1, 197, 768, 768, dtype),
            ),
            (
                f"dense_tokens {dtype}",
                lambda dtype=dtype: _dense(37, 48, 51, dtype),
                lambda dtype=dtype: _dense(197, 768, 1009, dtype),
            ),
            (
                f"batch_matmul_tokens {dtype}",
                lambda dtype=dtype: _transposed_product(2, 37, 37, 32, False, dtype),
                lambda dtype=dtype: _transposed_product(12, 197, 197, 64, False, dtype),
            ),
            (
                f"batch_matmul_values {dtype}",
                lambda dtype=dtype: _product(2, 37, 32, 37, dtype),
                lambda dtype=dtype: _product(12, 197, 64, 197, dtype),
            ),
            (
                f"matmul_prime {dtype}",
                lambda dtype=dtype: _product(1, 61, 53, 47, dtype),
                lambda dtype=dtype: _product(1, 1009, 1009, 1009, dtype),
            ),
            (
                f"dense_odd_long_sum {dtype}",
                lambda dtype=dtype: _weight_product(19, 37, 1031, dtype, "float32"),
                lambda dtype=dtype: _weight_product(67, 500, 16381, dtype, "float32"),
            ),
            (
                f"dense_long_sum {dtype}",
                lambda dtype=dtype: _weight_product(16, 32, 1024, dtype, "float32"),
                lambda dtype=dtype: _weight_product(64, 512, 16384, dtype, "float32"),
            ),
        )
    ),
    (
        "dense int8",
        lambda: _weight_product(32, 48, 64, "int8", "int32"),
        lambda: _weight_product(512, 1024, 1024, "int8", "int32"),
    ),
    (
        "conv3x3 bfloat16",
        lambda: _conv(1, 16, 16, 16, 3, 1, "bfloat16"),
        lambda: _conv(16, 28, 128, 128, 3, 1, "bfloat16"),
    ),
    (
        "matmul bfloat16",
        lambda: _product(1, 64, 48, 32, "bfloat16"),
        lambda: _product(1, 1024, 1024, 1024, "bfloat16"),
    ),
    (
        "argmax float32",
        lambda: _unary(lambda x: topi.argmax(x, 1), 6, 300),
        lambda: _unary(lambda x: topi.argmax(x, 1), 64, 32000),
    ),
    (
        "sum_rows float32",
        lambda: _unary(lambda x: topi.sum(x, 1), 6, 300),
        lambda: _unary(lambda x: topi.sum(x, 1), 64, 65536),
    ),
    (
        "sum_columns float32",
        lambda: _unary(lambda x: topi.sum(x, 0), 300, 6),
        lambda: _unary(lambda x: topi.sum(x, 0), 16384, 64),
    ),
    (
        "sum_all float32",
        lambda: _unary(lambda x: topi.sum(x), 96, 256),
        lambda: _unary(lambda x: topi.sum(x), 4096, 1024),
    ),
    ("gelu float32", lambda: _unary(_gelu, 6, 35), lambda: _unary(_gelu, 128, 3072)),
    (
        "gelu float16",
        lambda: _unary(_gelu, 6, 35, dtype="float16"),
        lambda: _unary(_gelu, 128, 3072, dtype="float16"),
    ),
    (
        "global_pool float32",
        lambda: _unary(lambda x: topi.nn.global_pool(x, "avg", "NHWC"), 1, 7, 7, 24),
        lambda: _unary(lambda x: topi.nn.global_pool(x, "avg", "NHWC"), 1, 7, 7, 2048),
    ),
    (
        "adaptive_pool float32",
        lambda: _unary(lambda x: topi.nn.adaptive_avg_pool2d(x, (3, 2)), 1, 7, 9, 16),
        lambda: _unary(lambda x: topi.nn.adaptive_avg_pool2d(x, (7, 7)), 1, 30, 30, 512),
    ),
    ("group_norm float32", lambda: _group_norm(6, 8), lambda: _group_norm(32, 320)),
    (
        "l2_normalize float32",
        lambda: _unary(lambda x: topi.nn.l2_normalize(x, 1e-6, 1), 6, 72),
        lambda: _unary(lambda x: topi.nn.l2_normalize(x, 1e-6, 1), 512, 768),
    ),
    ("softmax_wide float32", lambda: _softmax(3, 1000), lambda: _softmax(16, 50257)),
]


def sampled(
    tensors: Tensors, target: str, points: int, seed: int
) -> tuple[Any, list[Any], list[str]]:
    """The task, random states of all its sketches that meet the constraints, and what has none."""
    task = felix.make_task(tensors, target).task
    problems = [f"cannot be lowered: {failure.splitlines()[-1]}" for failure in task.failures]
    if not task.sketches:
        problems.append("no sketch")
    states = []
    for sketch in task.sketches:
        try:
            features = SketchPerfFunc(sketch, MLPModelPLWrapper()).features
            found = features.config_maker.make(points, np.random.default_rng(seed))
        except ValueError as error:
            problems.append(f"sketch {sketch.index}: {error}")
            continue
        if len(found) == 0:
            problems.append(f"sketch {sketch.index}: no point meets the constraints")
        states += [sketch.state_from_config(features.config(point)) for point in found]
    return task.ansor_task, states, problems


def _numpy_type(tensor: te.Tensor) -> Any:
    return getattr(ml_dtypes, str(tensor.dtype), str(tensor.dtype))


def _result(task: Any, state: Any, inputs: list[np.ndarray], target: Any) -> np.ndarray:
    schedule, args = task.compute_dag.apply_steps_from_state(
        state, auto_scheduler.LayoutRewriteOption.NO_REWRITE
    )
    shape = [int(extent) for extent in args[-1].shape]
    nothing = -1 if str(args[-1].dtype).startswith("int") else np.nan
    out = tvm.nd.array(np.full(shape, nothing, _numpy_type(args[-1])))
    tvm.build(schedule, args, target=target)(*[tvm.nd.array(x) for x in inputs], out)
    return out.numpy().astype("float64")


def _random(tensor: te.Tensor, generator: np.random.Generator) -> np.ndarray:
    shape, dtype = [int(extent) for extent in tensor.shape], str(tensor.dtype)
    if dtype.startswith("int"):
        return generator.integers(-8, 9, shape).astype(dtype)
    return generator.uniform(-1, 1, shape).astype(_numpy_type(tensor))


def count_right(tensors: Tensors, points: int, seed: int) -> tuple[int, int, list[str]]:
    """How many of the emulated programs are right and free of races, of how many, and why not."""
    task, states, problems = sampled(tensors, "cuda -arch=sm_80", points, seed)
    generator = np.random.default_rng(0)
    inputs = [_random(tensor, generator) for tensor in list(task.compute_dag.tensors)[:-1]]
    expected = _result(task, task.compute_dag.init_state, inputs, "llvm")
    half = any(str(tensor.dtype) in ("float16", "bfloat16") for tensor in tensors)
    tolerance = 5e-3 if half else 1e-4
    right, n = 0, len(states) + len(problems)
    for state in states:
        try:
            found = _result(task, state, inputs, tvm.target.emulated(task.target))
        except tvm.error.TVMError as error:
            problems.append(str(error).splitlines()[0])
            continue
        close = np.allclose(found, expected, rtol=tolerance, atol=tolerance)
        right += close
        if not close:
            problems.append(f"wrong by {np.abs(found - expected).max()}")
    return right, n, problems


def count_compiled(
    tensors: Tensors, arch: str, points: int, seed: int
) -> tuple[int, int, list[str]]:
    """How many programs compile without spills, of how many, and why not."""
    task, states, problems = sampled(tensors, f"cuda -arch={arch}", points, seed)
    built, n = 0, len(states) + len(problems)
    for state in states:
        request = MeasureInput(task, state).request()
        result, _ = measure_jobs.build(
            {"program": request.function, "arguments": request.arguments}, b""
        )
        built += result["error_no"] == 0
        if result["error_no"] != 0:
            problems.append(result["error_msg"].strip().splitlines()[-1])
    return built, n, problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=4, help="programs of each sketch")
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    parser.add_argument("--arch", nargs="+", default=["sm_80", "sm_90"])
    parser.add_argument("--only", default="", help="operators whose name contains this")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    args = parser.parse_args()
    rows = []
    print("| operator | right | " + " | ".join(args.arch) + " |")
    print("| --- | --- |" + " --- |" * len(args.arch))
    for name, small, large in WORKLOADS:
        if args.only not in name:
            continue
        counts = {"emulated": count_right(small(), args.points, args.seed)}
        counts |= {
            arch: count_compiled(large(), arch, args.points, args.seed) for arch in args.arch
        }
        rows.append(
            {"name": name}
            | {
                key: {"good": int(good), "of": total, "problems": problems}
                for key, (good, total, problems) in counts.items()
            }
        )
        shares = " | ".join(f"{good} of {total}" for good, total, _ in counts.values())
        print(f"| {name} | {shares} |", flush=True)
        for key, (_, _, problems) in counts.items():
            for problem in sorted(set(problems)):
                print(f"  {key}: {problem}", flush=True)
    for key in ["emulated", *args.arch]:
        good = sum(row[key]["good"] for row in rows)
        total = sum(row[key]["of"] for row in rows)
        print(f"{key}: {good} of {total}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
