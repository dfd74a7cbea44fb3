"""What there is to tune in a network."""

from __future__ import annotations

from tvm.ir import IRModule

from .fused_group import FusedGroup, fused_groups
from .transform import OptimizeForInference

__all__ = ["extract_tasks"]


def extract_tasks(mod: IRModule) -> list[FusedGroup]:
    """The kernels worth tuning, each with how often the network calls it.

    Parameters
    ----------
    mod : an imported network, or one that has been optimised and fused already.

    Returns
    -------
    Every distinct kernel that computes something, in order of the first call; kernels that only
    move data, or that bring their schedule, are left out. Building the same module again gives
    kernels of the same ``key``.
    """
    groups = fused_groups(OptimizeForInference()(mod))
    return [group for group in groups if group.is_tunable]
