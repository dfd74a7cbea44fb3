"""Gradient search over the tile sizes of traces.

As in Felix (Zhao et al., ASPLOS 2024): a differentiable prediction is descended over tile sizes
that may take any positive value, from many starts at once, and where a descent ends is rounded to
tiles that the trace can have. The prediction is a bound that follows from the program
(`trace_program`), corrected by what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

import tvm
from tvm import tir
from tvm.auto_scheduler.cost_model.torch_mode import one_torch_thread, with_gradients
from tvm.tir.schedule import Instruction, Trace

from ..candidate import MeasureCandidate, RunnerResult
from .search_strategy import SearchStrategy, finish_trace
from .trace_program import TraceProgram

__all__ = ["GradientSearch"]

# Deviation of measured from predicted times, in powers of two, where nothing was measured nearby.
_PRIOR, _NOISE = 1.0, 0.15
# How many measurements it looks at, the newest ones, since learning takes the cube of that.
_REMEMBERED = 768
# How much slower than the slowest program one is taken to be that does not run.
_FAILED = 2.0
# How many deviations better than expected a candidate may be thought to be.
_OPTIMISM = 0.35
# Neighbours of so many measured programs are looked at.
_NEAR_BEST = 6
# How often what a block reads is computed whole, and the decision for it.
_WHOLE, _AT_ROOT = 0.7, -1
# What being like a better candidate of the same round costs, and how many are looked at.
_ALIKE, _POOL = 0.4, 256


class _Choice(NamedTuple):
    """A candidate: the program, its tiles by knob, and the steps that are unrolled."""

    program: int
    indices: tuple[int, ...]
    unroll: int


class _Belief:
    """A Gaussian process over what a bound misses, in binary logarithms of seconds."""

    def __init__(self, n_features: int) -> None:
        self._rows = torch.zeros((0, n_features), dtype=torch.float64)
        self._bounds = torch.zeros(0, dtype=torch.float64)
        self._times = torch.zeros(0, dtype=torch.float64)
        self._fit()

    def add(self, rows: torch.Tensor, bounds: torch.Tensor, times: torch.Tensor) -> None:
        """Learn measured times."""
        self._rows = torch.cat([self._rows, rows])[-_REMEMBERED:]
        self._bounds = torch.cat([self._bounds, bounds])[-_REMEMBERED:]
        self._times = torch.cat([self._times, times])[-_REMEMBERED:]
        self._fit()

    def _fit(self) -> None:
        residual = self._times - self._bounds
        self._mean = residual.median() if len(residual) else torch.tensor(0.0)
        if not len(residual):
            return
        kernel = self._kernel(self._rows, self._rows)
        kernel += (_NOISE**2) * torch.eye(len(kernel), dtype=torch.float64)
        self._chol = torch.linalg.cholesky(kernel)
        self._weights = torch.cholesky_solve((residual - self._mean)[:, None], self._chol)[:, 0]

    @staticmethod
    def _kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        # The square of a distance has a gradient where a point is compared with itself.
        distance = ((a[:, None] - b[None]) ** 2).sum(-1)
        return _PRIOR**2 * torch.exp(-distance / (2 * 2.0**2))

    def optimistic(self, rows: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
        """The time that a program may well have."""
        if not len(self._rows):
            return bounds
        cross = self._kernel(rows, self._rows)
        solved = torch.cholesky_solve(cross.T, self._chol).T
        variance = torch.clamp(_PRIOR**2 - (cross * solved).sum(-1), min=1e-6)
        return bounds + self._mean + cross @ self._weights - _OPTIMISM * torch.sqrt(variance)


class GradientSearch(SearchStrategy):
    """Descends predicted times over the tile sizes of traces; other decisions are drawn.

    Programs without a tiled block, and those of graphics processors, are drawn at random.

    Parameters
    ----------
    n_starts, n_steps, learning_rate : of the descents in each trace and round.
    eps_greedy : share of a round that is random.
    max_fail_count : draws for one random candidate.
    """

    def __init__(
        self,
        n_starts: int = 48,
        n_steps: int = 40,
        learning_rate: float = 0.15,
        eps_greedy: float = 0.05,
        max_fail_count: int = 20,
    ) -> None:
        super().__init__()
        self.n_starts, self.n_steps, self.learning_rate = n_starts, n_steps, learning_rate
        self.eps_greedy, self.max_fail_count = eps_greedy, max_fail_count

    @with_gradients()
    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[tir.Schedule],
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        super().pre_tuning(max_trials, num_trials_per_iter, design_spaces, database, cost_model)
        self._generator = np.random.default_rng(self._seed())
        self._measured: set[int] = set()
        self._choices: dict[int, _Choice] = {}
        self._times: dict[_Choice, float] = {}
        self.programs: list[TraceProgram] = []
        target = self.context.target
        if target is not None and "cpu" in target.keys:
            for sch, trace in zip(design_spaces, self.traces):
                try:
                    self.programs.append(TraceProgram(sch, trace, target))
                except ValueError:  # nothing to descend on; it is among what is drawn
                    continue
        self._belief = _Belief(TraceProgram.n_features)

    @with_gradients()
    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        found: list[tuple[_Choice, float | None]] = []
        for candidate, result in zip(measure_candidates, results):
            choice = self._choices.pop(_key(candidate.sch), None)
            if choice is not None:
                seconds = float(np.median(result.run_secs)) if result.run_secs else result.at_least
                found.append((choice, seconds))
        known = [*self._times.values(), *(s for _, s in found if s is not None)]
        if not known:
            return
        # What fails is believed to be slower than all that does not.
        slow = _FAILED * max(known)
        times = [max(slow if s is None else s, 1e-9) for _, s in found]
        self._times.update((choice, time) for (choice, _), time in zip(found, times))
        for number in range(len(self.programs)):
            own = [i for i, (choice, _) in enumerate(found) if choice.program == number]
            if own:
                bounds, rows = self._describe(number, [found[i][0] for i in own])
                logs = torch.tensor([math.log2(times[i]) for i in own], dtype=torch.float64)
                self._belief.add(rows, bounds, logs)

    def _describe(self, program: int, choices: Sequence[_Choice]) -> tuple[Any, torch.Tensor]:
        indices = np.array([choice.indices for choice in choices])
        unrolled = torch.tensor([float(choice.unroll) for choice in choices], dtype=torch.float64)
        with torch.no_grad():
            this = self.programs[program]
            return this.describe(this.points(indices), unrolled)

    def _propose(self, count: int) -> list[MeasureCandidate] | None:
        found: list[MeasureCandidate] = []
        wanted = count - round(count * self.eps_greedy) if self.programs else 0
        with one_torch_thread(), with_gradients():
            ranked = self._ranked() if wanted else []
        for choice in ranked:
            if len(found) == wanted:
                break
            candidate = self._candidate_of(choice)
            if candidate is not None:
                found.append(candidate)
        while len(found) < count:
            candidate = self._random()
            if candidate is None:
                break
            found.append(candidate)
        return found or None

    def _ranked(self) -> list[_Choice]:
        """What the descents of all programs end at, the most promising first."""
        choices: set[_Choice] = set()
        for number in range(len(self.programs)):
            choices |= self._descend(number)
        choices -= set(self._times)
        # The order of a set is not the same in each process.
        ordered = sorted(choices)
        if not ordered:
            return []
        scores = np.zeros(len(ordered))
        rows = np.zeros((len(ordered), TraceProgram.n_features))
        for number in range(len(self.programs)):
            own = [i for i, choice in enumerate(ordered) if choice.program == number]
            if own:
                scores[own], rows[own] = self._scores([ordered[i] for i in own])
        # What is like a better candidate of the round teaches little beside it.
        best = np.argsort(scores, kind="stable")[:_POOL]
        scores, rows, likeness = scores[best], rows[best], np.zeros(len(best))
        order: list[int] = []
        for _ in best:
            cost = scores + _ALIKE * likeness
            cost[order] = np.inf
            order.append(int(np.argmin(cost)))
            distance = ((rows - rows[order[-1]]) ** 2).sum(1)
            likeness = np.maximum(likeness, np.exp(-distance))
        return [ordered[best[i]] for i in order]

    def _scores(self, choices: Sequence[_Choice]) -> tuple[np.ndarray, np.ndarray]:
        """Optimistic times of choices of one program, and their coordinates."""
        bounds, rows = self._describe(choices[0].program, choices)
        with torch.no_grad():
            return self._belief.optimistic(rows, bounds).numpy(), rows.numpy()

    def _descend(self, number: int) -> set[_Choice]:
        program = self.programs[number]
        best = sorted(
            (choice for choice in self._times if choice.program == number),
            key=lambda choice: self._times[choice],
        )
        starts = program.sample(self.n_starts, self._generator)
        known = np.array([choice.indices for choice in best[: self.n_starts // 3]])
        starts = np.concatenate([known, starts]) if len(known) else starts
        depths = self._depths(program)
        unrolls = program.unrolled(starts, depths).astype(float)
        unrolled = torch.tensor(unrolls, dtype=torch.float64)
        free = program.free(program.points(starts)).requires_grad_(True)
        optimizer = torch.optim.Adam([free], lr=self.learning_rate)
        visited = [starts]
        for step in range(self.n_steps):
            optimizer.zero_grad()
            points = program.relaxed(free)
            bounds, rows = program.describe(points, unrolled)
            self._belief.optimistic(rows, bounds).sum().backward()
            optimizer.step()
            if step % 10 == 9:
                visited.append(program.round(points))
        visited_unrolls = [unrolls] * len(visited)
        canonical = program.canonical()
        if len(canonical):
            visited.append(canonical)
            visited_unrolls.append(program.unrolled(canonical, depths))
        choices = {
            _Choice(number, tuple(int(i) for i in row), int(unroll))
            for rows_, unrolls_ in zip(visited, visited_unrolls)
            for row, unroll in zip(rows_, unrolls_)
        }
        return choices | self._polish(program, choices, best[:_NEAR_BEST])

    def _polish(
        self, program: TraceProgram, choices: set[_Choice], measured: Sequence[_Choice]
    ) -> set[_Choice]:
        """Other tiles of one knob, and other depths of unrolling, of the most promising choices
        and of measured ones."""
        ordered = sorted(choices)
        scores, _ = self._scores(ordered)
        best = [ordered[i] for i in np.argsort(scores, kind="stable")[:16]]
        found: set[_Choice] = set()
        for choice in [*measured, *best]:
            found |= {choice._replace(unroll=int(depth)) for depth in self._depths(program)}
            for place, knob in enumerate(program.knobs):
                table = np.log2(knob.tiles)
                near = np.abs(table - table[choice.indices[place]]).sum(1)
                for index in np.argsort(near, kind="stable")[1:8]:
                    indices = list(choice.indices)
                    indices[place] = int(index)
                    found.add(choice._replace(indices=tuple(indices)))
        return found

    @staticmethod
    def _unroll_of(trace: Trace) -> tuple[Instruction, list[int]] | None:
        """The instruction that samples how many steps are unrolled, with its candidates."""
        for inst in trace.insts:
            if str(inst.kind.name) == "Annotate" and str(inst.arguments["ann_key"]).startswith(
                "meta_schedule.unroll"
            ):
                for sampled in trace.insts:
                    if str(sampled.kind.name) == "SampleCategorical" and any(
                        hash(out) == hash(value) for out in sampled.outputs for value in inst.inputs
                    ):
                        candidates = sampled.arguments["candidates"]
                        return sampled, [int(getattr(c, "value", c)) for c in candidates]
        return None

    def _depths(self, program: TraceProgram) -> list[int]:
        sampled = self._unroll_of(program.trace)
        return [0] if sampled is None else sampled[1]

    def _candidate_of(self, choice: _Choice) -> MeasureCandidate | None:
        program = self.programs[choice.program]
        # Decisions that are not descended on are drawn anew.
        trace = self._placed(Trace(program.trace.insts, {}))
        sampled = self._unroll_of(program.trace)
        if sampled is not None:
            depth = sampled[1].index(choice.unroll)
            trace = trace.with_decision(sampled[0], depth, remove_postproc=True)
        return self._finish(program.decided(trace, np.array(choice.indices)), choice)

    def _placed(self, trace: Trace) -> Trace:
        """A trace that mostly computes whole what it reads, before its own loops: elsewhere work
        may be done again and again, which the bound does not know of."""
        for inst in trace.insts:
            whole = self.rng.random() < _WHOLE
            if whole and str(inst.kind.name) == "SampleComputeLocation":
                trace = trace.with_decision(inst, _AT_ROOT, remove_postproc=True)
        return trace

    def _finish(self, trace: Trace, choice: _Choice | None) -> MeasureCandidate | None:
        postprocs = self.context.space_generator.postprocs or []
        sch = finish_trace(self.context.mod, trace, postprocs, self._seed())
        if sch is None:
            return None
        key = _key(sch)
        if key in self._measured:
            return None
        self._measured.add(key)
        if choice is not None:
            self._choices[key] = choice
        return self._candidate(sch)

    def _random(self) -> MeasureCandidate | None:
        for _ in range(self.max_fail_count):
            candidate = self._finish(Trace(self.rng.choice(self.traces).insts, {}), None)
            if candidate is not None:
                return candidate
        return None


def _key(sch: tir.Schedule) -> int:
    return int(tvm.ir.structural_hash(sch.mod))
