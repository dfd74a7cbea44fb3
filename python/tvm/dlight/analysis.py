"""Blocks of a program as rules see them."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tir
from tvm.ir import PrimExpr
from tvm.meta_schedule.sch_analysis import is_reduction, loop_kinds
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

__all__ = ["BlockInfo", "IterInfo", "normalize_prim_func"]


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

    def loops(self, kind: str) -> list[LoopRV]:
        """Loops of one kind, outermost first."""
        return [each.loop_rv for each in self.iters if each.kind == kind]


def normalize_prim_func(sch: Schedule) -> list[BlockInfo] | None:
    """The blocks of a function in order, after spatial loops were put around those of reductions.

    Returns
    -------
    None where blocks are nested, or a loop is neither spatial nor of a reduction.
    """
    infos = []
    for block in sch.get_child_blocks(sch.get_block("root")):
        info = _info_of(sch, block)
        if info is None:
            return None
        infos.append(info)
    return infos


def _info_of(sch: Schedule, block: BlockRV) -> BlockInfo | None:
    node = sch.get(block)
    if sch.get_child_blocks(block):
        return None
    if not sch.get_loops(block):
        sch.add_unit_loop(block)
    loops = sch.get_loops(block)
    reduces = is_reduction(node)
    kinds = loop_kinds(sch, block)
    # A loop of one iteration feeds nothing.
    for at, loop in enumerate(loops):
        extent = sch.get(loop).extent
        if kinds[at] == "O" and isinstance(extent, tir.IntImm) and int(extent) == 1:
            kinds[at] = "S"
    if "O" in kinds or (not reduces and "R" in kinds):
        return None
    order = [at for kind in "SR" for at in range(len(loops)) if kinds[at] == kind]
    if order != sorted(order):
        try:
            sch.reorder(*(loops[at] for at in order))
        except tir.ScheduleError:
            return None
    iters = []
    for at in order:
        loop = sch.get(loops[at])
        iters.append(IterInfo(kinds[at], loop.loop_var, loop.extent, loops[at]))
    return BlockInfo(str(node.name_hint), tuple(iters), block, reduces)
