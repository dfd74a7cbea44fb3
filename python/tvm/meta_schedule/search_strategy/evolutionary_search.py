"""Evolution of traces under a cost model."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import tvm
from tvm import tir
from tvm.tir.schedule import Trace

from ..arg_info import ArgInfo
from ..candidate import MeasureCandidate
from .search_strategy import SearchStrategy, finish_trace

__all__ = ["EvolutionarySearch"]

_EMPTY_ROUNDS = 5


class _Individual(NamedTuple):
    sch: tir.Schedule
    trace: Trace
    key: int
    """Structural hash of the program: different decisions often make the same one."""


class EvolutionarySearch(SearchStrategy):
    """Mutates the decisions of good candidates; the cost model says which to measure.

    Parameters
    ----------
    population_size : candidates of a generation.
    init_measured_ratio : share of the first generation that comes from the database.
    init_min_unmeasured : the run ends if fewer random candidates are legal.
    max_fail_count : rounds of sampling without a legal candidate.
    genetic_num_iters : generations of a round.
    genetic_mutate_prob : chance that a parent is mutated.
    genetic_max_fail_count : tries for a legal mutation.
    eps_greedy : share of a round that is random.
    """

    def __init__(
        self,
        *,
        population_size: int = 512,
        init_measured_ratio: float = 0.2,
        init_min_unmeasured: int = 50,
        max_fail_count: int = 5,
        genetic_num_iters: int = 4,
        genetic_mutate_prob: float = 0.85,
        genetic_max_fail_count: int = 10,
        eps_greedy: float = 0.05,
    ) -> None:
        super().__init__()
        self.population_size = population_size
        self.init_measured_ratio = init_measured_ratio
        self.init_min_unmeasured = init_min_unmeasured
        self.max_fail_count = max_fail_count
        self.genetic_num_iters = genetic_num_iters
        self.genetic_mutate_prob = genetic_mutate_prob
        self.genetic_max_fail_count = genetic_max_fail_count
        self.eps_greedy = eps_greedy

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[tir.Schedule],
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        if database is None or cost_model is None:
            raise ValueError("EvolutionarySearch: it needs a database and a cost model")
        super().pre_tuning(max_trials, num_trials_per_iter, design_spaces, database, cost_model)
        self._measured: set[int] = set()
        self._empty_rounds = 0
        self._workload = database.commit_workload(self.context.mod)
        # What a program lays out anew is looked at once it is measured.
        self._args = ArgInfo.from_entry_func(self.context.mod)

    def notify_runner_results(self, measure_candidates: Any, results: Any) -> None:
        self._measured.update(_key(candidate.sch) for candidate in measure_candidates)

    def _propose(self, count: int) -> list[MeasureCandidate] | None:
        wanted = int(self.population_size * self.init_measured_ratio)
        measured = self._from_database(wanted)
        fresh = self._sample(max(self.population_size - len(measured), self.init_min_unmeasured))
        if len(fresh) < self.init_min_unmeasured:
            return None
        best = self._evolve([*measured, *fresh], count)
        chosen = self._pick(best, fresh, count)
        if chosen:
            self._empty_rounds = 0
        else:
            self._empty_rounds += 1
            if self._empty_rounds >= _EMPTY_ROUNDS:
                return None
        self._measured.update(individual.key for individual in chosen)
        return [self._candidate(individual.sch) for individual in chosen]

    def _finish(self, trace: Trace) -> _Individual | None:
        postprocs = self.context.space_generator.postprocs or []
        sch = finish_trace(self.context.mod, trace, postprocs, self._seed())
        if sch is None:
            return None
        return _Individual(sch, sch.trace.simplified(remove_postproc=True), _key(sch))

    def _from_database(self, count: int) -> list[_Individual]:
        found = []
        for record in self.database.get_top_k(self._workload, count):
            individual = self._finish(record.trace.simplified(remove_postproc=True))
            if individual is not None:
                self._measured.add(individual.key)
                found.append(individual)
        return found

    def _sample(self, count: int) -> list[_Individual]:
        found: list[_Individual] = []
        failures = 0
        while len(found) < count and failures < self.max_fail_count:
            before = len(found)
            for _ in range(min(count - before, 64)):
                trace = Trace(self.rng.choice(self.traces).insts, {})
                individual = self._finish(trace)
                if individual is not None:
                    found.append(individual)
            failures += len(found) == before
        return found

    def _scores(self, population: Sequence[_Individual], known: dict[int, float]) -> np.ndarray:
        """Predictions, at least zero; programs that are `known` keep theirs, new ones join them."""
        new = {i.key: i for i in population if i.key not in known}
        if new:
            candidates = [
                MeasureCandidate(individual.sch, self._args) for individual in new.values()
            ]
            scores = self.cost_model.predict(self.context, candidates)
            known.update(zip(new, np.maximum(np.asarray(scores, dtype=float), 0.0).tolist()))
        return np.array([known[individual.key] for individual in population])

    def _evolve(self, population: list[_Individual], count: int) -> list[_Individual]:
        """The best unmeasured of all generations, best first."""
        mutators = dict(self.context.space_generator.mutator_probs or {})
        best: list[tuple[float, int, _Individual]] = []
        seen = set(self._measured)
        known: dict[int, float] = {}
        # Without measurements scores say which programs are hopeless. Bred by them, a batch would
        # be full of programs that are alike, and teach little.
        generations = self.genetic_num_iters if self.cost_model.trained else 0
        for generation in range(generations + 1):
            scores = self._scores(population, known)
            for number, (score, individual) in enumerate(zip(scores, population)):
                if individual.key in seen:
                    continue
                seen.add(individual.key)
                # The number makes entries comparable where scores are equal.
                entry = (float(score), generation * 10**6 + number, individual)
                if len(best) < count:
                    heapq.heappush(best, entry)
                elif entry[0] > best[0][0]:
                    heapq.heapreplace(best, entry)
            if generation < generations:
                population = self._next_generation(population, scores, mutators)
        return [individual for _, _, individual in sorted(best, key=lambda entry: -entry[0])]

    def _next_generation(
        self, population: list[_Individual], scores: np.ndarray, mutators: dict[Any, float]
    ) -> list[_Individual]:
        weights = (scores + 1e-9).tolist()
        kinds, chances = list(mutators), list(mutators.values())
        following: list[_Individual] = []
        parents = self.rng.choices(population, weights=weights, k=self.population_size)
        for parent in parents:
            child = None
            if kinds and self.rng.random() < self.genetic_mutate_prob:
                for _ in range(self.genetic_max_fail_count):
                    [mutator] = self.rng.choices(kinds, weights=chances)
                    trace = mutator.apply(parent.trace)
                    child = self._finish(trace) if trace is not None else None
                    if child is not None:
                        break
            following.append(child or parent)
        return following

    def _pick(
        self, best: list[_Individual], fresh: list[_Individual], count: int
    ) -> list[_Individual]:
        """Mostly the best, and some at random, none of them measured before."""
        randoms = [i for i in fresh if i.key not in self._measured]
        self.rng.shuffle(randoms)
        greedy = count - round(count * self.eps_greedy)
        chosen: dict[int, _Individual] = {}
        for individual in [*best[:greedy], *randoms, *best[greedy:]]:
            if len(chosen) < count:
                chosen.setdefault(individual.key, individual)
        return list(chosen.values())


def _key(sch: tir.Schedule) -> int:
    return int(tvm.ir.structural_hash(sch.mod))
