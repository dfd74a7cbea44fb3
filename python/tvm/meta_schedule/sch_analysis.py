"""What rules and postprocessors ask about blocks of a schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tvm import tir
from tvm.target import Target
from tvm.tir.analysis import undefined_vars
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

__all__ = [
    "AUTO_TENSORIZE",
    "TILED",
    "all_blocks",
    "annotation",
    "constant_extent",
    "cores_of",
    "has_data_reuse",
    "is_reduction",
    "is_root",
    "is_spatial",
    "is_spatial_function",
    "is_trivially_bound",
    "loop_kind",
    "loop_kinds",
    "needs_rfactor",
    "needs_tiling",
    "parallel_sizes",
    "reorder_and_fuse_reduction",
    "root_annotations",
    "thread_tag",
]

AUTO_TENSORIZE = "meta_schedule.auto_tensorize"
"""The annotation that names the intrinsic by which `RewriteTensorize` replaces a block."""

TILED = "meta_schedule.tiling_structure"
"""The annotation of blocks that were tiled."""

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
    # The hash of a variable is its identity; comparing them would make expressions.
    moved: dict[int, set[int]] = {}
    for axis, value in zip(sch.get(block).iter_vars, sch.get_iter_values(block)):
        for var in undefined_vars(value):
            moved.setdefault(hash(var), set()).add(int(axis.iter_type))
    kinds = {frozenset({_SPATIAL}): "S", frozenset({_REDUCE}): "R"}
    return [
        kinds.get(frozenset(moved.get(hash(sch.get(loop).loop_var), ())), "O") for loop in loops
    ]


def parallel_sizes(sch: Schedule, block: BlockRV) -> list[int]:
    """Iterations of the outermost loop of a block, of the two outermost, and so on, as far as these
    could be fused and run at once."""
    sizes: list[int] = []
    for loop, kind in zip(sch.get_loops(block), loop_kinds(sch, block)):
        extent = constant_extent(sch, loop)
        if kind != "S" or extent is None or int(sch.get(loop).kind) != tir.ForKind.SERIAL:
            break
        sizes.append(extent * (sizes[-1] if sizes else 1))
        if isinstance(sch.get(loop).body, tir.SeqStmt):
            break
    return sizes


def loop_kind(sch: Schedule, loop: LoopRV) -> str:
    """What a loop moves in all blocks below it: "S" independent indices or none, "R" summed ones,
    "O" both or others."""
    node = sch.get(loop)
    used: set[int] = set()
    for realize in _outermost_realizes(node.body):
        used |= {
            int(axis.iter_type)
            for axis, value in zip(realize.block.iter_vars, realize.iter_values)
            if any(node.loop_var.same_as(var) for var in undefined_vars(value))
        }
    return "S" if used <= {_SPATIAL} else "R" if used == {_REDUCE} else "O"


def _outermost_realizes(statement: Any) -> Iterator[Any]:
    """The blocks below a statement that are in no other block."""
    if isinstance(statement, tir.BlockRealize):
        yield statement
    elif isinstance(statement, tir.SeqStmt):
        for part in statement.seq:
            yield from _outermost_realizes(part)
    elif isinstance(statement, tir.IfThenElse):
        for part in (statement.then_case, statement.else_case):
            yield from _outermost_realizes(part)
    elif hasattr(statement, "body"):
        yield from _outermost_realizes(statement.body)


def thread_tag(sch: Schedule, loop: LoopRV) -> str:
    """The thread axis that runs a loop, "threadIdx.x" for example; empty if none does."""
    node = sch.get(loop)
    if int(node.kind) != tir.ForKind.THREAD_BINDING:
        return ""
    return str(node.thread_binding.thread_tag)


def annotation(node: tir.Block | tir.For, key: str) -> Any:
    """The value of an annotation, numbers and text as Python's; None if there is none."""
    value = node.annotations.get(key)
    return getattr(value, "value", value)


def is_trivially_bound(sch: Schedule, block: BlockRV) -> bool:
    """Whether each axis of a block is the loop at the same place."""
    loops = sch.get_loops(block)
    axes = sch.get(block).iter_vars
    if not loops or len(loops) != len(axes):
        return False
    values = sch.get_iter_values(block)
    return all(
        isinstance(value, tir.Var) and value.same_as(sch.get(loop).loop_var)
        for loop, value in zip(loops, values)
    )


