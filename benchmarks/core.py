"""Speed of hand-scheduled kernels against PyTorch, interleaved in one process.

Each case reports GFLOP/s of ours and of the fastest way PyTorch offers (contiguous, channels-last,
or weights packed for oneDNN), and their ratio. The figures are best of many short bursts taken in
turns, so that a change of the machine's clock or load meets both alike.

    python benchmarks/core.py --threads 1 --json core.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BURST_SECONDS = 0.02


@dataclass(frozen=True)
class Case:
    """One kernel. `size` is what its kind says: see `prepare`."""

    name: str
    kind: str
    size: tuple[int, ...]
    tiles: tuple[tuple[int, int, int, int], ...]


# A tile is rows, columns, vectors, prefetch distance; the best of a case's tiles counts.
CASES = (
    Case("conv3x3 64 56", "conv", (56, 64, 64, 3, 1), ((3, 2, 2, 0), (2, 3, 2, 0))),
    Case("conv3x3 128 28", "conv", (28, 128, 128, 3, 1), ((3, 2, 2, 0), (2, 2, 2, 0))),
    Case("conv3x3 256 14", "conv", (14, 256, 256, 3, 1), ((3, 2, 2, 0), (3, 2, 2, 16))),
    Case("conv3x3 512 7", "conv", (7, 512, 512, 3, 1), ((1, 4, 2, 16), (2, 3, 2, 32))),
    Case("conv1x1 256-64 56", "conv", (56, 256, 64, 1, 1), ((3, 2, 2, 0), (2, 2, 2, 0))),
    Case("conv1x1 512-2048 7", "conv", (7, 512, 2048, 1, 1), ((1, 4, 2, 16), (2, 2, 2, 16))),
    Case("conv7x7 s2 3-64 224", "conv", (224, 3, 64, 7, 2), ((1, 6, 2, 0), (1, 4, 2, 0))),
    Case("depthwise 144 56", "depthwise", (56, 144, 1), ((2, 4, 1, 0), (1, 4, 1, 0))),
    Case("depthwise s2 144 56", "depthwise", (56, 144, 2), ((1, 4, 1, 0), (1, 2, 1, 0))),
    Case("matmul 1024", "matmul", (1024, 1024, 1024), ((6, 1, 2, 16), (4, 1, 3, 0))),
    Case("dense 128-768-3072", "matmul", (128, 768, 3072), ((6, 1, 2, 8), (4, 1, 3, 0))),
)


def best_seconds(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Shortest time of each function over `rounds` bursts, the functions taking turns."""
    best: dict[str, float] = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            function()
            until = time.perf_counter() + BURST_SECONDS
            while True:
                start = time.perf_counter()
                function()
                end = time.perf_counter()
                best[name] = min(best[name], end - start)
                if end > until:
                    break
    return best


def convolution(case: Case, target: Any) -> tuple[float, dict[str, Any], dict[str, Any]]:
    """FLOP, our kernels and PyTorch's; size is (height, in, out, kernel, stride)."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    import tvm
    from tvm import te
    from tvm.topi import x86

    depthwise = case.kind == "depthwise"
    if depthwise:
        height, inputs, stride = case.size
        outputs, kernel, groups = inputs, 3, inputs
    else:
        height, inputs, outputs, kernel, stride = case.size
        groups = 1
    pad = kernel // 2
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, height, height, inputs)).astype("float32")
    weight = rng.standard_normal((kernel, kernel, inputs // groups, outputs)).astype("float32")

    nchw = torch.tensor(data).permute(0, 3, 1, 2).contiguous()
    filters = torch.tensor(weight).permute(3, 2, 0, 1).contiguous()
    options = {"padding": pad, "stride": stride, "groups": groups}
    expected = F.conv2d(nchw, filters, **options).permute(0, 2, 3, 1).contiguous().numpy()
    last = nchw.contiguous(memory_format=torch.channels_last)
    filters_last = filters.contiguous(memory_format=torch.channels_last)
    packed = torch.ops.mkldnn._reorder_convolution_weight(
        filters, [pad] * 2, [stride] * 2, [1, 1], groups, list(nchw.shape)
    )
    theirs = {
        "contiguous": lambda: F.conv2d(nchw, filters, **options),
        "channels_last": lambda: F.conv2d(last, filters_last, **options),
        "packed": lambda: torch.ops.mkldnn._convolution_pointwise(
            last, packed, None, [pad] * 2, [stride] * 2, [1, 1], groups, "none", [], ""
        ),
    }

    ours = {}
    for numbers in case.tiles:
        tile = x86.RegisterTile(*numbers)
        A = te.placeholder(data.shape, name="A")
        if depthwise:
            packed_weight = np.ascontiguousarray(weight[:, :, 0])
            W = te.placeholder(packed_weight.shape, name="W")
            C = x86.depthwise_conv2d_nhwc_packed(A, W, stride, pad)
            schedule = x86.schedule_depthwise_conv2d_nhwc_packed(C, tile, target=target)
        else:
            block = tile.vectors * target.vector_width // 32
            packed_weight = x86.pack_conv2d_weight(weight, block)
            W = te.placeholder(packed_weight.shape, name="W")
            C = x86.conv2d_nhwc_packed(A, W, stride, pad)
            schedule = x86.schedule_conv2d_nhwc_packed(C, tile, target=target)
        kernel_function = tvm.build(schedule, [A, W, C], target, name="kernel")["kernel"]
        width = int(C.shape[-1])
        ours[str(numbers)] = checked(kernel_function, (data, packed_weight), expected, width)
    flop = 2 * expected.size * kernel * kernel * inputs // groups
    return flop, ours, theirs


def product(case: Case, target: Any) -> tuple[float, dict[str, Any], dict[str, Any]]:
    """FLOP, our kernels and PyTorch's; size is (rows, depth, columns)."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    import tvm
    from tvm import te
    from tvm.topi import x86

    rows, depth, columns = case.size
    rng = np.random.default_rng(0)
    data = rng.standard_normal((rows, depth)).astype("float32")
    weight = rng.standard_normal((depth, columns)).astype("float32")
    x, w = torch.tensor(data), torch.tensor(weight)
    transposed = w.t().contiguous()
    packed = torch.ops.mkldnn._reorder_linear_weight(transposed, rows)
    theirs = {
        "matmul": lambda: x @ w,
        "linear": lambda: F.linear(x, transposed),
        "packed": lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], ""),
    }
    ours = {}
    for numbers in case.tiles:
        tile = x86.RegisterTile(*numbers)
        block = tile.vectors * target.vector_width // 32
        packed_weight = x86.pack_matmul_weight(weight, block)
        A = te.placeholder(data.shape, name="A")
        W = te.placeholder(packed_weight.shape, name="W")
        C = x86.matmul_packed(A, W)
        schedule = x86.schedule_matmul_packed(C, tile, target=target)
        kernel_function = tvm.build(schedule, [A, W, C], target, name="kernel")["kernel"]
        width = int(C.shape[-1])
        ours[str(numbers)] = checked(kernel_function, (data, packed_weight), (x @ w).numpy(), width)
    return 2 * rows * depth * columns, ours, theirs


