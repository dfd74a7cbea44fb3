"""The postprocessors of graphics processors."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tir
from tvm.error import TVMError
from tvm.ir import IRModule
from tvm.target import Target
from tvm.tir.schedule import BlockRV, Instruction, LoopRV, Schedule

from ..sch_analysis import annotation, constant_extent, root_annotations
from ..thread_bind import bind_block_thread_idx, threads_per_block
from .postproc import Postproc

__all__ = ["RewriteCooperativeFetch", "RewriteUnboundBlock", "VerifyGPUCode"]

_FETCH = "meta_schedule.cooperative_fetch"
_WARP = "warp_execution"


class RewriteUnboundBlock(Postproc):
    """Runs blocks that no thread runs yet on as many threads as a block of them has.

    Parameters
    ----------
    max_threadblocks : blocks of threads; longer loops are run in several rounds.
    """

    def __init__(self, max_threadblocks: int = 256) -> None:
        self.max_threadblocks = max_threadblocks
        self._threads = -1

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._threads = threads_per_block(context.target, "RewriteUnboundBlock")

    def apply(self, sch: Schedule) -> bool:
        for _, root, _ in list(root_annotations(sch)):
            for block in sch.get_child_blocks(root):
                bind_block_thread_idx(
                    sch,
                    block,
                    self.max_threadblocks,
                    self._threads,
                    lambda iterations: min(self._threads, iterations),
                )
        return True


class RewriteCooperativeFetch(Postproc):
    """Lets all threads of a block copy a tile together, each several elements at once."""

    def __init__(self) -> None:
        self._warp = -1

    def _initialize_with_tune_context(self, context: Any) -> None:
        target = context.target
        self._warp = -1 if target is None else int(target.get_attr("thread_warp_size", -1))

    def apply(self, sch: Schedule) -> bool:
        extents: dict[str, int] = {}
        copies: list[tuple[BlockRV, int, dict[str, int]]] = []
        for inst in sch.trace.insts:
            kind = str(inst.kind.name)
            if kind == "Bind":
                extent = constant_extent(sch, inst.inputs[0])
                if extent is not None:
                    extents[str(inst.arguments["thread_axis"])] = extent
            elif kind == "Annotate" and str(inst.arguments["ann_key"]) == _WARP:
                # The threads of a warp carry out an intrinsic, and no loop stands for them.
                extents["threadIdx.x"] = self._warp
            elif kind == "Annotate" and str(inst.arguments["ann_key"]) == _FETCH:
                copies.append((inst.inputs[0], self._lanes(sch, inst), dict(extents)))
        for block, lanes, threads in copies:
            self._copy_together(sch, block, lanes, threads)
        return True

    @staticmethod
    def _lanes(sch: Schedule, inst: Instruction) -> int:
        value = inst.arguments["ann_val"]
        if isinstance(value, tir.Var):
            value = sch.get(value)
        return int(getattr(value, "value", value))

    @staticmethod
    def _copy_together(sch: Schedule, block: BlockRV, lanes: int, threads: dict[str, int]) -> None:
        if annotation(sch.get(block), _FETCH) is None:
            return
        sch.unannotate(block, _FETCH)
        fused = sch.get_loops(block)[-1]
        extent = constant_extent(sch, fused)
        if extent is None:
            return
        axes = [axis for axis in ("threadIdx.y", "threadIdx.x") if axis in threads]
        vector = [lanes] if lanes > 1 and extent % lanes == 0 else []
        if not axes and not vector:
            return
        parts = sch.split(fused, factors=[None, *[threads[axis] for axis in axes], *vector])
        if vector and _is_aligned(sch, block, parts[-1], lanes):
            sch.vectorize(parts[-1])
        for axis, part in zip(reversed(axes), reversed(parts[1 : 1 + len(axes)])):
            sch.bind(part, axis)


def _is_aligned(sch: Schedule, block: BlockRV, lane: LoopRV, lanes: int) -> bool:
    """Whether `lanes` neighbours that a block copies begin at a multiple of them, in one row.

    A GPU traps where a vector of elements begins elsewhere.
    """
    node, var = sch.get(block), sch.get(lane).loop_var
    # Accesses are of 2, 4, 8 or 16 elements, and others are made of several.
    rows = [region.buffer.shape[-1] for region in (*node.reads, *node.writes)]
    whole = all(isinstance(row, tir.IntImm) and row.value % lanes == 0 for row in rows)
    if lanes & (lanes - 1) or not whole:
        return False
    last = node.writes[0].region[-1].min
    for axis, value in zip(node.iter_vars, sch.get_iter_values(block)):
        if axis.var.same_as(last):
            analyzer = tvm.arith.Analyzer()
            for loop in sch.get_loops(block):
                around = sch.get(loop)
                analyzer.bind(
                    around.loop_var, tvm.ir.Range.from_min_extent(around.min, around.extent)
                )
            first = tir.stmt_functor.substitute(value, {var: tir.const(0, var.dtype)})
            start = analyzer.modular_set(first)
            begins = int(start.coeff) % lanes == 0 and int(start.base) % lanes == 0
            return begins and analyzer.can_prove_equal(value, first + var)
    return False


class VerifyGPUCode(Postproc):
    """Refuses programs that a device cannot run: too many threads, too much shared memory."""

    def __init__(self) -> None:
        self._target: Target | None = None
        self._limits: dict[str, int] = {}
        self._warp = 1

    def _initialize_with_tune_context(self, context: Any) -> None:
        target = context.target
        threads = threads_per_block(target, "VerifyGPUCode")
        self._target, self._warp = target, target.thread_warp_size
        self._limits = {
            "max_shared_memory_per_block": target.max_shared_memory_per_block,
            "max_threads_per_block": threads,
            "max_vthread": 8,
            "max_vector_bytes": 16,
        }

    def apply(self, sch: Schedule) -> bool:
        if self._target is None:
            raise ValueError("VerifyGPUCode: give it a TuneContext before it judges a schedule")
        for var, function in sch.mod.functions.items():
            if not isinstance(function, tir.PrimFunc):
                continue
            if not _extents_fit(function.body, {}, self._warp):
                return False
            name = str(var.name_hint)
            try:
                with self._target:
                    lowered = tvm.lower(IRModule({name: function}))
            except TVMError:  # what is lowered is a candidate of a search
                return False
            if not all(
                tir.analysis.verify_gpu_code(part, self._limits)
                for part in lowered.functions.values()
            ):
                return False
        return True


def _extents_fit(node: Any, threads: dict[str, int], warp: int) -> bool:
    """Whether each tiled block has as many threads as the rule that tiled it allows."""
    if isinstance(node, tir.For) and int(node.kind) == tir.ForKind.THREAD_BINDING:
        tag = str(node.thread_binding.thread_tag)
        if tag.startswith("threadIdx"):
            if not isinstance(node.extent, tir.IntImm):
                return False
            threads = {**threads, tag: int(node.extent.value)}
    if isinstance(node, tir.BlockRealize):
        block = node.block
        if annotation(block, _WARP) is not None:
            threads = {**threads, "threadIdx.x": warp}
        fewest = annotation(block, "meta_schedule.thread_extent_low_inclusive")
        most = annotation(block, "meta_schedule.thread_extent_high_inclusive")
        if fewest is not None and most is not None:
            count = 1
            for extent in threads.values():
                count *= extent
            if not int(fewest) <= count <= int(most):
                return False
        return _extents_fit(block.body, threads, warp)
    if isinstance(node, tir.SeqStmt):
        return all(_extents_fit(part, threads, warp) for part in node.seq)
    if isinstance(node, tir.IfThenElse):
        parts = [part for part in (node.then_case, node.else_case) if part is not None]
        return all(_extents_fit(part, threads, warp) for part in parts)
    return not hasattr(node, "body") or _extents_fit(node.body, threads, warp)
