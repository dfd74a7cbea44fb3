"""Functions for computations that nobody tuned."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir, topi
from tvm.driver import schedule_to_module
from tvm.target import Target

__all__ = ["default_prim_func"]


def default_prim_func(
    inputs: Sequence[te.Tensor],
    outputs: Sequence[te.Tensor],
    name: str,
    target: Target | str = "llvm",
) -> tir.PrimFunc:
    """The computation as a function of inputs, then outputs, under the schedule that is
    known for it without tuning.

    It is not lowered yet; the build does that.
    """
    schedule = topi.schedule_for(outputs, target)
    return schedule_to_module(schedule, [*inputs, *outputs], name=name)[name]
