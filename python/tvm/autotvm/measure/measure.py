"""Builders and runners of templates, and how a batch passes through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvm import auto_scheduler
from tvm.contrib import cc, utils
from tvm.runtime.threading import usable_cores

from ..measure_node import MeasureErrorNo, MeasureInput, MeasureResult
from ..task.task import Task

__all__ = ["BuildResult", "Builder", "Runner", "create_measure_batch"]


@dataclass
class BuildResult:
    """A compiled point.

    Attributes
    ----------
    program : object code with its description, None if there is none.
    arg_info : shape and dtype of each argument.
    error : why there is no program.
    error_no : a `MeasureErrorNo`.
    time_cost : seconds that the build took.
    candidate : what was built.
    """

    program: auto_scheduler.BuildResult | None
    arg_info: list[tuple[tuple[int, ...], str]]
    error: Exception | None
    time_cost: float
    error_no: int = MeasureErrorNo.NO_ERROR
    candidate: auto_scheduler.Candidate | None = None
    _folder: Any = field(default=None, repr=False)

    @property
    def filename(self) -> str | None:
        """A shared library with the program, for runners of one's own; linked on demand."""
        if self.program is None:
            return None
        if self.program.filename:
            return str(self.program.filename)
        if self._folder is None:
            self._folder = utils.tempdir()
            code = Path(self._folder.relpath("program.o"))
            code.write_bytes(bytes(self.program.code))
            cc.create_shared(self._folder.relpath("program.so"), [str(code)])
        return str(self._folder.relpath("program.so"))


class Builder:
    """Compiles points. Builders of one's own derive from this class and define `build`.

    Parameters
    ----------
    timeout : seconds for one build.
    n_parallel : builds at once; None is one a core.
    """

    def __init__(self, timeout: float = 10, n_parallel: int | None = None) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel or usable_cores()
        self.build_kwargs: dict[str, Any] = {}
        self.task: Task | None = None

    def set_task(self, task: Task, build_kwargs: dict[str, Any] | None = None) -> None:
        """What is built from now on, and the runner's wishes."""
        self.task = task
        self.build_kwargs = dict(build_kwargs or {})

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        """One `BuildResult` a point, failures included."""
        raise TypeError(f"{type(self).__name__} does not define build")


class Runner:
    """Times compiled points. Runners of one's own derive from this class and define `run`.

    Parameters
    ----------
    timeout : seconds for one point.
    n_parallel : runs at once.
    """

    def __init__(self, timeout: float = 5, n_parallel: int | None = None) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel or 1
        self.task: Task | None = None

    def set_task(self, task: Task) -> None:
        """What is timed from now on."""
        self.task = task

    def get_build_kwargs(self) -> dict[str, Any]:
        """What the builder must know of the device."""
        return {}

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        """One result a point; failed builds are passed on."""
        raise TypeError(f"{type(self).__name__} does not define run")


def create_measure_batch(
    task: Task, option: dict[str, Any]
) -> Callable[[Sequence[MeasureInput]], list[MeasureResult]]:
    """A function that measures a batch: one result a point.

    Parameters
    ----------
    option : what `measure_option` gave.

    Returns
    -------
    The function; its attribute `n_parallel` is how many points fill a batch.
    """
    builder, runner = option["builder"], option["runner"]
    runner.set_task(task)
    builder.set_task(task, runner.get_build_kwargs())

    def measure_batch(inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        return list(runner.run(inputs, builder.build(inputs)))

    measure_batch.n_parallel = builder.n_parallel  # type: ignore[attr-defined]
    return measure_batch
