"""Which recorded schedule a kernel is compiled with."""

from __future__ import annotations

import functools
import itertools
import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from tvm import relax
from tvm.target import Target

from .compute_dag import ComputeDAG
from .cost_model import RandomModel, XGBModel
from .json_fields import malformed_is_value_error
from .loop_state import State, StateObject, state_object_of
from .measure import ProgramMeasurer
from .measure_node import MeasureErrorNo, MeasureInput, MeasureResult
from .measure_record import (
    careful_file,
    library_records,
    load_record_from_string,
    record_summaries,
)
from .relax_integration import group_task, recorded_schedule
from .search_policy import SketchPolicy
from .search_task import SearchTask
from .utils import calc_workload_dis_factor, decode_workload_key

__all__ = ["ApplyHistoryBest", "ApplyHistoryBestOrSample", "DispatchContext", "FallbackContext"]

logger = logging.getLogger("auto_scheduler")

# What a sampled task is searched with: enough variety to pick from, and no time lost on evolution.
_SAMPLE_PARAMS = {
    "eps_greedy": 0.01,
    "sample_init_min_population": 64,
    "evolutionary_search_num_iters": 0,
}

_Table = dict[str, dict[str, dict[str, dict[str, "_Best"]]]]
Records = str | Path | Iterable[tuple[MeasureInput, MeasureResult]]


@dataclass
class _Best:
    """The fastest known program of a workload, and what it was measured for."""

    program: StateObject | str
    """A line of a record file is read when it is asked for: only then its workload must be known
    to this process, and few of a long file's lines are."""
    seconds: float
    target: Target
    place: str = "record"
    """Where the line is from, for messages."""

    @cached_property
    def state(self) -> StateObject:
        """The program as a loop state."""
        if not isinstance(self.program, str):
            return self.program
        with malformed_is_value_error(self.place):
            return load_record_from_string(self.program)[0].state

    def state_of(self, dag: ComputeDAG | None) -> StateObject:
        """The program as a loop state of a computation, of which a schedule can be made.

        Raises
        ------
        ValueError : the record does not describe one; the message says where it stands.
        """
        if dag is not None and isinstance(self.program, str):
            with malformed_is_value_error(self.place):
                replayed = dag.replay_steps(list(self.state.transform_steps))
                dag.apply_steps_from_state(replayed)
        return self.state


class DispatchContext:
    """Answers which state a workload is compiled with; inside ``with``, `relax.build` asks it.

    Contexts nest: what the innermost does not know, the one around it is asked.
    """

    # The innermost context; None outside of all.
    current: ClassVar[DispatchContext | None] = None

    def __init__(self) -> None:
        self._outer: DispatchContext | None = None
        self._builds: AbstractContextManager[None] | None = None

    def query(
        self,
        target: Target,
        workload_key: str,
        has_complex_op: bool = True,
        dag: ComputeDAG | None = None,
        func_name: str = "",
    ) -> StateObject | None:
        """The state for a workload, from here or from a context around; None if nobody knows.

        Parameters
        ----------
        target, workload_key : what is compiled, for what.
        has_complex_op : whether it reduces over anything; other kernels need no search.
        dag : its computation.
        func_name : for messages.
        """
        state = self._query_inside(target, workload_key, dag, func_name)
        if state is None and self._outer is not None:
            return self._outer.query(target, workload_key, has_complex_op, dag, func_name)
        return state

    def update(
        self, target: Target | str, workload_key: str, state: State | StateObject | None
    ) -> None:
        """Set the state of a workload, before anything recorded; None takes it back."""
        raise TypeError(f"{type(self).__name__} holds no states to update")

    def _query_inside(
        self, target: Target, workload_key: str, dag: ComputeDAG | None, func_name: str
    ) -> StateObject | None:
        raise TypeError(f"{type(self).__name__} does not define _query_inside")

    def __call__(self, group: relax.FusedGroup) -> relax.GroupSchedule | None:
        """What `relax.build` asks: the schedule of a kernel."""
        if not group.is_tunable:
            return None
        target = Target.current() or Target("llvm")
        task = group_task(group, target)
        dag = task.compute_dag
        state = self.query(target, str(task.workload_key), True, dag, group.name)
        if state is None:
            return None
        # A recorded state belongs to the tensors of its own task, which equal this one's.
        replayed = dag.replay_steps(list(state.transform_steps))
        return recorded_schedule(dag, replayed, int(task.layout_rewrite_option))

    def __enter__(self) -> DispatchContext:
        self._outer = DispatchContext.current
        DispatchContext.current = self
        self._builds = relax.schedules_from(self)
        self._builds.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        DispatchContext.current = self._outer
        self._outer = None
        if self._builds is not None:
            self._builds.__exit__(None, None, None)
            self._builds = None


