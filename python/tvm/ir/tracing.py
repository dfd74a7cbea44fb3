"""Traces that passes leave in a context: which were applied, and what came out."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tvm.runtime import Object

from .instrument import PassInstrument
from .module import IRModule

__all__ = ["Trace", "Tracing", "leaves_its_own_trace", "tracing_of"]


class Trace(Protocol):
    """What contexts ask of a trace; ``relax.transform.tuning_api.Trace`` is one."""

    out_mod: IRModule

    def add_applied(self, name: str, out_mod: IRModule) -> None:
        """Say that a pass was applied, and what it gave."""


class Tracing:
    """The traces of one context, the last one at work.

    Parameters
    ----------
    traces : to begin with.
    traceable : names of the passes that are recorded, with or without what is in front of the last
        dot; None for all.
    num_evals : measurements so far.
    database : where tuning passes keep what they measured.
    """

    def __init__(
        self,
        traces: Sequence[Trace],
        traceable: Sequence[str] | None,
        num_evals: int,
        database: Any,
    ) -> None:
        self.traces = list(traces)
        self.num_evals = num_evals
        self.database = database
        self._traceable = None if traceable is None else set(traceable)
        self._recorded = 0
        # For each pass that runs how many were recorded when it began.
        self._begun: list[int] = []
        self._did_it_itself = False

    def begin(self) -> None:
        """A pass begins."""
        self._begun.append(self._recorded)

    def end(self, name: str, out_mod: IRModule) -> None:
        """A pass is done."""
        before = self._begun.pop()
        if self._did_it_itself:
            self._did_it_itself = False
            self._recorded += 1
            return
        if not self.traces or not self._is_traceable(name):
            return
        # What a sequence did its passes have recorded.
        if self._recorded > before and self.traces[-1].out_mod.same_as(out_mod):
            return
        self.traces[-1].add_applied(name, out_mod)
        self._recorded += 1

    def end_of_own(self) -> None:
        """The function of a pass that writes traces itself is done."""
        self._did_it_itself = True

    def _is_traceable(self, name: str) -> bool:
        names = {name, name.rpartition(".")[2]}
        return self._traceable is None or bool(self._traceable & names)


class TracingInstrument(PassInstrument):
    """Tells a tracing of the passes of its context."""

    def __init__(self, tracing: Tracing) -> None:
        self.run_before_pass = lambda mod, info: tracing.begin()
        self.run_after_pass = lambda mod, info: tracing.end(str(info.name), mod)
        super().__init__()


class _Entered(threading.local):
    """Contexts that were entered in a thread, with their traces."""

    def __init__(self) -> None:
        self.contexts: list[tuple[Object, Tracing]] = []


_entered = _Entered()


def enter(context: Object, tracing: Tracing) -> None:
    """Let a context have traces until :func:`leave`."""
    _entered.contexts.append((context, tracing))


def leave() -> None:
    """Forget the traces of the context that was entered last."""
    _entered.contexts.pop()


def tracing_of(context: Object) -> Tracing | None:
    """The traces of a context; None if it has none."""
    for known, tracing in reversed(_entered.contexts):
        if known.same_as(context):
            return tracing
    return None


def leaves_its_own_trace(run: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a pass, which is not recorded once more when it is done.

    Its last argument is the context.
    """

    @functools.wraps(run)
    def traced(*given: Any) -> Any:
        result = run(*given)
        tracing = tracing_of(given[-1])
        if tracing is not None:
            tracing.end_of_own()
        return result

    return traced
