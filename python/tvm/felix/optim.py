"""Tuning a set of tasks: rounds of gradient search, measuring, learning, and task scheduling."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from tvm import auto_scheduler
from tvm._older_names import hints_for
from tvm.auto_scheduler.cost_model.dataset import DatasetBuilder
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.auto_scheduler.measure_session import MAX_CONFIRMED
from tvm.auto_scheduler.task_scheduler import MAX_FAILED_ROUNDS
from tvm.runtime.files import check_appendable, read_json, write_atomically

from .evolution import EvolutionPolicy
from .perf_func import SketchPerfFunc, TaskPerfFunc, feature_kind
from .policy import FelixPolicy, Learner, make_policy
from .progress import counting, phase, steps
from .relatives import connect
from .search import ConfigInfo, SearchSettings, SingleTaskOptimizer, TaskHistory
from .settings import require_device
from .sym_task import SymTask, SymTaskAndInstances, TaskInstance

# With those that take part in a round, from the model of a sketch on.
__all__ = [
    "ConfigInfo",
    "DatasetBuilder",
    "Optimizer",
    "SingleTaskOptimizer",
    "SketchPerfFunc",
    "TaskPerfFunc",
    "TaskResult",
    "Timer",
    "TuneResult",
    "TunedTask",
]

if not TYPE_CHECKING:
    __getattr__ = hints_for(__name__)

logger = logging.getLogger(__name__)

# A task with less than this share of the network's time gets half-size batches.
_SMALL_SHARE = 0.01


class _OtherNetworkError(ValueError):
    """A saved state is of another network."""


class Timer:
    """Seconds of tuning, those of earlier runs of the same folder included."""

    def __init__(self, before: float = 0.0) -> None:
        self._before = before
        self._start = time.monotonic()

    def elapsed(self) -> float:
        """Seconds so far."""
        return self._before + time.monotonic() - self._start


def _least(best: ConfigInfo | None, library_seconds: float) -> float:
    """Seconds of the faster of the best schedule found and the library's."""
    found = math.inf if best is None or best.seconds is None else best.seconds
    return min(found, library_seconds)


@dataclass(frozen=True)
class TaskResult:
    """Outcome of tuning one task."""

    idx: int
    workload_key: str
    desc: str
    weight: int
    flop: float
    n_sketches: int | None
    """Symbolic sketches; None where the budget did not reach the task, so that none were made."""
    best: ConfigInfo | None
    n_measured: int
    errors: dict[int, int]
    """Error code to number of measurements that ended with it."""
    library_seconds: float = math.inf
    """Latency of the operator library's schedule; infinite if it was not measured."""
    search: str = "gradient"
    """How: by "gradient"; where no sketch is symbolic by "evolution" of programs; "none" where
    nothing could be searched, or the budget did not reach the task."""
    note: str = ""
    """Why it was not searched by gradient."""

    @property
    def best_seconds(self) -> float | None:
        """Latency of the best schedule, the library's included; None if none was valid."""
        seconds = _least(self.best, self.library_seconds)
        return seconds if math.isfinite(seconds) else None

    @property
    def keeps_library(self) -> bool:
        """Whether nothing found is faster than the library's schedule, which is then built."""
        return math.isfinite(self.library_seconds) and self.best_seconds == self.library_seconds


@dataclass(frozen=True)
class TuneResult:
    """Outcome of `Optimizer.tune`."""

    tasks: list[TaskResult]
    history: list[tuple[float, int, float]]
    """(seconds since start, measurements so far, estimated network latency in seconds)."""
    n_measurements: int
    seconds: float
    interrupted: bool

    @property
    def network_seconds(self) -> float | None:
        """Sum over tasks of weight x best latency, or None while a task has no valid result."""
        return self.history[-1][2] if self.history else None


