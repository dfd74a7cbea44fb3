"""How much memory functions allocate, with planned storage and without."""

from __future__ import annotations

from tvm import error, tir
from tvm.ir import IRModule, RelayExpr
from tvm.runtime import DataType

from ..expr import Call, DataTypeImm, Function, ShapeExpr
from ..expr_functor import PyExprVisitor, visitor
from ..op import get_op

__all__ = ["estimate_memory_usage"]


def _bytes(shape: RelayExpr, dtype: DataTypeImm) -> int | None:
    """Bytes of a tensor; None if an extent is symbolic."""
    if not isinstance(shape, ShapeExpr):
        raise error.TypeError(
            f"estimate_memory_usage: an allocation has the shape {shape}; only extents can be "
            "counted"
        )
    if not all(isinstance(extent, tir.IntImm) for extent in shape.values):
        return None
    kind = DataType(str(dtype.value))
    count = (int(kind.bits) + 7) // 8 * int(kind.lanes)
    for extent in shape.values:
        count *= int(extent)
    return count


@visitor
class _Allocations(PyExprVisitor):
    def __init__(self) -> None:
        self.tensors: list[int] = []
        self.symbolic = 0
        self.planned: list[int] = []

    def visit_call_(self, op: Call) -> None:
        if op.op.same_as(get_op("builtin.alloc_tensor")):
            size = self._tensor(_bytes(op.args[0], op.args[1]))
            self.planned += [] if size is None else [size]
        elif op.op.same_as(get_op("memory.alloc_tensor")):
            self._tensor(_bytes(op.args[2], op.args[3]))
        elif op.op.same_as(get_op("memory.alloc_storage")):
            size = op.args[0].values[0]
            self.planned += [int(size)] if isinstance(size, tir.IntImm) else []

    def _tensor(self, size: int | None) -> int | None:
        if size is None:
            self.symbolic += 1
        else:
            self.tensors.append(size)
        return size

    def text(self) -> str:
        before, after = sum(self.tensors), sum(self.planned)
        open_sizes = f", and {self.symbolic} dynamic-size allocation(s)" if self.symbolic else ""
        lines = [
            f" * Without memory planning, there are {len(self.tensors)} constant-size memory "
            f"allocation(s) with total size {before / 2**30:.4} GB{open_sizes}.",
            f" * With memory planning, there are {len(self.planned)} constant-size memory "
            f"allocation(s) with total size {after / 2**30:.4} GB.",
            "",
        ]
        if before:
            lines[-1] = f" * Memory planning reduces constant memory size to {after / before:.1%}."
        return "\n".join(lines)


def estimate_memory_usage(mod: IRModule | Function) -> str:
    """A text: what each graph function allocates of tensors, and of planned storage.

    Every allocation counts once, in whichever branch it stands; called functions count for
    themselves. ``memory.alloc_tensor`` and ``memory.alloc_storage`` are what a plan of memory made
    (`transform.StaticPlanBlockMemory`), ``builtin.alloc_tensor`` is memory of its own. GB are
    2 ** 30 bytes.

    Raises
    ------
    TypeError : the shape of an allocation is a variable.
    """
    if isinstance(mod, Function):
        mod = IRModule({"main": mod})
    parts = []
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            found = _Allocations()
            found.visit_expr(func)
            parts.append(f"- Function {gvar.name_hint}:\n{found.text()}\n")
    return "Memory usage estimation:\n" + "".join(parts) if parts else ""
