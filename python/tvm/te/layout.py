"""Layouts of stages in memory, and loops in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm.error
from tvm import arith
from tvm.ir import PrimExpr, Range
from tvm.tir import IndexMap, IntImm, IterVar

from . import _ffi_api
from .tensor import ComputeOp

__all__ = ["transform_layout"]

# The extent taken for one that is not known: no digit but the highest of a loop depends on it.
_STAND_IN = 10007


def transform_layout(stage: Any, mapping_function: Callable[..., Any]) -> list[IterVar] | None:
    """See :meth:`tvm.te.Stage.transform_layout`."""
    shape = list(stage.op.output(0).shape)
    for layout in stage.layouts:
        shape = layout.map_shape(shape)
    dtype = str(shape[0].dtype) if shape else "int32"
    index_map, separators = IndexMap.from_func_with_separators(
        mapping_function, len(shape), index_dtype=dtype
    )
    loops = _Loops(stage, index_map, shape).run() if isinstance(stage.op, ComputeOp) else None
    _ffi_api.StageSetLayouts(stage, [*stage.layouts, index_map], separators)
    return loops


class _Loops:
    """Loops of axes as loops of the digits that indices in memory are made of."""

    def __init__(self, stage: Any, index_map: IndexMap, shape: Sequence[PrimExpr]) -> None:
        self.stage, self.index_map = stage, index_map
        loops = self.spatial()
        if len(loops) != len(shape):
            raise self.error(
                f"the stage has the loops {[str(loop.var.name) for loop in loops]} for {len(shape)}"
                " axes; transform the layout before splitting or fusing them"
            )
        ranges = {
            var: Range(0, extent if isinstance(extent, IntImm) else IntImm(var.dtype, _STAND_IN))
            for var, extent in zip(index_map.initial_indices, shape)
        }
        padded, padded_ranges, pads = arith._ffi_api.PadIters(index_map.final_indices, ranges)
        found = arith.detect_iter_map(padded, padded_ranges, check_level="bijective")
        if len(found.errors):
            raise self.error(f"the indices are no digits of the axes: {found.errors[0]}")
        self.sums = list(found.indices)
        self.loop_of = dict(zip(index_map.initial_indices, loops))
        self.single = [
            loop
            for loop, extent in zip(loops, shape)
            if isinstance(extent, IntImm) and int(extent) == 1
        ]
        # Loops that have to reach beyond their own extent.
        self.longer: dict[Any, int] = {}
        for own, wide, begin in pads:
            if not arith.Analyzer().can_prove_equal(begin, 0):
                raise self.error(f"{own} is shifted before it is cut, which loops are not")
            self.loop_of[wide] = self.loop_of[own]
            self.longer[wide] = int(padded_ranges[wide].extent)
        self.cuts: dict[Any, set[int]] = {}
        self.digits: dict[Any, dict[int, IterVar]] = {}

    def error(self, text: str) -> Exception:
        return tvm.error.ScheduleError(
            f"transform_layout({self.stage.op.name}, {self.index_map}): {text}"
        )

    def spatial(self) -> list[IterVar]:
        return [loop for loop in self.stage.leaf_iter_vars if loop.iter_type == IterVar.DataPar]

    def run(self) -> list[IterVar]:
        for total in self.sums:
            self.collect(total)
        loops = [
            self.digit(total.args[0]) if len(total.args) else self.once() for total in self.sums
        ]
        self.stage.reorder(*loops)
        return loops

    def once(self) -> IterVar:
        """A loop of one trip."""
        return self.single.pop(0) if self.single else self.stage.fuse()

    def collect(self, total: arith.IterSumExpr) -> None:
        """Note where iterators are cut."""
        for split in total.args:
            known = split.source in self.cuts
            self.cuts.setdefault(split.source, set()).add(int(split.lower_factor))
            if not known and isinstance(split.source.source, arith.IterSumExpr):
                self.collect(split.source.source)

    def digit(self, split: arith.IterSplitExpr) -> IterVar:
        """The loop over one digit of an iterator."""
        mark = split.source
        if mark not in self.digits:
            self.digits[mark] = self.cut(self.whole(mark), self.cuts[mark], mark)
        return self.digits[mark][int(split.lower_factor)]

    def whole(self, mark: arith.IterMark) -> IterVar:
        """The loop over an iterator, made of several if it is a sum."""
        if not isinstance(mark.source, arith.IterSumExpr):
            return self.loop_of[mark.source]
        highest_first = sorted(mark.source.args, key=lambda split: -int(split.scale))
        parts = [self.digit(split) for split in highest_first]
        others = [loop for loop in self.spatial() if not any(loop.same_as(p) for p in parts)]
        self.stage.reorder(*others, *parts)
        return self.stage.fuse(*parts)

    def cut(self, loop: IterVar, lowers: set[int], mark: arith.IterMark) -> dict[int, IterVar]:
        """Loops over the digits that begin at `lowers`."""
        digits = {}
        if lowers == {1} and mark.source in self.longer:
            _, loop = self.stage.split(loop, factor=self.longer[mark.source])
        for lower in sorted(lowers - {1}, reverse=True):
            digits[lower], loop = self.stage.split(loop, factor=lower)
        digits[1] = loop
        return digits