class FallbackContext(DispatchContext):
    """Knows nothing, so that everything gets the library's schedule; says so once a workload.

    Parameters
    ----------
    verbose : 0 silent, 1 warns of kernels that are worth a search, 2 of all others too.
    """

    def __init__(self, verbose: int = 1) -> None:
        super().__init__()
        self.verbose = verbose
        self._states: dict[tuple[str, str], StateObject | None] = {}
        self._told: set[tuple[str, str]] = set()

    def query(
        self,
        target: Target,
        workload_key: str,
        has_complex_op: bool = True,
        dag: ComputeDAG | None = None,
        func_name: str = "",
    ) -> StateObject | None:
        """As in DispatchContext, with a warning for what nobody knows."""
        state = super().query(target, workload_key, has_complex_op, dag, func_name)
        key = (str(target), workload_key)
        if state is None and key not in self._told and self.verbose > (0 if has_complex_op else 1):
            self._told.add(key)
            logger.warning(
                "no recorded schedule of %s for %s (workload %s): the default one is used, which "
                "may be far slower",
                func_name or "a kernel",
                target,
                workload_key,
            )
        return state

    def update(
        self, target: Target | str, workload_key: str, state: State | StateObject | None
    ) -> None:
        """Set the state of a workload."""
        self._states[(str(target), workload_key)] = (
            None if state is None else state_object_of(state)
        )

    def _query_inside(
        self, target: Target, workload_key: str, dag: ComputeDAG | None, func_name: str
    ) -> StateObject | None:
        return self._states.get((str(target), workload_key))


