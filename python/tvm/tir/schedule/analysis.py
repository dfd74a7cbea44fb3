"""What rules that write schedules ask of a program: layouts, output blocks, tensor intrinsics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import arith
from tvm._ffi import register_func
from tvm.error import ScheduleError
from tvm.ir import PrimExpr, Range

from ..block import Block, BlockRealize
from ..buffer import Buffer
from ..expr import IntImm, IterVar, Var
from ..function import PrimFunc
from ..index_map import IndexMap
from ..op import floordiv, floormod
from ..statement import For
from ..stmt_functor import post_order_visit
from .intrinsic_mapping import AutoTensorizeMappingInfo, described, get_auto_tensorize_mapping_info
from .random_variables import BlockRV, LoopRV
from .schedule import Schedule
from .state import StmtSRef

__all__ = [
    "AutoTensorizeMappingInfo",
    "NormalBlock",
    "TensorizeInfo",
    "get_auto_tensorize_mapping_info",
    "get_tensorize_loop_mapping",
    "has_block",
    "is_output_block",
    "normalize_prim_func",
    "suggest_index_map",
]


def has_block(sch: Schedule, block_name: str) -> bool:
    """Whether the function that a schedule works on has a block of that name."""
    func = sch.mod[sch.func_working_on or "main"]
    found = []
    post_order_visit(
        func.body,
        lambda node: (
            found.append(node) if isinstance(node, Block) and node.name_hint == block_name else None
        ),
    )
    return bool(found)


def is_output_block(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block writes a buffer that the block around it does not allocate."""
    node = sch.get(block)
    holder = sch.get_sref(block).parent
    while holder is not None and not isinstance(holder.stmt, Block):
        holder = holder.parent
    if holder is None or not isinstance(holder.stmt, Block):
        return True
    own = holder.stmt.alloc_buffers
    return any(not any(region.buffer.same_as(buffer) for buffer in own) for region in node.writes)


def suggest_index_map(
    buffer: Buffer, indices: Sequence[PrimExpr], loops: Sequence[For], predicate: PrimExpr
) -> IndexMap | None:
    """A layout in which the elements of a buffer follow each other as loops access them.

    Parameters
    ----------
    indices : of the access, in terms of the loops.
    loops : around the access, outermost first; their extents are constants.
    predicate : what holds where the access is made, which no layout depends on.

    Returns
    -------
    One index for each digit of a loop that is part of an access, the outermost first; None where an
    index is no sum of digits of loops.
    """
    ranges = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    found = arith.detect_iter_map(list(indices), ranges, check_level=arith.IterMapLevel.NoCheck)
    if found.errors or not found.indices or not _is_whole(found):
        return None
    order = {loop.loop_var: at for at, loop in enumerate(loops)}
    digits: list[tuple[int, int, int, int, int]] = []
    for axis, form in enumerate(found.indices):
        parts = _digits(form, 1)
        if parts is None or any(source not in order for source, *_ in parts):
            return None
        digits += [
            (order[source], -lower, axis, scale, extent) for source, lower, extent, scale in parts
        ]
    names = [Var(f"i{axis}", "int32") for axis in range(len(indices))]
    final: list[PrimExpr] = []
    for _, _, axis, scale, extent in sorted(digits):
        value: PrimExpr = names[axis]
        if scale * extent < int(buffer.shape[axis]):
            value = floormod(value, scale * extent)
        if scale != 1:
            value = floordiv(value, scale)
        final.append(value)
    return IndexMap(names, final, None)


def _is_whole(found: arith.IterMapResult) -> bool:
    """Whether no loop had to be lengthened, and all sizes are numbers."""
    sizes: list[PrimExpr] = []
    todo = [digit for form in found.indices for digit in form.args]
    while todo:
        digit = todo.pop()
        sizes += [digit.lower_factor, digit.extent, digit.scale]
        if isinstance(digit.source.source, arith.IterSumExpr):
            todo += list(digit.source.source.args)
    outside = found.padding_predicate
    return isinstance(outside, IntImm) and not outside and all(isinstance(s, IntImm) for s in sizes)


def _digits(form: arith.IterSumExpr, scale: int) -> list[tuple[Var, int, int, int]] | None:
    """Digits of loops in a sum: the loop, its divisor, values, and what one step counts."""
    found: list[tuple[Var, int, int, int]] = []
    for digit in form.args:
        source, step = digit.source.source, scale * int(digit.scale)
        lower, extent = int(digit.lower_factor), int(digit.extent)
        if isinstance(source, Var):
            found.append((source, lower, extent, step))
            continue
        inner = _digits(source, step) if lower == 1 else None
        if inner is None:
            return None
        found += inner
    return found


@dataclass(frozen=True)
class TensorizeInfo:
    """Which loops of a block a tensor intrinsic takes the place of.

    Parameters
    ----------
    loop_map : loops of the description by the loops of the block, of which the innermost iterations
        are theirs.
    desc_loop_indexer : position of each loop of the description, outermost 0.
    block_iter_paddings : by how much each variable of the block has to be padded so that the
        description fits; None where nothing has to be.
    """

    loop_map: Mapping[StmtSRef, For]
    desc_loop_indexer: Mapping[For, int]
    block_iter_paddings: list[int] | None = None


def _coefficient(expr: PrimExpr, var: Var) -> int | None:
    """The number that a loop is multiplied by in a sum; None if it is no such sum."""
    row = list(arith.detect_linear_equation(expr, [var]))
    return int(row[0]) if row and hasattr(row[0], "value") else None


