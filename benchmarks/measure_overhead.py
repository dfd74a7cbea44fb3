"""Seconds that measuring a candidate costs above its timed runs, compilation included.

    python benchmarks/measure_overhead.py --json overhead.json

Candidates are register tiles of a matmul and of a 3x3 convolution. A candidate is timed for as long
as its calls take, without a minimum, so that what remains of the wall clock is overhead.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tvm import te, topi
from tvm.auto_scheduler import (
    LocalBuilder,
    LocalRunner,
    MeasureInput,
    ProgramMeasurer,
    SearchTask,
)

# Timed calls of a candidate; the evaluator makes one more call first, and the worker one before.
_NUMBER = 3
_UNTIMED_CALLS = 2


def matmul_task() -> SearchTask:
    """512 x 512 x 512, float32."""
    a, b = te.placeholder((512, 512), name="A"), te.placeholder((512, 512), name="B")
    k = te.reduce_axis((0, 512), name="k")
    c = te.compute((512, 512), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return SearchTask(compute_dag=[a, b, c], target="llvm", desc="matmul 512")


def conv_task() -> SearchTask:
    """3x3, 64 to 64 channels, 56 x 56 pixels, float32, NHWC."""
    data = te.placeholder((1, 56, 56, 64), name="data")
    weight = te.placeholder((3, 3, 64, 64), name="weight")
    conv = topi.nn.conv2d_nhwc(data, weight, 1, 1, 1)
    return SearchTask(compute_dag=[data, weight, conv], target="llvm", desc="conv 3x3 64-64 56")


def tiles(task: SearchTask) -> Iterator[MeasureInput]:
    """Register tiles of the last operation, from small to large."""
    for rows, columns in itertools.product((1, 2, 4, 7, 8), (8, 16, 32)):
        state = task.compute_dag.get_init_state()
        out = list(task.compute_dag.tensors)[-1]
        axes = list(state[out].iters)
        n_space = len(out.op.axis)
        *outer, row, column = axes[:n_space]
        row_outer, row_inner = state.split(out, row, [rows])
        column_outer, column_inner = state.split(out, column, [columns])
        reduction = axes[n_space:]
        state.reorder(out, [*outer, row_outer, column_outer, *reduction, row_inner, column_inner])
        fused = state.fuse(out, [*outer, row_outer])
        state.parallel(out, fused)
        state.unroll(out, row_inner)
        state.vectorize(out, column_inner)
        yield MeasureInput(task, state)


def overhead(task: SearchTask, candidates: int) -> dict[str, Any]:
    """Figures of one task."""
    inputs = list(itertools.islice(itertools.cycle(tiles(task)), candidates))
    measurer = ProgramMeasurer(
        LocalBuilder(), LocalRunner(number=_NUMBER, min_repeat_ms=0, timeout=30)
    )
    measurer.builder.pool.warm_up()
    measurer.runner.pool.warm_up()
    # The first candidate brings the workload to the workers and fills the inputs.
    measurer.measure(inputs[:1])
    start = time.perf_counter()
    programs = measurer.builder.build(inputs)
    built = time.perf_counter()
    results = measurer.runner.run(inputs, programs)
    done = time.perf_counter()
    measurer.close()
    good = [r.mean_cost for r in results if int(r.error_no) == 0]
    timed = sum(good) * (_NUMBER + _UNTIMED_CALLS)
    return {
        "task": str(task.desc),
        "candidates": candidates,
        "failed": candidates - len(good),
        "build_seconds": (built - start) / candidates,
        "run_seconds": (done - built) / candidates,
        "timed_seconds": timed / candidates,
        "overhead_seconds": (done - start - timed) / candidates,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=30, help="per task")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    rows = [overhead(task, options.candidates) for task in (matmul_task(), conv_task())]
    print(f"{'task':22} {'build ms':>9} {'run ms':>9} {'timed ms':>9} {'overhead ms':>12} failed")
    for row in rows:
        figures = [1e3 * row[f"{part}_seconds"] for part in ("build", "run", "timed", "overhead")]
        build, run, timed, above = figures
        print(
            f"{row['task']:22} {build:9.1f} {run:9.1f} {timed:9.1f} {above:12.1f} {row['failed']}"
        )
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
