"""Timing candidates."""

from typing import Any

from ..candidate import RunnerResult
from .config import EvaluatorConfig
from .local_runner import LocalRunner, LocalRunnerFuture
from .runner import PyRunner, PyRunnerFuture, Runner, RunnerFuture, RunnerInput


def create(kind: str = "local", *args: Any, **kwargs: Any) -> Runner:
    """A runner by name: "local".

    Raises
    ------
    ValueError : another name.
    """
    if kind != "local":
        raise ValueError(f"Runner.create: unknown kind {kind!r}; there is 'local'")
    return LocalRunner(*args, **kwargs)
