"""Tiling of sums whose innermost tiles a tensor intrinsic computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.tir.schedule import BlockRV, Schedule
from tvm.tir.schedule.analysis import get_auto_tensorize_mapping_info
from tvm.tir.schedule.transform import tile_with_tensor_intrin

from .multi_level_tiling import MultiLevelTiling, ReuseType, TilingState

__all__ = ["AUTO_TENSORIZE", "MultiLevelTilingWithIntrin", "mark_for_intrinsic"]

AUTO_TENSORIZE = "meta_schedule.auto_tensorize"
"""The annotation that names the intrinsic by which `RewriteTensorize` replaces a block."""


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


class MultiLevelTilingWithIntrin(MultiLevelTiling):
    """Tiles sums in several levels, the innermost of them the size of a tensor intrinsic.

    Blocks that compute something else than the intrinsic stay as they are.

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
        return super().apply(sch.copy(), block) or [sch]

    def steps(self) -> list[Callable[[Any], list[Any]]]:
        return [self._split_off, *super().steps()]

    def _split_off(self, state: TilingState) -> list[TilingState]:
        outer = mark_for_intrinsic(state.sch, state.block, self.intrin_name)
        if outer is None:
            return []
        state.block = outer
        return [state]
