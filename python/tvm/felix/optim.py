"""Tuning a set of tasks: rounds of gradient search, measuring, learning, and task scheduling."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from tvm import auto_scheduler
from tvm.auto_scheduler import MeasureInput, MeasureResult
from tvm.auto_scheduler.cost_model.dataset import ConfigMeta, DatasetBuilder
from tvm.auto_scheduler.cost_model.mlp_model import MLPModelPLWrapper, one_torch_thread

from .perf_func import TaskPerfFunc
from .search import ConfigInfo, SearchSettings, SingleTaskOptimizer
from .sym_task import SymTaskAndInstances, TaskInstance
from .task_scheduler import TaskProgress, TaskScheduler

__all__ = ["Optimizer", "TaskResult", "Timer", "TuneResult"]

logger = logging.getLogger(__name__)

# From this many measured programs on, the model is trained before each round.
_MIN_PROGRAMS_TO_TRAIN = 8
# A task with less than this share of the network's work gets half-size batches.
_SMALL_SHARE = 0.01


class _Listener(auto_scheduler.PythonBasedMeasureCallback):
    """Passes each result on to whoever measures at the moment."""

    def __init__(self) -> None:
        super().__init__()
        self.hear: Callable[[MeasureInput, MeasureResult], None] = lambda *_: None

    def on_result(self, policy: Any, candidate: Any, result: MeasureResult) -> None:
        self.hear(candidate, result)


class Timer:
    """Seconds of tuning, those of earlier runs of the same folder included."""

    def __init__(self, before: float = 0.0) -> None:
        self._before = before
        self._start = time.monotonic()

    def elapsed(self) -> float:
        """Seconds so far."""
        return self._before + time.monotonic() - self._start


@dataclass(frozen=True)
class TaskResult:
    """Outcome of tuning one task."""

    idx: int
    workload_key: str
    desc: str
    weight: int
    flop: float
    n_sketches: int
    best: ConfigInfo | None
    n_measured: int
    errors: dict[int, int]
    """Error code to number of measurements that ended with it."""

    @property
    def best_seconds(self) -> float | None:
        """Latency of the best schedule, or None when nothing valid was measured."""
        return self.best.seconds if self.best is not None else None


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


@dataclass
class _Task:
    """A task with everything the search keeps for it."""

    instance: TaskInstance
    n_sketches: int
    function: TaskPerfFunc
    search: SingleTaskOptimizer
    errors: Counter[int] = field(default_factory=Counter)


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
    seed : of every random choice of the search.
    settings : constants of the gradient search.
    """

    def __init__(
        self,
        tasks: Sequence[SymTaskAndInstances],
        perf_model: MLPModelPLWrapper,
        *,
        builder: auto_scheduler.ProgramBuilder | None = None,
        runner: auto_scheduler.ProgramRunner | None = None,
        seed: int = 0,
        settings: SearchSettings | None = None,
    ) -> None:
        self.perf_model = perf_model
        self._listener = _Listener()
        self.measurer = auto_scheduler.ProgramMeasurer(builder, runner, [self._listener])
        self.data_builder = DatasetBuilder()
        self.output_file: Path | None = None
        self.timer = Timer()
        self.n_measure = 0
        self.n_rounds = 0
        self.history: list[tuple[float, int, float]] = []
        self._rng = np.random.default_rng(seed)
        self._scheduler = TaskScheduler()
        self._trained_on = 0
        self.tasks: list[_Task] = []
        settings = settings or SearchSettings()
        pairs = [(group.task, instance) for group in tasks for instance in group.instances]
        if not pairs:
            raise ValueError("Optimizer: no tasks to tune (the network has no tunable operator)")
        for sym_task, instance in sorted(pairs, key=lambda pair: pair[1].idx):
            function = TaskPerfFunc(
                sym_task.sketches, instance.flop, instance.ansor_task.workload_key, perf_model
            )
            for index, reason in function.skipped.items():
                logger.warning("task %d: sketch %d is skipped: %s", instance.idx, index, reason)
            search = SingleTaskOptimizer(
                function, np.random.default_rng([seed, instance.idx]), settings
            )
            self.tasks.append(_Task(instance, len(sym_task.sketches), function, search))
        self._ensure_model()

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

        Ctrl-C ends the run after the current measurement; everything measured is kept.

        Parameters
        ----------
        n_measurements : total number of programs to measure over all tasks.
        n_config_seeds : start points of the descent, per sketch and round.
        n_grad_steps : gradient steps of a task's first round; later rounds take half.
        measure_per_round : programs a round.
        log_file : records are appended here, each one as soon as it is measured.
        progress : show a progress bar.
        on_round : called after each round, for saving state.
        """
        for name, value in (
            ("n_config_seeds", n_config_seeds),
            ("n_grad_steps", n_grad_steps),
            ("measure_per_round", measure_per_round),
        ):
            if value < 1:
                raise ValueError(f"tune: {name} must be >= 1, got {value}")
        self.output_file = Path(log_file) if log_file is not None else None
        interrupted = False
        # Zero-size bars confuse tqdm's rate, and a finished log is a legal resume.
        bar = tqdm(
            total=max(n_measurements, self.n_measure),
            initial=self.n_measure,
            disable=not progress,
            unit="prog",
            dynamic_ncols=True,
        )
        try:
            while self.n_measure < n_measurements:
                chosen = self._scheduler.choose([self._progress(t) for t in self.tasks], self._rng)
                if chosen is None:
                    logger.info("every task is finished; stopping before the budget is used")
                    break
                task = self.tasks[chosen]
                limit = min(
                    self._batch_size(task, measure_per_round), n_measurements - self.n_measure
                )
                self._do_one_task_one_round(task, n_config_seeds, n_grad_steps, limit, bar)
                if on_round is not None:
                    on_round(self)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            bar.close()
        return self.result(interrupted)

    def result(self, interrupted: bool = False) -> TuneResult:
        """The state of the search as a result."""
        rows = [
            TaskResult(
                task.instance.idx,
                task.instance.ansor_task.workload_key,
                task.instance.desc,
                task.instance.weight,
                task.instance.flop,
                task.n_sketches,
                task.search.best,
                len(task.search.measured),
                dict(task.errors),
            )
            for task in self.tasks
        ]
        return TuneResult(
            rows, list(self.history), self.n_measure, self.timer.elapsed(), interrupted
        )

    def restore(self, log_file: str | Path) -> int:
        """Take up the records of an earlier run; returns how many belong to the tasks.

        Restored schedules are never measured again, train the model, and count as measurements.
        """
        by_key = {t.instance.ansor_task.workload_key: t for t in self.tasks}
        used = 0
        other_machines: set[str] = set()
        for measure_input, result in auto_scheduler.load_records(str(log_file)):
            task = by_key.get(measure_input.task.workload_key)
            if task is None:
                continue
            if not task.instance.ansor_task.target.is_same_machine(measure_input.task.target):
                other_machines.add(str(measure_input.task.target))
                continue
            info = self._config_of(task, measure_input)
            if info is None or info.key in task.search.measured:
                continue
            self._register(task, info, result)
            self.measurer.observe(measure_input, result)
            used += 1
        if other_machines:
            logger.warning(
                "%s: records of other machines are not taken up: %s",
                log_file,
                "; ".join(sorted(other_machines)),
            )
        for task in self.tasks:
            if task.search.measured:
                task.search.end_round()
        return used

    def network_seconds(self) -> float:
        """Estimated latency: sum of weight x best; infinity while a task has no valid result."""
        total = 0.0
        for task in self.tasks:
            best = task.search.best
            total += task.instance.weight * (
                best.seconds if best is not None and best.seconds is not None else math.inf
            )
        return total

    def save_state(self, folder: str | Path) -> None:
        """Write the cost model, random states, history and time into `folder`, each atomically."""
        folder = Path(folder)
        self.perf_model.save(folder / "cost_model.ckpt")
        state = {
            "rng": self._rng.bit_generator.state,
            "task_rngs": [task.search.rng.bit_generator.state for task in self.tasks],
            "rounds": [task.search.least_lat_history for task in self.tasks],
            "history": self.history,
            "seconds": self.timer.elapsed(),
            "n_rounds": self.n_rounds,
        }
        temporary = folder / "state.json.partial"
        temporary.write_text(json.dumps(state))
        temporary.replace(folder / "state.json")

    def load_state(self, folder: str | Path) -> None:
        """Read what `save_state` wrote, if anything; `restore` reads the records themselves."""
        path = Path(folder) / "state.json"
        if not path.exists():
            return
        state = json.loads(path.read_text())
        if len(state["task_rngs"]) != len(self.tasks):
            raise ValueError(
                f"{path} describes {len(state['task_rngs'])} tasks, the network has "
                f"{len(self.tasks)}: resume with the network and options of the first run"
            )
        self._rng.bit_generator.state = state["rng"]
        for task, rng, rounds in zip(self.tasks, state["task_rngs"], state["rounds"]):
            task.search.rng.bit_generator.state = rng
            task.search.least_lat_history = rounds
        self.history = [tuple(entry) for entry in state["history"]]
        self.timer = Timer(state["seconds"])
        self.n_rounds = state["n_rounds"]
        checkpoint = Path(folder) / "cost_model.ckpt"
        if checkpoint.exists():
            self.perf_model.load(checkpoint)

    def _do_one_task_one_round(
        self, task: _Task, n_seeds: int, n_steps: int, n_measure: int, bar: tqdm
    ) -> None:
        """Train on what is new, search one task, measure the chosen candidates."""
        if task.search.least_lat_history:
            n_steps = max(1, n_steps // 2)
        with one_torch_thread():
            enough = len(self.data_builder) >= _MIN_PROGRAMS_TO_TRAIN
            if enough and len(self.data_builder) > self._trained_on:
                self.perf_model.train_self(self.data_builder)
                self._trained_on = len(self.data_builder)
            infos = task.search.optimize_round(n_seeds, n_steps, n_measure)
        if infos:
            self.measure_configs(task, infos, bar)
        task.search.end_round()
        self.n_rounds += 1
        self.history.append((self.timer.elapsed(), self.n_measure, self.network_seconds()))

    def measure_configs(self, task: _Task, infos: Sequence[ConfigInfo], bar: tqdm) -> None:
        """Build, run and record schedules; each result is on disk before the next one runs."""
        inputs = [self.get_measure_input(task, info) for info in infos]
        waiting = iter(infos)

        def hear(measure_input: MeasureInput, result: MeasureResult) -> None:
            if self.output_file is not None:
                auto_scheduler.save_records(str(self.output_file), [measure_input], [result])
            self._register(task, next(waiting), result)
            seconds = self.network_seconds()
            bar.set_postfix_str(
                f"task {task.instance.idx}, network "
                + (f"{seconds * 1e3:.3f} ms" if math.isfinite(seconds) else "-")
            )
            bar.update(1)

        self._listener.hear = hear
        self.measurer.measure(inputs)

    def get_measure_input(self, task: _Task, info: ConfigInfo) -> MeasureInput:
        """The program of one schedule, ready to be measured and recorded."""
        sketch = task.function.sketch_funcs[info.sketch].sketch
        return MeasureInput(task.instance.ansor_task, sketch.state_from_config(info.config))

    def _register(self, task: _Task, info: ConfigInfo, result: MeasureResult) -> None:
        """Take one measurement into history, data set and counters."""
        info.error_no = int(result.error_no)
        if info.error_no == 0:
            info.seconds = float(np.mean([float(c) for c in result.costs]))
            function = task.function.sketch_funcs[info.sketch]
            self.data_builder.add(
                function.features(function.point(info.config)[None])[0],
                task.instance.flop,
                ConfigMeta(task.function.name, info.sketch, info.config, info.seconds),
            )
        else:
            task.errors[info.error_no] += 1
            logger.info("task %d: %s", task.instance.idx, result.error_msg)
        task.search.record(info)
        self.n_measure += 1

    def _config_of(self, task: _Task, measure_input: MeasureInput) -> ConfigInfo | None:
        """Which sketch and knob values a recorded state is, or None for a foreign one."""
        for index, function in task.function.sketch_funcs.items():
            config = function.sketch.config_from_state(measure_input.state)
            if config is not None:
                return ConfigInfo(index, config, float("nan"))
        return None

    def _progress(self, task: _Task) -> TaskProgress:
        return TaskProgress(
            task.instance.weight,
            task.instance.flop,
            task.search.least_lat_history,
            task.search.exhausted,
        )

    def _batch_size(self, task: _Task, measure_per_round: int) -> int:
        total = sum(t.instance.weight * t.instance.flop for t in self.tasks)
        share = task.instance.weight * task.instance.flop / total
        return max(1, measure_per_round // 2) if share < _SMALL_SHARE else measure_per_round

    def _ensure_model(self) -> None:
        """Size the model for the tasks; a new one is standardised on random points of theirs."""
        rows = []
        if not self.perf_model.built:
            rng = np.random.default_rng(0)
            for task in self.tasks:
                for function in task.function.sketch_funcs.values():
                    points = function.config_maker.make(16, rng)
                    if len(points):
                        rows.append(function.features(points).reshape(-1, function.n_features))
        sample = torch.from_numpy(np.concatenate(rows)) if rows else None
        self.perf_model.ensure_built(self.tasks[0].function.n_features, sample)
