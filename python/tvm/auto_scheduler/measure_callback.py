"""Those who hear of measurements."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api
from .measure_node import Candidate, MeasureResult

__all__ = ["MeasureCallback", "PythonBasedMeasureCallback", "as_callbacks", "weakly"]


def weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls a method of an object which it does not keep alive.

    An object of Python that holds a node, which holds its methods, would otherwise never go away.
    """
    reference = weakref.WeakMethod(method)

    def call(*arguments: Any) -> Any:
        bound = reference()
        if bound is None:
            raise RuntimeError("an object was given up while its node was in use")
        return bound(*arguments)

    return call


@tvm._ffi.register_object("auto_scheduler.MeasureCallback")
class MeasureCallback(Object):
    """Hears of measurements."""


@tvm._ffi.register_object("auto_scheduler.PythonBasedMeasureCallback")
class PythonBasedMeasureCallback(MeasureCallback):
    """A callback of one's own: a subclass that defines `on_result`, `callback` or both."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.PythonBasedMeasureCallback, self.on_result, self.callback
        )

    def on_result(self, policy: Any, candidate: Candidate, result: MeasureResult) -> None:
        """Called as soon as a result is known; `policy` asked for it, or None."""

    def callback(
        self, policy: Any, candidates: Sequence[Candidate], results: Sequence[MeasureResult]
    ) -> None:
        """Called after each batch."""


def as_callbacks(entries: Sequence[MeasureCallback | Callable[..., None]]) -> list[MeasureCallback]:
    """Callbacks; a function becomes one that is called after each batch.

    Raises
    ------
    TypeError : one is neither.
    """
    for entry in entries:
        if not isinstance(entry, MeasureCallback) and not callable(entry):
            raise TypeError(
                f"measure callback: expected a MeasureCallback or a function, got {entry!r}"
            )
    return [
        entry
        if isinstance(entry, MeasureCallback)
        else _ffi_api.PythonBasedMeasureCallback(None, entry)
        for entry in entries
    ]
