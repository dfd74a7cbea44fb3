"""Tuning several tasks: which one gets the next measurements."""

from __future__ import annotations

import importlib
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tvm._ffi
from tvm import te
from tvm.runtime.workers.serve import resolve

from . import _ffi_api
from .cost_model import CostModel, RandomModel, XGBModel
from .measure import ProgramMeasurer
from .measure_node import MAX_FLOAT
from .measure_record import RecordReader
from .search_policy import PreloadMeasuredStates, SearchPolicy, SketchPolicy
from .search_task import SearchTask
from .tuning import TuningOptions
from .utils import calc_similarity_tag, register_by_name

__all__ = [
    "STRATEGIES",
    "LogEstimatedLatency",
    "PrintTableInfo",
    "TaskScheduler",
    "TaskSchedulerCallback",
    "auto_schedule",
    "make_search_policies",
    "register_search_policy",
]

logger = logging.getLogger("auto_scheduler")

# Step of the numerical derivative of the objective, in seconds.
_DELTA = 1e-4
# How far the throughput of a task may fall behind similar ones before it is no longer compared.
_ROUNDS_BEFORE_LEAVING = 5
# Under "expected-gain" a task ends after this many rounds without a valid program, and after this
# many without any progress.
MAX_FAILED_ROUNDS = 3
_STALL_ROUNDS = 8

_MODELS = ("xgb", "mlp", "random")

# Makers of policies by name, as text where their module is loaded when it is asked for.
_POLICIES: dict[str, Callable[..., list[SearchPolicy]] | str] = {
    "felix": "tvm.felix.policy:make_policies"
}


def register_search_policy(
    name: str,
    make: Callable[..., list[SearchPolicy]] | None = None,
    override: bool = False,
) -> Any:
    """Register what makes the policies of a name, for `search_policy` of `tune`.

    Usable as ``@register_search_policy("name")`` or with both; gives the function back.

    Parameters
    ----------
    make : called with tasks, parameters, verbosity, the file of a saved model and the file of
        records to learn from (each of these None if not given); returns a policy for each task.

    Raises
    ------
    ValueError : the name is no text.
    RuntimeError : the name is taken, and `override` is False.
    """
    if name == "default" or str(name).startswith("sketch"):
        raise RuntimeError(f"register_search_policy: {name!r} is a name of Ansor's policies")
    return register_by_name(_POLICIES, "register_search_policy", name, make, override)


def _make_model(
    name: str,
    num_warmup_sample: int,
    load_model_file: str | None,
    load_log_file: str | None,
    adaptive_training: bool,
) -> CostModel:
    model: Any
    if name == "random":
        return RandomModel()
    # Found out now, not when the programs of the first round have been measured.
    if load_model_file is not None and not Path(load_model_file).parent.is_dir():
        raise FileNotFoundError(
            f"load_model_file: there is no folder {Path(load_model_file).parent} to save the model "
            "in; make it, or name a file elsewhere"
        )
    if name == "xgb":
        model = XGBModel(
            num_warmup_sample=num_warmup_sample,
            model_file=load_model_file,
            adaptive_training=adaptive_training,
        )
    elif name == "mlp":
        module = importlib.import_module("tvm.auto_scheduler.cost_model.mlp_model")
        model = module.MLPModel(num_warmup_sample=num_warmup_sample, model_file=load_model_file)
    else:
        raise ValueError(f"unknown cost model {name!r}; known are {', '.join(_MODELS)}")
    if load_model_file is not None and Path(load_model_file).is_file():
        model.load(load_model_file)
    elif load_log_file is not None:
        model.update_from_file(load_log_file)
    return model