def has_data_reuse(node: tir.Block) -> bool:
    """Whether an element that a reduction reads serves several of its results, so that tiles pay.

    That is so if some read buffer's place does not depend on all of the independent indices (Ansor,
    OSDI 2020, table 1: "has data reuse").
    """
    if not is_reduction(node) or len(node.writes) != 1:
        return False
    axes = [
        v.var for v in node.iter_vars if int(v.iter_type) == _SPATIAL and not _is_one(v.dom.extent)
    ]
    return any(
        not any(axis.same_as(v) for part in region.region for v in undefined_vars(part.min))
        for region in node.reads
        if not region.buffer.same_as(node.writes[0].buffer)
        for axis in axes
    )


def needs_tiling(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block reuses data, its loops are its axes, and it has no tiles yet."""
    node = sch.get(block)
    if TILED in node.annotations or not has_data_reuse(node):
        return False
    return is_trivially_bound(sch, block)


def _is_one(extent: Any) -> bool:
    return isinstance(extent, tir.IntImm) and int(extent.value) == 1


def needs_rfactor(sch: Schedule, block: BlockRV, max_parallel: int, basic_parallel: int) -> bool:
    """Whether a reduction has too few independent iterations to keep the machine busy.

    Parameters
    ----------
    max_parallel : jobs that a machine can take at most.
    basic_parallel : jobs that it needs; shorter sums without reuse of data are left alone.
    """
    node = sch.get(block)
    if not is_reduction(node):
        return False
    loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
    extents = [constant_extent(sch, loop) for loop in loops]
    if "R" not in kinds or "O" in kinds or None in extents:
        return False
    # Partial sums are made of a whole nest: nothing may be beside it.
    if any(len(sch.get_child_blocks(loop)) != 1 for loop in loops):
        return False
    spatial = math.prod(e for e, k in zip(extents, kinds) if k == "S")  # type: ignore[misc]
    summed = math.prod(e for e, k in zip(extents, kinds) if k == "R")  # type: ignore[misc]
    if needs_tiling(sch, block):
        return spatial < summed and spatial <= max_parallel
    return summed > max(1, basic_parallel)


def reorder_and_fuse_reduction(sch: Schedule, block: BlockRV) -> tuple[LoopRV, int]:
    """Put the summed loops of a block innermost and fuse them.

    Returns
    -------
    The fused loop, and how many independent loops are around it.
    """
    loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
    spatial = [loop for loop, kind in zip(loops, kinds) if kind != "R"]
    summed = [loop for loop, kind in zip(loops, kinds) if kind == "R"]
    if "R" in kinds and "S" in kinds[kinds.index("R") :]:
        sch.reorder(*spatial, *summed)
    return sch.fuse(*summed), len(spatial)


def _block_names(statement: Any) -> list[str]:
    """Names of the blocks of a statement, inner ones first, but those that only set start values.

    The start of a block around a nest is a nest of blocks itself; a schedule has none of these
    before `decompose_reduction` takes it out.
    """
    names: list[str] = []
    for realize in _outermost_realizes(statement):
        names += [*_block_names(realize.block.body), str(realize.block.name_hint)]
    return names


def all_blocks(
    sch: Schedule, function_name: str | None = None
) -> Iterator[tuple[BlockRV, tir.Block]]:
    """All blocks of all functions, or of one, but the roots, in the order of the program."""
    for var, function in sch.mod.functions.items():
        if not isinstance(function, tir.PrimFunc):
            continue
        if function_name not in (None, str(var.name_hint)):
            continue
        for name in _block_names(function.body):
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


def is_spatial_function(sch: Schedule, block: BlockRV) -> bool:
    """Whether all blocks of a block's function have independent iterations only."""
    root = sch.get_sref(block)
    while root.parent is not None:
        root = root.parent
    spatial = True

    def visit(node: Any) -> None:
        nonlocal spatial
        if isinstance(node, tir.Block):
            spatial = spatial and all(int(v.iter_type) == _SPATIAL for v in node.iter_vars)

    tir.stmt_functor.post_order_visit(root.stmt, visit)
    return spatial


def cores_of(target: Target | None) -> int:
    """Cores that a target names; 1 where it names none."""
    cores = None if target is None else target.attrs.get("num-cores")
    return 1 if cores is None else int(cores)
