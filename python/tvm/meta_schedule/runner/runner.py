"""Timing candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..arg_info import ArgInfo
from ..candidate import RunnerResult
from ..utils import Named

__all__ = ["PyRunner", "PyRunnerFuture", "Runner", "RunnerFuture", "RunnerInput"]


class RunnerInput:
    """A library to time: `artifact_path`, `device_type`, and `args_info`, what it takes.

    `best_seconds` is how fast the best program of the task is so far, None if none is known: far
    slower ones need no careful timing.
    """

    def __init__(
        self,
        artifact_path: str,
        device_type: str,
        args_info: Sequence[ArgInfo],
        best_seconds: float | None = None,
    ) -> None:
        self.artifact_path = artifact_path
        self.device_type = device_type
        self.args_info = list(args_info)
        self.best_seconds = best_seconds


class RunnerFuture(Named):
    """A result that may come later.

    Parameters
    ----------
    f_done : whether it is there; f_result : gives it, waiting if need be.
    """

    def __init__(
        self,
        f_done: Callable[[], bool] | None = None,
        f_result: Callable[[], RunnerResult] | None = None,
    ) -> None:
        self._done, self._result = f_done, f_result

    def done(self) -> bool:
        """Whether the result is there."""
        if self._done is None:
            raise TypeError(f"{type(self).__name__} does not define done")
        return self._done()

    def result(self) -> RunnerResult:
        """The result."""
        if self._result is None:
            raise TypeError(f"{type(self).__name__} does not define result")
        return self._result()


class PyRunnerFuture(RunnerFuture):
    """Base of futures that users define."""


class Runner(Named):
    """Base of runners, which define `run`."""

    # The function `create` of the package, which knows the kinds.
    create: ClassVar[Callable[..., Any]]

    def prepare(self) -> None:
        """Get ready, without waiting for it, while the first candidates are looked for."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """One future an input."""
        raise TypeError(f"{type(self).__name__} does not define run")


class PyRunner(Runner):
    """Base of runners that users define."""
