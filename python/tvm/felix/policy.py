"""The gradient search as a search policy: ``search_policy="felix"``."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from tvm.auto_scheduler import (
    Candidate,
    MeasureInput,
    MeasureResult,
    SearchPolicy,
    SearchTask,
)
from tvm.auto_scheduler.cost_model.dataset import ConfigMeta, DatasetBuilder, FeatureKind
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.auto_scheduler.cost_model.torch_mode import one_torch_thread, with_gradients
from tvm.auto_scheduler.measure_session import observe_records
from tvm.auto_scheduler.search_space import space_key

from .checkpoint import packaged_checkpoint
from .evolution import EvolutionPolicy
from .perf_func import TaskPerfFunc
from .relatives import Relative, connect, suggestions
from .search import ConfigInfo, SearchSettings, SingleTaskOptimizer
from .sym_task import SymTask

__all__ = ["FelixPolicy", "Learner", "make_policies", "make_policy"]

logger = logging.getLogger(__name__)

_PARAMS = ("seed", "n_config_seeds", "n_grad_steps", "search_space")

# From this many measured programs on the network is trained, and again when there are so many times
# more: what is measured of a task counts at once by the task's own model.
_MIN_PROGRAMS_TO_TRAIN = 32
_GROWTH = 1.5


class Learner:
    """A cost model with the data it has learned from; the policies of a network share one.

    Attributes
    ----------
    model : trained further in place.
    data : everything measured so far.
    """

    def __init__(self, model: LatencyModel) -> None:
        self.model = model
        self.data = DatasetBuilder()
        self._trained_on = 0
        self._samples: list[np.ndarray] = []

    def train(self) -> None:
        """Learn from what is new, if there is enough of it."""
        if len(self.data) >= max(_MIN_PROGRAMS_TO_TRAIN, _GROWTH * self._trained_on):
            sample = self._sample()
            if sample is not None:
                self.model.standardise(sample)
                self._samples.clear()
            self.model.train_self(self.data)
            self._trained_on = len(self.data)

    def expect(self, kind: FeatureKind) -> None:
        """Say what the features are that the model will be asked about.

        Raises
        ------
        ValueError : the model was trained for other targets, or on other features.
        """
        self.data.kind = kind
        self.model.expect(kind)

    def take_in(self, policy: FelixPolicy) -> None:
        """A policy begins to ask the model. A new one is standardised on random points of the first
        policy, and before its first training on those of all that began until then.

        Raises
        ------
        ValueError : as of `expect`.
        """
        self.expect(policy.function.feature_kind)
        n_features = policy.function.n_features
        if self.model.trained:
            self.model.ensure_built(n_features)
            return
        rng = np.random.default_rng(0)
        for function in policy.function.sketch_funcs.values():
            points = function.features.config_maker.make(16, rng)
            if len(points):
                rows = function.features.rows(points)[..., :n_features]
                self._samples.append(rows.reshape(-1, n_features))
        self.model.ensure_built(n_features, self._sample())

    def _sample(self) -> torch.Tensor | None:
        return torch.from_numpy(np.concatenate(self._samples)) if self._samples else None


class FelixPolicy(SearchPolicy):
    """Gradient descent on a learned latency model over symbolic sketches (Felix, ASPLOS 2024).

    Parameters
    ----------
    task : a search task, or one with its symbolic sketches.
    learner : the cost model; by default one that starts from nothing.
    seed : equal seeds and equal measurements give equal proposals.
    settings : constants of the search.
    n_config_seeds : start points of the descent, per sketch and round.
    n_grad_steps : gradient steps of the first round; later rounds take half.
    search_space : where the sketches of a search task are from, see auto_scheduler.search_spaces.

    Attributes
    ----------
    search_state : the search with everything measured.
    relatives : policies of tasks that differ in sizes only, whose best programs are tried here.
    function : predicted performance of the task's schedules.
    errors : error code to number of measurements that ended with it.
    explanation : why there is nothing to measure, "" where there is.

    Raises
    ------
    ValueError : the task has no sketch, or none that can be searched.
    """

    @with_gradients()
    def __init__(
        self,
        task: SearchTask | SymTask,
        learner: Learner | None = None,
        *,
        seed: int | Sequence[int] = 0,
        settings: SearchSettings | None = None,
        n_config_seeds: int = 32,
        n_grad_steps: int = 64,
        search_space: str = "felix",
        verbose: int = 1,
    ) -> None:
        sym_task = task if isinstance(task, SymTask) else SymTask(task, search_space=search_space)
        super().__init__(sym_task.ansor_task, verbose)
        self.sym_task = sym_task
        self.relatives: list[Relative] = []
        own = learner is None
        self.learner = Learner(LatencyModel()) if learner is None else learner
        self.n_config_seeds = n_config_seeds
        self.n_grad_steps = n_grad_steps
        self.n_sketches = len(sym_task.sketches)
        self.function = TaskPerfFunc(
            sym_task.sketches,
            max(sym_task.get_flops(), 1.0),
            str(self.search_task.workload_key),
            self.learner.model,
        )
        for index, reason in self.function.skipped.items():
            logger.warning("%s: sketch %d is skipped: %s", self.search_task.desc, index, reason)
        self.search_state = SingleTaskOptimizer(
            self.function, np.random.default_rng(seed), settings or SearchSettings()
        )
        self.errors: Counter[int] = Counter()
        self.explanation = ""
        self._pending: dict[Candidate, ConfigInfo] = {}
        if own:
            self.learner.take_in(self)

    @with_gradients()
    def propose(self, n: int) -> list[Candidate]:
        """Train on what is new, then search; up to `n` schedules, best predicted first."""
        n_steps = self.n_grad_steps
        if self.search_state.least_lat_history:
            n_steps = max(1, n_steps // 2)
        with one_torch_thread():
            if self.search_state.n_random(n) < n:
                self.learner.train()
            infos = self.search_state.optimize_round(
                self.n_config_seeds, n_steps, n, suggestions(self)
            )
        if not infos and not self.search_state.measured and not self.explanation:
            self.explanation = (
                f"no program of its {len(self.function.sketch_funcs)} sketches was found that "
                f"keeps to the limits of {self.search_task.target}"
            )
            logger.warning("%s: %s", self.search_task.desc, self.explanation)
        candidates: list[Candidate] = []
        for info in infos:
            candidate = self.get_measure_input(info)
            self._pending[candidate] = info
            candidates.append(candidate)
        return candidates

    @with_gradients()
    def observe(self, candidates: Sequence[Candidate], results: Sequence[MeasureResult]) -> None:
        """Learn of a round, or of an earlier run; what is known already changes nothing."""
        known = len(self.search_state.measured)
        for candidate, result in zip(candidates, results):
            info = self._pending.pop(candidate, None) or self._config_of(candidate)
            if info is None:
                continue
            earlier = self.search_state.measured.get(info.key)
            if earlier is None:
                self._register(info, result)
            elif earlier.seconds is not None and int(result.error_no) == 0:
                earlier.seconds = _least_cost(result)  # measured again, so more is known
                self.search_state.record(earlier)
        if len(self.search_state.measured) > known:
            self.search_state.end_round()

    def get_measure_input(self, info: ConfigInfo) -> MeasureInput:
        """The program of one schedule, ready to be measured and recorded."""
        function = self.function.sketch_funcs[info.sketch]
        return function.make_measure_inputs([info.config])[0]

    def _register(self, info: ConfigInfo, result: MeasureResult) -> None:
        """Take one measurement into history, data set and counters."""
        info.error_no = int(result.error_no)
        if info.error_no == 0:
            info.seconds = _least_cost(result)
            features = self.function.sketch_funcs[info.sketch].features
            rows = features.rows(features.point(info.config)[None])[0]
            self.learner.data.add(
                rows[:, : self.function.n_features],
                self.function.flops,
                ConfigMeta(
                    self.function.name,
                    info.sketch,
                    info.config,
                    info.seconds,
                    str(self.search_task.target),
                ),
            )
        else:
            self.errors[info.error_no] += 1
            logger.info("%s: %s", self.search_task.desc, result.error_msg)
        self.search_state.record(info)

    def _config_of(self, candidate: Candidate) -> ConfigInfo | None:
        """Which sketch and knob values a state is, or None for a foreign one."""
        if not isinstance(candidate, MeasureInput):
            return None
        for index, function in self.function.sketch_funcs.items():
            config = function.sketch.config_from_state(candidate.state)
            if config is not None:
                return ConfigInfo(index, config, float("nan"))
        return None


def _least_cost(result: MeasureResult) -> float:
    """Seconds of the fastest repeat: whatever disturbs a measurement makes it longer."""
    return min(float(cost) for cost in result.costs)


def make_policy(
    task: SearchTask | SymTask,
    learner: Learner,
    *,
    seed: int | Sequence[int] = 0,
    verbose: int = 1,
    **options: Any,
) -> FelixPolicy | EvolutionPolicy:
    """The gradient search of a task; evolution where it has no sketch that can be searched.

    One task that cannot be described does not stop the search of the others.

    Parameters
    ----------
    options : those of FelixPolicy.
    """
    sketches = options.pop("search_space", "felix")
    sym_task = task if isinstance(task, SymTask) else SymTask(task, search_space=sketches)
    space_key(sym_task.ansor_task.target, sym_task.search_space)
    try:
        return FelixPolicy(sym_task, learner, seed=seed, verbose=verbose, **options)
    except ValueError as error:
        policy = EvolutionPolicy(sym_task.ansor_task, str(error).splitlines()[0], seed, verbose)
        logger.warning("%s: %s", sym_task.ansor_task.desc, policy.explanation)
        return policy


@with_gradients()
def make_policies(
    tasks: Sequence[SearchTask],
    params: Mapping[str, Any] | None = None,
    verbose: int = 1,
    load_model_file: str | None = None,
    load_log_file: str | None = None,
) -> list[SearchPolicy]:
    """One policy a task; they learn together.

    Parameters
    ----------
    params : `seed`, `n_config_seeds`, `n_grad_steps` and `search_space` of FelixPolicy, and the
        fields of SearchSettings.
    load_model_file : checkpoint to start from; by default the one in this package of processors
        like the tasks' target, and nothing where there is none, or several.
    load_log_file : records to learn from, and not to measure again.

    Raises
    ------
    ValueError : there is no such parameter; the message lists the known ones.
    """
    given = dict(params or {})
    names = [field.name for field in fields(SearchSettings)]
    settings = SearchSettings(**{name: given.pop(name) for name in names if name in given})
    options = {name: given.pop(name) for name in _PARAMS if name in given}
    if given:
        raise ValueError(
            f"felix: unknown parameters {', '.join(map(repr, given))}; known are "
            f"{', '.join([*_PARAMS, *names])}"
        )
    seed = options.pop("seed", 0)
    packaged = {packaged_checkpoint(task.target) for task in tasks}
    # All tasks share one network, and none that comes with the package is of several kinds.
    checkpoint = load_model_file or (packaged.pop() if len(packaged) == 1 else None)
    learner = Learner(LatencyModel(pretrained=checkpoint, seed=seed))
    policies = [
        make_policy(
            task, learner, seed=[seed, index], settings=settings, verbose=verbose, **options
        )
        for index, task in enumerate(tasks)
    ]
    gradient = [policy for policy in policies if isinstance(policy, FelixPolicy)]
    for policy in gradient:
        learner.take_in(policy)
    connect(gradient)
    if load_log_file is not None:
        observe_records(load_log_file, {str(p.search_task.workload_key): p for p in policies})
    return list(policies)
