"""Computations made again with other extents and other numbers in their bodies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from tvm import auto_scheduler, te, tir
from tvm.ir import Range
from tvm.tir.functor import StmtExprMutator

__all__ = ["Body", "Rebuilder", "loops_of"]


def loops_of(operation: te.ComputeOp) -> Iterator[tuple[str, int, tir.IterVar]]:
    """The loops of an operation, each with its kind, "space" or "reduce", and its position."""
    for kind, axes in (("space", operation.axis), ("reduce", operation.reduce_axis)):
        for k, axis in enumerate(axes):
            yield kind, k, axis


class Body(StmtExprMutator):
    """A body that reads tensors of another computation."""

    def __init__(self, rebuilt: Callable[[te.Tensor], te.Tensor]) -> None:
        self._rebuilt = rebuilt

    def visit_producer_load_(self, op: tir.ProducerLoad) -> Any:
        indices = [self.visit_expr(index) for index in op.indices]
        return tir.ProducerLoad(self._rebuilt(op.producer), indices)


class Rebuilder(ABC):
    """Makes operations again, with other extents and other numbers in their bodies."""

    def __init__(self) -> None:
        self._made: dict[te.Operation, te.Operation] = {}

    def run(self, dag: auto_scheduler.ComputeDAG) -> list[te.Tensor]:
        """Inputs and outputs of the rebuilt computation."""
        for operation in dag.ops:
            self._made[operation] = self._make(operation)
        return [self.tensor(tensor) for tensor in dag.tensors]

    def tensor(self, tensor: te.Tensor) -> te.Tensor:
        """A tensor of the rebuilt computation, whose operation is made already."""
        return self._made[tensor.op].output(tensor.value_index)

    @abstractmethod
    def extent(self, operation: te.Operation, kind: str, k: int, extent: Any) -> Any:
        """The new extent of a loop, or of a placeholder's dimension."""

    @abstractmethod
    def body(self, operation: te.ComputeOp) -> Body:
        """What rewrites the bodies of an operation."""

    def attributes(self, operation: te.ComputeOp) -> Any:
        """The new attributes of an operation."""
        return operation.attrs

    def _make(self, operation: te.Operation) -> te.Operation:
        if isinstance(operation, te.PlaceholderOp):
            source = operation.output(0)
            shape = [self.extent(operation, "space", k, n) for k, n in enumerate(source.shape)]
            return te.placeholder(shape, str(source.dtype), str(operation.name)).op
        loops: dict[str, list[tir.IterVar]] = {"space": [], "reduce": []}
        for kind, k, axis in loops_of(operation):
            domain = Range.from_min_extent(
                axis.dom.min, self.extent(operation, kind, k, axis.dom.extent)
            )
            loops[kind].append(tir.IterVar(domain, axis.var, axis.iter_type, axis.thread_tag))
        rewriter = self.body(operation)
        bodies = []
        for body in operation.body:
            if isinstance(body, tir.Reduce):
                body = tir.Reduce(
                    body.combiner,
                    [rewriter.visit_expr(part) for part in body.source],
                    loops["reduce"],
                    rewriter.visit_expr(body.condition),
                    body.value_index,
                    [rewriter.visit_expr(part) for part in body.init],
                )
            else:
                body = rewriter.visit_expr(body)
            bodies.append(body)
        return te._ffi_api.ComputeOp(
            operation.name, operation.tag, self.attributes(operation), loops["space"], bodies
        )
