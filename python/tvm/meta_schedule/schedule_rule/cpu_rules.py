"""The rules of processors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tvm
from tvm import tir
from tvm.tir.schedule import BlockRV, LoopRV, Schedule

from ..sch_analysis import (
    constant_extent,
    has_data_reuse,
    is_reduction,
    is_root,
    is_spatial,
    loop_kinds,
    needs_rfactor,
)
from .schedule_rule import ScheduleRule, register_default_rules

__all__ = [
    "AddRFactor",
    "ApplyCustomRule",
    "AutoInline",
    "InlineConstantScalars",
    "MultiLevelTiling",
    "ParallelizeVectorizeUnroll",
    "RandomComputeLocation",
    "ReuseType",
]

_TILED = "meta_schedule.tiling_structure"


class ApplyCustomRule(ScheduleRule):
    """Schedules blocks that say how: their annotation ``schedule_rule`` is a function's name.

    The function is registered as ``meta_schedule.<target key>.<name>``, or under the name itself.
    """

    is_custom = True

    def __init__(self) -> None:
        self._keys: list[str] = []

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._keys = [] if context.target is None else [str(key) for key in context.target.keys]

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        name = sch.get(block).annotations.get("schedule_rule")
        if name is None:
            return [sch]
        name = str(getattr(name, "value", name))
        if name == "None":
            return [sch]
        names = [f"meta_schedule.{key}.{name}" for key in self._keys] + [str(name)]
        for candidate in names:
            function = tvm.get_global_func(candidate, allow_missing=True)
            if function is not None:
                result = function(sch, block)
                return list(result) if not isinstance(result, Schedule) else [result]
        raise ValueError(
            f"ApplyCustomRule: the block asks for {name!r}, and no function is registered as "
            f"{names}"
        )


class InlineConstantScalars(ScheduleRule):
    """Inlines blocks that write one constant."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        node = sch.get(block)
        constant = (
            not len(node.reads)
            and len(node.writes) == 1
            and all(int(n) == 1 for n in node.writes[0].buffer.shape if isinstance(n, tir.IntImm))
            and isinstance(node.body, tir.BufferStore)
            and isinstance(node.body.value, (tir.IntImm, tir.FloatImm))
        )
        return [_try(sch, lambda s: s.compute_inline(block))] if constant else [sch]


def _try(sch: Schedule, step: Callable[[Schedule], Any]) -> Schedule:
    """The schedule after a step; unchanged if that is not legal."""
    with contextlib.suppress(tir.ScheduleError):
        step(sch)
    return sch


class AutoInline(ScheduleRule):
    """Inlines cheap elementwise work into what reads it, or into what makes its input.

    Parameters
    ----------
    into_producer, into_consumer : where to.
    inline_const_tensor : inline what reads nothing.
    disallow_if_then_else : not blocks with conditional expressions.
    require_injective : only blocks that read single elements.
    require_ordered : only blocks that read dimensions in the order in which they write them.
    disallow_op : not blocks that call one of these operators.
    """

    def __init__(
        self,
        into_producer: bool,
        into_consumer: bool,
        inline_const_tensor: bool,
        disallow_if_then_else: bool,
        require_injective: bool,
        require_ordered: bool,
        disallow_op: Sequence[str] | None = None,
    ) -> None:
        self.into_producer, self.into_consumer = into_producer, into_consumer
        self.inline_const_tensor = inline_const_tensor
        self.disallow_if_then_else = disallow_if_then_else
        self.require_injective, self.require_ordered = require_injective, require_ordered
        self.disallow_op = {str(op) for op in disallow_op or ()}

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        node = sch.get(block)
        if is_root(sch, block) or not is_spatial(node) or len(node.writes) != 1:
            return [sch]
        if self.inline_const_tensor and not len(node.reads):
            return [_try(sch, lambda s: s.compute_inline(block))]
        if not self._is_cheap(node):
            return [sch]
        if self.into_consumer and sch.get_consumers(block):
            return [_try(sch, lambda s: s.compute_inline(block))]
        if self.into_producer and len(sch.get_producers(block)) == 1:
            return [_try(sch, lambda s: s.reverse_compute_inline(block))]
        return [sch]

    def _is_cheap(self, node: tir.Block) -> bool:
        if self.require_injective and not all(
            isinstance(r.extent, tir.IntImm) and int(r.extent.value) == 1
            for region in node.reads
            for r in region.region
        ):
            return False
        if self.require_ordered and not self._is_ordered(node):
            return False
        forbidden = set(self.disallow_op)
        if self.disallow_if_then_else:
            forbidden.add("tir.if_then_else")
        calls: set[str] = set()

        def visit(expr: Any) -> None:
            if isinstance(expr, tir.Call):
                calls.add(str(expr.op.name))

        tir.stmt_functor.post_order_visit(node.body, visit)
        return not calls & forbidden

    @staticmethod
    def _is_ordered(node: tir.Block) -> bool:
        axes = {v.var: place for place, v in enumerate(node.iter_vars)}
        for region in node.reads:
            places = [
                axes[r.min] for r in region.region if isinstance(r.min, tir.Var) and r.min in axes
            ]
            if places != sorted(places):
                return False
        return True