class TunedTask:
    """A task and who searches it: its sketches are made when it is first searched.

    Parameters
    ----------
    instance : the task.
    begin : makes its policy.
    """

    def __init__(
        self, instance: TaskInstance, begin: Callable[[], FelixPolicy | EvolutionPolicy]
    ) -> None:
        self.instance = instance
        self._begin = begin
        self._nothing = TaskHistory()

    @cached_property
    def policy(self) -> FelixPolicy | EvolutionPolicy:
        """Who searches the task."""
        return self._begin()

    @property
    def is_begun(self) -> bool:
        """Whether there is a policy, so that asking for it takes no time."""
        return "policy" in self.__dict__

    @property
    def search(self) -> TaskHistory:
        """Everything that is known of the task's schedules."""
        return self.policy.search_state if self.is_begun else self._nothing

    @property
    def search_task(self) -> auto_scheduler.SearchTask:
        """The task that measurements are of."""
        return self.instance.ansor_task

    def observe(
        self,
        candidates: Sequence[auto_scheduler.Candidate],
        results: Sequence[auto_scheduler.MeasureResult],
    ) -> None:
        """Let the policy learn of measurements."""
        self.policy.observe(candidates, results)

    @property
    def key(self) -> str:
        """The task's workload key."""
        return str(self.instance.ansor_task.workload_key)

    @property
    def how(self) -> tuple[str, str]:
        """How it is searched, as `TaskResult.search`, and why not by gradient."""
        if not self.is_begun:
            return "none", ""
        if isinstance(self.policy, FelixPolicy):
            return "none" if self.policy.explanation else "gradient", self.policy.explanation
        return ("evolution" if self.policy.is_searched else "none"), self.policy.explanation


def _check_search(tasks: Sequence[SymTaskAndInstances], perf_model: LatencyModel) -> None:
    """Raise a TypeError for what programs written for Felix hand over."""
    for group in tasks:
        if not isinstance(group, SymTaskAndInstances):
            raise TypeError(
                "Optimizer: tasks are groups as extract_tasks returns them, got a "
                f"{type(group).__name__}; a pair of Felix is SymTaskAndInstances(task, [instance])"
            )
    if not isinstance(perf_model, LatencyModel):
        raise TypeError(
            "Optimizer: perf_model is a model such as felix.MLPModelPLWrapper() or "
            f"felix.MLPModelPLWrapper(pretrained=file), got a {type(perf_model).__name__}"
        )


