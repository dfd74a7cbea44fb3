"""Some schedule for programs that nobody scheduled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tvm._ffi
from tvm.ir import IntImm, IRModule
from tvm.ir.transform import Pass, module_pass

from ..expr import IterVar
from ..function import PrimFunc
from ..schedule import BlockRV, Schedule

if TYPE_CHECKING:
    from tvm.target import Target

__all__ = ["DefaultGPUSchedule"]

# More blocks than this wait for each other on any device; one block then does several rounds.
_MOST_BLOCKS = 256


def _innermost_blocks(sch: Schedule, block: BlockRV) -> Iterator[BlockRV]:
    children = sch.get_child_blocks(block)
    if not children:
        yield block
    for child in children:
        yield from _innermost_blocks(sch, child)


def _bind(sch: Schedule, block: BlockRV, threads: int) -> None:
    loops = sch.get_loops(block)
    axes = sch.get(block).iter_vars
    if not loops or len(loops) != len(axes):
        return
    if any(sch.get(loop).thread_binding is not None for loop in loops):
        return
    parallel = [loop for loop, axis in zip(loops, axes) if int(axis.iter_type) == IterVar.DataPar]
    if not parallel:
        return
    fused = sch.fuse(*parallel)
    extent = sch.get(fused).extent
    trips = int(extent) if isinstance(extent, IntImm) else None
    if trips is None or trips > threads * _MOST_BLOCKS:
        rounds, blocks, lanes = sch.split(fused, [None, _MOST_BLOCKS, threads])
        sch.reorder(blocks, lanes, rounds)
    else:
        blocks, lanes = sch.split(fused, [None, min(trips, threads)])
    sch.bind(blocks, "blockIdx.x")
    sch.bind(lanes, "threadIdx.x")


def _wants_schedule(func: Any, current: Target | None) -> Target | None:
    """The target of a program for a graphics processor that has no schedule yet."""
    if not isinstance(func, PrimFunc):
        return None
    attrs = func.attrs or {}
    if attrs.get("tir.is_scheduled", False):
        return None
    target = attrs.get("target", current)
    return target if target is not None and "gpu" in list(target.keys) else None


def DefaultGPUSchedule() -> Pass:
    """Bind the programs for graphics processors that nobody scheduled to threads.

    The spatial loops of each innermost block are fused and shared by blocks and threads; of blocks
    that are bound already, nothing changes. Functions get ``tir.is_scheduled``. The target is that
    of the function, or the current one; functions for other targets stay.
    """

    def run(mod: IRModule, ctx: Any) -> IRModule:
        current = tvm._ffi.get_global_func("target.TargetCurrent")(True)
        functions = {}
        for var, func in mod.functions.items():
            target = _wants_schedule(func, current)
            functions[var] = func if target is None else _scheduled(func, target.max_num_threads)
        return mod.with_functions(functions)

    return module_pass(run, opt_level=0, name="tir.DefaultGPUSchedule")


def _scheduled(func: PrimFunc, threads: int) -> PrimFunc:
    sch = Schedule(IRModule({"main": func}))
    for block in list(_innermost_blocks(sch, sch.get_block("root"))):
        _bind(sch, block, threads)
    return sch.mod["main"].with_attr("tir.is_scheduled", True)
