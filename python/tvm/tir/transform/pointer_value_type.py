"""Memory of vectors, where all of it is accessed in vectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvm.arith import Analyzer
from tvm.ir import IntImm, PointerType, PrimExpr, PrimType
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..buffer import Buffer
from ..buffer_mutator import BufferMutator
from ..function import PrimFunc
from ..functor import StmtExprVisitor
from ..op import floordiv, floormod
from .function_pass import prim_func_pass

__all__ = ["PointerValueTypeRewrite"]


@dataclass
class _Use:
    """How a program accesses the memory behind one pointer."""

    lanes: set[int] = field(default_factory=set)
    # Where vectors begin, and single elements that are read.
    bases: list[PrimExpr] = field(default_factory=list)
    reads: list[PrimExpr] = field(default_factory=list)
    sizes: list[PrimExpr] = field(default_factory=list)
    dtypes: set[str] = field(default_factory=set)
    other: bool = False

    def vector_lanes(self) -> int:
        """Lanes of all accesses; 1 if the memory has to stay one of single elements."""
        if self.other or len(self.lanes) != 1 or len(self.dtypes) != 1:
            return 1
        (lanes,) = self.lanes
        analyzer = Analyzer()

        def digit(value: PrimExpr) -> PrimExpr:
            return analyzer.simplify(floormod(value, lanes))

        whole = all(
            isinstance(digit(value), IntImm) and digit(value).value == 0
            for value in (*self.bases, *self.sizes)
        )
        # The lane that is read has to be known.
        known = all(isinstance(digit(value), IntImm) for value in self.reads)
        return lanes if whole and known else 1


class _Uses(StmtExprVisitor):
    def __init__(self) -> None:
        self.by_data: dict[expr.Var, _Use] = {}

    def of(self, data: expr.Var) -> _Use:
        return self.by_data.setdefault(data, _Use())

    def _access(self, buffer: Buffer, indices: Any, store: bool) -> None:
        use = self.of(buffer.data)
        use.dtypes.add(str(buffer.dtype))
        if len(indices) != 1 or len(buffer.shape) != 1 or "x" in str(buffer.dtype):
            use.other = True
            return
        use.sizes.append(buffer.shape[0])
        (index,) = indices
        if isinstance(index, expr.Ramp):
            stride = index.stride
            use.other = use.other or not (isinstance(stride, IntImm) and stride.value == 1)
            use.lanes.add(int(index.lanes))
            use.bases.append(index.base)
        elif store or "x" in str(index.dtype):
            use.other = True
        else:
            use.reads.append(index)

    def visit_buffer_load_(self, op: expr.BufferLoad) -> None:
        self._access(op.buffer, op.indices, False)
        self._visit_below(op)

    def visit_buffer_store_(self, op: stmt.BufferStore) -> None:
        self._access(op.buffer, op.indices, True)
        self._visit_below(op)

    def visit_allocate_(self, op: stmt.Allocate) -> None:
        use = self.of(op.buffer_var)
        use.dtypes.add(str(op.dtype))
        use.sizes.extend(op.extents)
        use.other = use.other or len(op.extents) != 1
        self._visit_below(op)

    def visit_allocate_const_(self, op: stmt.AllocateConst) -> None:
        # Its data are single elements.
        self.of(op.buffer_var).other = True
        self._visit_below(op)

    def visit_call_(self, op: expr.Call) -> None:
        if getattr(op.op, "name", "") == "tir.address_of":
            self.of(op.args[0].buffer.data).other = True
        self._visit_below(op)

    def visit_var_(self, op: expr.Var) -> None:
        if str(op.dtype) == "handle":
            self.of(op).other = True


class _Vectorized(BufferMutator):
    def __init__(self, lanes: dict[expr.Var, int]) -> None:
        super().__init__()
        self._lanes = lanes
        self._analyzer = Analyzer()

    def bind_var(self, var: expr.Var) -> expr.Var:
        if var not in self._lanes:
            return var
        pointer = var.type_annotation
        element = PrimType(f"{pointer.element_type.dtype}x{self._lanes[var]}")
        return expr.Var(var.name, PointerType(element, pointer.storage_scope))

    def map_buffer(self, buffer: Buffer) -> Buffer:
        if buffer.data not in self._lanes:
            return super().map_buffer(buffer)
        lanes = self._lanes[buffer.data]
        if buffer.data not in self._vars:
            self.bound(buffer.data)
        return Buffer(
            self.visit(buffer.data),
            f"{buffer.dtype}x{lanes}",
            [self._count(buffer.shape[0], lanes)],
            [],
            self._count(buffer.elem_offset, lanes),
            buffer.name,
            buffer.data_alignment,
            buffer.offset_factor,
            buffer.axis_separators,
        )

    def _count(self, elements: PrimExpr, lanes: int) -> PrimExpr:
        return self._analyzer.simplify(floordiv(self.visit(elements), lanes))

    def _index(self, index: PrimExpr, lanes: int) -> PrimExpr:
        return self._count(index.base if isinstance(index, expr.Ramp) else index, lanes)

    def visit_buffer_load_(self, op: expr.BufferLoad) -> PrimExpr:
        lanes = self._lanes.get(op.buffer.data, 1)
        if lanes == 1:
            return super().visit_buffer_load_(op)
        (index,) = op.indices
        vector = expr.BufferLoad(self.buffer(op.buffer), [self._index(index, lanes)])
        if isinstance(index, expr.Ramp):
            return vector
        return expr.Shuffle([vector], [self._analyzer.simplify(floormod(index, lanes))])

    def visit_buffer_store_(self, op: stmt.BufferStore) -> stmt.Stmt:
        lanes = self._lanes.get(op.buffer.data, 1)
        if lanes == 1:
            return super().visit_buffer_store_(op)
        index = self._index(op.indices[0], lanes)
        return stmt.BufferStore(self.buffer(op.buffer), self.visit(op.value), [index])

    def visit_allocate_(self, op: stmt.Allocate) -> stmt.Stmt:
        lanes = self._lanes.get(op.buffer_var, 1)
        if lanes == 1:
            return super().visit_allocate_(op)
        extents = [self._count(extent, lanes) for extent in op.extents]
        condition = self.visit(op.condition)
        var = self.bound(op.buffer_var)
        return stmt.Allocate(
            var, f"{op.dtype}x{lanes}", extents, condition, self.visit(op.body), op.annotations
        )


def PointerValueTypeRewrite() -> Pass:
    """Make memory that is only accessed in vectors of one width memory of such vectors.

    For flat programs. Parameters change as well, so it belongs behind ``MakePackedAPI``, or to
    functions that nothing calls by the old types. Single elements that are read are picked from
    their vector (``T.Shuffle``) if it is known which lane they are.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        uses = _Uses()
        uses.visit(func.body)
        for buffer in func.buffer_map.values():
            uses.of(buffer.data).sizes.extend(buffer.shape)
        lanes = {data: use.vector_lanes() for data, use in uses.by_data.items()}
        lanes = {data: count for data, count in lanes.items() if count > 1}
        return _Vectorized(lanes).function(func) if lanes else func

    return prim_func_pass(run, opt_level=0, name="tir.PointerValueTypeRewrite")
