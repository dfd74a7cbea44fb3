"""A float32 product of matrices on the GPU against cuBLAS.

    python benchmarks/gpu.py --json gpu.json

Both sides use plain float32 arithmetic (TF32 off) and are timed with CUDA events in this process,
best of several runs. Without a CUDA device the benchmark says so and reports no rows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import tvm
from tvm import te, topi
from tvm.topi.cuda import GemmTile

REPEATS = 10


def cublas_seconds(a: np.ndarray, b: np.ndarray) -> float:
    """Best time of torch.matmul, which calls cuBLAS."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    out = torch.empty(a.shape[0], b.shape[1], device="cuda")
    times = []
    for _ in range(REPEATS + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.matmul(x, y, out=out)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return min(times[2:])


def sgemm(size: int, tile: GemmTile) -> dict[str, Any]:
    """One row: times, their ratio, and what the kernel takes of a multiprocessor."""
    A = te.placeholder((size, size), name="A")
    B = te.placeholder((size, size), name="B")
    C = topi.cuda.matmul(A, B)
    module = tvm.build(topi.cuda.schedule_matmul(C, tile), [A, B, C], target="cuda", name="sgemm")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype="float32") for _ in range(2))
    dev = tvm.cuda(0)
    arrays = [tvm.nd.array(x, dev) for x in (a, b, np.zeros((size, size), "float32"))]
    module["sgemm"](*arrays)
    rows = slice(0, 64)
    np.testing.assert_allclose(arrays[2].numpy()[rows], a[rows] @ b, rtol=1e-3, atol=1e-2)
    ours = module.time_evaluator("sgemm", dev, number=3, repeat=REPEATS)(*arrays).min
    theirs = cublas_seconds(a, b)
    (kernels,) = module.imported_modules
    threads = tile.rows * tile.columns
    resources = tvm.get_global_func("runtime.cuda.KernelResources")(
        kernels, kernels.get_function_list()[0], 0, threads, 0
    )
    return {
        "case": f"sgemm {size}x{size}x{size}",
        "device": dev.device_name,
        "tvm_seconds": ours,
        "cublas_seconds": theirs,
        "ratio": theirs / ours,
        "tvm_tflops": 2 * size**3 / ours * 1e-12,
        "occupancy": int(resources["blocks_per_multiprocessor"]) * threads / 2048,
        **{str(name): int(value) for name, value in resources.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="file to write the rows to")
    parser.add_argument("--size", type=int, default=4096, help="rows and columns of all matrices")
    args = parser.parse_args()
    rows = []
    if tvm.cuda(0).exist:
        rows = [sgemm(args.size, GemmTile())]
        for row in rows:
            print(
                f"{row['case']} on {row['device']}: {row['tvm_seconds'] * 1e3:.3f} ms "
                f"({row['tvm_tflops']:.1f} TFLOP/s), cuBLAS {row['cublas_seconds'] * 1e3:.3f} ms, "
                f"ratio {row['ratio']:.2f}; {row['registers']} registers a thread, "
                f"{row['shared_bytes']} bytes of shared memory, {row['local_bytes']} spilled, "
                f"occupancy {row['occupancy']:.0%}"
            )
    else:
        print("no CUDA device: nothing is measured")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