class AddRFactor(ScheduleRule):
    """Splits a long sum over few results into partial sums that run at once.

    Parameters
    ----------
    max_jobs_per_core : jobs a core that are worth having.
    max_innermost_factor : largest inner tile of the summed loops.
    """

    def __init__(
        self, max_jobs_per_core: int = 16, max_innermost_factor: int | None = None
    ) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self.max_innermost_factor = -1 if max_innermost_factor is None else max_innermost_factor
        self._cores = 1

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._cores = _cores_of(context)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if is_root(sch, block) or "meta_schedule.rfactor" in sch.get(block).annotations:
            return [sch]
        if not needs_rfactor(sch, block, self.max_jobs_per_core * self._cores):
            return [sch]
        original = sch.copy()
        try:
            kinds = loop_kinds(sch, block)
            loops = sch.get_loops(block)
            spatial = [loop for loop, kind in zip(loops, kinds) if kind == "S"]
            summed = [loop for loop, kind in zip(loops, kinds) if kind == "R"]
            sch.reorder(*spatial, *summed)
            fused = sch.fuse(*summed) if len(summed) > 1 else summed[0]
            factors = sch.sample_perfect_tile(
                fused, n=2, max_innermost_factor=self.max_innermost_factor
            )
            outer, inner = sch.split(fused, factors=factors)
        except tir.ScheduleError:
            return [original]
        results = []
        for loop in (outer, inner):
            after = sch.copy()
            try:
                partial = after.rfactor(loop, len(spatial))
                if loop is inner:
                    *outside, last_outer, last = after.get_loops(block=partial)[: len(spatial) + 2]
                    after.reorder(*outside, last, last_outer)
                after.annotate(partial, "meta_schedule.rfactor", 1)
            except tir.ScheduleError:
                continue
            results.append(after)
        return [*results, original]


class ReuseType(NamedTuple):
    """Where a tile is kept.

    Attributes
    ----------
    req : "no", "may" or "must". levels : tile levels, counted from 1, at which it is. scope : of
        the memory.
    """

    req: str = "no"
    levels: tuple[int, ...] = ()
    scope: str = "global"


class MultiLevelTiling(ScheduleRule):
    """Tiles sums in several levels.

    Parameters
    ----------
    structure : levels of tiles from the outermost, "S" of the independent loops and "R" of the
        summed ones.
    max_innermost_factor : largest innermost tile.
    reuse_write : a buffer for the tile of results, or the elementwise reader at a level of tiles.

    Raises
    ------
    ValueError : the structure has other letters, or `reuse_write` is none.
    """

    def __init__(
        self,
        structure: str,
        max_innermost_factor: int | None = None,
        reuse_write: ReuseType | None = None,
    ) -> None:
        if not structure or set(structure) - {"S", "R"}:
            raise ValueError(f"MultiLevelTiling: a structure is of S and R, got {structure!r}")
        reuse = reuse_write or ReuseType()
        if reuse.req not in ("no", "may", "must"):
            raise ValueError(f"MultiLevelTiling: reuse is no, may or must, got {reuse.req!r}")
        self.structure = structure
        self.max_innermost_factor = -1 if max_innermost_factor is None else max_innermost_factor
        self.reuse_write = reuse

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        node = sch.get(block)
        if is_root(sch, block) or _TILED in node.annotations or not has_data_reuse(node):
            return [sch]
        kinds = loop_kinds(sch, block)
        if "O" in kinds or any(constant_extent(sch, loop) is None for loop in sch.get_loops(block)):
            return [sch]
        sch.annotate(block, _TILED, self.structure)
        tiles: list[list[LoopRV]] = [[] for _ in self.structure]
        for loop, kind in zip(sch.get_loops(block), kinds):
            levels = [level for level, letter in enumerate(self.structure) if letter == kind]
            factors = sch.sample_perfect_tile(
                loop, n=len(levels), max_innermost_factor=self.max_innermost_factor
            )
            for level, part in zip(levels, sch.split(loop, factors=factors)):
                tiles[level].append(part)
        sch.reorder(*[loop for level in tiles for loop in level])
        return self._with_reuse(sch, block, tiles)

    def _with_reuse(
        self, sch: Schedule, block: BlockRV, tiles: list[list[LoopRV]]
    ) -> list[Schedule]:
        if self.reuse_write.req == "no":
            return [sch]
        plain = sch.copy()
        readers = sch.get_consumers(block)
        reader = readers[0] if len(readers) == 1 and self._follows(sch, readers[0]) else None
        if reader is None:
            reader = sch.cache_write(block, 0, self.reuse_write.scope)
        results = []
        for level in self.reuse_write.levels:
            after = sch.copy()
            try:
                after.reverse_compute_at(reader, tiles[level - 1][-1], preserve_unit_loops=True)
            except tir.ScheduleError:
                continue
            results.append(after)
        if self.reuse_write.req == "may" or not results:
            results.append(plain)
        return results

    @staticmethod
    def _follows(sch: Schedule, reader: BlockRV) -> bool:
        """Whether a reader is elementwise in what it reads, so that it may stand beside a tile."""
        node = sch.get(reader)
        return is_spatial(node) and not is_reduction(node) and len(node.writes) == 1


