"""A schedule found for one program, for another that is about the same block.

A convolution with a ReLU behind it and one with a sum have the same anchor block and different
blocks around. What was found for one is a good schedule of the other, once the blocks around are
out of the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tir
from tvm.ir import PrimExpr
from tvm.target import Target
from tvm.tir.analysis import undefined_vars
from tvm.tir.schedule import BlockRV, Instruction, LoopRV, Schedule, Trace
from tvm.tir.schedule.analysis import has_block

from .sch_analysis import all_blocks, constant_extent, cores_of, is_spatial, loop_kind
from .thread_bind import bind_block_thread_idx, threads_per_block

__all__ = ["schedule_using_anchor_trace"]

_BLOCKS_OF_THREADS = 256
_VECTOR = 64
_LANES = 16
# Steps that depend on what is around the anchor. Where they cannot be taken in this program, the
# program is right without them.
_OPTIONAL = (
    "compute_inline",
    "reverse_compute_inline",
    "compute_at",
    "reverse_compute_at",
)


def schedule_using_anchor_trace(sch: Schedule, anchor_trace: Trace, target: Target) -> None:
    """Carry out on one module what was found for another that has the same anchor block.

    Blocks that the trace does not know are inlined into their readers. The last one, behind the
    anchor, takes the place of the one that the trace has there; if the trace has none, it is
    computed in the outermost loop of what it reads, or gets a schedule of its own. Steps for blocks
    that only the other module has are left out.

    Parameters
    ----------
    sch : schedule of the module, as yet without steps; it is changed in place.
    anchor_trace : of the other module.
    target : says how what remains is run in parallel.

    Raises
    ------
    ScheduleError : a step for the anchor block cannot be taken; the modules are about different
        blocks.
    """
    known = {
        str(inst.arguments["name"])
        for inst in anchor_trace.insts
        if str(inst.kind.name) == "GetBlock"
    }
    last = _inline_unknown(sch, known)
    missing = known - {"root"} - {str(node.name_hint) for _, node in all_blocks(sch)}
    name = None if last is None else str(sch.get(last).name_hint)
    stand_in = {missing.pop(): name} if name is not None and len(missing) == 1 else {}
    _Replay(sch, stand_in).run(anchor_trace)
    if name is not None and has_block(sch, name):
        block = sch.get_block(name)
        if not _is_scheduled(sch, block):
            _finish(sch, block, target)


def _inline_unknown(sch: Schedule, known: set[str]) -> BlockRV | None:
    """Inline blocks that a trace does not know; returns the last one that remains, if any."""
    unknown = [
        block
        for block, node in all_blocks(sch)
        if str(node.name_hint) not in known and is_spatial(node)
    ]
    # What is written for the caller cannot move into its readers, but into what it reads.
    for inline in (sch.compute_inline, sch.reverse_compute_inline):
        left = []
        for block in unknown:
            try:
                inline(block)
            except tir.ScheduleError:
                left.append(block)
        unknown = left
    return unknown[-1] if unknown else None


class _Replay:
    """Carries out those instructions of a trace whose blocks and loops there are."""

    def __init__(self, sch: Schedule, stand_in: dict[str, str]) -> None:
        self._sch = sch
        self._stand_in = stand_in
        self._values: dict[Any, Any] = {}

    def run(self, trace: Trace) -> None:
        for inst in trace.insts:
            arguments = dict(inst.arguments)
            if str(inst.kind.name) == "GetBlock":
                name = str(arguments["name"])
                arguments["name"] = self._stand_in.get(name, name)
                if not has_block(self._sch, str(arguments["name"])):
                    continue
            try:
                ours = {key: self._ours(value) for key, value in arguments.items()}
            except KeyError:
                # Made of what this program does not have.
                continue
            results = self._call(inst, ours, trace.get_decision(inst))
            for theirs, value in zip(inst.outputs, results):
                self._values[theirs] = value

    def _call(self, inst: Instruction, arguments: dict[str, Any], decision: Any) -> Sequence[Any]:
        method = str(inst.kind.method)
        if decision is not None:
            arguments["decision"] = decision
        spread = str(inst.kind.variadic or "")
        listed = arguments.pop(spread) if spread else ()
        try:
            result = getattr(self._sch, method)(*listed, **arguments)
        except tir.ScheduleError:
            if method not in _OPTIONAL:
                raise
            return []
        return result if isinstance(result, (list, tuple)) else [result]

    def _ours(self, value: Any) -> Any:
        """A value of the trace in terms of this schedule; KeyError if there is none."""
        if isinstance(value, (BlockRV, LoopRV)):
            return self._values[value]
        if isinstance(value, PrimExpr):
            found = {var: self._values[var] for var in undefined_vars(value)}
            return tir.stmt_functor.substitute(value, found) if found else value
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self._ours(item) for item in value]
        return value


def _is_scheduled(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block, found by what it reads or by its name, was moved or runs in parallel."""
    loops = sch.get_loops(block)
    if not loops:
        return False
    kind = int(sch.get(loops[0]).kind)
    return kind != tir.ForKind.SERIAL or len(sch.get_child_blocks(loops[0])) > 1


def _finish(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Schedule a block that the trace knows nothing of."""
    if target.get_attr("max_threads_per_block") is not None:
        threads = threads_per_block(target, "schedule_using_anchor_trace")
        bind_block_thread_idx(sch, block, _BLOCKS_OF_THREADS, threads, lambda count: count)
        return
    producers = sch.get_producers(block)
    around = sch.get_loops(producers[-1])[:1] if producers else []
    try:
        if not around:
            raise tir.ScheduleError("nothing to be computed in")
        sch.reverse_compute_at(block, around[0])
    except tir.ScheduleError:
        _in_parallel(sch, block, cores_of(target))
    loops = sch.get_loops(block)
    extent = constant_extent(sch, loops[-1]) if loops else None
    if extent is None or extent == 1 or loop_kind(sch, loops[-1]) != "S":
        return
    if int(sch.get(loops[-1]).kind) != tir.ForKind.SERIAL:
        # All of its loops are those of what it reads.
        return
    innermost = loops[-1]
    if extent > _VECTOR and extent % _LANES == 0:
        _, innermost = sch.split(innermost, factors=[None, _LANES])
        extent = _LANES
    if extent <= _VECTOR:
        sch.vectorize(innermost)


def _in_parallel(sch: Schedule, block: BlockRV, cores: int) -> None:
    taken: list[LoopRV] = []
    total = 1
    for loop in sch.get_loops(block)[:-1]:
        if total >= 4 * cores or loop_kind(sch, loop) != "S":
            break
        taken.append(loop)
        total *= constant_extent(sch, loop) or 1
    if taken:
        sch.parallel(sch.fuse(*taken))
