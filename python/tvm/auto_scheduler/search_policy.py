"""Who decides what to measure next: the base of all policies, and the derivation of sketches."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api
from .loop_state import State, StateObject
from .measure import ProgramMeasurer
from .measure_node import Candidate, MeasureResult
from .search_task import SearchTask

__all__ = ["PreloadCustomSketchRule", "SearchPolicy", "SketchPolicy"]


def _weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls a method of an object which it does not keep alive."""
    reference = weakref.WeakMethod(method)

    def call(*arguments: Any) -> Any:
        bound = reference()
        if bound is None:
            raise RuntimeError("SearchPolicy: the policy was given up while it was in use")
        return bound(*arguments)

    return call


@tvm._ffi.register_object("auto_scheduler.SearchPolicy")
class SearchPolicy(Object):
    """Proposes candidates and observes what became of them; it measures nothing itself.

    Policies of one's own derive from this class and define `propose` and `observe`.

    Parameters
    ----------
    task : what is searched.
    verbose : 0 silent, 1 a paragraph a round.

    Attributes
    ----------
    search_task : the task.
    """

    def __init__(self, task: SearchTask, verbose: int = 1) -> None:
        for method in ("propose", "observe"):
            if getattr(type(self), method) is getattr(SearchPolicy, method):
                raise TypeError(f"{type(self).__name__}: a SearchPolicy defines `{method}`")
        self.__init_handle_by_constructor__(
            _ffi_api.PythonBasedPolicy, task, verbose, _weakly(self.propose), _weakly(self.observe)
        )

    def propose(self, n: int) -> list[Candidate]:
        """Up to `n` candidates worth measuring, best first; an empty list if nothing is left.

        None of them was proposed or observed before.
        """
        return list(_ffi_api.SearchPolicyPropose(self, n))

    def observe(self, candidates: Sequence[Candidate], results: Sequence[MeasureResult]) -> None:
        """Take in measurements: those of a round, or at the start those of earlier runs."""
        _ffi_api.SearchPolicyObserve(self, list(candidates), list(results))

    def continue_search_one_round(
        self, num_measure: int, measurer: ProgramMeasurer
    ) -> tuple[list[Candidate], list[MeasureResult]]:
        """Propose up to `num_measure` candidates, measure and observe them."""
        inputs, results = _ffi_api.SearchPolicyContinueSearchOneRound(self, num_measure, measurer)
        return list(inputs), list(results)

    def search(
        self,
        num_measure_trials: int,
        early_stopping: int | None,
        num_measures_per_round: int,
        measurer: ProgramMeasurer,
    ) -> Candidate | None:
        """Rounds until the trials are used, nothing is left, or nothing improves any more.

        Parameters
        ----------
        num_measure_trials : programs to measure; with one at most the first proposal comes back
            unmeasured.
        early_stopping : measurements without improvement that end the search; None for never.

        Returns
        -------
        The best candidate of the task that the measurer knows, or None.
        """
        limit = -1 if early_stopping is None else early_stopping
        return _ffi_api.SearchPolicySearch(
            self, num_measure_trials, limit, num_measures_per_round, measurer
        )

    def set_verbose(self, verbose: int) -> None:
        """Change the amount of output."""
        _ffi_api.SearchPolicySetVerbose(self, verbose)


class PreloadCustomSketchRule:
    """A sketch rule given by two functions.

    Parameters
    ----------
    meet_condition_func : (task, state, stage_id) -> PASS, APPLY or APPLY_AND_SKIP_REST.
    apply_func : (task, state, stage_id) -> list of [state, id of the stage to look at next].
    """

    PASS, APPLY, APPLY_AND_SKIP_REST = 0, 1, 2

    def __init__(
        self,
        meet_condition_func: Callable[[SearchTask, StateObject, int], int],
        apply_func: Callable[[SearchTask, StateObject, int], list[list[Any]]],
    ) -> None:
        self.meet_condition_func = meet_condition_func
        self.apply_func = apply_func


class SketchPolicy:
    """Ansor's rules for sketches on a CPU.

    Parameters
    ----------
    task : what is scheduled.
    tiling_structure : levels of a tiled stage, S for space axes and R for reduction axes.
    init_search_callbacks : PreloadCustomSketchRule objects; their rules are asked first.
    """

    def __init__(
        self,
        task: SearchTask,
        tiling_structure: str = "SSRSRS",
        init_search_callbacks: Sequence[PreloadCustomSketchRule] = (),
    ) -> None:
        self.task = task
        self.tiling_structure = tiling_structure
        self.custom_rules = list(init_search_callbacks)

    def generate_sketches(self) -> list[State]:
        """All sketches: states whose tile sizes are open."""
        rules = [[rule.meet_condition_func, rule.apply_func] for rule in self.custom_rules]
        states = _ffi_api.SketchPolicyGenerateSketches(
            self.task, "ansor", self.tiling_structure, rules
        )
        return [State(state, self.task.compute_dag) for state in states]
