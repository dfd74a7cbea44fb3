"""Which kernels of a compiled network are tuned, and where their schedules are from."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import relax, topi
from tvm.auto_scheduler.relax_integration import group_task
from tvm.ir import IRModule
from tvm.target import Target

from .schedules import RecordedSchedules

__all__ = ["FOUND", "SEARCHED", "Coverage", "KernelUse", "read_coverage"]

_KINDS = {
    "records": "by schedules of",
    "cache": "by schedules that this machine remembers from other runs",
    "library": "by hand schedules, which a search found nothing faster than",
    "hand": "by hand schedules that nobody searched",
    "default": "untuned, by the default schedule",
    "program": "by programs that the library writes whole (Strassen, Winograd, attention, bytes)",
    "fixed": "with nothing to compute (data movement)",
}

# The kinds of schedules that a search found, and those that a search decided on.
FOUND = ("records", "cache")
SEARCHED = (*FOUND, "library")


@dataclass(frozen=True)
class KernelUse:
    """One distinct kernel of a network.

    Attributes
    ----------
    name : of the compiled function.
    operators : names of its operators, in order.
    output_shape : of its last output.
    weight : how often one run of the network calls it.
    flop : floating-point operations of one call.
    workload_key : its name in records; empty where there is nothing to tune.
    schedule : "records", "cache", "library", "hand", "default", "program" or "fixed".
    """

    name: str
    operators: tuple[str, ...]
    output_shape: tuple[int, ...]
    weight: int
    flop: int
    workload_key: str
    schedule: str


@dataclass(frozen=True)
class Coverage:
    """The kernels of a network with where their schedules are from; printing shows a summary.

    Attributes
    ----------
    source : the record file that was compiled with, if any.
    """

    kernels: tuple[KernelUse, ...]
    source: str | None

    @property
    def tuned_share(self) -> float:
        """Share of the FLOP of kernels with anything to search that were searched, in [0, 1]."""
        total = sum(k.weight * k.flop for k in self.kernels if k.workload_key)
        tuned = sum(k.weight * k.flop for k in self.kernels if k.schedule in SEARCHED)
        return tuned / total if total else 0.0

    @property
    def untuned(self) -> list[KernelUse]:
        """Kernels that a search would improve, most work first."""
        found = [k for k in self.kernels if k.schedule in ("hand", "default")]
        return sorted(found, key=lambda kernel: -kernel.weight * kernel.flop)

    def __str__(self) -> str:
        flop = sum(k.weight * k.flop for k in self.kernels)
        total = max(flop, 1)
        calls = sum(k.weight for k in self.kernels)
        lines = [f"{len(self.kernels)} kernels in {calls} calls, {flop / 1e9:.3g} GFLOP:"]
        for kind, text in _KINDS.items():
            of_kind = [k for k in self.kernels if k.schedule == kind]
            if of_kind:
                share = sum(k.weight * k.flop for k in of_kind) / total
                named = f" {self.source}" if kind == "records" else ""
                lines.append(f"  {len(of_kind):3} ({share:6.1%} of the work) {text}{named}")
        for kernel in self.untuned[:5]:
            shape = "x".join(map(str, kernel.output_shape))
            share = kernel.weight * kernel.flop / total
            lines.append(f"      not tuned: {' '.join(kernel.operators)} {shape}, {share:.1%}")
        if len(self.untuned) > 5:
            lines.append(f"      and {len(self.untuned) - 5} more")
        return "\n".join(lines)


def read_coverage(mod: IRModule, target: Target, source: RecordedSchedules | None) -> Coverage:
    """What the kernels of a fused module are compiled with, given where schedules are from."""
    kernels = tuple(_kernel_use(group, target, source) for group in relax.fused_groups(mod))
    path = None if source is None or source.path is None else str(source.path)
    return Coverage(kernels, path)


def _kernel_use(
    group: relax.FusedGroup, target: Target, source: RecordedSchedules | None
) -> KernelUse:
    origin = None if source is None else source.origin(group)
    if not group.is_tunable:
        schedule = "program" if group.flop else "fixed"
    elif origin is not None:
        schedule = origin
    else:
        schedule = "hand" if topi.has_rule_for(group.te.outputs, target) else "default"
    return KernelUse(
        group.name,
        tuple(group.op_names),
        group.output_shapes[-1],
        group.weight,
        group.flop,
        str(group_task(group, target).workload_key) if group.is_tunable else "",
        schedule,
    )