def make_search_policies(
    search_policy: str | Sequence[SearchPolicy],
    search_policy_params: Mapping[str, Any] | None,
    tasks: Sequence[SearchTask],
    num_measures_per_round: int,
    verbose: int,
    load_model_file: str | None = None,
    load_log_file: str | None = None,
    adaptive_training: bool = False,
) -> list[SearchPolicy]:
    """One search policy a task; they share a cost model.

    Parameters
    ----------
    search_policy : "default" or "sketch.xgb", "sketch.mlp", "sketch.random", "felix", a name given
        to `register_search_policy`; or the policies themselves.
    search_policy_params : parameters of the policies, see SketchPolicy.
    num_measures_per_round : an untrained model gives random scores for the first round of each
        task.
    verbose : 0 is silent.
    load_model_file : a saved model to start with, if it exists; models of "sketch" policies are
        saved there again after each update, so its folder must exist.
    load_log_file : records to learn from, and not to measure again.
    adaptive_training : train less often as measurements grow.

    Raises
    ------
    FileNotFoundError : the folder that the model is to be saved in does not exist.
    ValueError : the policy or its model is unknown; the message lists the known ones.
    TypeError : `search_policy` is neither a name nor a list.
    """
    if not isinstance(search_policy, str):
        if not isinstance(search_policy, (list, tuple)):
            raise TypeError(
                "make_search_policies: search_policy is a name, or a list with the policy of each "
                f"task; got {type(search_policy).__name__}"
            )
        policies = list(search_policy)
        if len(policies) != len(tasks):
            raise ValueError(
                f"make_search_policies: {len(policies)} policies for {len(tasks)} tasks"
            )
        return policies
    kind, _, model_name = search_policy.partition(".")
    if search_policy == "default":
        kind, model_name = "sketch", "xgb"
    if search_policy in _POLICIES:
        make = _POLICIES[search_policy]
        if isinstance(make, str):
            make = resolve(make)
        saved = load_model_file is not None and Path(load_model_file).is_file()
        checkpoint = load_model_file if saved else None
        return make(tasks, search_policy_params, verbose, checkpoint, load_log_file)
    if kind != "sketch" or not model_name:
        known = ["default", *(f"sketch.{name}" for name in _MODELS), *_POLICIES]
        raise ValueError(f"unknown search policy {search_policy!r}; known are {', '.join(known)}")
    callbacks = [PreloadMeasuredStates(load_log_file)] if load_log_file is not None else []
    model = _make_model(
        model_name,
        len(tasks) * num_measures_per_round,
        load_model_file,
        load_log_file,
        adaptive_training,
    )
    return [
        SketchPolicy(
            task,
            model,
            params=search_policy_params,
            verbose=verbose,
            init_search_callbacks=callbacks,
        )
        for task in tasks
    ]


@tvm._ffi.register_func("auto_scheduler.TuneTask")
def auto_schedule(
    task: SearchTask,
    search_policy: SearchPolicy | str | None = None,
    tuning_options: TuningOptions | None = None,
    adaptive_training: bool = False,
) -> tuple[te.Schedule, list[te.Tensor]]:
    """Search for a fast program of one task; schedule and arguments of the best one.

    Parameters
    ----------
    search_policy : a policy of this task, or the name of one as `TaskScheduler.tune` takes them; by
        default Ansor's search with a model of boosted trees.
    adaptive_training : train the model of a policy by name less often as measurements grow.

    Raises
    ------
    RuntimeError : no program of the task could be measured; the message says why the last failed.
    TypeError : the policy proposes programs that are no loop states.
    ValueError : the policy is one of another task, or there is none of that name.
    """
    tuning_options = tuning_options or TuningOptions()
    if search_policy is None or isinstance(search_policy, str):
        [search_policy] = make_search_policies(
            search_policy or "default",
            None,
            [task],
            tuning_options.num_measures_per_round,
            tuning_options.verbose,
            adaptive_training=adaptive_training,
        )
    searched = search_policy.search_task.workload_key
    if searched != task.workload_key:
        raise ValueError(
            f"auto_schedule: the policy searches for {searched}, the task is {task.workload_key}; "
            "make a policy of this task"
        )
    schedule, args = _ffi_api.AutoSchedule(search_policy, tuning_options)
    return schedule, list(args)