class ApplyHistoryBest(DispatchContext):
    """The best record of each workload: by the model of the target, else by any of its keys.

    Parameters
    ----------
    records : record file, several of them, or pairs of inputs and results.
    n_lines : read only this many records of each.
    include_compatible : a workload without record may use that of one whose sizes divide its own.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ValueError : a record cannot be read; the message says which line.
    """

    def __init__(
        self,
        records: Records | Sequence[str | Path],
        n_lines: int | None = None,
        include_compatible: bool = False,
    ) -> None:
        super().__init__()
        self.include_compatible = include_compatible
        # Target key -> workload name -> arguments -> the best of each machine.
        self.best_by_targetkey: _Table = {}
        self.best_by_model: _Table = {}
        # Workload key and target -> seconds of the library's schedule.
        self._library: dict[tuple[str, str], float] = {}
        self._best_user_defined: _Table = {}
        self._told: set[str] = set()
        self._loaded: list[tuple[str | Path, int | None]] = []
        # Places of records whose programs cannot be made.
        self._unusable: set[str] = set()
        self.load(records, n_lines)

    @staticmethod
    def get_workload_entry(
        best_records: dict[str, Any], target_key: str, workload_key: str
    ) -> tuple[Any, str, str]:
        """Where a workload stands in a table of records; made empty if it is not there yet.

        Returns
        -------
        The dictionary of its name's entries, the name, and its arguments, the key in there.
        """
        name, arguments = decode_workload_key(workload_key)
        table = best_records.setdefault(target_key, {})
        return table.setdefault(name, {}), name, _arguments_key(arguments)

    def load(self, records: Records | Sequence[str | Path], n_lines: int | None = None) -> None:
        """Take in more records; better ones win."""
        if isinstance(records, (str, Path)):
            self._load_file(records, n_lines)
            return
        for i, entry in enumerate(records):
            if isinstance(entry, (str, Path)):
                self._load_file(entry, n_lines)
                continue
            if n_lines is not None and i >= n_lines:
                break
            measure_input, result = entry
            if int(result.error_no) == MeasureErrorNo.NO_ERROR:
                task = measure_input.task
                best = _Best(measure_input.state, result.mean_cost, task.target)
                self._take(str(task.workload_key), best)

    def _load_file(self, path: str | Path, n_lines: int | None) -> None:
        if not Path(path).exists():
            raise FileNotFoundError(f"record file {path} does not exist")
        self._loaded.append((path, n_lines))
        self._read_file(path, n_lines)

    def _read_file(self, path: str | Path, n_lines: int | None) -> None:
        target_of = functools.cache(Target)
        careful = careful_file(path)
        again: dict[str, float] = {}
        for _, _, summary in record_summaries(careful) if careful.exists() else ():
            again[summary.program] = summary.seconds
        for (key, target), result in library_records(path).items():
            self._library[key, target] = result.mean_cost
        for number, line, summary in itertools.islice(record_summaries(path), n_lines):
            place = f"{path}:{number}"
            seconds = again.get(summary.program, summary.seconds)
            if place in self._unusable or seconds == math.inf:
                continue
            with malformed_is_value_error(place):
                target = target_of(summary.target)
            self._take(summary.workload_key, _Best(line, seconds, target, place))

    def _take(self, workload_key: str, best: _Best) -> None:
        for table, key in self._places(best.target):
            entry, _, arguments = self.get_workload_entry(table, key, workload_key)
            machines = entry.setdefault(arguments, {})
            known = machines.get(str(best.target))
            if known is None or best.seconds < known.seconds:
                machines[str(best.target)] = best

    def update(
        self, target: Target | str, workload_key: str, state: State | StateObject | None
    ) -> None:
        """Set the state of a workload, before anything recorded; None takes it back."""
        target = target if isinstance(target, Target) else Target(target)
        for key in (str(target.model), *map(str, target.keys)):
            entry, _, arguments = self.get_workload_entry(
                self._best_user_defined, key, workload_key
            )
            if state is None:
                entry.pop(arguments, None)
            else:
                entry[arguments] = {str(target): _Best(state_object_of(state), 0.0, target)}

    def _places(self, target: Target) -> list[tuple[Any, str]]:
        places = [(self.best_by_targetkey, str(key)) for key in target.keys]
        if str(target.model) != "unknown":
            places.append((self.best_by_model, str(target.model)))
        return places

    def _query_inside(
        self, target: Target, workload_key: str, dag: ComputeDAG | None, func_name: str
    ) -> StateObject | None:
        model, keys = [str(target.model)], [str(key) for key in target.keys]
        for table, names in (
            (self._best_user_defined, model),
            (self.best_by_model, model),
            (self._best_user_defined, keys),
            (self.best_by_targetkey, keys),
        ):
            for name in names:
                best = self._best_of(table.get(name, {}), workload_key, target)
                if best is None:
                    continue
                try:
                    return best.state_of(dag)
                except ValueError as error:
                    if not isinstance(best.program, str):
                        raise
                    # One damaged record must not cost the others: the next best one is taken.
                    logger.warning("%s; the record is not used", error)
                    self._leave_out(best.place)
                    return self._query_inside(target, workload_key, dag, func_name)
        self._tell_of_other_machines(workload_key, target)
        return None

    def _leave_out(self, place: str) -> None:
        """Read the files again, without one of their records."""
        self._unusable.add(place)
        for table in (self.best_by_targetkey, self.best_by_model):
            for entries in table.values():
                for workloads in entries.values():
                    for machines in workloads.values():
                        for machine, best in list(machines.items()):
                            if best.place == place:
                                del machines[machine]
        for path, n_lines in self._loaded:
            self._read_file(path, n_lines)

    def _tell_of_other_machines(self, workload_key: str, target: Target) -> None:
        """Say once of a workload that there are records of it, but none of this machine."""
        name, arguments = decode_workload_key(workload_key)
        exact = _arguments_key(arguments)
        machines = {
            machine
            for table in self.best_by_targetkey.values()
            for machine in table.get(name, {}).get(exact, {})
        }
        # Where the library's schedule is kept, there are records of this machine.
        here = any(target.is_same_machine(Target(machine)) for machine in machines)
        if machines and not here and workload_key not in self._told:
            self._told.add(workload_key)
            logger.warning(
                "the records of %s are of other machines than %s: %s",
                workload_key,
                target.with_machine(),
                "; ".join(sorted(machines)),
            )

    def _best_of(
        self,
        table: Mapping[str, Mapping[str, Mapping[str, _Best]]],
        workload_key: str,
        target: Target,
    ) -> _Best | None:
        name, arguments = decode_workload_key(workload_key)
        exact = _arguments_key(arguments)
        chosen, least = None, (True, math.inf)
        for key, machines in table.get(name, {}).items():
            if key != exact and not self.include_compatible:
                continue
            factor = calc_workload_dis_factor((name, arguments), (name, json.loads(key)))
            for best in machines.values():
                # Nothing replaces the library's schedule that is not faster.
                if best.seconds >= self._library.get((workload_key, str(best.target)), math.inf):
                    continue
                # A record of the very workload wins over any other one.
                rank = (key != exact, best.seconds * factor)
                if target.is_same_machine(best.target) and rank < least:
                    chosen, least = best, rank
        return chosen


