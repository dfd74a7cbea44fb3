"""Who reads what among the operations of a program, and what is computed inside of what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.tir import IterVar

from . import _ffi_api
from .tensor import Operation, ScanOp, Tensor

__all__ = ["CreateAttachPath", "CreateReadGraph", "PostDFSOrder", "ScanGetBody"]


def _post_order(
    roots: Sequence[Operation], inputs: Callable[[Operation], Sequence[Tensor]]
) -> list[Operation]:
    """Operations reached from `roots`, what an operation reads before it."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    # The flag says that the inputs of the operation are in the order.
    pending = [(root, False) for root in reversed(roots)]
    while pending:
        op, done = pending.pop()
        if done:
            order.append(op)
        elif op not in seen:
            seen.add(op)
            pending.append((op, True))
            pending.extend((tensor.op, False) for tensor in reversed(inputs(op)))
    return order


def CreateReadGraph(ops: Sequence[Operation]) -> dict[Operation, list[Tensor]]:
    """The tensors that each operation reads, of `ops` and all that they depend on."""
    order = _post_order(list(ops), lambda op: list(op.input_tensors))
    return {op: list(op.input_tensors) for op in order}


def PostDFSOrder(
    roots: Sequence[Operation], graph: Mapping[Operation, Sequence[Tensor]]
) -> list[Operation]:
    """The operations that `roots` depend on in `graph`, each after those that it reads.

    Raises
    ------
    KeyError : an operation is not in the graph.
    """
    return _post_order(list(roots), lambda op: list(graph[op]))


def CreateAttachPath(sch: Any) -> dict[Operation, list[IterVar]]:
    """The loops of other stages that each operation of a Schedule is inside of, innermost first.

    Raises
    ------
    ScheduleError : a stage is attached to what is no loop any more.
    """
    return {stage.op: list(_ffi_api.StageLoopsAround(stage)) for stage in sch.stages}


def ScanGetBody(scan: ScanOp | Tensor) -> list[Operation]:
    """The operations of one step: those between the states and their update, in order."""
    op = scan.op if isinstance(scan, Tensor) else scan
    if not isinstance(op, ScanOp):
        raise TypeError(f"ScanGetBody: expected the operation of a scan, got {type(op).__name__}")
    outside = {tensor.op for tensor in (*op.state_placeholder, *op.inputs)}

    def inputs(reader: Operation) -> list[Tensor]:
        return [] if reader in outside else list(reader.input_tensors)

    body = set(outside)
    steps = []
    for step in _post_order([tensor.op for tensor in op.update], inputs):
        if step not in outside and any(tensor.op in body for tensor in step.input_tensors):
            body.add(step)
            steps.append(step)
    return steps
