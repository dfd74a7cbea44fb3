"""A GPU that is computed instead of measured, for machines that have none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import te
from tvm.runtime.workers.serve import resolve
from tvm.target import Target

from . import _ffi_api
from .measure import ProgramRunner
from .measure_node import (
    MAX_FLOAT,
    BuildResult,
    Candidate,
    MeasureErrorNo,
    MeasureResult,
)

__all__ = ["SimulatedRunner", "modeled_seconds", "simulated"]


def simulated(target: Target | str) -> Target:
    """`target` with the option ``-simulated``, under which its records are kept.

    Records of a simulated target are not taken for those of the real one, nor the other way round.

    Raises
    ------
    ValueError : there is no model of such a device.
    """
    chosen = target if isinstance(target, Target) else Target(target)
    if chosen.kind.name != "cuda":
        raise ValueError(
            f"simulated({chosen}): only the target cuda has a model; measure the others"
        )
    if chosen.get_attr("simulated", False):
        return chosen
    return Target(f"{chosen} -simulated=1", chosen.host)


def modeled_seconds(
    schedule: te.Schedule,
    args: Sequence[te.Tensor],
    target: Target,
    used: Sequence[Sequence[int]] = (),
) -> float:
    """Seconds of one run of a schedule on the GPU that a target means, by an analytic model.

    Parameters
    ----------
    schedule, args : as for `tvm.build`.
    used : registers of a thread and bytes of shared memory of each kernel, in order; without them
        they are estimated from the loops.

    Raises
    ------
    ValueError : no loop is bound to threads, or no block of a kernel fits a multiprocessor.
    """
    return float(_ffi_api.ModeledSeconds(schedule, list(args), target, [list(u) for u in used]))


class SimulatedRunner(ProgramRunner):
    """Gives each candidate the seconds that an analytic model of its GPU says.

    The model reads the loops of the candidate and what its compiled kernels take, and gives equal
    seconds for equal programs. It runs nothing: it stands in for a device in tests and where a run
    is to be tried out before there is one. Candidates must be of a target made by `simulated`, so
    that no record of it can be taken for a measurement.
    """

    def run(
        self,
        candidates: Sequence[Candidate],
        programs: Sequence[BuildResult],
        best_seconds: Mapping[str, float] | None = None,
        references: Mapping[str, BuildResult] | None = None,
        on_result: Callable[[int, MeasureResult], None] | None = None,
    ) -> list[MeasureResult]:
        results = []
        for position, (candidate, program) in enumerate(zip(candidates, programs)):
            result = self._one(candidate, program)
            results.append(result)
            if on_result is not None:
                on_result(position, result)
        return results

    @staticmethod
    def _one(candidate: Candidate, program: BuildResult) -> MeasureResult:
        def failed(error_no: int, message: str) -> MeasureResult:
            return MeasureResult([MAX_FLOAT], error_no, message, program.time_cost, time.time())

        if program.error_no:
            return failed(int(program.error_no), str(program.error_msg))
        target = candidate.build_target
        if not target.get_attr("simulated", False):
            return failed(
                int(MeasureErrorNo.RUNTIME_DEVICE),
                f"simulated runner: {target} is no simulated target; see auto_scheduler.simulated",
            )
        kernels: dict[str, Any] = json.loads(program.description).get("kernels", {})
        # Names end in the number of the kernel.
        in_order = [kernels[name] for name in sorted(kernels, key=lambda name: (len(name), name))]
        used = [[taken["registers"], taken["shared_bytes"]] for taken in in_order]
        try:
            request = candidate.request()
            source = resolve(request.function)(request.arguments)
            seconds = modeled_seconds(source.source, source.args, target, used)
        except (ValueError, TypeError) as error:
            return failed(int(MeasureErrorNo.RUNTIME_DEVICE), str(error))
        return MeasureResult([seconds], 0, None, program.time_cost, time.time(), kernels)
