"""Timing candidates."""

from typing import Any

from ..candidate import RunnerResult
from .config import EvaluatorConfig, RPCConfig
from .local_runner import LocalRunner, LocalRunnerFuture
from .rpc_runner import RPCRunner, RPCRunnerFuture
from .runner import PyRunner, PyRunnerFuture, Runner, RunnerFuture, RunnerInput

_KINDS: dict[str, type[Runner]] = {"local": LocalRunner, "rpc": RPCRunner}


def create(kind: str = "local", *args: Any, **kwargs: Any) -> Runner:
    """A runner by name: "local" or "rpc".

    Raises
    ------
    ValueError : another name.
    """
    if kind not in _KINDS:
        raise ValueError(f"Runner.create: unknown kind {kind!r}; there are 'local' and 'rpc'")
    return _KINDS[kind](*args, **kwargs)


Runner.create = staticmethod(create)