class TaskScheduler:
    """Divides measurements among the tasks of a network (Ansor, OSDI 2020, section 6).

    Parameters
    ----------
    tasks : what is tuned.
    task_weights : how often the network runs each; by default once.
    objective_func : from the tasks' best latencies in seconds to what is to become small; by
        default the sum of weight x latency.
    strategy : "gradient" tunes the task that promises to lower the objective most, "round-robin"
        one after the other. "expected-gain" is the gradient as Felix takes it: each task once,
        those first that take most of the time (`unsearched_costs`) or, where that is not known,
        have most work; a task without valid measurement counts with a finite latency, and tasks
        that only fail or have not improved for long are finished.
    load_model_file, load_log_file : see `make_search_policies`; counts and best latencies are
        restored from the log too.
    alpha : share of the past in the estimate of a task's promise, the rest being the forecast.
    beta : how much faster than similar tasks a task is trusted to become.
    gamma : accepted as in TVM, where no strategy reads it either.
    backward_window_size : rounds over which the past improvement is taken.
    callbacks : by default PrintTableInfo and LogEstimatedLatency.
    seed : of the choice among tasks that promise the same.

    Attributes
    ----------
    best_costs : best latency of each task in seconds, 1e10 before a valid measurement.
    unsearched_costs : latency in seconds that each task has without a search, 1e10 where that is
        not known; for whoever measured it to set.
    task_cts, task_best_cts : rounds of each task, and those at its best latency.
    task_costs_history : best latency of each task after each of its rounds.
    dead_tasks : tasks that are not tuned any more.
    ct, best_ct, best_score, cur_score : trials so far, those at the best objective, and objectives.
    flop_cts : floating-point operations of each task, at least 1.
    rng : source of the random choices.

    Raises
    ------
    ValueError : the strategy is unknown, or there are not as many weights as tasks.
    """

    def __init__(
        self,
        tasks: Sequence[SearchTask],
        task_weights: Sequence[float] | None = None,
        objective_func: Callable[[Any], float] | None = None,
        strategy: str = "gradient",
        load_model_file: str | None = None,
        load_log_file: str | None = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Sequence[TaskSchedulerCallback] | None = None,
        seed: int = 0,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(
                f"TaskScheduler: unknown strategy {strategy!r}; known are {', '.join(STRATEGIES)}"
            )
        if task_weights is not None and len(task_weights) != len(tasks):
            raise ValueError(f"TaskScheduler: {len(task_weights)} weights for {len(tasks)} tasks")
        self.tasks = list(tasks)
        self.task_weights = [1.0] * len(tasks) if task_weights is None else list(task_weights)
        self.objective_func = objective_func or self._weighted_latency
        self.strategy = strategy
        self.load_model_file, self.load_log_file = load_model_file, load_log_file
        self.alpha, self.beta, self.gamma = alpha, beta, gamma
        self.backward_window_size = backward_window_size
        if callbacks is None:
            callbacks = [PrintTableInfo(), LogEstimatedLatency("total_latency.tsv")]
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            if not (hasattr(callback, "pre_tune") and hasattr(callback, "post_tune")):
                raise TypeError(f"TaskScheduler: {callback!r} is no TaskSchedulerCallback")
        self.rng = np.random.default_rng(seed)

        n = len(self.tasks)
        self.task_cts = [0] * n
        self.task_best_cts = [0] * n
        self.task_costs_history: list[list[float]] = [[] for _ in range(n)]
        self.best_costs = np.full(n, MAX_FLOAT)
        self.unsearched_costs = np.full(n, MAX_FLOAT)
        self.dead_tasks: set[int] = set()
        self.flop_cts = [max(float(task.compute_dag.flop_ct), 1.0) for task in self.tasks]
        self.ct = self.best_ct = 0
        self.cur_score = self.best_score = MAX_FLOAT
        self.num_measures_per_round = 0
        self._per_task_limit = math.inf
        self.tune_option: TuningOptions | None = None
        self.search_policies: list[SearchPolicy] = []
        self.tic = time.monotonic()
        # Tasks of one tag do much the same, so they should come to much the same throughput.
        self.groups: dict[str, list[int]] = {}
        for i, task in enumerate(self.tasks):
            tag = calc_similarity_tag(task.compute_dag)
            if tag:
                self.groups.setdefault(tag, []).append(i)
        self._group_of = {i: group for group in self.groups.values() for i in group}

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: str | Sequence[SearchPolicy] = "default",
        search_policy_params: Mapping[str, Any] | None = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> None:
        """Tune until the trials are used up or all tasks are finished.

        Parameters
        ----------
        tune_option : trials in total (a whole number of rounds is measured), early stopping of the
            whole, and how to measure.
        search_policy, search_policy_params, adaptive_training : see `make_search_policies`.
        per_task_early_stopping : a task is finished after this many trials without improvement.

        Raises
        ------
        ValueError : there are not enough trials for one of each task, or the policy is unknown.
        """
        if not self.tasks:
            raise ValueError("TaskScheduler.tune: there are no tasks to tune")
        self.tune_option = tune_option
        self.num_measures_per_round = min(
            tune_option.num_measures_per_round, tune_option.num_measure_trials // len(self.tasks)
        )
        if self.num_measures_per_round <= 0:
            raise ValueError(
                f"TaskScheduler.tune: num_measure_trials is {tune_option.num_measure_trials}; "
                f"{len(self.tasks)} tasks need at least {len(self.tasks)}, one each"
            )
        early_stopping = _limit(tune_option.early_stopping)
        self._per_task_limit = _limit(per_task_early_stopping)
        self.measurer = ProgramMeasurer(
            tune_option.builder,
            tune_option.runner,
            tune_option.measure_callbacks,
            tune_option.verbose,
        )
        if self.load_log_file is not None:
            self._restore(self.load_log_file)
        self.search_policies = make_search_policies(
            search_policy,
            search_policy_params,
            self.tasks,
            self.num_measures_per_round,
            tune_option.verbose,
            self.load_model_file,
            self.load_log_file,
            adaptive_training,
        )
        self.ct = self.best_ct = 0
        self.tic = time.monotonic()
        self.best_score = self.cur_score = self._score(self.best_costs)
        while self.ct < tune_option.num_measure_trials and (i := self.next_task()) is not None:
            is_first = not self.task_cts[i]
            self._tune_task(i)
            if is_first or self.cur_score < self.best_score:
                self.best_score, self.best_ct = self.cur_score, self.ct
            elif self.ct - self.best_ct >= early_stopping and all(
                cost < MAX_FLOAT for cost in self.best_costs
            ):
                logger.info(
                    "Stop early: no improvement in the last %d trials", self.ct - self.best_ct
                )
                break

    def next_task(self) -> int | None:
        """The task that the strategy would have measured next, or None if all are finished."""
        return STRATEGIES[self.strategy](self)

    def alive(self) -> list[int]:
        """Tasks that are not dead."""
        return [i for i in range(len(self.tasks)) if i not in self.dead_tasks]

    def end_round(self, i: int, cost: float, n_measured: int) -> None:
        """Take in a round of task i, whoever measured it.

        Parameters
        ----------
        cost : lowest latency of the round in seconds, 1e10 or infinity if nothing was valid.
        n_measured : programs that were measured; a task with none left is finished.
        """
        self.task_cts[i] += 1
        if cost < self.best_costs[i]:
            self.task_best_cts[i] = self.task_cts[i]
            self.best_costs[i] = cost
        stalled = (self.task_cts[i] - self.task_best_cts[i]) * self.num_measures_per_round
        if not n_measured or stalled >= self._per_task_limit:
            self.dead_tasks.add(i)
        self.task_costs_history[i].append(float(self.best_costs[i]))
        # A dry round counts too, so that a search with nothing left to find comes to its end.
        self.ct += n_measured
        self.cur_score = self._score(self.best_costs)
        self._leave_group(i)

    def resume(self, i: int, history: Sequence[float]) -> None:
        """Set the rounds of task i to those of an earlier run.

        Parameters
        ----------
        history : best latency in seconds after each round, infinity before a valid measurement.
        """
        costs = [min(float(cost), MAX_FLOAT) for cost in history]
        self.task_costs_history[i] = costs
        self.task_cts[i] = len(costs)
        self.best_costs[i] = min(costs, default=MAX_FLOAT)
        self.task_best_cts[i] = costs.index(self.best_costs[i]) + 1 if costs else 0
        self.cur_score = self._score(self.best_costs)

    def _tune_task(self, i: int) -> None:
        """One round of task i."""
        for callback in self.callbacks:
            callback.pre_tune(self, i)
        inputs, results = self.search_policies[i].continue_search_one_round(
            self.num_measures_per_round, self.measurer
        )
        best = min((result.mean_cost for result in results), default=MAX_FLOAT)
        self.end_round(i, best, len(inputs))
        for callback in self.callbacks:
            callback.post_tune(self, i)

    def _leave_group(self, i: int) -> None:
        """A task that stays behind similar ones for long is not like them."""
        group = self._group_of.get(i)
        if group is None or len(group) < 2:
            return
        best = max(self.flop_cts[j] / self.best_costs[j] for j in group)
        others = max(self.task_cts[j] for j in group if j != i)
        behind = self.flop_cts[i] / self.best_costs[i] < best / self.beta
        if behind and self.task_cts[i] > _ROUNDS_BEFORE_LEAVING + others:
            group.remove(i)
            del self._group_of[i]

    def gradient(self, i: int) -> float:
        """Estimated change of the objective for one more round of task i; never positive."""
        if i in self.dead_tasks:
            return 0.0
        costs = self.best_costs
        chain = self.slope(i, costs)
        history, rounds = self.task_costs_history[i], self.task_cts[i]
        window = self.backward_window_size
        backward = 0.0
        if rounds - 1 - window >= 0 and len(history) > window:
            backward = (history[-1] - history[-1 - window]) / window
        # Either the past rate goes on, or the task becomes as fast as similar ones are.
        by_rate = costs[i] - costs[i] / max(rounds, 1)
        by_similar = self.beta * 1e30
        group = self._group_of.get(i, [])
        if len(group) > 1:
            fastest = max(self.flop_cts[j] / costs[j] for j in group)
            by_similar = self.beta * self.flop_cts[i] / fastest
        forward = min(by_rate, by_similar) - costs[i]
        return min(0.0, chain * (self.alpha * backward + (1 - self.alpha) * forward))

    def slope(self, i: int, costs: np.ndarray) -> float:
        """Derivative of the objective with respect to the latency of task i."""
        if self.objective_func == self._weighted_latency:
            return float(self.task_weights[i])
        lower = costs.copy()
        lower[i] -= _DELTA
        return (self._score(costs) - self._score(lower)) / _DELTA

    def _restore(self, log_file: str) -> None:
        """Counts and best latencies as they were when `log_file` was written."""
        number = {
            (str(task.workload_key), str(task.target.kind.name)): i
            for i, task in enumerate(self.tasks)
        }
        trials, trials_at_best = [0] * len(self.tasks), [0] * len(self.tasks)
        for measure_input, result in RecordReader(log_file):
            task = measure_input.task
            key = (str(task.workload_key), str(task.target.kind.name))
            if key not in number:
                continue
            i = number[key]
            trials[i] += 1
            cost = result.mean_cost
            if cost < self.best_costs[i]:
                self.best_costs[i] = cost
                trials_at_best[i] = trials[i]
        for i, count in enumerate(trials):
            self.task_cts[i] = round(count / self.num_measures_per_round)
            self.task_best_cts[i] = round(trials_at_best[i] / self.num_measures_per_round)
            self.task_costs_history[i] = [float(self.best_costs[i])]
            if count - trials_at_best[i] > self._per_task_limit:
                self.dead_tasks.add(i)
        logger.info("TaskScheduler: restored %d trials from %s", sum(trials), log_file)

    def _weighted_latency(self, costs: Sequence[float] | np.ndarray) -> float:
        return float(sum(cost * weight for cost, weight in zip(costs, self.task_weights)))

    def _score(self, costs: Sequence[float] | np.ndarray) -> float:
        score = self.objective_func(costs)
        try:
            return float(score)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"TaskScheduler: objective_func must return a number, got {score!r}"
            ) from error


