"""Parts that neither build nor run nor change anything."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tvm.tir.schedule import Trace

from ..builder import BuilderInput, BuilderResult, PyBuilder
from ..candidate import RunnerResult
from ..mutator import PyMutator
from ..runner import PyRunner, PyRunnerFuture, RunnerFuture, RunnerInput

__all__ = ["DummyBuilder", "DummyMutator", "DummyRunner", "DummyRunnerFuture"]


class DummyBuilder(PyBuilder):
    """Says that everything was built."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        return [BuilderResult("test_path", None) for _ in build_inputs]


class DummyRunnerFuture(PyRunnerFuture):
    """Is done at once, after random seconds."""

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return RunnerResult([random.uniform(5, 30) for _ in range(random.randint(1, 10))], None)


class DummyRunner(PyRunner):
    """Gives random seconds."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        return [DummyRunnerFuture() for _ in runner_inputs]


class DummyMutator(PyMutator):
    """Forgets all decisions, so that they are sampled anew."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        return Trace(trace.insts, {})
