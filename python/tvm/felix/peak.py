"""What this machine's processor can do at most."""

from __future__ import annotations

import functools
import math

import numpy as np

import tvm
from tvm import te
from tvm.target import Target
from tvm.topi import x86

__all__ = ["peak_flops"]

_DEPTH = 512
_REPEATS = 40


@functools.cache
def _core_peak(target: str) -> float:
    """FLOP a second of one core on a product whose operands stay in the first cache."""
    machine = Target(target)
    lanes = int(machine.vector_width) // 32
    tiles = (x86.RegisterTile(rows, 1, 2) for rows in (14, 12, 8, 6, 4))
    tile = next(t for t in tiles if t.registers() <= int(machine.num_vector_registers))
    data = te.placeholder((tile.rows, _DEPTH), name="data")
    weight = te.placeholder((1, _DEPTH, 2 * lanes), name="weight")
    product = x86.matmul_packed(data, weight)
    schedule = x86.schedule_matmul_packed(product, tile, target=machine)
    kernel = tvm.build(schedule, [data, weight, product], machine, name="peak")
    rng = np.random.default_rng(0)
    arrays = [
        tvm.nd.array(rng.random([int(x) for x in tensor.shape]).astype("float32"))
        for tensor in (data, weight, product)
    ]
    timed = kernel.time_evaluator("peak", tvm.cpu(), number=20, repeat=_REPEATS)(*arrays)
    return 2.0 * tile.rows * _DEPTH * 2 * lanes / min(timed.results)


def peak_flops(target: Target) -> float:
    """FLOP a second in float32 that no program for the target can exceed.

    It is timed once a process, by a product in registers, with a tenth for what that leaves unused;
    infinite for targets that cannot be timed here.
    """
    here = Target("llvm").with_machine()
    if str(target.kind.name) != "llvm" or not target.is_same_machine(here):
        return math.inf
    # Work is divided among the cores of the target, whose number may be an option of it. However
    # the machine is written, it is timed once.
    return 1.1 * int(target.num_cores) * _core_peak(str(here))
