"""How fast a program for GPUs can be at best, from its features."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tvm.target import Target

__all__ = ["GpuBound", "gpu_peak_flops"]

# Columns of what each resource takes; of kernels, as all columns of GPUs.
_COMPONENTS = (
    "tensor_cycles",
    "arithmetic_cycles",
    "shared_cycles",
    "cache_cycles",
    "memory_cycles",
    "latency_cycles",
)
# Columns that tell programs of equal bounds apart.
_SHAPE_COLUMNS = ("threads", "registers", "shared_bytes", "occupancy", "waves", "unroll_prod")


class GpuBound:
    """The least time of a program: each resource of the multiprocessors, and launches, in cycles.

    What the device model (`auto_scheduler.SimulatedRunner`) says of a program of which only the
    loops are known: the columns are made by the same code (`kernel_times.h`).

    Parameters
    ----------
    columns : names of the feature columns.
    target : the GPU.
    """

    def __init__(self, columns: Sequence[str], target: Target) -> None:
        self._column = {name: i for i, name in enumerate(columns)}
        self._clock_rate = float(target.gpu_facts["clock_rate"])

    def describe(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """ln of the cycles, and coordinates in which like programs are near.

        Coordinates are logarithms: the components of the bound, and what kernels take, of those
        that take most of the time. Differentiable wherever the features are.

        Parameters
        ----------
        features : shape (n, n_stores, n_columns).

        Returns
        -------
        Float64 of shapes (n,) and (n, n_coordinates).
        """
        features = features.double()

        def column(name: str) -> torch.Tensor:
            return torch.expm1(features[..., self._column[name]].clamp(0.0, 60.0))

        # All stores of a kernel have the kernel's cycles, and the same part of it.
        part = column("kernel_share")
        cycles = part * column("kernel_cycles")
        total = cycles.sum(-1).clamp_min(1.0)
        shares = cycles / total[..., None]
        components = [torch.log1p((part * column(name)).sum(-1)) for name in _COMPONENTS]
        shape = [(shares * features[..., self._column[name]]).sum(-1) for name in _SHAPE_COLUMNS]
        return total.log(), torch.stack([*components, *shape], -1)

    def seconds(self, cycles: float) -> float:
        """Seconds of a number of cycles."""
        return cycles / self._clock_rate


def gpu_peak_flops(target: Target, tensor_bytes: float | None) -> float:
    """FLOP a second that no program can exceed, by the data sheet.

    Parameters
    ----------
    tensor_bytes : of an element that the task's programs multiply on tensor cores; None where they
        use none.
    """
    facts = target.gpu_facts
    rate = facts["multiply_adds_per_cycle"]
    if tensor_bytes is not None:
        # Tensor cores do twice the work on elements of half the size.
        rate = max(rate, facts["tensor_multiply_adds_per_cycle"] * 2 / tensor_bytes)
    return 2.0 * rate * facts["multiprocessors"] * facts["clock_rate"]
