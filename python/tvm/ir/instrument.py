"""Callbacks around passes: timing, printing, and one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_instrument_api as _ffi_api

__all__ = [
    "PassInstrument",
    "PassTimingInstrument",
    "PrintAfter",
    "PrintBefore",
    "pass_instrument",
]


@tvm._ffi.register_object("instrument.PassInstrument")
class PassInstrument(Object):
    """Called around passes by the PassContext that holds it.

    A subclass defines any of ``enter_pass_ctx()``, ``exit_pass_ctx()``,
    ``should_run(mod, info) -> bool``, ``run_before_pass(mod, info)`` and
    ``run_after_pass(mod, info)``. A pass is skipped if one instrument's `should_run` says no.
    """

    _CALLBACKS = (
        "enter_pass_ctx",
        "exit_pass_ctx",
        "should_run",
        "run_before_pass",
        "run_after_pass",
    )

    def __init__(self) -> None:
        callbacks = [getattr(self, name, None) for name in self._CALLBACKS]
        self.__init_handle_by_constructor__(
            _ffi_api.PassInstrument, type(self).__name__, *callbacks
        )


def pass_instrument(cls: type) -> Any:
    """Decorator: make instances of a class with the callbacks of PassInstrument instruments."""

    class Instrument(cls, PassInstrument):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if cls.__init__ is not object.__init__:  # type: ignore[misc]
                cls.__init__(self, *args, **kwargs)  # type: ignore[misc]
            PassInstrument.__init__(self)

    Instrument.__name__ = cls.__name__
    Instrument.__qualname__ = cls.__qualname__
    Instrument.__doc__ = cls.__doc__
    return Instrument


@tvm._ffi.register_object("instrument.PassTimingInstrument")
class PassTimingInstrument(PassInstrument):
    """Times passes. Passes run by a pass are listed under it."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.MakePassTimingInstrument)

    def render(self) -> str:
        """A table of the times since the context was entered."""
        return _ffi_api.RenderTimePassProfiles(self)


@tvm._ffi.register_object("instrument.PrintInstrument")
class _PrintInstrument(PassInstrument):
    """Prints modules to stderr around passes."""

    def __init__(self, pass_names: Sequence[str], after: bool) -> None:
        self.__init_handle_by_constructor__(_ffi_api.MakePrintInstrument, list(pass_names), after)


def PrintBefore(*pass_names: str) -> PassInstrument:
    """An instrument that prints the module before the named passes (before all if none)."""
    return _PrintInstrument(pass_names, after=False)


def PrintAfter(*pass_names: str) -> PassInstrument:
    """An instrument that prints the module after the named passes (after all if none)."""
    return _PrintInstrument(pass_names, after=True)
