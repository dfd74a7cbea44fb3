"""Tiling of sums in several levels, on processors and graphics processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tvm import tir
from tvm.runtime import DataType
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

from ..access_pattern import is_elementwise_copy
from ..sch_analysis import TILED, annotation, constant_extent, needs_tiling
from .schedule_rule import ScheduleRule

__all__ = ["MultiLevelTiling", "MultiLevelTilingWideVector", "ReuseType", "TilingState"]

_SPATIAL, _REDUCE = int(tir.IterVar.DataPar), int(tir.IterVar.CommReduce)

# Buffers of asynchronous copies that are worth trying on NVIDIA's architectures from 8.0 on.
_PIPELINE_DEPTHS = (4, 5)


class ReuseType(NamedTuple):
    """Where a tile is kept.

    Attributes
    ----------
    req : "no", "may" or "must". levels : tile levels, counted from 1, at which it is. scope : of
        the memory.
    """

    req: str = "no"
    levels: Sequence[int] = ()
    scope: str = "global"


class TilingState:
    """A schedule on the way through the rule.

    Attributes
    ----------
    sch, block : the schedule, and the block that is tiled. tiles : its loops by level.
    read_copies, write_copies : blocks that copy operands, by their number, and results.
    """

    def __init__(self, sch: Schedule, block: BlockRV) -> None:
        self.sch, self.block = sch, block
        self.tiles: list[list[LoopRV]] = []
        self.read_copies: dict[int, BlockRV] = {}
        self.write_copies: dict[int, BlockRV] = {}

    def copy(self) -> TilingState:
        """The same with a schedule of its own."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.sch = self.sch.copy()
        other.read_copies = dict(self.read_copies)
        other.write_copies = dict(self.write_copies)
        return other


