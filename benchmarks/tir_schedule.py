"""Primitives a second that tir.Schedule applies to a matrix product of three loops.

A schedule of fourteen primitives (tiles, order, first values apart, marks) is applied again and
again to copies of one schedule: from Python, call by call, and as a trace, the way a search does.
Prints one line for each way. Run: ``python benchmarks/tir_schedule.py [--seconds S]``
"""

from __future__ import annotations

import argparse
import time

from tvm import te, tir


def matmul(n: int) -> tir.PrimFunc:
    """C = A @ B of n x n float32 elements."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return te.create_prim_func([A, B, C])


def tile(sch: tir.Schedule) -> None:
    """The loops of a register tile with a parallel outer loop."""
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_0, i_1, i_2 = sch.split(i, [None, 8, 4])
    j_0, j_1, j_2 = sch.split(j, [None, 2, 16])
    k_0, k_1 = sch.split(k, [None, 4])
    sch.reorder(i_0, j_0, i_1, j_1, k_0, k_1, i_2, j_2)
    outer = sch.fuse(i_0, j_0)
    init = sch.decompose_reduction(block, k_0)
    sch.parallel(outer)
    sch.unroll(k_1)
    sch.unroll(i_2)
    sch.vectorize(j_2)
    sch.vectorize(sch.get_loops(init)[-1])


def rate(base: tir.Schedule, apply, seconds: float) -> float:
    """Primitives a second, the best of three measurements."""
    best = 0.0
    for _ in range(3):
        done, start = 0, time.process_time()
        while time.process_time() - start < seconds / 3:
            sch = base.copy()
            apply(sch)
            done += len(sch.trace)
        best = max(best, done / (time.process_time() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each way")
    options = parser.parse_args()
    base = tir.Schedule(matmul(1024), seed=0)
    example = base.copy()
    tile(example)
    trace = example.trace
    calls = rate(base, tile, options.seconds)
    replay = rate(base, lambda sch: trace.apply_to_schedule(sch, False), options.seconds)
    print(f"calls from Python  {calls:10.0f} primitives/s")
    print(f"replay of a trace  {replay:10.0f} primitives/s")


if __name__ == "__main__":
    main()
