"""Who decides what to measure next: the base of all policies, and Ansor's."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm.runtime import Object
from tvm.target import Target

from . import _ffi_api
from .cost_model import CostModel, RandomModel
from .loop_state import State, StateObject, state_object_of
from .measure import ProgramMeasurer
from .measure_callback import weakly
from .measure_node import Candidate, MeasureResult
from .measure_record import load_records
from .search_task import SearchTask

__all__ = [
    "EmptyPolicy",
    "PreloadCustomSketchRule",
    "PreloadMeasuredStates",
    "SearchCallback",
    "SearchPolicy",
    "SketchPolicy",
]


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
            _ffi_api.PythonBasedPolicy, task, verbose, weakly(self.propose), weakly(self.observe)
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


@tvm._ffi.register_object("auto_scheduler.EmptyPolicy")
class EmptyPolicy(SearchPolicy):
    """Proposes the unscheduled program, once.

    Parameters
    ----------
    task : what is searched.
    init_search_callbacks : called with the policy, see SearchCallback.
    verbose : 0 silent.
    """

    def __init__(
        self,
        task: SearchTask,
        init_search_callbacks: Sequence[SearchCallback] | None = None,
        verbose: int = 1,
    ) -> None:
        self.__init_handle_by_constructor__(_ffi_api.EmptyPolicy, task, verbose)
        _ffi_api.SearchPolicyRunCallbacks(self, list(init_search_callbacks or ()))


@tvm._ffi.register_object("auto_scheduler.SketchPolicy")
class SketchPolicy(SearchPolicy):
    """Sketches, random programs and evolution under a cost model (Ansor, OSDI 2020).

    Parents are selected by the rank of their scores, not in proportion to them, which also works
    while scores mean little. Programs are told apart by hashes of their loops.

    Parameters
    ----------
    task : what is searched.
    program_cost_model : what scores programs; by default a RandomModel of the same seed.
    params : parameters that are to differ from `DEFAULT_PARAMS`. ``search_space`` names a space,
        see `search_spaces`.
    seed : equal seeds give equal proposals; by default a random one.
    verbose : 0 silent, 1 progress.
    init_search_callbacks : PreloadMeasuredStates and PreloadCustomSketchRule objects.

    Raises
    ------
    ValueError : a parameter does not exist or is out of range, or the target has no such space.
    TypeError : a parameter has the wrong type.
    """

    DEFAULT_PARAMS = dict(_ffi_api.SketchPolicyDefaults().items())

    def __init__(
        self,
        task: SearchTask,
        program_cost_model: CostModel | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        verbose: int = 1,
        init_search_callbacks: Sequence[SearchCallback] | None = None,
    ) -> None:
        if seed is None:
            seed = random.randint(1, 1 << 30)
        model = RandomModel(seed) if program_cost_model is None else program_cost_model
        self.__init_handle_by_constructor__(
            _ffi_api.SketchPolicy, task, model, dict(params or {}), seed, verbose
        )
        # A model written in Python is kept alive here, not by its node.
        self._model = model
        _ffi_api.SearchPolicyRunCallbacks(self, list(init_search_callbacks or ()))

    def generate_sketches(self, print_for_debug: bool = False) -> list[State]:
        """All sketches: states whose tile sizes are open."""
        sketches = self._states(_ffi_api.SketchPolicyGenerateSketches(self))
        if print_for_debug:
            for i, sketch in enumerate(sketches):
                print("=" * 20 + f" {i} " + "=" * 20, sketch, sep="\n")
        return sketches

    def sample_initial_population(self) -> list[State]:
        """Distinct valid programs drawn from the sketches.

        Raises
        ------
        ValueError : no program of the sketches is valid.
        """
        return self._states(_ffi_api.SketchPolicySampleInitialPopulation(self))

    def evolutionary_search(
        self, init_populations: Sequence[State | StateObject], out_size: int
    ) -> list[State]:
        """The `out_size` programs of highest score that evolve of the given ones, best first.

        Programs that were proposed or observed are left out.
        """
        population = [state_object_of(state) for state in init_populations]
        return self._states(_ffi_api.SketchPolicyEvolutionarySearch(self, population, out_size))

    def _states(self, states: Sequence[StateObject]) -> list[State]:
        return [State(state, self.search_task.compute_dag) for state in states]


@tvm._ffi.register_object("auto_scheduler.SearchCallback")
class SearchCallback(Object):
    """Base of what prepares a policy before it searches."""


@tvm._ffi.register_object("auto_scheduler.PreloadMeasuredStates")
class PreloadMeasuredStates(SearchCallback):
    """Tells a SketchPolicy what was measured already: what to build on and not to repeat.

    The cost model is not trained with it. Records of other tasks in the file do not matter.

    Parameters
    ----------
    filename : record file.
    """

    def __init__(self, filename: str | Path) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PreloadMeasuredStates, str(filename))


@tvm._ffi.register_object("auto_scheduler.PreloadCustomSketchRule")
class PreloadCustomSketchRule(SearchCallback):
    """Gives a SketchPolicy a rule of two functions, which is asked before its own.

    Parameters
    ----------
    meet_condition_func : (policy, state, stage_id) -> PASS, APPLY or APPLY_AND_SKIP_REST.
    apply_func : (policy, state, stage_id) -> list of [state, id of the stage to look at next].
    rule_name : for messages.
    """

    PASS, APPLY, APPLY_AND_SKIP_REST = 0, 1, 2

    def __init__(
        self,
        meet_condition_func: Callable[[SketchPolicy, StateObject, int], int],
        apply_func: Callable[[SketchPolicy, StateObject, int], list[list[Any]]],
        rule_name: str = "CustomSketchRule",
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.PreloadCustomSketchRule, meet_condition_func, apply_func, rule_name
        )


@tvm._ffi.register_func("auto_scheduler.LoadMeasured")
def _load_measured(filename: str, workload_key: str, target: Target) -> list[list[Object]]:
    """Records of a file for one workload on one kind of machine, as [input, result]."""
    return [
        [measure_input, result]
        for measure_input, result in load_records(str(filename))
        if str(measure_input.task.workload_key) == str(workload_key)
        and target.is_same_machine(measure_input.task.target)
    ]