class MultiLevelTiling(ScheduleRule):
    """Tiles sums in several levels.

    Parameters
    ----------
    structure : levels of tiles from the outermost, "S" of the independent loops and "R" of the
        summed ones.
    tile_binds : thread axes that run the first levels, each level as one loop.
    max_innermost_factor : largest innermost tile.
    vector_load_lens : candidates of how many elements a thread copies at once into shared memory.
    reuse_read : a buffer for the tiles of what is read; "no" or "must".
    reuse_write : a buffer for the tile of results, or the elementwise reader at a level of tiles.
    filter_fn : takes a schedule and a block; blocks of which it is true are tiled whatever they do.

    Raises
    ------
    ValueError : the structure has other letters, or a reuse is none.
    """

    def __init__(
        self,
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        filter_fn: Callable[[Schedule, BlockRV], bool] | None = None,
    ) -> None:
        if not structure or set(structure) - {"S", "R"}:
            raise ValueError(f"MultiLevelTiling: a structure is of S and R, got {structure!r}")
        self.structure = structure
        self.tile_binds = [str(axis) for axis in tile_binds or ()]
        self.max_innermost_factor = -1 if max_innermost_factor is None else max_innermost_factor
        self.vector_load_lens = [int(length) for length in vector_load_lens or ()]
        self.reuse_read = reuse_read or ReuseType()
        self.reuse_write = reuse_write or ReuseType()
        self.filter_fn = filter_fn
        if self.reuse_write.req not in ("no", "may", "must"):
            raise ValueError(
                f"MultiLevelTiling: reuse_write is no, may or must, got {self.reuse_write.req!r}"
            )
        if self.reuse_read.req not in ("no", "must"):
            raise ValueError(
                f"MultiLevelTiling: reuse_read is no or must, got {self.reuse_read.req!r}"
            )
        self.spatial_levels = [i for i, letter in enumerate(structure) if letter == "S"]
        self.reduction_levels = [i for i, letter in enumerate(structure) if letter == "R"]
        self._threads: tuple[int, int] | None = None
        self._depths: tuple[int, ...] = ()

    def _initialize_with_tune_context(self, context: Any) -> None:
        target = context.target
        self._threads, self._depths = None, ()
        if target is None or "gpu" not in target.keys:
            return
        limit, warp = target.get_attr("max_threads_per_block"), target.thread_warp_size
        self._threads = None if limit is None else (int(warp), int(limit))
        architecture = target.arch.removeprefix("sm_")
        if architecture.isdigit() and int(architecture) >= 80:
            self._depths = _PIPELINE_DEPTHS

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if self.filter_fn is not None and self.filter_fn(sch, block):
            if annotation(sch.get(block), TILED) is not None:
                return [sch]
        elif not needs_tiling(sch, block):
            return [sch]
        if any(constant_extent(sch, loop) is None for loop in sch.get_loops(block)):
            return [sch]
        sch.annotate(block, TILED, self.structure)
        states = [TilingState(sch, block)]
        for step in self.steps():
            states = [after for state in states for after in step(state)]
        return [state.sch for state in states]

    def steps(self) -> list[Callable[[Any], list[Any]]]:
        """What is done to a block, in order; each step makes several states of one."""
        return [self.tile, self.keep_results, self.keep_operands, self.copy_asynchronously]

    def split_loop(self, state: TilingState, loop: LoopRV, parts: int) -> list[LoopRV]:
        """A loop of the block as the tiles of `parts` levels."""
        factors = state.sch.sample_perfect_tile(
            loop, n=parts, max_innermost_factor=self.max_innermost_factor
        )
        return state.sch.split(loop, factors=factors)

    def tile(self, state: TilingState) -> list[TilingState]:
        """Split the loops, order them by level and give the first levels to threads."""
        sch, block = state.sch, state.block
        tiles: list[list[LoopRV]] = [[] for _ in self.structure]
        results = 1
        for loop, axis in zip(sch.get_loops(block), sch.get(block).iter_vars):
            kind = int(axis.iter_type)
            if kind == _SPATIAL:
                levels = self.spatial_levels
                results *= constant_extent(sch, loop) or 1
            elif kind == _REDUCE:
                levels = self.reduction_levels
            else:
                continue
            parts = [loop] if len(levels) == 1 else self.split_loop(state, loop, len(levels))
            for level, part in zip(levels, parts):
                tiles[level].append(part)
        sch.reorder(*[loop for level in tiles for loop in level])
        for level, axis_name in enumerate(self.tile_binds[: len(tiles)]):
            fused = sch.fuse(*tiles[level])
            sch.bind(fused, axis_name)
            tiles[level] = [fused]
        state.tiles = tiles
        if self._threads is not None:
            warp, limit = self._threads
            fewest = warp if results > 2 * warp else 1
            sch.annotate(block, "meta_schedule.thread_extent_low_inclusive", fewest)
            sch.annotate(block, "meta_schedule.thread_extent_high_inclusive", limit)
        return [state]

    def keep_results(self, state: TilingState) -> list[TilingState]:
        """Keep a tile of results in a buffer, or do the next step on it."""
        required, levels = self.reuse_write.req, list(self.reuse_write.levels)
        if required == "no":
            return [state]
        wanted = annotation(state.sch.get(state.block), "meta_schedule.write_cache_level")
        if wanted is not None:
            required = "must"
            levels = [int(level) for level in ([wanted] if isinstance(wanted, int) else wanted)]
        results: list[TilingState] = []
        if required == "may":
            readers = state.sch.get_consumers(state.block)
            if len(readers) == 1 and is_elementwise_copy(state.sch.get(readers[0])):
                results = self._placed(state, readers[0], levels)
                state.write_copies[0] = readers[0]
                return [*results, state]
            results.append(state.copy())
        copied = state.sch.cache_write(state.block, 0, self.reuse_write.scope)
        state.write_copies[0] = copied
        return [*results, *self._placed(state, copied, levels)]

    @staticmethod
    def _placed(state: TilingState, reader: BlockRV, levels: Sequence[int]) -> list[TilingState]:
        """States with a reader at each of the levels at which it may stand."""
        results = []
        for level in levels:
            after = state.copy()
            place = after.tiles[level - 1][-1]
            try:
                after.sch.reverse_compute_at(reader, place, preserve_unit_loops=True)
            except tir.ScheduleError:
                continue
            results.append(after)
        return results

    def keep_operands(self, state: TilingState) -> list[TilingState]:
        """Copy the tiles of what is read into a buffer."""
        if self.reuse_read.req == "no":
            return [state]
        return [self._with_copies(state.copy(), level) for level in self.reuse_read.levels]

    def _with_copies(self, state: TilingState, level: int) -> TilingState:
        sch, place = state.sch, state.tiles[level - 1][-1]
        node = sch.get(state.block)
        for number, region in enumerate(node.reads):
            dimensions = len(region.buffer.shape)
            if region.buffer.same_as(node.writes[0].buffer) or not dimensions:
                continue
            copied = sch.cache_read(state.block, number, self.reuse_read.scope, [state.block])
            sch.compute_at(copied, place, preserve_unit_loops=True)
            sch.fuse(*sch.get_loops(copied)[-dimensions:])
            self.copy_together(sch, copied)
            state.read_copies[number] = copied
        return state

    def copy_together(self, sch: Schedule, block: BlockRV) -> None:
        """Sample how many elements a thread of a block copies at once."""
        dtype = str(sch.get(block).writes[0].buffer.dtype)
        lengths = [n for n in self.vector_load_lens if _is_access_width(dtype, n)]
        if lengths:
            chances = [1.0 / len(lengths)] * len(lengths)
            length = sch.sample_categorical(lengths, chances)
            sch.annotate(block, "meta_schedule.cooperative_fetch", length)

    def copy_asynchronously(self, state: TilingState) -> list[TilingState]:
        """Also load tiles ahead of their use, where the machine copies asynchronously."""
        if not self.reduction_levels or not self._depths:
            return [state]
        loops = state.tiles[self.reduction_levels[0]]
        if not loops:
            return [state]
        body = state.sch.get(loops[-1]).body
        # Two copies of operands and a product: a pipeline of other parts was not measured.
        if not isinstance(body, tir.SeqStmt) or len(body.seq) != 3:
            return [state]
        if not all(isinstance(part, tir.For) for part in body.seq):
            return [state]
        results = [state]
        for depth in self._depths:
            after = state.copy()
            fused = after.sch.fuse(*loops)
            after.sch.annotate(fused, "software_pipeline_stage", [0, 0, depth - 2])
            after.sch.annotate(fused, "software_pipeline_order", [0, 1, 2])
            after.sch.annotate(fused, "software_pipeline_async_stages", [0])
            results.append(after)
        return results


