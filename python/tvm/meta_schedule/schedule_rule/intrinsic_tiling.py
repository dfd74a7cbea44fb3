"""Tiling of sums whose innermost tiles a tensor intrinsic computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.tir.schedule import BlockRV, Schedule
from tvm.tir.schedule.analysis import get_auto_tensorize_mapping_info
from tvm.tir.schedule.transform import tile_with_tensor_intrin

from ..postproc import RewriteReductionBlock, RewriteTensorize
from ..sch_analysis import AUTO_TENSORIZE
from .multi_level_tiling import MultiLevelTiling, ReuseType, TilingState

__all__ = ["MultiLevelTilingWithIntrin", "mark_for_intrinsic"]


def mark_for_intrinsic(sch: Schedule, block: BlockRV, intrin_name: str) -> BlockRV | None:
    """Put a block around the loops that an intrinsic does, and name it there.

    Returns
    -------
    The new block, None where the intrinsic does not fit.
    """
    loop = tile_with_tensor_intrin(sch, block, intrin_name, allow_padding=True)
    if loop is None:
        return None
    outer = sch.blockize(loop)
    sch.annotate(outer, AUTO_TENSORIZE, intrin_name)
    return outer


def _fits(sch: Schedule) -> bool:
    """Whether intrinsics can take the place of what is marked for them.

    Which loops stand for which is found before operands are looked at, whose layout may be
    another one; a search of schedules that all fail later would have no candidate.
    """
    trial = sch.copy()
    return RewriteReductionBlock().apply(trial) and RewriteTensorize().apply(trial)


class MultiLevelTilingWithIntrin(MultiLevelTiling):
    """Tiles sums in several levels, the innermost of them the size of a tensor intrinsic.

    Blocks that compute something else than the intrinsic stay as they are, and so do those whose
    operands lie otherwise.

    Parameters
    ----------
    intrin_name : as registered by `tvm.tir.TensorIntrin.register`.

    The others are those of `MultiLevelTiling`.

    Raises
    ------
    ValueError : no intrinsic has that name.
    """

    def __init__(
        self,
        intrin_name: str,
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
    ) -> None:
        super().__init__(
            structure,
            tile_binds,
            max_innermost_factor,
            vector_load_lens,
            reuse_read,
            reuse_write,
        )
        self.intrin_name = intrin_name
        self._desc = tir.TensorIntrin.get(intrin_name).desc

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if get_auto_tensorize_mapping_info(sch, block, self._desc) is None:
            return [sch]
        tiled = super().apply(sch.copy(), block)
        return [made for made in tiled if _fits(made)] or [sch]

    def steps(self) -> list[Callable[[Any], list[Any]]]:
        return [self._split_off, *super().steps()]

    def _split_off(self, state: TilingState) -> list[TilingState]:
        outer = mark_for_intrinsic(state.sch, state.block, self.intrin_name)
        if outer is None:
            return []
        state.block = outer
        return [state]
