"""What rules and postprocessors ask about blocks of a schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tvm import tir
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

__all__ = [
    "all_blocks",
    "constant_extent",
    "has_data_reuse",
    "is_reduction",
    "is_root",
    "is_spatial",
    "loop_kinds",
    "needs_rfactor",
    "root_annotations",
]

_SPATIAL, _REDUCE = int(tir.IterVar.DataPar), int(tir.IterVar.CommReduce)


def is_root(sch: Schedule, block: BlockRV) -> bool:
    """Whether the block is the outermost of its function, which has neither loops nor indices."""
    node = sch.get(block)
    return not len(node.iter_vars) and str(node.name_hint) == "root"


def is_spatial(node: tir.Block) -> bool:
    """Whether all iterations of a block are independent."""
    return node.init is None and all(int(v.iter_type) == _SPATIAL for v in node.iter_vars)


def is_reduction(node: tir.Block) -> bool:
    """Whether a block sums something up from a start value."""
    kinds = [int(v.iter_type) for v in node.iter_vars]
    return node.init is not None and _REDUCE in kinds and set(kinds) <= {_SPATIAL, _REDUCE}


def constant_extent(sch: Schedule, loop: LoopRV) -> int | None:
    """Iterations of a loop, None if they are not constant."""
    extent = sch.get(loop).extent
    return int(extent.value) if isinstance(extent, tir.IntImm) else None


def loop_kinds(sch: Schedule, block: BlockRV) -> list[str]:
    """ "S" for loops that only move indices of independent iterations, "R" for those that only move
    summed ones, "O" for others; the outermost first."""
    loops = sch.get_loops(block)
    if not loops or not len(sch.get(block).iter_vars):
        # What a loop means to a block without axes nobody can say.
        return ["O"] * len(loops)
    realize = _realize_of(sch, block)
    kinds = []
    for loop in loops:
        var = sch.get(loop).loop_var
        used = {
            int(axis.iter_type)
            for axis, value in zip(realize.block.iter_vars, realize.iter_values)
            if _uses(value, var)
        }
        kinds.append("S" if used == {_SPATIAL} else "R" if used == {_REDUCE} else "O")
    return kinds


def _uses(value: Any, var: tir.Var) -> bool:
    found = False

    def visit(node: Any) -> None:
        nonlocal found
        found = found or (isinstance(node, tir.Var) and node.same_as(var))

    tir.stmt_functor.post_order_visit(value, visit)
    return found


def _realize_of(sch: Schedule, block: BlockRV) -> Any:
    # A module is made anew from the tree whenever it is asked for, and functions may have blocks of
    # one name; what stays are the variables.
    wanted, found = [v.var for v in sch.get(block).iter_vars], []
    for function in sch.mod.functions.values():

        def visit(node: Any) -> None:
            if isinstance(node, tir.BlockRealize) and len(node.block.iter_vars) == len(wanted):
                axes = node.block.iter_vars
                if all(axis.var.same_as(var) for axis, var in zip(axes, wanted)):
                    found.append(node)

        if isinstance(function, tir.PrimFunc):
            tir.stmt_functor.post_order_visit(function.body, visit)
    return found[0]


def has_data_reuse(node: tir.Block) -> bool:
    """Whether an element that a reduction reads serves several iterations, so that tiles pay.

    That is so if some read buffer's place depends on the block's indices one by one, and not on all
    of them (Ansor, OSDI 2020, table 1: "has data reuse").
    """
    if not is_reduction(node) or len(node.writes) != 1:
        return False
    axes = [v.var for v in node.iter_vars if not _is_one(v.dom.extent)]
    unused = 0
    for region in node.reads:
        if region.buffer.same_as(node.writes[0].buffer):
            continue
        reads = [r.min for r in region.region]
        unused += sum(not any(_uses(index, var) for index in reads) for var in axes)
    return unused >= 1


def _is_one(extent: Any) -> bool:
    return isinstance(extent, tir.IntImm) and int(extent.value) == 1


def needs_rfactor(sch: Schedule, block: BlockRV, max_parallel: int) -> bool:
    """Whether a reduction has too few independent iterations to keep `max_parallel` jobs busy."""
    node = sch.get(block)
    if not is_reduction(node) or len(node.writes) != 1:
        return False
    loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
    extents = [constant_extent(sch, loop) for loop in loops]
    if not loops or None in extents or "O" in kinds:
        return False
    spatial = math.prod(e for e, k in zip(extents, kinds) if k == "S")  # type: ignore[misc]
    summed = math.prod(e for e, k in zip(extents, kinds) if k == "R")  # type: ignore[misc]
    if has_data_reuse(node) and spatial > summed:
        return False
    return summed > 1 and (spatial < max_parallel or summed > spatial)


def all_blocks(
    sch: Schedule, function_name: str | None = None
) -> Iterator[tuple[BlockRV, tir.Block]]:
    """All blocks of all functions, or of one, but the roots, in the order of the program."""
    for var, function in sch.mod.functions.items():
        if not isinstance(function, tir.PrimFunc):
            continue
        if function_name not in (None, str(var.name_hint)):
            continue
        names: list[str] = []

        def visit(node: Any, names: list[str] = names) -> None:
            if isinstance(node, tir.Block):
                names.append(str(node.name_hint))

        tir.stmt_functor.post_order_visit(function.body, visit)
        for name in names:
            block = sch.get_block(name, func_name=str(var.name_hint))
            if not is_root(sch, block):
                yield block, sch.get(block)


def root_annotations(sch: Schedule) -> Iterator[tuple[str, BlockRV, dict[str, Any]]]:
    """Function name, root block and annotations of each function that has a root block."""
    for var, function in sch.mod.functions.items():
        body = getattr(function, "body", None)
        if isinstance(body, tir.BlockRealize):
            block = sch.get_block(str(body.block.name_hint), func_name=str(var.name_hint))
            annotations = {str(k): v for k, v in body.block.annotations.items()}
            yield str(var.name_hint), block, annotations