def checked(function: Any, inputs: Sequence[Any], expected: Any, width: int) -> Callable[[], None]:
    """A call of the kernel on arrays of its own, after one run that is compared.

    `width` is the result's last extent: channels come in whole panels, those past the end are zero.
    """
    import numpy as np

    import tvm

    arguments = [tvm.nd.array(array) for array in inputs]
    result = tvm.nd.empty((*expected.shape[:-1], width), "float32")
    function(*arguments, result)
    got = result.numpy()[..., : expected.shape[-1]]
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=5e-3)
    return lambda: function(*arguments, result)


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """One row of the table."""
    import torch

    import tvm

    target = tvm.target.Target("llvm")
    build = product if case.kind == "matmul" else convolution
    flop, ours, theirs = build(case, target)
    with torch.no_grad():
        seconds = best_seconds({**ours, **theirs}, rounds)
    our_name = min(ours, key=seconds.__getitem__)
    their_name = min(theirs, key=seconds.__getitem__)
    return {
        **asdict(case),
        "threads": torch.get_num_threads(),
        "tile": our_name,
        "torch_path": their_name,
        "ours_gflops": flop / seconds[our_name] / 1e9,
        "torch_gflops": flop / seconds[their_name] / 1e9,
        "ratio": seconds[their_name] / seconds[our_name],
    }


def run(threads: int, rounds: int, only: str) -> list[dict[str, Any]]:
    """All cases whose name contains `only`, on one thread count."""
    import torch

    torch.set_num_threads(threads)
    rows = []
    for case in CASES:
        if only not in case.name:
            continue
        row = measure(case, rounds)
        rows.append(row)
        print(
            f"{row['name']:<22}{threads:>3}{row['ours_gflops']:>9.1f}{row['torch_gflops']:>9.1f}"
            f"{row['ratio']:>7.2f}  {row['tile']:<14}{row['torch_path']}",
            flush=True,
        )
    return rows


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=8, help="bursts per kernel")
    parser.add_argument("--only", default="", help="run cases whose name contains this")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        rows = run(options.threads[0], options.rounds, options.only)
        options.json.write_text(json.dumps(rows, indent=2))
        return
    print(f"{'case':<22}{'thr':>3}{'ours':>9}{'torch':>9}{'ratio':>7}  tile          torch by")
    rows = []
    for threads in options.threads:
        # The size of the thread pool is fixed when a process starts, so each count has its own.
        part = (options.json or Path("core.json")).with_suffix(f".{threads}.json")
        command = [sys.executable, __file__, "--worker", "--threads", str(threads)]
        command += ["--rounds", str(options.rounds), "--only", options.only, "--json", str(part)]
        subprocess.run(command, check=True, env={**os.environ, "TVM_NUM_THREADS": str(threads)})
        rows += json.loads(part.read_text())
        part.unlink()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