def _is_access_width(dtype: str, elements: int) -> bool:
    """Whether a GPU has an access of so many elements; those of other types are not known."""
    if dtype == "float32":
        return elements <= 4
    if dtype == "float16":
        return elements <= 8 and (elements == 1 or elements % 2 == 0)
    if dtype == "int8":
        return elements <= 16
    return True


class MultiLevelTilingWideVector(MultiLevelTiling):
    """Tiles sums so that the innermost loop over the last dimension of the result is one vector.

    Parameters
    ----------
    vector_length_in_bits : of a vector register.
    """

    def __init__(
        self,
        structure: str,
        vector_length_in_bits: int,
        max_innermost_factor: int | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
    ) -> None:
        super().__init__(
            structure,
            max_innermost_factor=max_innermost_factor,
            reuse_read=reuse_read,
            reuse_write=reuse_write,
        )
        self.vector_length_in_bits = vector_length_in_bits

    def split_loop(self, state: TilingState, loop: LoopRV, parts: int) -> list[LoopRV]:
        sch, block = state.sch, state.block
        node, var = sch.get(block), sch.get(loop).loop_var
        written = node.writes[0]
        # Loops are the block's axes, in order, when they are split.
        last = [
            axis.var.same_as(written.region[-1].min) and value.same_as(var)
            for axis, value in zip(node.iter_vars, sch.get_iter_values(block))
        ]
        if not len(written.region) or not any(last):
            return super().split_loop(state, loop, parts)
        lanes = self.vector_length_in_bits // DataType(str(written.buffer.dtype)).bits
        extent = constant_extent(sch, loop) or 1
        if extent <= lanes:
            return sch.split(loop, factors=[*[1] * (parts - 1), extent])
        outer, inner = sch.split(loop, factors=[None, lanes])
        return [*super().split_loop(state, outer, parts - 1), inner]
