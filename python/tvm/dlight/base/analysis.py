"""Blocks of a program as rules see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tir
from tvm.ir import PrimExpr, Range, structural_equal
from tvm.target import Target
from tvm.tir.analysis import undefined_vars
from tvm.tir.schedule import BlockRV, LoopRV, Schedule
from tvm.tir.schedule import analysis as tir_analysis

__all__ = [
    "BlockInfo",
    "IterInfo",
    "collect_block_iter_vars_used_in_access_region",
    "collect_vars_used_in_prim_expr",
    "detect_dominant_read",
    "get_max_shared_memory_per_block",
    "get_max_threads_per_block",
    "get_root_block",
    "is_broadcast_epilogue",
    "normalize_prim_func",
]

_REDUCE = int(tir.IterVar.CommReduce)


@dataclass(frozen=True)
class IterInfo:
    """A loop of a block.

    Parameters
    ----------
    kind : "S" for independent iterations, "R" for those of a reduction.
    dom : how many there are.
    """

    kind: str
    var: tir.Var
    dom: PrimExpr
    loop_rv: LoopRV


@dataclass(frozen=True)
class BlockInfo:
    """A block with its loops, those of independent iterations first."""

    name: str
    iters: tuple[IterInfo, ...]
    block_rv: BlockRV
    reduction_block: bool

    def dom(self) -> list[PrimExpr]:
        """Iterations of the loops."""
        return [each.dom for each in self.iters]

    def dom_kind(self) -> str:
        """Kinds of the loops, "SSR" for a matrix product."""
        return "".join(each.kind for each in self.iters)

    def is_injective(self) -> bool:
        """Whether all iterations are independent."""
        return not self.reduction_block

    def is_reduction(self) -> bool:
        """Whether something is combined over iterations."""
        return self.reduction_block

    def is_elementwise(self, sch: Schedule) -> bool:
        """Whether the block computes each element of one buffer from its place in another."""
        node = sch.get(self.block_rv)
        if not self.is_injective() or len(node.reads) != 1 or len(node.writes) != 1:
            return False
        places = [[part.min for part in each.region] for each in (*node.reads, *node.writes)]
        return len(places[0]) == len(places[1]) and all(
            structural_equal(read, written) for read, written in zip(*places)
        )

    def loops(self, kind: str) -> list[LoopRV]:
        """Loops of one kind, outermost first."""
        return [each.loop_rv for each in self.iters if each.kind == kind]


def normalize_prim_func(sch: Schedule) -> list[BlockInfo] | None:
    """The blocks of a function in order, after each got a loop of its own for each of its axes of
    more than one step, those of reductions innermost.

    Returns
    -------
    None where blocks are nested, or an axis is neither spatial nor of a reduction.
    """
    found = tir_analysis.normalize_prim_func(sch)
    if found is None:
        return None
    infos = []
    for block in found:
        iters = tuple(
            IterInfo(
                "R" if int(axis.iter_type) == _REDUCE else "S", axis.var, axis.dom.extent, loop
            )
            for axis, loop in zip(block.iters, block.loops)
        )
        infos.append(
            BlockInfo(str(sch.get(block.block).name_hint), iters, block.block, block.reduces)
        )
    return infos


def get_root_block(sch: Schedule, func_name: str = "main") -> BlockRV:
    """The outermost block of a function.

    Raises
    ------
    ValueError : the function is not made of blocks.
    """
    body = sch.mod[func_name].body
    if not isinstance(body, tir.BlockRealize):
        raise ValueError(
            f"dlight: {func_name} has no root block; its body is a {type(body).__name__}"
        )
    return sch.get_block(str(body.block.name_hint), func_name)


def collect_vars_used_in_prim_expr(expr: PrimExpr) -> set[tir.Var]:
    """The variables that an expression mentions."""
    return set(undefined_vars(expr))


def collect_block_iter_vars_used_in_access_region(
    block: tir.Block, region: Sequence[Range]
) -> set[tir.Var]:
    """The variables of a block on which the places depend that it accesses."""
    used = set()
    for part in region:
        if isinstance(part.extent, tir.IntImm) and int(part.extent) == 1:
            used |= collect_vars_used_in_prim_expr(part.min)
    return used & {axis.var for axis in block.iter_vars}


def detect_dominant_read(block: tir.Block) -> PrimExpr:
    """The place, counted in elements, of what a block reads with most of its variables.

    Raises
    ------
    ValueError : the block reads nothing, or a region rather than an element.
    """
    regions = list(block.reads)
    if not regions:
        raise ValueError(f"dlight: block {block.name_hint} reads nothing")
    dominant = max(
        regions,
        key=lambda each: len(collect_block_iter_vars_used_in_access_region(block, each.region)),
    )
    if any(
        int(part.extent) != 1 for part in dominant.region if isinstance(part.extent, tir.IntImm)
    ):
        raise ValueError(f"dlight: block {block.name_hint} reads {dominant}, which is no element")
    [place] = dominant.buffer.offset_of([part.min for part in dominant.region])
    return place


def is_broadcast_epilogue(sch: Schedule, block: BlockRV, epilogue: BlockRV) -> bool:
    """Whether what a block writes is read at places that lack some axis of the epilogue.

    Raises
    ------
    ValueError : the epilogue reads nothing that the block writes.
    """
    written = [region.buffer for region in sch.get(block).writes]
    reader = sch.get(epilogue)
    axes = {
        axis.var
        for axis in reader.iter_vars
        if not (isinstance(axis.dom.extent, tir.IntImm) and int(axis.dom.extent) == 1)
    }
    for region in reader.reads:
        if any(region.buffer.same_as(buffer) for buffer in written):
            used = collect_block_iter_vars_used_in_access_region(reader, region.region)
            return bool(axes - used)
    raise ValueError(
        f"dlight: block {reader.name_hint} reads nothing that {sch.get(block).name_hint} writes"
    )


def get_max_threads_per_block(target: Target) -> int:
    """Threads that a block of them may have on a target with the key ``gpu``, or else 64.

    Raises
    ------
    ValueError : the target is for another kind of device.
    """
    _require_gpu(target)
    for name in ("max_threads_per_block", "max_num_threads"):
        if target.attrs.get(name) is not None:
            return int(target.attrs[name])
    return 64


def get_max_shared_memory_per_block(target: Target) -> int:
    """Bytes of shared memory that a block of threads may have.

    Raises
    ------
    ValueError : the target is for another kind of device, or does not say.
    """
    _require_gpu(target)
    limit = target.attrs.get("max_shared_memory_per_block")
    if limit is None:
        raise ValueError(f"dlight: {target} has no max_shared_memory_per_block; add the option")
    return int(limit)


def _require_gpu(target: Target) -> None:
    if "gpu" not in target.keys:
        raise ValueError(f"dlight: expected a target with the key gpu, got {target}")
