"""How a search goes through a space."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar

from tvm import tir
from tvm.error import TVMError
from tvm.ir import IRModule

from ..arg_info import ArgInfo
from ..candidate import MeasureCandidate, RunnerResult
from ..postproc.postproc import Postproc
from ..utils import Named

__all__ = ["PySearchStrategy", "SearchStrategy", "finish_trace"]


class SearchStrategy(Named):
    """Base of strategies, which define `_propose`, or all of the methods below.

    Attributes
    ----------
    max_trials, num_trials_per_iter : limits of the run, see `pre_tuning`.
    """

    # The function `create` of the package, which knows the kinds.
    create: ClassVar[Callable[..., Any]]

    def __init__(self) -> None:
        self.context: Any = None
        self._running = False

    def _initialize_with_tune_context(self, context: Any) -> None:
        """Take the task."""
        self.context = context
        self.rng = random.Random(context.rand_state)

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[tir.Schedule],
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        """Begin a run.

        Parameters
        ----------
        max_trials, num_trials_per_iter : candidates in all, and at once.
        design_spaces : what the space generator gave.
        database, cost_model : for strategies that learn.

        Raises
        ------
        ValueError : there is no design space, or a run is at work.
        """
        if self._running:
            raise ValueError("search strategy: post_tuning() ends a run before another begins")
        if not design_spaces:
            raise ValueError("search strategy: the space has no schedule")
        self.max_trials, self.num_trials_per_iter = int(max_trials), int(num_trials_per_iter)
        self.traces = [sch.trace.simplified(remove_postproc=True) for sch in design_spaces]
        self.database, self.cost_model = database, cost_model
        self._proposed, self._running = 0, True

    def post_tuning(self) -> None:
        """End the run."""
        self._running = False

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """Candidates to measure; None when the run is over.

        Raises
        ------
        RuntimeError : `pre_tuning` was not called.
        """
        if not self._running:
            raise RuntimeError("search strategy: call pre_tuning() first")
        count = min(self.num_trials_per_iter, self.max_trials - self._proposed)
        if count <= 0:
            return None
        candidates = self._propose(count)
        self._proposed += len(candidates or ())
        return candidates

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Hear what came of candidates."""

    def clone(self) -> SearchStrategy:
        """A copy for another task."""
        other = copy(self)
        other._running = False
        return other

    def _propose(self, count: int) -> list[MeasureCandidate] | None:
        raise TypeError(f"{type(self).__name__} does not define _propose")

    def _candidate(self, sch: tir.Schedule) -> MeasureCandidate:
        return MeasureCandidate(sch, ArgInfo.from_entry_func(sch.mod))

    def _seed(self) -> int:
        return self.rng.randrange(1, 2**31 - 1)


class PySearchStrategy(SearchStrategy):
    """Base of strategies that users define."""


def finish_trace(
    mod: IRModule, trace: tir.schedule.Trace, postprocs: Sequence[Postproc], seed: int
) -> tir.Schedule | None:
    """A schedule with the decisions of a trace, or new ones where it has none, and postprocessed.

    Returns
    -------
    None if an instruction is not legal with these decisions, or a postprocessor refuses.
    """
    sch = tir.Schedule(mod, seed=seed)
    try:
        trace.apply_to_schedule(sch, remove_postproc=True)
    except TVMError:
        return None
    return finish_schedule(sch, postprocs)


def finish_schedule(sch: tir.Schedule, postprocs: Sequence[Postproc]) -> tir.Schedule | None:
    """Postprocess a schedule; None if a postprocessor refuses."""
    sch.enter_postproc()
    try:
        return sch if all(postproc.apply(sch) for postproc in postprocs) else None
    except tir.ScheduleError:
        return None
