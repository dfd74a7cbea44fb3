"""A task of a search: a module, a target, and the parts that search for it."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import Any

from tvm import tir
from tvm.ir import IRModule
from tvm.target import Target

from . import search_strategy as strategies
from . import space_generator as generators
from .candidate import MeasureCandidate, RunnerResult
from .utils import cpu_count, normalize_mod

__all__ = ["TuneContext"]


class TuneContext:
    """A task.

    Parameters
    ----------
    mod : module or function to tune; its function is called ``main``.
    target : what it is compiled for.
    space_generator, search_strategy : parts, their names, or a function of a schedule.
    task_name : for messages.
    rand_state : seed; -1 draws one.
    num_threads : cores for the search, "physical" or "logical" for all.
    logger : where messages go.
    """

    def __init__(
        self,
        mod: IRModule | tir.PrimFunc | None = None,
        *,
        target: Target | str | None = None,
        space_generator: Any = None,
        search_strategy: Any = None,
        task_name: str = "main",
        rand_state: int = -1,
        num_threads: int | str = "physical",
        logger: logging.Logger | None = None,
    ) -> None:
        self.mod = None if mod is None else normalize_mod(mod)
        self.target = Target(target) if isinstance(target, str) else target
        self.task_name = task_name
        self.rand_state = random.randrange(1, 2**31 - 1) if rand_state == -1 else int(rand_state)
        self.num_threads = cpu_count() if isinstance(num_threads, str) else int(num_threads)
        self.logger = logger or logging.getLogger(f"tvm.meta_schedule.{task_name}")
        self.space_generator = (
            None if space_generator is None else generators.create(space_generator)
        )
        self.search_strategy = (
            None if search_strategy is None else strategies.create(search_strategy)
        )
        self.initialize()

    def initialize(self) -> None:
        """Tell the parts of the task."""
        for part in (self.space_generator, self.search_strategy):
            if part is not None:
                part._initialize_with_tune_context(self)

    def generate_design_space(self) -> list[tir.Schedule]:
        """The schedules whose traces are the space.

        Raises
        ------
        ValueError : there is no space generator.
        """
        if self.space_generator is None or self.mod is None:
            raise ValueError(f"task {self.task_name}: it has no module or no space generator")
        return self.space_generator.generate_design_space(self.mod)

    def _strategy(self) -> Any:
        if self.search_strategy is None:
            raise ValueError(f"task {self.task_name}: it has no search strategy")
        return self.search_strategy

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int = 64,
        design_spaces: Sequence[tir.Schedule] | None = None,
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        """Begin a run of the strategy; see there."""
        spaces = self.generate_design_space() if design_spaces is None else design_spaces
        self._strategy().pre_tuning(max_trials, num_trials_per_iter, spaces, database, cost_model)

    def post_tuning(self) -> None:
        """End the run."""
        self._strategy().post_tuning()

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """What to measure next; None when the run is over."""
        return self._strategy().generate_measure_candidates()

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Tell the strategy what came of candidates."""
        self._strategy().notify_runner_results(measure_candidates, results)

    def clone(self) -> TuneContext:
        """A task of the same module with parts of its own."""
        return TuneContext(
            self.mod,
            target=self.target,
            space_generator=self.space_generator and self.space_generator.clone(),
            search_strategy=self.search_strategy and self.search_strategy.clone(),
            task_name=self.task_name,
            rand_state=self.rand_state,
            num_threads=self.num_threads,
            logger=self.logger,
        )
