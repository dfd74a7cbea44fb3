"""Mutators of the decisions that rules sample."""

from __future__ import annotations

import random
from typing import Any

from tvm import tir
from tvm.runtime import Object
from tvm.tir.schedule import BlockRV, Instruction, Schedule, Trace

from ..sch_analysis import all_blocks, parallel_sizes
from .mutator import Mutator

__all__ = [
    "MutateComputeLocation",
    "MutateParallel",
    "MutateThreadBinding",
    "MutateTileSize",
    "MutateUnroll",
]


class _Random(Mutator):
    """A mutator with a generator that follows the task's seed."""

    def __init__(self) -> None:
        self._rng = random.Random()

    def _initialize_with_tune_context(self, context: Any) -> None:
        self._rng = random.Random(context.rand_state)

    def _draws(self, rand_state: int) -> random.Random:
        """The generator of one call: the task's, or one of a seed that was given."""
        return self._rng if rand_state == -1 else random.Random(rand_state)

    @staticmethod
    def _sampled(trace: Trace, kind: str) -> list[Instruction]:
        return [
            inst
            for inst in trace.insts
            if str(inst.kind.name) == kind and trace.get_decision(inst) is not None
        ]


def _number(value: Any) -> int:
    return int(getattr(value, "value", value))


class MutateTileSize(_Random):
    """Moves a factor from one tile of a loop to another."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        rng = self._draws(rand_state)
        choices = []
        for inst in self._sampled(trace, "SamplePerfectTile"):
            sizes = [_number(v) for v in trace.get_decision(inst)]
            if len(sizes) > 1 and any(size > 1 for size in sizes):
                choices.append((inst, sizes))
        if not choices:
            return None
        inst, sizes = rng.choice(choices)
        limit = _number(inst.arguments["max_innermost_factor"])
        source = rng.choice([i for i, size in enumerate(sizes) if size > 1])
        target = rng.choice([i for i in range(len(sizes)) if i != source])
        factors = [f for f in range(2, sizes[source] + 1) if sizes[source] % f == 0]
        rng.shuffle(factors)
        for factor in factors:
            moved = list(sizes)
            moved[source] //= factor
            moved[target] *= factor
            if limit < 0 or moved[-1] <= limit:
                return trace.with_decision(inst, moved, remove_postproc=True)
        return None


class MutateUnroll(_Random):
    """Chooses another depth of unrolling."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        rng = self._draws(rand_state)
        depths = {
            hash(value)
            for inst in trace.insts
            if str(inst.kind.name) == "Annotate"
            and str(inst.arguments["ann_key"]).startswith("meta_schedule.unroll")
            for value in inst.inputs
        }
        choices = [
            inst
            for inst in self._sampled(trace, "SampleCategorical")
            if any(hash(out) in depths for out in inst.outputs)
            and len(inst.arguments["candidates"]) > 1
        ]
        if not choices:
            return None
        return _with_other_candidate(trace, rng.choice(choices), rng)


class MutateComputeLocation(_Random):
    """Chooses another place of computation, of those that are legal where it is chosen."""

    def __init__(self) -> None:
        super().__init__()
        self._mod: Any = None

    def _initialize_with_tune_context(self, context: Any) -> None:
        super()._initialize_with_tune_context(context)
        self._mod = context.mod

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        rng = self._draws(rand_state)
        choices = self._sampled(trace, "SampleComputeLocation")
        if not choices or self._mod is None:
            return None
        inst = rng.choice(choices)
        now = _number(trace.get_decision(inst))
        others = [place for place in self._places(trace, inst) if place != now]
        if not others:
            return None
        return trace.with_decision(inst, rng.choice(others), remove_postproc=True)

    def _places(self, trace: Trace, wanted: Instruction) -> list[int]:
        """The decisions that are legal for an instruction after those before it."""
        insts = list(trace.insts)
        end = next(i for i, inst in enumerate(insts) if inst.same_as(wanted))
        sch = tir.Schedule(self._mod)
        before = {
            inst: trace.get_decision(inst)
            for inst in insts[:end]
            if trace.get_decision(inst) is not None
        }
        Trace(insts[:end], before).apply_to_schedule(sch, remove_postproc=True)
        [block] = wanted.inputs
        return sch.compute_locations(_twin(trace, sch, block))


