"""Which dimensions of a kernel's parameters can be divided among devices together.

A loop that is divided divides every dimension that it walks along, so dimensions and axes of blocks
form groups. Nothing is assumed of what a kernel computes: an axis whose value matters for more than
the place of an element cannot be divided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import arith, error, tir
from tvm.ir import PrimExpr, Range
from tvm.tir.buffer_mutator import BufferMutator
from tvm.tir.stmt_functor import StmtExprVisitor, renew_defs

__all__ = ["AxisGroup", "KernelAxes"]

_REDUCE = int(tir.IterVar.CommReduce)
_KINDS = {tir.Add: "sum", tir.Mul: "prod", tir.Min: "min", tir.Max: "max"}


@dataclass
class AxisGroup:
    """Dimensions that are divided together.

    Parameters
    ----------
    dims : (position of the buffer parameter, dimension).
    whole : why the group cannot be divided; empty if it can.
    partial : for buffer parameters that each part of the group has a partial result of, how these
        are combined: "sum", "prod", "min" or "max".
    grain : parts are a multiple of this many iterations.
    extents : iterations of the axes, of which parts are equal.
    """

    dims: set[tuple[int, int]] = field(default_factory=set)
    whole: str = ""
    partial: dict[int, str] = field(default_factory=dict)
    grain: int = 1
    extents: list[PrimExpr] = field(default_factory=list)

    def why_not(self, parts: int) -> str:
        """Why the group cannot be divided into equal parts; empty if it can."""
        if self.whole:
            return self.whole
        for extent in self.extents:
            count = extent.value if isinstance(extent, tir.IntImm) else None
            if count is None:
                return f"the extent {extent} is not known to be a multiple of {parts}"
            if count % (parts * self.grain):
                steps = f" steps of {self.grain}" if self.grain > 1 else ""
                return f"an extent of {count} is no multiple of {parts}{steps}"
        return ""


class KernelAxes(StmtExprVisitor):
    """The groups of a function of blocks.

    Raises
    ------
    ValueError : the function has loads or stores outside of blocks.
    """

    def __init__(self, func: tir.PrimFunc) -> None:
        self.func = func
        self.buffers: list[tir.Buffer] = [
            func.buffer_map[param] for param in func.params if param in func.buffer_map
        ]
        self._parent: dict[Any, Any] = {}
        self._notes: dict[Any, AxisGroup] = {}
        self._block: tir.Block | None = None
        self._axes: dict[tir.Var, tir.IterVar] = {}
        self._readers: dict[tir.Buffer, int] = {}
        self._extents_of_loops: dict[tir.Var, PrimExpr] = {}
        self._partial: list[tuple[tir.Var, tir.Buffer, str]] = []
        self._analyzer = arith.Analyzer()
        self.visit(func.body)
        for axis, buffer, kind in self._partial:
            self._note_partial(axis, buffer, kind)

    # ---- groups ----

    def _root(self, key: Any) -> Any:
        self._parent.setdefault(key, key)
        while self._parent[key] != key:
            key = self._parent[key]
        return key

    def _note(self, key: Any) -> AxisGroup:
        return self._notes.setdefault(self._root(key), AxisGroup())

    def _join(self, a: Any, b: Any) -> None:
        a, b = self._root(a), self._root(b)
        if a == b:
            return
        gone = self._notes.pop(b, AxisGroup())
        self._parent[b] = a
        note = self._note(a)
        note.whole = note.whole or gone.whole
        note.grain = math.lcm(note.grain, gone.grain)
        note.extents += gone.extents

    def _keep_whole(self, key: Any, reason: str) -> None:
        note = self._note(key)
        note.whole = note.whole or reason

    def groups(self) -> list[AxisGroup]:
        """All groups that have dimensions of parameters."""
        found: dict[Any, AxisGroup] = {}
        for position, buffer in enumerate(self.buffers):
            for dim in range(len(buffer.shape)):
                root = self._root((buffer, dim))
                group = found.setdefault(root, self._note(root))
                group.dims.add((position, dim))
        return list(found.values())

    # ---- what is divided with what ----

    def visit_for_(self, op: tir.For) -> None:
        self._extents_of_loops[op.loop_var] = op.extent
        self.visit(op.body)

    def visit_block_realize_(self, op: tir.BlockRealize) -> None:
        block = op.block
        if not block.iter_vars and self._block is None:
            self.visit(block.body)
            return
        if self._block is not None:
            raise error.ValueError(
                f"relax.distributed: block {block.name_hint} stands in another one; kernels are "
                "made local before they are scheduled"
            )
        for axis, value in zip(block.iter_vars, op.iter_values):
            self._axes[axis.var] = axis
            self._note(axis.var).extents.append(axis.dom.extent)
            self._analyzer.bind(axis.var, axis.dom)
            loop = self._extents_of_loops.get(value) if isinstance(value, tir.Var) else None
            if loop is None or not self._analyzer.can_prove_equal(loop, axis.dom.extent):
                self._keep_whole(axis.var, f"axis {axis.var} is not one loop")
            elif isinstance(value, tir.Var):
                self._join(axis.var, value)
        self._whole_in(op.predicate, "a predicate")
        self._block = block
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        self._block = None
        self._find_partial(block)

    def _find_partial(self, block: tir.Block) -> None:
        reduced = [axis.var for axis in block.iter_vars if int(axis.iter_type) == _REDUCE]
        if not reduced:
            return
        store = block.body
        kind = _KINDS.get(type(store.value)) if isinstance(store, tir.BufferStore) else None
        for var in reduced:
            if kind is None:
                self._keep_whole(var, f"block {block.name_hint} reduces in a way of its own")
            else:
                self._partial.append((var, store.buffer, kind))

    def _note_partial(self, axis: tir.Var, buffer: tir.Buffer, kind: str) -> None:
        position = next((i for i, each in enumerate(self.buffers) if each.same_as(buffer)), None)
        # A reduction reads what it adds to.
        if position is None or self._readers.get(buffer, 0) > 1:
            self._keep_whole(axis, f"{buffer.name} is needed whole by what follows in the kernel")
        else:
            self._note(axis).partial[position] = kind

    def visit_buffer_load_(self, op: tir.BufferLoad) -> None:
        self._readers[op.buffer] = self._readers.get(op.buffer, 0) + 1
        self._access(op.buffer, op.indices)

    def visit_buffer_store_(self, op: tir.BufferStore) -> None:
        self._access(op.buffer, op.indices)
        self.visit(op.value)

    def visit_var_(self, op: tir.Var) -> None:
        if op in self._axes:
            self._keep_whole(op, f"the value of axis {op} matters")

    def _whole_in(self, value: PrimExpr, where: str) -> None:
        for var in tir.analysis.undefined_vars(value):
            if var in self._axes:
                self._keep_whole(var, f"axis {var} stands in {where}")

    def _access(self, buffer: tir.Buffer, indices: Sequence[PrimExpr]) -> None:
        if self._block is None:
            raise error.ValueError(
                f"relax.distributed: {buffer.name} is accessed outside of blocks; kernels are made "
                "local before they are lowered"
            )
        for dim, index in enumerate(indices):
            self._place((buffer, dim), buffer.shape[dim], self._analyzer.simplify(index))

    def _place(self, key: Any, extent: PrimExpr, index: PrimExpr) -> None:
        """One index of an access: which axis is divided when the dimension is."""
        if isinstance(index, tir.Var) and index in self._axes:
            self._joined(key, index, extent, 1, 1)
            return
        inner, grain = self._digit(index)
        if inner is not None:
            # The places within each part of an axis: each part has all of them.
            self._keep_whole(key, f"each part of axis {inner} needs all of it")
            self._note(inner).grain = math.lcm(self._note(inner).grain, grain)
            return
        outer, times, rest = self._outermost(index, extent)
        if outer is None:
            self._keep_whole(key, f"it is accessed at {index}")
            self.visit(index)
            return
        if isinstance(index, tir.FloorDiv):
            self._joined(key, outer, extent, 1, times)
            return
        self._joined(key, outer, extent, times, 1)
        for var in rest:
            self._keep_whole(var, f"axis {var} is within a part of another one, {index}")

    def _joined(self, key: Any, var: tir.Var, extent: PrimExpr, times: int, over: int) -> None:
        """A dimension of which an element belongs to `over` steps of an axis, or `times` to one."""
        steps = self._axes[var].dom.extent
        if not self._analyzer.can_prove_equal(extent * over, steps * times):
            self._keep_whole(key, f"axis {var} does not walk along all of it")
            self._keep_whole(var, f"axis {var} walks along a part of a dimension")
            return
        self._join(key, var)
        note = self._note(var)
        note.grain = math.lcm(note.grain, over)

    def _digit(self, index: PrimExpr) -> tuple[tir.Var | None, int]:
        """``v`` and ``c`` of ``v % c`` or ``v % c // d``."""
        if isinstance(index, tir.FloorDiv) and isinstance(index.b, tir.IntImm):
            index = index.a
        if (
            isinstance(index, tir.FloorMod)
            and isinstance(index.b, tir.IntImm)
            and isinstance(index.a, tir.Var)
            and index.a in self._axes
        ):
            return index.a, index.b.value
        return None, 1

    def _outermost(
        self, index: PrimExpr, extent: PrimExpr
    ) -> tuple[tir.Var | None, int, list[tir.Var]]:
        """``v`` and ``c`` of ``v // c``, or of ``v * c + rest`` with a rest below ``c``."""
        if (
            isinstance(index, tir.FloorDiv)
            and isinstance(index.a, tir.Var)
            and isinstance(index.b, tir.IntImm)
            and index.a in self._axes
        ):
            return index.a, index.b.value, []
        used = [var for var in tir.analysis.undefined_vars(index) if var in self._axes]
        for var in used:
            found = arith.detect_linear_equation(index, [var])
            if len(found) != 2 or not isinstance(found[0], tir.IntImm) or found[0].value < 1:
                continue
            times, rest = found[0].value, found[1]
            bound = self._analyzer.const_int_bound(rest)
            if bound.min_value >= 0 and bound.max_value < times:
                return var, times, [other for other in used if not other.same_as(var)]
        return None, 1, []

    # ---- the part of a device ----

    def local(self, divided: Sequence[tuple[AxisGroup, int]]) -> tir.PrimFunc:
        """The function that computes one part.

        Parameters
        ----------
        divided : groups with the number of parts each is divided into.
        """
        parts: dict[Any, int] = {}
        for group, count in divided:
            position, dim = next(iter(group.dims))
            root = self._root((self.buffers[position], dim))
            parts[root] = parts.get(root, 1) * count
        return renew_defs(_Local(self, parts).function(self.func))

    def parts_of(self, key: Any, parts: dict[Any, int]) -> int:
        """Into how many parts a dimension (buffer, dim) or an axis is divided."""
        return parts.get(self._root(key), 1) if key in self._parent else 1