def _check_count(name: str, value: int, least: int) -> None:
    """Raise a TypeError or a ValueError unless `value` is a whole number of `least` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"tune: {name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"tune: {name} must be >= {least}, got {value}")


class Optimizer:
    """Tunes the tasks of a network by gradient descent on a learned latency model.

    Follows Felix (ASPLOS 2024, section 5). Differences: a fresh optimizer and schedule each
    round, start points also near the best measured schedules, candidates ranked together with
    their configuration, and the model trained on everything measured so far.

    Parameters
    ----------
    tasks : what `extract_tasks` returned.
    perf_model : the cost model; trained further in place.
    builder, runner : how candidates are compiled and timed; default LocalBuilder and LocalRunner.
    session : what measures with them; by default a new one.
    seed : of every random choice of the search.
    settings : constants of the gradient search.
    against_library : measure the operator library's schedules first and the winners once more at
        the end, so that no kernel that is built is slower than it was untuned.

    Raises
    ------
    ValueError : there are no tasks, their target has no search space, or the model was trained for
        other targets or on other features.
    TypeError : `tasks` has something else in it, or `perf_model` is none, such as a file.
    """

    def __init__(
        self,
        tasks: Sequence[SymTaskAndInstances],
        perf_model: LatencyModel,
        *,
        builder: auto_scheduler.ProgramBuilder | None = None,
        runner: auto_scheduler.ProgramRunner | None = None,
        session: auto_scheduler.MeasureSession | None = None,
        seed: int = 0,
        settings: SearchSettings | None = None,
        against_library: bool = True,
    ) -> None:
        _check_search(tasks, perf_model)
        self.against_library = against_library
        self._seed, self._settings = seed, settings
        self._n_config_seeds: int | None = None
        self._n_grad_steps: int | None = None
        if session is None:
            session = auto_scheduler.MeasureSession(builder, runner)
        self.session = session
        self.learner = Learner(perf_model)
        self.timer = Timer()
        self.n_rounds = 0
        self._is_scarce = False
        self.history: list[tuple[float, int, float]] = []
        pairs = [pair for group in tasks for pair in group.pairs]
        if not pairs:
            raise ValueError("Optimizer: no tasks to tune (the network has no tunable operator)")
        pairs.sort(key=lambda pair: pair[1].idx)
        self.learner.expect(feature_kind(pairs[0][0]))
        self.tasks = [
            TunedTask(instance, partial(self._begin, task, instance)) for task, instance in pairs
        ]
        self.scheduler = auto_scheduler.TaskScheduler(
            [task.instance.ansor_task for task in self.tasks],
            [task.instance.weight for task in self.tasks],
            strategy="expected-gain",
            callbacks=[],
            seed=seed,
        )

    @property
    def gradient_policies(self) -> list[FelixPolicy]:
        """The policies of the tasks that were searched by gradient so far."""
        begun = [task.policy for task in self.tasks if task.is_begun]
        return [policy for policy in begun if isinstance(policy, FelixPolicy)]

    @property
    def perf_model(self) -> LatencyModel:
        """The cost model."""
        return self.learner.model

    @property
    def data_builder(self) -> DatasetBuilder:
        """Everything measured so far, as training data."""
        return self.learner.data

    @property
    def n_measure(self) -> int:
        """Programs measured so far, restored ones included."""
        return self.session.n_measure

    @property
    def output_file(self) -> Path | None:
        """Where records go."""
        return self.session.records

    def tune(
        self,
        n_measurements: int,
        n_config_seeds: int = 32,
        n_grad_steps: int = 64,
        measure_per_round: int = 8,
        log_file: str | Path | None = None,
        *,
        progress: bool = True,
        on_round: Callable[[Optimizer], None] | None = None,
    ) -> TuneResult:
        """Measure until `n_measurements` are done (those restored from a log count).

        Ctrl-C ends the run; everything measured is kept.

        Parameters
        ----------
        n_measurements : total number of programs to measure over all tasks.
        n_config_seeds : start points of the descent, per sketch and round.
        n_grad_steps : gradient steps of a task's first round; later rounds take half.
        measure_per_round : programs a round.
        log_file : records are appended here, each one as soon as it is measured.
        progress : show a progress bar, where standard error is a terminal.
        on_round : called after each round, for saving state.

        Raises
        ------
        TypeError : a number is not whole.
        ValueError : a number is out of range, or programs for the target cannot run here, where
            they are to be measured here.
        OSError : `log_file` cannot be written, which is found out before anything is measured.
        OSError : a record cannot be written. What was measured is kept, and written if that is
            possible again by now, else to the log.
        RuntimeError : a worker does not start, or a driver is too old.
        """
        _check_count("n_measurements", n_measurements, 0)
        _check_count("n_config_seeds", n_config_seeds, 1)
        _check_count("n_grad_steps", n_grad_steps, 1)
        _check_count("measure_per_round", measure_per_round, 1)
        if log_file is not None:
            check_appendable(log_file)
        self.require_device()
        self._weigh_budget(n_measurements - self.n_measure, measure_per_round)
        self.session.records = Path(log_file) if log_file is not None else None
        self._n_config_seeds, self._n_grad_steps = n_config_seeds, n_grad_steps
        for policy in self.gradient_policies:
            policy.n_config_seeds, policy.n_grad_steps = n_config_seeds, n_grad_steps
        interrupted = False
        try:
            if self.against_library and self.n_measure < n_measurements:
                self._measure_library(progress)
            self._search(n_measurements, measure_per_round, progress, on_round)
            for task in steps(self.tasks, "Measuring the best programs again", show=progress):
                self._confirm(task)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self.session.flush()
        return self.result(interrupted)

    def require_device(self) -> None:
        """Look whether programs of the tasks' target can be run, where they are to be run here.

        Raises
        ------
        ValueError, RuntimeError : they cannot, as of `settings.require_device`.
        """
        runner = self.session.measurer.runner
        if isinstance(runner, auto_scheduler.LocalRunner) and str(runner.run_func) == "default":
            require_device(self.tasks[0].search_task.target)

    def _begin(self, sym_task: SymTask, instance: TaskInstance) -> FelixPolicy | EvolutionPolicy:
        """Make the sketches of a task and who searches them."""
        policy = make_policy(
            sym_task, self.learner, seed=[self._seed, instance.idx], settings=self._settings
        )
        if isinstance(policy, FelixPolicy):
            policy.n_config_seeds = self._n_config_seeds or policy.n_config_seeds
            policy.n_grad_steps = self._n_grad_steps or policy.n_grad_steps
            self.learner.take_in(policy)
            structure = policy.sym_task.sym_dag
            alike = [p for p in self.gradient_policies if p.sym_task.sym_dag == structure]
            connect([*alike, policy])
        return policy

    def _weigh_budget(self, left: int, measure_per_round: int) -> None:
        """Find out whether the budget can reach every task, and say so where it cannot."""
        untouched = sum(not task.search.measured for task in self.tasks)
        self._is_scarce = 0 < left < untouched
        if self._is_scarce:
            logger.warning(
                "%d programs to measure for %d kernels: they go to those that take most of the "
                "network's time, and the others keep the library's schedules; about %d would give "
                "each a search",
                left,
                untouched,
                untouched * measure_per_round,
            )

    def _measure_library(self, progress: bool) -> None:
        tasks = [task.instance.ansor_task for task in self.tasks]
        missing = self.session.without_library(tasks)
        if missing:
            with counting(len(missing), "Measuring the library's schedules", show=progress) as bar:
                self.session.on_careful_result.append(lambda *_: bar.update(1))
                try:
                    self.session.measure_library(missing)
                finally:
                    self.session.on_careful_result.pop()
        self._tell_library()

    def _search(
        self,
        n_measurements: int,
        measure_per_round: int,
        progress: bool,
        on_round: Callable[[Optimizer], None] | None,
    ) -> None:
        """Rounds until the budget is used, or every task is finished."""
        left = max(n_measurements - self.n_measure, 0)
        with counting(left, f"Searching: {left} programs to measure", show=progress) as bar:
            self.session.on_result.append(lambda *_: bar.update(1))
            try:
                while self.n_measure < n_measurements:
                    chosen = self.scheduler.next_task()
                    if chosen is None:
                        phase("Every task is finished, before the budget is used")
                        break
                    task = self.tasks[chosen]
                    batch = self._batch_size(task, measure_per_round)
                    self._do_one_task_one_round(chosen, min(batch, n_measurements - self.n_measure))
                    seconds = self.network_seconds()
                    bar.set_postfix_str(
                        f"task {task.instance.idx}, sum of kernels "
                        + (f"{seconds * 1e3:.3f} ms" if math.isfinite(seconds) else "-")
                    )
                    if on_round is not None:
                        on_round(self)
            finally:
                self.session.on_result.pop()

    def result(self, interrupted: bool = False) -> TuneResult:
        """The state of the search as a result."""
        rows = [
            TaskResult(
                task.instance.idx,
                task.instance.ansor_task.workload_key,
                task.instance.desc,
                task.instance.weight,
                task.instance.flop,
                task.policy.n_sketches if task.is_begun else None,
                task.search.best,
                len(task.search.measured),
                dict(task.policy.errors) if task.is_begun else {},
                self.library_seconds(task),
                *task.how,
            )
            for task in self.tasks
        ]
        return TuneResult(
            rows, list(self.history), self.n_measure, self.timer.elapsed(), interrupted
        )

    def restore(self, log_file: str | Path) -> int:
        """Take up the records of an earlier run; returns how many belong to the tasks.

        Restored schedules are never measured again, train the model, and count as measurements.
        What is known already changes nothing.

        Raises
        ------
        ValueError : a record cannot be read; the message names file and line.
        """
        used = self.session.restore(log_file, {task.key: task for task in self.tasks})
        self._resume_scheduler()
        return used

    def network_seconds(self) -> float:
        """Estimated latency: sum of weight x best; infinity while a task has no valid result.

        Rivals are none of it.
        """
        return sum(
            task.instance.weight * _least(task.search.best, self.library_seconds(task))
            for task in self.tasks
            if not task.instance.is_rival
        )

    def library_seconds(self, task: TunedTask) -> float:
        """Latency of the library's schedule of a task; infinite if it was not measured."""
        return self.session.library_seconds.get(task.key, math.inf)

    def save_state(self, folder: str | Path) -> None:
        """Write the cost model, random states, history and time into `folder`, each atomically."""
        folder = Path(folder)
        if self.perf_model.built:  # it is not where no task is searched by gradient
            self.perf_model.save(folder / "cost_model.ckpt")
        state = {
            "rng": self.scheduler.rng.bit_generator.state,
            "tasks": {
                task.key: {
                    "rng": task.policy.search_state.rng.bit_generator.state
                    if task.is_begun
                    else None,
                    "rounds": task.search.least_lat_history,
                    "measured": len(task.search.measured),
                }
                for task in self.tasks
            },
            "history": self.history,
            "seconds": self.timer.elapsed(),
            "n_rounds": self.n_rounds,
        }
        write_atomically(folder / "state.json", json.dumps(state))

    def load_state(self, folder: str | Path) -> None:
        """Read what `save_state` wrote, if anything; call it after `restore`.

        A round that was measured but not saved counts as one more round of its task.

        Raises
        ------
        ValueError : the file is damaged, or belongs to another network.
        """
        path = Path(folder) / "state.json"
        if not path.exists():
            return
        try:
            state = read_json(path)
        except ValueError as error:
            raise ValueError(
                f"{error}; remove {path.name} to go on from the records alone"
            ) from error
        try:
            saved = state["tasks"]
            ours = {task.key: task for task in self.tasks}
            if saved.keys() != ours.keys():
                raise _OtherNetworkError(
                    f"{path}: {len(saved)} tasks that are not the {len(ours)} of the network: "
                    "resume with the network and options of the first run"
                )
            self.scheduler.rng.bit_generator.state = state["rng"]
            for key, task in ours.items():
                rng, rounds, measured = (saved[key][name] for name in ("rng", "rounds", "measured"))
                if not (task.is_begun or rounds or measured):
                    continue
                search = task.policy.search_state
                if rng is not None:
                    search.rng.bit_generator.state = rng
                search.least_lat_history = [float(seconds) for seconds in rounds]
                if len(search.measured) > int(measured):
                    search.end_round()
            self.history = [(float(s), int(n), float(best)) for s, n, best in state["history"]]
            self.timer = Timer(float(state["seconds"]))
            self.n_rounds = int(state["n_rounds"])
            self._resume_scheduler()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, _OtherNetworkError):
                raise
            what = f"{error}" if isinstance(error, ValueError) else f"no valid state: {error!r}"
            raise ValueError(
                f"{path}: {what}; remove {path.name} to go on from the records alone"
            ) from error
        checkpoint = Path(folder) / "cost_model.ckpt"
        if checkpoint.exists():
            try:
                self.perf_model.load(checkpoint)
            except ValueError as error:
                raise ValueError(
                    f"{error}; remove {checkpoint.name} to go on with a model that learns from the "
                    "records alone"
                ) from error

    def _tell_library(self) -> None:
        """Let the scheduler know what tasks take without a search."""
        for index, task in enumerate(self.tasks):
            seconds = self.library_seconds(task)
            if math.isfinite(seconds):
                self.scheduler.unsearched_costs[index] = seconds

    def _resume_scheduler(self) -> None:
        self._tell_library()
        for index, task in enumerate(self.tasks):
            library = self.library_seconds(task)
            history = [min(seconds, library) for seconds in task.search.least_lat_history]
            self.scheduler.resume(index, history)
            self._give_up_if_all_failed(index)

    def _do_one_task_one_round(self, index: int, n_measure: int) -> None:
        """Train on what is new, search one task, measure the chosen candidates."""
        task = self.tasks[index]
        n_measured = self.session.round(task.policy, n_measure)
        seconds = _least(task.search.best, self.library_seconds(task))
        self.scheduler.end_round(index, seconds, n_measured)
        self._give_up_if_all_failed(index)
        self.n_rounds += 1
        self.history.append((self.timer.elapsed(), self.n_measure, self.network_seconds()))

    def _give_up_if_all_failed(self, index: int) -> None:
        """Finish a task of which no program ran in some rounds; others need the measurements.

        The scheduler cannot tell where the library's schedule, which ran, gives it a latency.
        """
        search = self.tasks[index].search
        if search.best is None and len(search.least_lat_history) >= MAX_FAILED_ROUNDS:
            self.scheduler.dead_tasks.add(index)

    def _confirm(self, task: TunedTask) -> None:
        """Measure the best schedules again; see `MeasureSession.confirm`."""
        if not self.against_library:
            return
        infos = sorted(
            (info for info in task.search.measured.values() if info.seconds is not None),
            key=lambda info: info.seconds or math.inf,
        )[: MAX_CONFIRMED + 1]
        found = [(task.policy.get_measure_input(info), info.seconds or math.inf) for info in infos]
        for position, seconds in self.session.confirm(task.instance.ansor_task, found).items():
            infos[position].seconds = seconds
            task.search.record(infos[position])

    def _batch_size(self, task: TunedTask, measure_per_round: int) -> int:
        half = max(1, measure_per_round // 2)
        if self._is_scarce:
            return half  # what a task gains first it gains by what is expected to be best
        library = [self.library_seconds(t) for t in self.tasks]
        by_time = all(map(math.isfinite, library))
        sizes = library if by_time else [t.instance.flop for t in self.tasks]
        shares = {t.key: t.instance.weight * size for t, size in zip(self.tasks, sizes)}
        is_small = shares[task.key] < _SMALL_SHARE * sum(shares.values())
        return half if is_small else measure_per_round