class ParallelizeVectorizeUnroll(ScheduleRule):
    """Marks a function with how much may run at once, in lanes, and be unrolled.

    Parameters
    ----------
    max_jobs_per_core : jobs a core; -1 for no threads.
    max_vectorize_extent : lanes at most; -1 for no vectors.
    unroll_max_steps : candidates of the longest body to unroll; None for no unrolling.
    unroll_explicit : unroll in this compiler, not in the one behind it.
    """

    def __init__(
        self,
        max_jobs_per_core: int = 16,
        max_vectorize_extent: int = 16,
        unroll_max_steps: Sequence[int] | None = None,
        unroll_explicit: bool = True,
    ) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self.max_vectorize_extent = max_vectorize_extent
        self.unroll_max_steps = list(unroll_max_steps or ())
        self.unroll_explicit = unroll_explicit
        self._cores = 1

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._cores = _cores_of(context)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not is_root(sch, block):
            return [sch]
        if self.max_jobs_per_core != -1:
            sch.annotate(block, "meta_schedule.parallel", self.max_jobs_per_core * self._cores)
        if self.max_vectorize_extent != -1:
            sch.annotate(block, "meta_schedule.vectorize", self.max_vectorize_extent)
        if self.unroll_max_steps:
            count = len(self.unroll_max_steps)
            steps = sch.sample_categorical(self.unroll_max_steps, [1.0 / count] * count)
            how = "explicit" if self.unroll_explicit else "implicit"
            sch.annotate(block, f"meta_schedule.unroll_{how}", steps)
        return [sch]


class RandomComputeLocation(ScheduleRule):
    """Computes what one block needs of another at a random place of its loops."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        node = sch.get(block)
        if is_root(sch, block) or _TILED in node.annotations or len(node.writes) != 1:
            return [sch]
        if not sch.get_consumers(block) or not sch.get_loops(block):
            return [sch]
        after = sch.copy()
        try:
            place = after.sample_compute_location(block)
            after.compute_at(block, place, preserve_unit_loops=True)
        except tir.ScheduleError:
            return [sch]
        return [after]


def _cores_of(context: Any) -> int:
    if context.target is None:
        return 1
    cores = context.target.attrs.get("num-cores")
    return 1 if cores is None else int(cores)


def _cpu() -> list[ScheduleRule]:
    return [
        ApplyCustomRule(),
        InlineConstantScalars(),
        AutoInline(
            into_producer=False,
            into_consumer=True,
            inline_const_tensor=True,
            disallow_if_then_else=True,
            require_injective=True,
            require_ordered=True,
            disallow_op=["tir.exp"],
        ),
        AddRFactor(max_jobs_per_core=16, max_innermost_factor=64),
        MultiLevelTiling(
            structure="SSRSRS",
            max_innermost_factor=64,
            reuse_write=ReuseType(req="may", levels=(1, 2), scope="global"),
        ),
        ParallelizeVectorizeUnroll(
            max_jobs_per_core=16,
            max_vectorize_extent=64,
            unroll_max_steps=[0, 16, 64, 512],
            unroll_explicit=True,
        ),
        RandomComputeLocation(),
    ]


for _kind in ("llvm", "c"):
    register_default_rules(_kind, _cpu)