def _limit(trials: int | None) -> float:
    """A number of trials of which none and negative ones mean no limit."""
    return math.inf if trials is None or trials < 0 else trials


def _by_gradient(scheduler: TaskScheduler) -> int | None:
    """Each task once, then that of the steepest descent; a random one where all are equal."""
    alive = scheduler.alive()
    untouched = [i for i in alive if not scheduler.task_cts[i]]
    if untouched or not alive:
        return untouched[0] if untouched else None
    gradients = np.array([scheduler.gradient(i) for i in alive])
    if gradients.max() == gradients.min():
        return int(scheduler.rng.choice(alive))
    return alive[int(np.argmin(gradients))]


def _round_robin(scheduler: TaskScheduler) -> int | None:
    """The task after the last tuned one, finished ones left out."""
    return min(scheduler.alive(), key=lambda i: (scheduler.task_cts[i], i), default=None)


def _by_expected_gain(scheduler: TaskScheduler) -> int | None:
    """The task of which a round promises most seconds; see `TaskScheduler`."""
    alive = [i for i in scheduler.alive() if not _is_finished(scheduler, i)]
    untouched = [i for i in alive if not scheduler.task_cts[i]]
    unknown = [i for i in untouched if scheduler.unsearched_costs[i] >= MAX_FLOAT]
    if unknown:
        work = [flop * w for flop, w in zip(scheduler.flop_cts, scheduler.task_weights)]
        return max(unknown, key=lambda i: work[i])
    if untouched:
        known_costs = scheduler.unsearched_costs
        return max(untouched, key=lambda i: scheduler.slope(i, known_costs) * known_costs[i])
    if not alive:
        return None
    # A task without valid measurement counts with the latency that its work would take at the
    # throughput of the others, so that one that only fails cannot absorb the whole budget.
    known = [i for i, cost in enumerate(scheduler.best_costs) if cost < MAX_FLOAT]
    seconds = sum(scheduler.best_costs[i] for i in known)
    throughput = sum(scheduler.flop_cts[i] for i in known) / seconds if seconds > 0 else 1e9
    prior = np.array(scheduler.flop_cts) / throughput
    costs = np.where(scheduler.best_costs < MAX_FLOAT, scheduler.best_costs, prior)

    def gain(i: int) -> float:
        history = [h if h < MAX_FLOAT else prior[i] for h in scheduler.task_costs_history[i]]
        rounds, window = scheduler.task_cts[i], scheduler.backward_window_size
        forward = backward = costs[i] / rounds
        if len(history) > window:
            backward = (history[-1 - window] - history[-1]) / window
        promise = scheduler.alpha * backward + (1 - scheduler.alpha) * forward
        return scheduler.slope(i, costs) * promise

    gains = np.array([gain(i) for i in alive])
    return alive[int(scheduler.rng.choice(np.flatnonzero(gains == gains.max())))]


