"""A schedule for computations that nobody tuned: correct on every input, simple, parallel."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import DataType, te
from tvm.target import Target

from .. import tag
from ..utils import as_int, get_const_tuple, is_constant, prod

__all__ = ["default_schedule"]

# Below this many elements, starting the threads takes longer than the work.
_PARALLEL_ELEMENTS = 2048


def _readers(outputs: Sequence[te.Tensor]) -> dict[te.Operation, list[te.Operation]]:
    """Operations that read each operation, in no particular order."""
    readers: dict[te.Operation, list[te.Operation]] = {}
    pending = [tensor.op for tensor in outputs]
    seen: set[te.Operation] = set()
    while pending:
        operation = pending.pop()
        if operation in seen or isinstance(operation, te.PlaceholderOp):
            continue
        seen.add(operation)
        readers.setdefault(operation, [])
        for tensor in operation.input_tensors:
            readers.setdefault(tensor.op, []).append(operation)
            pending.append(tensor.op)
    return readers


def _is_plain(operation: te.Operation) -> bool:
    """Whether a computation can be substituted into it: it has a body, and does not reduce."""
    return isinstance(operation, te.ComputeOp) and len(operation.reduce_axis) == 0


def default_schedule(
    outs: te.Tensor | Sequence[te.Tensor], target: Target | str | None = None
) -> te.Schedule:
    """A schedule that needs no tuning, for processors.

    A stage that is not a reduction and that only such stages read is substituted where it is read.
    The other stages are loop nests of their own: parallel over the outer loops, and vectorised
    along the last dimension unless they reduce.

    Parameters
    ----------
    outs : the results of the computation.
    target : its ``vector_width`` gives the number of lanes; by default the current one, or llvm.
    """
    outputs = [outs] if isinstance(outs, te.Tensor) else list(outs)
    if not isinstance(target, Target):
        target = Target(target) if target else Target.current() or Target("llvm")
    schedule = te.create_schedule([tensor.op for tensor in outputs])
    finals = {tensor.op for tensor in outputs}
    for operation, users in _readers(outputs).items():
        if not isinstance(operation, te.ComputeOp):
            continue
        stage = schedule[operation]
        injective = tag.is_injective(str(operation.tag)) and _is_plain(operation)
        if injective and operation not in finals and all(_is_plain(u) for u in users):
            stage.compute_inline()
        else:
            _shape_loops(stage, operation, _vector_lanes(target, operation))
    return schedule


def _vector_lanes(target: Target, operation: te.Operation) -> int:
    return max(1, target.vector_width // DataType(operation.output(0).dtype).bits)


def _shape_loops(stage: te.Stage, operation: te.Operation, lanes: int) -> None:
    axes = list(operation.axis)
    if not axes:
        return
    extents = get_const_tuple(axis.dom.extent for axis in axes)
    reduces = not _is_plain(operation)
    # The end of a row of open size is a loop of its own.
    divides = not is_constant(extents[-1]) or as_int(extents[-1]) % lanes == 0
    if not reduces and divides and lanes > 1:
        axes[-1], inner = stage.split(axes[-1], factor=lanes)
        stage.vectorize(inner)
    # A reduction keeps its last loop apart, so that consecutive results are made by one thread.
    outer = axes[:-1] if reduces and len(axes) > 1 else axes
    fused = stage.fuse(*outer) if len(outer) > 1 else outer[0]
    elements = prod(extents)
    if reduces or not is_constant(elements) or elements >= _PARALLEL_ELEMENTS:
        stage.parallel(fused)
