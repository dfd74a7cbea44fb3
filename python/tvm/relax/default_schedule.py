"""Schedules for computations that nobody tuned: correct on every input, simple, parallel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tvm
from tvm import te, tir
from tvm.driver import schedule_to_module
from tvm.target import Target
from tvm.topi import tag

__all__ = ["default_prim_func", "default_schedule"]

# Below this many elements, starting the threads takes longer than the work.
_PARALLEL_ELEMENTS = 2048


def _is_reduction(operation: te.Operation) -> bool:
    return len(operation.reduce_axis) > 0


def _readers(outputs: Sequence[te.Tensor]) -> dict[te.Operation, list[te.Operation]]:
    """Computations that read each computation, in no particular order."""
    readers: dict[te.Operation, list[te.Operation]] = {}
    pending = [tensor.op for tensor in outputs]
    seen: set[te.Operation] = set()
    while pending:
        operation = pending.pop()
        if operation in seen or not isinstance(operation, te.ComputeOp):
            continue
        seen.add(operation)
        readers.setdefault(operation, [])
        for tensor in operation.input_tensors:
            readers.setdefault(tensor.op, []).append(operation)
            pending.append(tensor.op)
    return readers


def default_schedule(outputs: Sequence[te.Tensor], target: Target | str = "llvm") -> te.Schedule:
    """A schedule that needs no tuning.

    A stage that is not a reduction and that only such stages read is substituted where it is read.
    The other stages are loop nests of their own: parallel over the outer loops, and vectorised
    along the last dimension unless they reduce.

    Parameters
    ----------
    outputs : the results of the computation.
    target : its ``vector_width`` gives the number of lanes.
    """
    target = target if isinstance(target, Target) else Target(target)
    schedule = te.create_schedule([tensor.op for tensor in outputs])
    finals = {tensor.op for tensor in outputs}
    for operation, users in _readers(outputs).items():
        if not isinstance(operation, te.ComputeOp):
            continue
        stage = schedule[operation]
        injective = tag.is_injective(str(operation.tag)) and not _is_reduction(operation)
        if injective and operation not in finals and not any(_is_reduction(u) for u in users):
            stage.compute_inline()
        else:
            _shape_loops(stage, operation, _vector_lanes(target, operation))
    return schedule


def _vector_lanes(target: Target, operation: te.Operation) -> int:
    bits = int(target.attrs.get("vector_width", 128))
    return max(1, bits // tvm.DataType(operation.output(0).dtype).bits)


def _shape_loops(stage: te.Stage, operation: te.Operation, lanes: int) -> None:
    axes = list(operation.axis)
    if not axes:
        return
    extents = [int(axis.dom.extent) for axis in axes]
    if not _is_reduction(operation) and extents[-1] % lanes == 0 and lanes > 1:
        axes[-1], inner = stage.split(axes[-1], factor=lanes)
        stage.vectorize(inner)
    # A reduction keeps its last loop apart, so that consecutive results are made by one thread.
    outer = axes[:-1] if _is_reduction(operation) and len(axes) > 1 else axes
    fused = stage.fuse(*outer) if len(outer) > 1 else outer[0]
    if math.prod(extents) >= _PARALLEL_ELEMENTS or _is_reduction(operation):
        stage.parallel(fused)


def default_prim_func(
    inputs: Sequence[te.Tensor],
    outputs: Sequence[te.Tensor],
    name: str,
    target: Target | str = "llvm",
) -> tir.PrimFunc:
    """The computation as a function of inputs, then outputs, under the default schedule.

    It is not lowered yet; the build does that.
    """
    schedule = default_schedule(outputs, target)
    return schedule_to_module(schedule, [*inputs, *outputs], name=name)[name]
