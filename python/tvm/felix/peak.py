"""What this machine's processor can do at most."""

from __future__ import annotations

import functools
import math
import time

import numpy as np

import tvm
from tvm import te
from tvm.auto_scheduler.machine_gauge import gauge_here
from tvm.target import Target
from tvm.topi import x86

__all__ = ["peak_flops"]

# The columns' panel of so many steps stays in the first cache, with the rows that it is multiplied
# with; so many tiles make a call long beside what calling costs.
_DEPTH = 128
_TILES = 64
# A machine that is shared is slower for a tenth of a second at a time, so it is timed for longer.
_SECONDS = 0.3


@functools.cache
def _core_peak(target: str) -> float:
    """FLOP a second of one core on a product whose operands stay in the first cache."""
    machine = Target(target)
    lanes = int(machine.vector_width) // 32
    tiles = (x86.RegisterTile(rows, 1, 2) for rows in (14, 12, 8, 6, 4))
    tile = next(t for t in tiles if t.registers() <= int(machine.num_vector_registers))
    rows = tile.rows * _TILES
    data = te.placeholder((rows, _DEPTH), name="data")
    weight = te.placeholder((1, _DEPTH, 2 * lanes), name="weight")
    product = x86.matmul_packed(data, weight)
    schedule = x86.schedule_matmul_packed(product, tile, target=machine)
    kernel = tvm.build(schedule, [data, weight, product], machine, name="peak")
    rng = np.random.default_rng(0)
    arrays = [
        tvm.nd.array(rng.random([int(x) for x in tensor.shape]).astype("float32"))
        for tensor in (data, weight, product)
    ]
    timer = kernel.time_evaluator("peak", tvm.cpu(), number=20, repeat=10)
    seconds, end = math.inf, time.monotonic() + _SECONDS
    while time.monotonic() < end:
        seconds = min(seconds, *timer(*arrays).results)
        # By the way: programs are measured next.
        gauge_here.is_calm()
    return 2.0 * rows * _DEPTH * 2 * lanes / seconds


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
