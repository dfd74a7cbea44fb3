"""Steps that several primitives make together."""

from __future__ import annotations

from collections.abc import Callable

import tvm.error

from ..function import TensorIntrin
from .analysis import get_tensorize_loop_mapping
from .random_variables import BlockRV, LoopRV
from .schedule import Schedule

__all__ = ["tile_with_tensor_intrin"]


def tile_with_tensor_intrin(
    sch: Schedule, block: BlockRV, intrin_name: str, allow_padding: bool = False
) -> LoopRV | None:
    """Split off the loops of a block that a tensor intrinsic is to take the place of.

    Parameters
    ----------
    intrin_name : the name that :meth:`tvm.tir.TensorIntrin.register` was given.
    allow_padding : pad the block, a sum of products, where the intrinsic does not fit otherwise.
        Producers and consumers of the padded copies then become part of these.

    Returns
    -------
    The outermost of the loops to give to :meth:`Schedule.tensorize`; None where it does not fit.
    """
    desc = TensorIntrin.get(intrin_name).desc
    info = get_tensorize_loop_mapping(sch, block, desc, allow_padding)
    if info is None:
        return None
    if info.block_iter_paddings is not None:
        sch.pad_einsum(block, info.block_iter_paddings)
        for copy in sch.get_producers(block):
            for producer in sch.get_producers(copy):
                _try(sch.compute_inline, producer)
        for copy in sch.get_consumers(block):
            for consumer in sch.get_consumers(copy):
                _try(sch.reverse_compute_inline, consumer)
        info = get_tensorize_loop_mapping(sch, block, desc)
        if info is None:
            return None
    inner: dict[int, LoopRV] = {}
    by_sref = {sch.get_sref(loop): loop for loop in sch.get_loops(block)}
    for sref, desc_loop in info.loop_map.items():
        size = int(desc_loop.extent)
        _, part = sch.split(by_sref[sref], [None, size])
        inner[info.desc_loop_indexer[desc_loop]] = part
    suffix = [inner[position] for position in sorted(inner)]
    loops = sch.get_loops(block)
    first = min(_position(sch, loops, loop) for loop in suffix)
    outer = [loop for loop in loops[first:] if not any(_same(sch, loop, own) for own in suffix)]
    sch.reorder(*outer, *suffix)
    return suffix[0]


def _same(sch: Schedule, one: LoopRV, other: LoopRV) -> bool:
    return sch.get_sref(one).same_as(sch.get_sref(other))


def _position(sch: Schedule, loops: list[LoopRV], loop: LoopRV) -> int:
    return next(at for at, other in enumerate(loops) if _same(sch, loop, other))


def _try(step: Callable[[BlockRV], None], block: BlockRV) -> None:
    """Do what may not be legal; then nothing changes."""
    try:
        step(block)
    except tvm.error.ScheduleError:
        return
