"""Tiling of products for tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import tir
from tvm.tir.schedule import BlockRV, LoopRV, Schedule
from tvm.tir.schedule.intrinsic_mapping import (
    AutoTensorizeMappingInfo,
    get_auto_tensorize_mapping_info,
)

from ..sch_analysis import AUTO_TENSORIZE, TILED, constant_extent, needs_tiling
from .intrinsic_tiling import mark_for_intrinsic
from .multi_level_tiling import MultiLevelTiling, ReuseType, TilingState

__all__ = ["MultiLevelTilingTensorCore"]

_GROUP = ("init", "load_a", "load_b", "compute", "store")
_FRAGMENTS = ("wmma.matrix_a", "wmma.matrix_b")
_ACCUMULATOR = "wmma.accumulator"
# Elements by which rows of shared memory are longer than a multiple of 32, so that the rows that a
# fragment is loaded from are in different banks.
_ROW_PADDING = {"float16": 8, "int8": 16, "uint8": 16}


class _ProductState(TilingState):
    """The state of a product, with its group of intrinsics and the sampled factors of its axes."""

    def __init__(
        self,
        sch: Schedule,
        block: BlockRV,
        group: Mapping[str, str],
        mapping: AutoTensorizeMappingInfo,
    ) -> None:
        super().__init__(sch, block)
        self.group, self.mapping = group, mapping
        self.factors: list[list[Any]] = []
        self.store: BlockRV = block

    def copy(self) -> _ProductState:
        other = super().copy()
        assert isinstance(other, _ProductState)
        other.factors = list(self.factors)
        return other


class MultiLevelTilingTensorCore(MultiLevelTiling):
    """Tiles products, and sums that are products when their axes are fused, for tensor cores.

    Operands and results are copied to buffers in which they are matrices. Tiles of operands go to
    shared memory and from there to fragments; tiles of results go back the same way. The blocks
    that intrinsics do are annotated, and `RewriteTensorize` exchanges them.

    Parameters
    ----------
    intrin_groups : names of intrinsics by "init", "load_a", "load_b", "compute" and "store"; each
        group that fits a block makes schedules of its own. See
        `tvm.tir.tensor_intrin.cuda.get_wmma_intrin_group`.
    structure : levels of tiles, with two or three of "R". tile_binds : of the last of them the
        warps of a block of threads.
    use_software_pipeline : load tiles, and fragments, ahead of their use.

    The others are those of `MultiLevelTiling`; `reuse_write` is "must", or "no" to store fragments
    of results in global memory.

    Raises
    ------
    ValueError : a group lacks a name or names no intrinsic, or there are fewer levels of "R".
    """

    def __init__(
        self,
        intrin_groups: Sequence[Mapping[str, str]],
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        use_software_pipeline: bool = False,
    ) -> None:
        super().__init__(
            structure,
            tile_binds,
            max_innermost_factor,
            vector_load_lens,
            reuse_read,
            reuse_write,
        )
        for group in intrin_groups:
            missing = [key for key in _GROUP if key not in group]
            if missing:
                raise ValueError(
                    f"MultiLevelTilingTensorCore: a group of intrinsics lacks {', '.join(missing)}"
                )
            for key in _GROUP:
                tir.TensorIntrin.get(group[key])
        if len(self.reduction_levels) < 2:
            raise ValueError(
                "MultiLevelTilingTensorCore: tiles and fragments of operands are loaded at levels "
                f"of R, of which {structure!r} has {len(self.reduction_levels)}; it takes two"
            )
        if self.reuse_write.req == "may":
            raise ValueError(
                "MultiLevelTilingTensorCore: reuse_write is must or no; results have no other place"
            )
        self.intrin_groups = [dict(group) for group in intrin_groups]
        self.use_software_pipeline = use_software_pipeline

    def _initialize_with_tune_context(self, context: Any) -> None:
        """Whole warps run a product: how many threads there are needs no bounds of its own."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not needs_tiling(sch, block):
            return [sch]
        if any(constant_extent(sch, loop) is None for loop in sch.get_loops(block)):
            return [sch]
        node = sch.get(block)
        if len(node.reads) != 2 or len(node.writes) != 1:
            return [sch]
        states: list[Any] = []
        for group in self.intrin_groups:
            desc = tir.TensorIntrin.get(group["compute"]).desc
            mapping = get_auto_tensorize_mapping_info(sch, block, desc)
            if mapping is not None:
                trial = sch.copy()
                trial.annotate(block, TILED, self.structure)
                states.append(_ProductState(trial, block, group, mapping))
        for step in self.steps():
            states = [after for state in states for after in self._tried(step, state)]
        return [state.sch for state in states] or [sch]

    @staticmethod
    def _tried(step: Callable[[Any], list[Any]], state: Any) -> list[Any]:
        """What a step makes; nothing where copies cannot move, as those of some padded products."""
        try:
            return step(state)
        except tir.ScheduleError:
            return []

    def steps(self) -> list[Callable[[Any], list[Any]]]:
        return [
            self._as_product,
            self.tile,
            self._store_results,
            self.keep_operands,
            self._load_fragments,
            self._pipeline,
        ]

    def split_loop(self, state: TilingState, loop: LoopRV, parts: int) -> list[LoopRV]:
        assert isinstance(state, _ProductState)
        factors = state.sch.sample_perfect_tile(
            loop, n=parts, max_innermost_factor=self.max_innermost_factor
        )
        state.factors.append(list(factors))
        return state.sch.split(loop, factors=factors)

    def _as_product(self, state: _ProductState) -> list[_ProductState]:
        """Make operands and results matrices, and the block a product of fragments."""
        sch, block, mapping = state.sch, state.block, state.mapping
        before = sch.get(block)
        uses = {
            ("write", 0): before.writes[0].buffer,
            ("read", 0): before.reads[0].buffer,
            ("read", 1): before.reads[1].buffer,
        }
        copies = [sch.reindex(block, use) for use in uses]
        for (use, buffer), copy in zip(uses.items(), copies):
            node = sch.get(block)
            region = (node.reads if use[0] == "read" else node.writes)[use[1]]
            layout = mapping.layout_of(buffer, node.iter_vars, [part.min for part in region.region])
            sch.transform_layout(block, use, layout)
            sch.transform_block_layout(copy, layout)
        sch.transform_block_layout(block, mapping.mappings[0])
        product = mark_for_intrinsic(sch, block, state.group["compute"])
        if product is None:
            return []
        sch.annotate(product, f"{AUTO_TENSORIZE}_init", state.group["init"])
        sch.annotate(product, "warp_execution", 1)
        state.block = product
        # Padding puts copies of its own in the place of those that were made above.
        (state.store,) = sch.get_consumers(product)
        return [state]

    def _store_results(self, state: _ProductState) -> list[_ProductState]:
        """Keep fragments of results, and store them."""
        sch, block = state.sch, state.block
        if self.reuse_write.req == "no":
            fragments = sch.cache_write(block, 0, _ACCUMULATOR)
            place = state.tiles[self.reduction_levels[0] - 1][-1]
            sch.reverse_compute_at(fragments, place, preserve_unit_loops=True)
            sch.reverse_compute_inline(state.store)
            stored = mark_for_intrinsic(sch, fragments, state.group["store"])
            return [] if stored is None else [state]
        shared = sch.cache_write(block, 0, self.reuse_write.scope)
        sch.reverse_compute_inline(state.store)
        state.store = shared
        self._group_by_warp(state)
        fragments = sch.cache_write(block, 0, _ACCUMULATOR)
        results = []
        for level in self.reuse_write.levels:
            after = state.copy()
            self._store_through_shared(after, fragments, level)
            results.append(after)
        return results

    def _group_by_warp(self, state: _ProductState) -> None:
        """Lay results out as [row and column of warps, of a warp's fragments, of a fragment]."""
        sch = state.sch
        shape = sch.get(state.block).writes[0].region
        rows, columns = (int(part.extent) for part in shape[-2:])
        threads = len(self.tile_binds)
        per_warp = []
        for factors in state.factors[-3:-1]:
            count = factors[threads]
            for factor in factors[threads + 1 :]:
                count = count * factor
            per_warp.append(count)
        names = [tir.Var(f"i{at}", "int32") for at in range(len(shape))]
        row, column = names[-2:]
        layout = tir.IndexMap(
            names,
            [
                *names[:-2],
                tir.floordiv(row, per_warp[0] * rows),
                tir.floordiv(column, per_warp[1] * columns),
                tir.floormod(tir.floordiv(row, rows), per_warp[0]),
                tir.floormod(tir.floordiv(column, columns), per_warp[1]),
                tir.floormod(row, rows),
                tir.floormod(column, columns),
            ],
            None,
        )
        sch.transform_block_layout(state.store, layout)
        # Sampled tiles divide the axes, so that no two elements share a place.
        sch.transform_layout(state.block, ("write", 0), layout, assume_injective_transform=True)

    def _store_through_shared(self, state: _ProductState, fragments: BlockRV, level: int) -> None:
        """Store a row of each warp's fragments in shared memory, and copy it from there."""
        sch, store = state.sch, state.store
        dimensions = len(sch.get(store).iter_vars)
        place = state.tiles[level - 1][-1]
        sch.reverse_compute_at(fragments, place, preserve_unit_loops=True)
        sch.reverse_compute_at(store, place, preserve_unit_loops=True)
        loops = sch.get_loops(store)[-dimensions:]
        row = loops.pop(dimensions - 4)
        sch.reorder(row, *loops)
        sch.fuse(*loops)
        self.copy_together(sch, store)
        state.write_copies[0] = store
        sch.compute_at(fragments, row, preserve_unit_loops=True)
        loops = sch.get_loops(fragments)[-dimensions:]
        warps = sch.fuse(*loops[: dimensions - 4])
        sch.bind(warps, self.tile_binds[-1])
        outer = sch.blockize(sch.get_loops(fragments)[-2])
        sch.annotate(outer, AUTO_TENSORIZE, state.group["store"])

    def _load_fragments(self, state: _ProductState) -> list[_ProductState]:
        """Load fragments of operands from shared memory, whose rows are put in different banks."""
        sch = state.sch
        place = state.tiles[self.reduction_levels[1]][-1]
        for number, (scope, key) in enumerate(zip(_FRAGMENTS, ("load_a", "load_b"))):
            load = sch.cache_read(state.block, number, scope)
            sch.compute_at(load, place, preserve_unit_loops=True)
            if mark_for_intrinsic(sch, load, state.group[key]) is None:
                return []
        for copy in state.read_copies.values():
            for producer in sch.get_producers(copy):
                sch.compute_inline(producer)
            padding = _ROW_PADDING.get(str(sch.get(copy).writes[0].buffer.dtype))
            if padding is not None:
                sch.storage_align(copy, 0, -2, 32, padding)
        return [state]

    def _pipeline(self, state: _ProductState) -> list[_ProductState]:
        """Load tiles and fragments one iteration ahead of their use."""
        if not self.use_software_pipeline:
            return [state]
        sch, levels = state.sch, self.reduction_levels
        loops = [loop for level in levels for loop in state.tiles[level]]
        if all(constant_extent(sch, loop) == 1 for loop in loops):
            return [state]
        for copy in state.read_copies.values():
            sch.annotate(copy, "tir.manifest_shared_memory_local_stage", 1)
            sch.annotate(copy, "double_buffer_scope", 0)
        # Fragments: the loads of both operands run ahead of the product.
        inner = state.tiles[levels[1]][-1]
        sch.annotate(inner, "software_pipeline_stage", [0, 0, 1])
        sch.annotate(inner, "software_pipeline_order", [0, 1, 2])
        # Tiles: copies to registers and on to shared memory, of both operands, then what became of
        # the inner loop: its loads ahead, its iterations, and its last product, which runs behind.
        outer = state.tiles[levels[0]][-1]
        sch.annotate(outer, "software_pipeline_stage", [0, 0, 0, 0, 0, 1, 1])
        sch.annotate(outer, "software_pipeline_order", [0, 3, 1, 4, 5, 2, 6])
        return [state]