class MutateParallel(_Random):
    """Fuses another number of loops into jobs that run at once.

    The new limit is drawn among the numbers of jobs that fusing one more loop makes: one of those
    that are reached with the same loops of every block, and none that the old one's loops reach.

    Parameters
    ----------
    max_jobs_per_core : jobs a core at most.
    """

    def __init__(self, max_jobs_per_core: int) -> None:
        super().__init__()
        self.max_jobs_per_core = max_jobs_per_core
        self._cores = 1
        self._mod: Any = None

    def _initialize_with_tune_context(self, context: Any) -> None:
        super()._initialize_with_tune_context(context)
        self._mod = context.mod
        cores = None if context.target is None else context.target.attrs.get("num-cores")
        self._cores = 1 if cores is None else int(cores)

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        rng = self._draws(rand_state)
        insts = list(trace.insts)
        places = [
            i
            for i, inst in enumerate(insts)
            if str(inst.kind.name) == "Annotate"
            and str(inst.arguments["ann_key"]) == "meta_schedule.parallel"
        ]
        if not places or self._mod is None:
            return None
        place = rng.choice(places)
        inst = insts[place]
        others = self._limits(trace, inst.inputs[0], _number(inst.arguments["ann_val"]))
        if not others:
            return None
        arguments = {**inst.arguments, "ann_val": rng.choice(others)}
        insts[place] = Instruction.of(inst.kind, arguments, list(inst.outputs))
        return Trace(insts, dict(trace.decisions.items()))

    def _limits(self, trace: Trace, root: Any, now: int) -> list[int]:
        sch = tir.Schedule(self._mod)
        trace.apply_to_schedule(sch, remove_postproc=True)
        top = sch.get_sref(_twin(trace, sch, root))
        most = self.max_jobs_per_core * self._cores
        sizes = []
        for block, _ in all_blocks(sch):
            if _root_of(sch, block).same_as(top):
                sizes.append([size for size in parallel_sizes(sch, block) if size <= most])
        plans: dict[tuple[int, ...], int] = {}
        for limit in sorted({size for of_block in sizes for size in of_block}):
            plans[tuple(_loops_below(of_block, limit) for of_block in sizes)] = limit
        plans.pop(tuple(_loops_below(of_block, now) for of_block in sizes), None)
        return sorted(plans.values())


def _loops_below(sizes: list[int], limit: int) -> int:
    """How many loops make fewer jobs than a limit."""
    return sum(size < limit for size in sizes)


def _root_of(sch: Schedule, block: BlockRV) -> Any:
    sref = sch.get_sref(block)
    while sref.parent is not None:
        sref = sref.parent
    return sref


def _twin(trace: Trace, sch: Schedule, output: Any) -> Any:
    """What the schedule to which a trace was applied has in the place of a result of the trace."""
    return next(
        twin
        for inst, done in zip(trace.insts, sch.trace.insts)
        for old, twin in zip(inst.outputs, done.outputs)
        if old.same_as(output)
    )


class MutateThreadBinding(_Random):
    """Chooses another of the candidates for how many threads a block has."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        rng = self._draws(rand_state)
        insts = list(trace.insts)
        bound = {
            hash(inst.inputs[0])
            for inst in insts
            if str(inst.kind.name) == "Bind" and str(inst.arguments["thread_axis"]) == "threadIdx.x"
        }
        extents = {
            hash(factor)
            for inst in insts
            if str(inst.kind.name) == "Split"
            for loop, factor in zip(inst.outputs, inst.arguments["factors"])
            if hash(loop) in bound and isinstance(factor, Object)
        }
        choices = [
            inst
            for inst in self._sampled(trace, "SampleCategorical")
            if any(hash(out) in extents for out in inst.outputs)
            and len(inst.arguments["candidates"]) > 1
        ]
        if not choices:
            return None
        return _with_other_candidate(trace, rng.choice(choices), rng)


def _with_other_candidate(trace: Trace, inst: Instruction, rng: random.Random) -> Trace:
    now = _number(trace.get_decision(inst))
    others = [i for i in range(len(inst.arguments["candidates"])) if i != now]
    return trace.with_decision(inst, rng.choice(others), remove_postproc=True)