def get_tensorize_loop_mapping(
    sch: Schedule, block: BlockRV, desc_func: PrimFunc, allow_padding: bool = False
) -> TensorizeInfo | None:
    """Loops of a block to split off for a tensor intrinsic.

    Variables of the description are those variables of the block that come last, of the same kinds
    and in the same order. Each is to be the sum of a loop and others that are multiples of its
    extent.

    Parameters
    ----------
    allow_padding : let a loop be no multiple of the description's; see `block_iter_paddings`.

    Returns
    -------
    None where the description does not fit.
    """
    desc_loops, desc = described(desc_func)
    node: Block = sch.get(block)
    loop_rvs = sch.get_loops(block)
    loops = [sch.get(loop) for loop in loop_rvs]
    values = dict(zip(node.iter_vars, _values(sch, block), strict=True))
    by_var = {loop.loop_var: loop for loop in desc_loops}
    loop_map: dict[StmtSRef, For] = {}
    paddings = [1] * len(node.iter_vars)
    at = len(node.iter_vars) - 1
    pairs = list(zip(desc.block.iter_vars, desc.iter_values, strict=True))
    for want, value in reversed(pairs):
        desc_loop = by_var.get(value) if isinstance(value, Var) else None
        if desc_loop is None:
            return None
        while at >= 0 and node.iter_vars[at].iter_type != want.iter_type:
            at -= 1
        if at < 0:
            return None
        own: IterVar = node.iter_vars[at]
        size = int(desc_loop.extent)
        for rv, loop in reversed(list(zip(loop_rvs, loops, strict=True))):
            if _coefficient(values[own], loop.loop_var) != 1:
                continue
            if not hasattr(loop.extent, "value"):
                return None
            extent = int(loop.extent)
            if extent % size:
                if not allow_padding:
                    return None
                paddings[at] = size
            loop_map[sch.get_sref(rv)] = desc_loop
            break
        else:
            return None
        at -= 1
    indexer = {loop: position for position, loop in enumerate(desc_loops)}
    padded = paddings if any(size != 1 for size in paddings) else None
    return TensorizeInfo(loop_map, indexer, padded)


def _values(sch: Schedule, block: BlockRV) -> list[PrimExpr]:
    """What the variables of a block stand for."""
    node = sch.get(block)
    found: list[Any] = []
    post_order_visit(
        sch.mod[sch.func_working_on or "main"].body,
        lambda stmt: (
            found.append(stmt)
            if isinstance(stmt, BlockRealize) and stmt.block.same_as(node)
            else None
        ),
    )
    return list(found[0].iter_values)


@dataclass(frozen=True)
class NormalBlock:
    """A block with one loop for each of its axes, and nothing else in them."""

    block: BlockRV
    loops: list[LoopRV]
    iters: list[IterVar]
    reduces: bool


def normalize_prim_func(sch: Schedule) -> list[NormalBlock] | None:
    """Give each block of a function loops of its own: one for each axis of more than one step,
    those of reductions innermost; a block of no such axis has one loop of one step.

    Returns
    -------
    The blocks in order. None, and the function as it was, where blocks are nested, an axis is
    neither spatial nor of a reduction, or loops cannot be made anew.
    """
    blocks = sch.get_child_blocks(sch.get_block("root"))
    if any(sch.get_child_blocks(block) for block in blocks):
        return None
    maps = [_normal_axes(sch.get(block)) for block in blocks]
    trial = sch.copy()
    try:
        for block, index_map in zip(blocks, maps):
            if index_map is None:
                return None
            if not _is_normal(trial, block, index_map):
                trial.transform_block_layout(block, index_map)
    except ScheduleError:
        return None
    found = []
    for block, index_map in zip(blocks, maps):
        if index_map is not None and not _is_normal(sch, block, index_map):
            sch.transform_block_layout(block, index_map)
        node = sch.get(block)
        iters = list(node.iter_vars)
        reduces = any(int(axis.iter_type) == IterVar.CommReduce for axis in iters)
        found.append(NormalBlock(block, sch.get_loops(block), iters, reduces))
    return found


def _normal_axes(node: Block) -> IndexMap | None:
    """From the axes of a block to those that its loops should have."""
    kinds = [int(axis.iter_type) for axis in node.iter_vars]
    if not set(kinds) <= {IterVar.DataPar, IterVar.CommReduce}:
        return None
    inputs = [Var(str(axis.var.name), axis.var.dtype) for axis in node.iter_vars]
    kept = [
        var
        for wanted in (IterVar.DataPar, IterVar.CommReduce)
        for var, axis, kind in zip(inputs, node.iter_vars, kinds)
        if kind == wanted
        and not (isinstance(axis.dom.extent, IntImm) and int(axis.dom.extent) == 1)
    ]
    return IndexMap(inputs, kept or [IntImm("int64", 0)], None)


def _is_normal(sch: Schedule, block: BlockRV, index_map: IndexMap) -> bool:
    """Whether the loops of a block are its axes already, one by one."""
    loops = sch.get_loops(block)
    values = list(sch.get_iter_values(block))
    same_axes = len(index_map.final_indices) == len(values) and all(
        made.same_as(given)
        for made, given in zip(index_map.final_indices, index_map.initial_indices)
    )
    return (
        same_axes
        and len(loops) == len(values)
        and all(value.same_as(sch.get(loop).loop_var) for value, loop in zip(values, loops))
    )


@register_func("tir.schedule.NormalizePrimFunc")
def _normalized(sch: Schedule) -> list[list[Any]] | None:
    """Blocks, their loops, their axes and whether they reduce: what rules outside of here ask."""
    found = normalize_prim_func(sch)
    if found is None:
        return None
    return [
        [each.block for each in found],
        [each.loops for each in found],
        [each.iters for each in found],
        [each.reduces for each in found],
    ]
