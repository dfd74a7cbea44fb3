"""How the variables of a block stand for those of a tensor intrinsic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm.error
from tvm import arith
from tvm.ir import PrimExpr

from ..block import Block, BlockRealize
from ..buffer import Buffer
from ..expr import BufferLoad, Call, Cast, FloatImm, IntImm, IterVar, Var
from ..function import PrimFunc
from ..index_map import IndexMap
from ..statement import BufferStore, For, SeqStmt, Stmt
from ..stmt_functor import post_order_visit, substitute
from .random_variables import BlockRV
from .schedule import Schedule

__all__ = ["AutoTensorizeMappingInfo", "described", "get_auto_tensorize_mapping_info"]


@dataclass(frozen=True)
class AutoTensorizeMappingInfo:
    """Which variables of a block become which of an intrinsic's description.

    Attributes
    ----------
    mappings : one index map from the variables of the block to those that no variable of the
        description stands for, and then one index for each that it has.
    lhs_iters, rhs_iters : variables of the block, and of the description.
    lhs_buffer_map : the description's buffer for each buffer of the block.
    rhs_buffer_indices : the description's accesses, in terms of its variables.
    """

    mappings: list[IndexMap]
    lhs_iters: list[IterVar]
    rhs_iters: list[IterVar]
    lhs_buffer_map: dict[Buffer, Buffer]
    rhs_buffer_indices: dict[Buffer, list[PrimExpr]]

    def layout_of(
        self, buffer: Buffer, axes: Sequence[IterVar], indices: Sequence[PrimExpr]
    ) -> IndexMap:
        """The layout in which what a buffer holds is an operand of the intrinsic.

        Parameters
        ----------
        buffer : of the block, one of `lhs_buffer_map`.
        axes : variables of the block now, as many as `lhs_iters`.
        indices : where the block accesses a copy of the buffer, each a variable of `axes` or a
            constant; see `Schedule.reindex`.
        """
        to = self.mappings[0]
        sources = [Var(f"i{at}", index.dtype) for at, index in enumerate(indices)]
        places: dict[Var, PrimExpr] = {
            name: source
            for source, index in zip(sources, indices)
            for axis, name in zip(axes, to.initial_indices)
            if axis.var.same_as(index)
        }
        first = len(to.final_indices) - len(self.rhs_iters)
        operand = self.rhs_buffer_indices[self.lhs_buffer_map[buffer]]
        wanted = [
            to.final_indices[first + at]
            for index in operand
            for at, axis in enumerate(self.rhs_iters)
            if axis.var.same_as(index)
        ]
        outer = [value for value in to.final_indices[:first] if value in places]
        return IndexMap(sources, [substitute(value, places) for value in [*outer, *wanted]], None)


@dataclass
class _Accesses:
    """Buffers that two expressions of one form access in the same places."""

    buffers: dict[Buffer, Buffer] = field(default_factory=dict)
    left: dict[Buffer, list[PrimExpr]] = field(default_factory=dict)
    right: dict[Buffer, list[PrimExpr]] = field(default_factory=dict)

    def add(self, one: BufferLoad | BufferStore, other: BufferLoad | BufferStore) -> bool:
        """Enter a pair of accesses; whether it agrees with those before."""
        known = self.buffers.get(one.buffer)
        if known is None:
            if any(known.same_as(other.buffer) for known in self.buffers.values()):
                return False
            if str(one.buffer.dtype) != str(other.buffer.dtype):
                return False
            self.buffers[one.buffer] = other.buffer
            self.left[one.buffer] = list(one.indices)
            self.right[other.buffer] = list(other.indices)
            return True
        return known.same_as(other.buffer)

    def match(self, one: Any, other: Any) -> bool:
        """Whether two expressions do the same with what they load."""
        if type(one) is not type(other) or str(one.dtype) != str(other.dtype):
            return False
        if isinstance(one, BufferLoad):
            return self.add(one, other)
        if isinstance(one, (IntImm, FloatImm)):
            return bool(one.value == other.value)
        if isinstance(one, Cast):
            return self.match(one.value, other.value)
        if isinstance(one, Call):
            return (
                one.op.same_as(other.op)
                and len(one.args) == len(other.args)
                and all(self.match(a, b) for a, b in zip(one.args, other.args))
            )
        if hasattr(one, "a") and hasattr(one, "b"):
            return self.match(one.a, other.a) and self.match(one.b, other.b)
        return False


def _is_one(value: PrimExpr) -> bool:
    """Whether an expression is the number 1."""
    return isinstance(value, IntImm) and int(value) == 1


def described(desc_func: PrimFunc) -> tuple[list[For], BlockRealize]:
    """Loops of an intrinsic's description, outermost first, and the block inside.

    Raises
    ------
    ValueError : it has no loops around a block.
    """
    loops: list[For] = []
    at: Stmt = desc_func.body
    inner: BlockRealize | None = None
    while True:
        if isinstance(at, BlockRealize):
            inner, at = at, at.block.body
        elif isinstance(at, For):
            loops.append(at)
            at = at.body
        elif isinstance(at, SeqStmt) and len(at.seq) == 1:
            at = at.seq[0]
        else:
            break
    if inner is None or not loops:
        raise tvm.error.ValueError("tensor intrinsic: the description has no loops around a block")
    return loops, inner


def _uses(indices: Sequence[PrimExpr], var: Var) -> bool:
    found = False

    def look(node: Any) -> None:
        nonlocal found
        found = found or (isinstance(node, Var) and node.same_as(var))

    for index in indices:
        post_order_visit(index, look)
    return found


def get_auto_tensorize_mapping_info(
    sch: Schedule, block: BlockRV, desc_func: PrimFunc
) -> AutoTensorizeMappingInfo | None:
    """How to fuse and order the variables of a block so that a tensor intrinsic fits.

    A variable stands for that of the description that is of the same kind and indexes the same
    operands: of a product, rows those of the first and of the result. Sums over several variables,
    of a convolution, become one.

    Parameters
    ----------
    desc_func : what the intrinsic does, a block that stores one expression.

    Returns
    -------
    None where the block computes something else, or on other types.
    """
    node: Block = sch.get(block)
    desc = described(desc_func)[1].block
    if not isinstance(node.body, BufferStore) or not isinstance(desc.body, BufferStore):
        return None
    accesses = _Accesses()
    if not accesses.add(node.body, desc.body) or not accesses.match(
        node.body.value, desc.body.value
    ):
        return None
    order = list(accesses.buffers)
    # Parts of an index that a variable does not change are no use of it, but for variables of one
    # value, which change nothing anywhere.
    analyzer = arith.Analyzer()
    for axis in node.iter_vars:
        if not _is_one(axis.dom.extent):
            analyzer.bind(axis.var, axis.dom)
    for indices in accesses.left.values():
        indices[:] = [analyzer.simplify(index) for index in indices]

    def role_in_block(axis: IterVar) -> tuple[bool, ...]:
        return tuple(_uses(accesses.left[buffer], axis.var) for buffer in order)

    def role_in_desc(axis: IterVar) -> tuple[bool, ...]:
        return tuple(_uses(accesses.right[accesses.buffers[buffer]], axis.var) for buffer in order)

    sources = [Var(f"i{at}", axis.var.dtype) for at, axis in enumerate(node.iter_vars)]
    groups: list[list[int]] = [[] for _ in desc.iter_vars]
    outer: list[PrimExpr] = []
    for at, axis in enumerate(node.iter_vars):
        for group, want in zip(groups, desc.iter_vars):
            if axis.iter_type == want.iter_type and role_in_block(axis) == role_in_desc(want):
                group.append(at)
                break
        else:
            if int(axis.iter_type) != int(IterVar.DataPar):
                return None
            outer.append(sources[at])
    if not all(groups):
        return None
    fused: list[PrimExpr] = []
    for group in groups:
        value: PrimExpr = sources[group[0]]
        for at in group[1:]:
            value = value * node.iter_vars[at].dom.extent + sources[at]
        fused.append(value)
    return AutoTensorizeMappingInfo(
        [IndexMap(sources, [*outer, *fused], None)],
        list(node.iter_vars),
        list(desc.iter_vars),
        accesses.buffers,
        accesses.right,
    )
