"""Whether the programs that Felix's space for GPUs admits are right, free of races, and compile.

    python benchmarks/gpu_space.py --points 4 --json space.json

Eighteen operators, all sketches of each, points that meet the constraints. At small sizes a program
runs in the emulator, which reports races and accesses out of bounds, and its result is compared
with the unscheduled program's. At sizes of networks it is compiled by NVRTC; a program that spills
registers, or takes more shared memory than a block can have, counts as refused. No GPU is needed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
]


def sampled(tensors: Tensors, target: str, points: int) -> tuple[Any, list[Any]]:
    """The task and random states of all its sketches that meet the constraints."""
    task = felix.make_task(tensors, target).task
    if task.failures:
        raise RuntimeError(f"a structure cannot be lowered: {task.failures[0]}")
    states = []
    for sketch in task.sketches:
        features = SketchPerfFunc(sketch, MLPModelPLWrapper()).features
        for point in features.config_maker.make(points, np.random.default_rng(0)):
            states.append(sketch.state_from_config(features.config(point)))
    return task.ansor_task, states


def _result(task: Any, state: Any, inputs: list[np.ndarray], target: Any) -> np.ndarray:
    schedule, args = task.compute_dag.apply_steps_from_state(
        state, auto_scheduler.LayoutRewriteOption.NO_REWRITE
    )
    shape = [int(extent) for extent in args[-1].shape]
    out = tvm.nd.array(np.full(shape, np.nan, str(args[-1].dtype)))
    tvm.build(schedule, args, target=target)(*[tvm.nd.array(x) for x in inputs], out)
    return out.numpy().astype("float64")


def count_right(tensors: Tensors, points: int) -> tuple[int, int, list[str]]:
    """How many of the emulated programs are right and free of races, of how many, and why not."""
    task, states = sampled(tensors, "cuda -arch=sm_80", points)
    generator = np.random.default_rng(0)
    inputs = [
        generator.uniform(-1, 1, [int(extent) for extent in tensor.shape]).astype(str(tensor.dtype))
        for tensor in list(task.compute_dag.tensors)[:-1]
    ]
    expected = _result(task, task.compute_dag.init_state, inputs, "llvm")
    half = any(str(tensor.dtype) == "float16" for tensor in tensors)
    tolerance = 5e-3 if half else 1e-4
    right, problems = 0, []
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
    return right, len(states), problems


def count_compiled(tensors: Tensors, arch: str, points: int) -> tuple[int, int, list[str]]:
    """How many programs compile without spills, of how many, and why not."""
    task, states = sampled(tensors, f"cuda -arch={arch}", points)
    built, problems = 0, []
    for state in states:
        request = MeasureInput(task, state).request()
        result, _ = measure_jobs.build(
            {"program": request.function, "arguments": request.arguments}, b""
        )
        built += result["error_no"] == 0
        if result["error_no"] != 0:
            problems.append(result["error_msg"].strip().splitlines()[-1])
    return built, len(states), problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=4, help="programs of each sketch")
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
        counts = {"emulated": count_right(small(), args.points)}
        counts |= {arch: count_compiled(large(), arch, args.points) for arch in args.arch}
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
