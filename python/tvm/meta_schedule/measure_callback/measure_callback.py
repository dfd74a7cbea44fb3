"""What happens after each batch of measurements."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..builder import BuilderResult
from ..candidate import MeasureCandidate, RunnerResult
from ..database import TuningRecord
from ..utils import Named, remove_build_dir

__all__ = [
    "AddToDatabase",
    "MeasureCallback",
    "PyMeasureCallback",
    "RemoveBuildArtifact",
    "UpdateCostModel",
]

_FAILED = 1e10


class MeasureCallback(Named):
    """Base of callbacks, which define `apply`."""

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Called with what was measured for a task, and what came of it."""
        raise TypeError(f"{type(self).__name__} does not define apply")

    @staticmethod
    def create(kind: str = "default") -> list[MeasureCallback]:
        """Callbacks by name.

        Raises
        ------
        ValueError : a name that is none of "default", "add-to-database", "remove-build-artifact",
            "update-cost-model".
        """
        kinds: dict[str, list[type[MeasureCallback]]] = {
            "default": [AddToDatabase, RemoveBuildArtifact, UpdateCostModel],
            "add-to-database": [AddToDatabase],
            "remove-build-artifact": [RemoveBuildArtifact],
            "update-cost-model": [UpdateCostModel],
        }
        if kind not in kinds:
            raise ValueError(
                f"MeasureCallback.create: unknown kind {kind!r}; there are {sorted(kinds)}"
            )
        return [callback() for callback in kinds[kind]]


class PyMeasureCallback(MeasureCallback):
    """Base of callbacks that users define."""


class AddToDatabase(MeasureCallback):
    """Records each result, failures included."""

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        database = task_scheduler.database_
        if database is None:
            return
        context = task_scheduler.tasks_[task_id].ctx
        workload = database.commit_workload(context.mod)
        for candidate, result in zip(measure_candidates, runner_results):
            database.commit_tuning_record(
                TuningRecord(
                    candidate.sch.trace,
                    workload,
                    result.run_secs if result.run_secs is not None else [_FAILED],
                    context.target,
                    candidate.args_info,
                    result.at_least,
                )
            )


class RemoveBuildArtifact(MeasureCallback):
    """Removes the libraries that were measured."""

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        for result in builder_results:
            if result.artifact_path is not None and os.path.exists(result.artifact_path):
                remove_build_dir(result.artifact_path)


class UpdateCostModel(MeasureCallback):
    """Teaches the cost model what was built."""

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        model = task_scheduler.cost_model_
        if model is None:
            return
        built = [
            (candidate, result)
            for candidate, build, result in zip(measure_candidates, builder_results, runner_results)
            if build.error_msg is None
        ]
        if built:
            model.update(
                task_scheduler.tasks_[task_id].ctx, [c for c, _ in built], [r for _, r in built]
            )
