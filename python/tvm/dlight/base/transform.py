"""The pass that applies the first rule that fits."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.ir import IRModule
from tvm.ir.transform import PassContext, module_pass
from tvm.target import Target

from .schedule_rule import ScheduleRule

__all__ = ["ApplyDefaultSchedule"]

SCHEDULED = "tir.is_scheduled"
"""The attribute of functions that have a schedule, which rules leave as they are."""


@module_pass(opt_level=0, name="ApplyDefaultSchedule")
class ApplyDefaultSchedule:
    """Give every tensor program of a module the schedule of the first rule that has one.

    Functions with the attribute ``tir.is_scheduled`` stay as they are, and so do those that launch
    threads by themselves, such as kernels for sorting; those that get a schedule get the attribute.
    The target is the function's own, or else the one around.

    Parameters
    ----------
    rules : in the order in which they are asked.

    Raises
    ------
    ValueError : a function has no target, and none is around.
    """

    def __init__(self, *rules: ScheduleRule) -> None:
        self.rules = list(rules)

    def transform_module(self, mod: IRModule, _ctx: PassContext) -> IRModule:
        scheduled = {}
        for variable, func in mod.functions.items():
            if not isinstance(func, tir.PrimFunc):
                continue
            attrs = func.attrs or {}
            if SCHEDULED in attrs or _launches(func):
                continue
            target: Any = attrs["target"] if "target" in attrs else Target.current(allow_none=False)
            best = self._schedule(func, target)
            if best is not None:
                scheduled[variable] = best.with_attr(SCHEDULED, True)
        return mod.with_functions({**dict(mod.functions.items()), **scheduled})

    def _schedule(self, func: tir.PrimFunc, target: Target) -> tir.PrimFunc | None:
        for rule in self.rules:
            found = rule.apply(func, target, False)
            if isinstance(found, list):
                found = found[0] if found else None
            if found is not None:
                return found.mod["main"]
        return None


def _launches(func: tir.PrimFunc) -> bool:
    """Whether the body says how many threads run it, beside loops that are bound to some."""
    found = False

    def look(node: object) -> None:
        nonlocal found
        found = found or (isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent")

    tir.stmt_functor.post_order_visit(func.body, look)
    return found
