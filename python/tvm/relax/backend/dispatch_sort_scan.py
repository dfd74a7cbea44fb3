"""Sorts and running sums as kernels for the device where they run."""

from __future__ import annotations

from tvm.ir import IRModule

from ..transform.graph_pass import graph_pass
from ..transform.legalize_ops.legalize import legalize_for_targets

__all__ = ["DispatchSortScan"]

_DISPATCHED = frozenset(
    f"relax.{name}" for name in ("sort", "argsort", "topk", "cumsum", "cumprod")
)


@graph_pass("DispatchSortScan")
def DispatchSortScan(mod: IRModule) -> IRModule:
    """The module with `sort`, `argsort`, `topk`, `cumsum` and `cumprod` as calls of kernels.

    Kernels are for the target of the operand's device, if its struct info names one, else for the
    current target: on GPUs they run in parallel. All other operators stay.
    """
    return legalize_for_targets(mod, _DISPATCHED)
