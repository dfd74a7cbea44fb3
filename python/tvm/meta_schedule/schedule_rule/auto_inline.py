"""Rules that compute cheap work where it is used."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.tir.schedule import BlockRV, Schedule

from ..access_pattern import access_pattern
from ..sch_analysis import annotation, is_reduction, is_root, is_spatial, is_spatial_function
from .schedule_rule import ScheduleRule

__all__ = ["AutoInline", "InlineConstantScalars"]


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
        if constant:
            _try(sch, lambda: sch.compute_inline(block))
        return [sch]


def _try(sch: Schedule, step: Callable[[], Any]) -> bool:
    """Whether a step is legal; it is done if so."""
    with contextlib.suppress(tir.ScheduleError):
        step()
        return True
    return False


class AutoInline(ScheduleRule):
    """Inlines cheap elementwise work into what reads it, or into what makes its input.

    Of functions that sum nothing, all is inlined whatever the conditions on the work are.

    Parameters
    ----------
    into_producer, into_consumer : where to.
    inline_const_tensor : inline what reads nothing.
    disallow_if_then_else : not blocks with conditional expressions.
    require_injective : only blocks that read each element through different indices.
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
        constant = self.inline_const_tensor and not len(node.reads)
        if constant and sch.get_consumers(block) and _try(sch, lambda: sch.compute_inline(block)):
            return [sch]
        if not is_spatial_function(sch, block) and not self._is_cheap(node):
            return [sch]
        read = self.into_consumer and sch.get_consumers(block)
        if read and _try(sch, lambda: sch.compute_inline(block)):
            return [sch]
        if self.into_producer:
            producers = sch.get_producers(block)
            if len(producers) == 1 and self._takes_in(sch.get(producers[0])):
                _try(sch, lambda: sch.reverse_compute_inline(block))
        return [sch]

    @staticmethod
    def _takes_in(producer: tir.Block) -> bool:
        """Whether a producer may end with more work: no sum, and nothing that an intrinsic does."""
        tensorized = annotation(producer, "meta_schedule.auto_tensorize") is not None
        return not is_reduction(producer) and not tensorized

    def _is_cheap(self, node: tir.Block) -> bool:
        for region in node.reads:
            pattern = access_pattern(region, node.writes[0])
            if self.require_injective and not pattern.injective:
                return False
            if self.require_ordered and not pattern.ordered:
                return False
        forbidden = set(self.disallow_op)
        if self.disallow_if_then_else:
            forbidden.add("tir.if_then_else")
        found = False

        def visit(expr: Any) -> None:
            nonlocal found
            if isinstance(expr, tir.Call):
                found = found or str(expr.op.name) in forbidden
            elif isinstance(expr, tir.Select | tir.IfThenElse):
                found = found or self.disallow_if_then_else

        tir.stmt_functor.post_order_visit(node.body, visit)
        return not found