def _is_finished(scheduler: TaskScheduler, i: int) -> bool:
    """Whether a task only fails, or has most likely reached the optimum of its space."""
    history = scheduler.task_costs_history[i]
    if scheduler.task_cts[i] >= MAX_FAILED_ROUNDS and scheduler.best_costs[i] >= MAX_FLOAT:
        return True
    return len(history) > _STALL_ROUNDS and history[-1 - _STALL_ROUNDS] <= history[-1] * 1.0001


STRATEGIES: dict[str, Callable[[TaskScheduler], int | None]] = {
    "gradient": _by_gradient,
    "round-robin": _round_robin,
    "expected-gain": _by_expected_gain,
}


class TaskSchedulerCallback:
    """What is called around each round; does nothing by itself."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Before a round of task `task_id`."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """After a round of task `task_id`."""


class PrintTableInfo(TaskSchedulerCallback):
    """Prints a table of all tasks before each round."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Print it, unless tuning is silent."""
        option = task_scheduler.tune_option
        if option is None or not option.verbose:
            return
        line = "-" * 70
        rows = [line, f"{'-' * 30}  [ Task Scheduler ]", line]
        rows.append("|  ID  | Latency (ms) | Speed (GFLOPS) | Trials |")
        for i in range(len(task_scheduler.tasks)):
            cost = task_scheduler.best_costs[i]
            known = cost < MAX_FLOAT
            latency = f"{cost * 1e3:.3f}" if known else "-"
            speed = f"{task_scheduler.flop_cts[i] / cost / 1e9:.2f}" if known else "-"
            trials = task_scheduler.task_cts[i] * task_scheduler.num_measures_per_round
            rows.append(f"| {i:4d} | {latency:>12s} | {speed:>14s} | {trials:6d} |")
        seconds = time.monotonic() - task_scheduler.tic
        rows.append(
            f"Estimated total latency: {_total_latency_ms(task_scheduler) or '-'} ms\t"
            f"Trials: {task_scheduler.ct}\tUsed time : {seconds:.0f} s\tNext ID: {task_id}"
        )
        print("\n".join(rows))


class LogEstimatedLatency(TaskSchedulerCallback):
    """Appends a line with time, estimated latency and trials to a file after each round.

    Parameters
    ----------
    log_file : made anew.
    """

    def __init__(self, log_file: str | Path) -> None:
        self.log_file = Path(log_file)
        self.log_file.unlink(missing_ok=True)

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Write the line."""
        seconds = time.monotonic() - task_scheduler.tic
        latency = _total_latency_ms(task_scheduler) or "N/A"
        with self.log_file.open("a") as file:
            file.write(
                f"ElapsedTime(s)\t{seconds:.0f}\tEstimatedLatency(ms)\t{latency}\t"
                f"Trials\t{task_scheduler.ct}\n"
            )


def _total_latency_ms(scheduler: TaskScheduler) -> str | None:
    """The objective in milliseconds, None until every task has a valid measurement."""
    if any(cost >= MAX_FLOAT for cost in scheduler.best_costs):
        return None
    return f"{scheduler.cur_score * 1e3:.3f}"