class ApplyHistoryBestOrSample(ApplyHistoryBest):
    """Like ApplyHistoryBest; a workload without record gets the best of some sampled programs.

    Parameters
    ----------
    records : as in ApplyHistoryBest, or None.
    sample_simple_workloads : sample for workloads without reduction too.
    cost_model_file : a saved XGBModel that ranks the samples; else they are random.
    num_measure : programs to measure for each workload; with none, the best ranked one is taken.
    """

    def __init__(
        self,
        records: Records | Sequence[str | Path] | None,
        sample_simple_workloads: bool = False,
        cost_model_file: str | Path | None = None,
        num_measure: int = -1,
    ) -> None:
        self.sample_simple_workloads = sample_simple_workloads
        self.num_measure = num_measure
        self._model: Any = RandomModel()
        if cost_model_file is not None:
            self._model = XGBModel()
            self._model.load(cost_model_file)
        super().__init__(() if records is None else records)

    def query(
        self,
        target: Target,
        workload_key: str,
        has_complex_op: bool = True,
        dag: ComputeDAG | None = None,
        func_name: str = "",
    ) -> StateObject | None:
        """As in DispatchContext; samples where nobody knows."""
        state = super().query(target, workload_key, has_complex_op, dag, func_name)
        if state is not None or not (has_complex_op or self.sample_simple_workloads):
            return state
        task = SearchTask(compute_dag=dag, workload_key=workload_key, target=target)
        policy = SketchPolicy(task, self._model, params=_SAMPLE_PARAMS, verbose=0)
        best = policy.search(
            max(self.num_measure, 1), None, max(self.num_measure, 1), ProgramMeasurer()
        )
        if not isinstance(best, MeasureInput):
            return None
        self.update(target, workload_key, best.state)
        return best.state


def _arguments_key(arguments: Sequence[Any]) -> str:
    """A workload's arguments as one key, from which they can be read again."""
    return json.dumps(list(arguments))