class _Local(BufferMutator):
    """Buffers, axes and loops of one part."""

    def __init__(self, axes: KernelAxes, parts: dict[Any, int]) -> None:
        super().__init__()
        self._kernel, self._parts = axes, parts

    def map_buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        counts = [
            self._kernel.parts_of((buffer, dim), self._parts) for dim in range(len(buffer.shape))
        ]
        if all(count == 1 for count in counts):
            return buffer
        shape = [_divided(extent, count) for extent, count in zip(buffer.shape, counts)]
        if len(buffer.strides):
            raise error.ValueError(
                f"relax.distributed: {buffer.name} has strides, which its parts would not have"
            )
        return tir.Buffer(
            buffer.data,
            str(buffer.dtype),
            shape,
            [],
            buffer.elem_offset,
            buffer.name,
            buffer.data_alignment,
            buffer.offset_factor,
            buffer.axis_separators,
        )

    def axis(self, axis: tir.IterVar) -> tir.IterVar:
        count = self._kernel.parts_of(axis.var, self._parts)
        if count == 1:
            return super().axis(axis)
        dom = Range.from_min_extent(axis.dom.min, _divided(axis.dom.extent, count))
        return tir.IterVar(dom, axis.var, axis.iter_type, axis.thread_tag)

    def visit_for_(self, op: tir.For) -> tir.Stmt:
        count = self._kernel.parts_of(op.loop_var, self._parts)
        made = super().visit_for_(op)
        if count == 1:
            return made
        extent = _divided(made.extent, count)
        return tir.For(
            made.loop_var, made.min, extent, made.kind, made.body, made.thread_binding,
            made.annotations,
        )  # fmt: skip


def _divided(extent: PrimExpr, count: int) -> PrimExpr:
    if isinstance(extent, tir.IntImm):
        return tir.IntImm(extent.dtype, extent.value // count)
    return extent
