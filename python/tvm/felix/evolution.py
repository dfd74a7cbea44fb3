"""Tasks that no symbolic sketch fits: their programs evolve from Ansor's concrete sketches."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm.auto_scheduler import (
    Candidate,
    MeasureInput,
    MeasureResult,
    SearchPolicy,
    SearchTask,
    SketchPolicy,
)
from tvm.auto_scheduler.cost_model.mlp_model import MLPModel
from tvm.error import TVMError

from .search import ConfigInfo, TaskHistory

__all__ = ["EvolutionPolicy", "EvolvedInfo", "EvolvedTask"]

logger = logging.getLogger(__name__)

# Ansor looks at many more programs a round, and lowers each: too long for the few tasks there are.
_PARAMS = {
    "evolutionary_search_population": 256,
    "evolutionary_search_num_iters": 2,
    "sample_init_min_population": 16,
}
# Measured programs from which on the scores of the model are believed.
_WARM_UP = 16


@dataclass
class EvolvedInfo(ConfigInfo):
    """One concrete program; it belongs to no symbolic sketch, so it has no knob values."""

    candidate: MeasureInput | None = None

    @property
    def key(self) -> tuple:
        """Identity inside the task: the loops."""
        assert self.candidate is not None
        return (self.sketch, str(self.candidate.state))


@dataclass
class EvolvedTask(TaskHistory):
    """What was measured of a task that evolves.

    Attributes
    ----------
    rng : what the next search is seeded with, so that a run that goes on draws other programs.
    """

    rng: np.random.Generator


class EvolutionPolicy(SearchPolicy):
    """Evolution from concrete sketches (Ansor, OSDI 2020) for a task that Felix cannot describe.

    Where that finds no valid program either it proposes nothing, so that the task keeps the
    library's schedule and the other tasks of the run are searched all the same.

    Parameters
    ----------
    task : a search task.
    reason : why there is no gradient search of it.
    seed : equal seeds and equal measurements give equal proposals.

    Attributes
    ----------
    search_state : everything measured.
    errors : error code to number of measurements that ended with it.
    n_sketches : symbolic sketches, which are none.
    """

    n_sketches = 0

    def __init__(
        self, task: SearchTask, reason: str, seed: int | Sequence[int] = 0, verbose: int = 1
    ) -> None:
        super().__init__(task, verbose)
        self.reason = reason
        self.search_state = EvolvedTask(np.random.default_rng(seed))
        self.errors: Counter[int] = Counter()
        self._evolution: SketchPolicy | None = None
        self._hopeless = ""
        self._known: tuple[list[Candidate], list[MeasureResult]] = ([], [])

    @property
    def explanation(self) -> str:
        """How the task is searched instead, and why, for a person to read."""
        if self._hopeless:
            return f"not searched: {self.reason}; evolution finds nothing either: {self._hopeless}"
        return f"searched by evolution of concrete programs: {self.reason}"

    @property
    def is_searched(self) -> bool:
        """Whether there are programs to try, as far as is known by now."""
        return not self._hopeless

    def propose(self, n: int) -> list[Candidate]:
        """Up to `n` programs, best predicted first; none where no program is valid."""
        if self._hopeless:
            return []
        try:
            if self._evolution is None:
                self._evolution = self._begin()
            return self._evolution.propose(n)
        except (ValueError, TVMError) as error:
            self._hopeless = str(error).splitlines()[0]
            logger.warning("%s: %s", self.search_task.desc, self.explanation)
            return []

    def observe(self, candidates: Sequence[Candidate], results: Sequence[MeasureResult]) -> None:
        """Learn of a round, or of an earlier run; what is known already changes only its time."""
        new: tuple[list[Candidate], list[MeasureResult]] = ([], [])
        for candidate, result in zip(candidates, results):
            if not isinstance(candidate, MeasureInput):
                continue
            info = EvolvedInfo(-1, {}, float("nan"), candidate=candidate)
            earlier = self.search_state.measured.get(info.key)
            valid = int(result.error_no) == 0
            if earlier is not None:
                if valid:
                    earlier.seconds = min(float(cost) for cost in result.costs)
                continue
            info.error_no = int(result.error_no)
            if valid:
                info.seconds = min(float(cost) for cost in result.costs)
            else:
                self.errors[info.error_no] += 1
                logger.info("%s: %s", self.search_task.desc, result.error_msg)
            self.search_state.record(info)
            new[0].append(candidate)
            new[1].append(result)
        if not new[0]:
            return
        self.search_state.end_round()
        if self._evolution is None:
            self._known[0].extend(new[0])
            self._known[1].extend(new[1])
        else:
            self._evolution.observe(*new)

    def get_measure_input(self, info: ConfigInfo) -> MeasureInput:
        """The program of one measurement, ready to be measured again."""
        assert isinstance(info, EvolvedInfo) and info.candidate is not None
        return info.candidate

    def _begin(self) -> SketchPolicy:
        """Ansor's policy, made when it is needed, that knows what an earlier run measured."""
        seed = int(self.search_state.rng.integers(1, 1 << 30))
        model = MLPModel(num_warmup_sample=_WARM_UP, seed=seed)
        evolution = SketchPolicy(self.search_task, model, _PARAMS, seed=seed, verbose=0)
        if self._known[0]:
            evolution.observe(*self._known)
        return evolution
