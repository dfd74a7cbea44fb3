"""Callbacks around passes: timing, printing, and one's own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_instrument_api as _ffi_api

__all__ = [
    "DumpIR",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfter",
    "PrintAfterAll",
    "PrintBefore",
    "PrintBeforeAll",
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
class PassPrintingInstrument(PassInstrument):
    """Prints modules to stderr around passes.

    Parameters
    ----------
    print_before_pass_names : passes to print the module before; None means all.
    print_after_pass_names : passes to print the module after; None means all.
    """

    def __init__(
        self,
        print_before_pass_names: Sequence[str] | None = (),
        print_after_pass_names: Sequence[str] | None = (),
    ) -> None:
        def listed(names: Sequence[str] | None) -> list[str] | None:
            return None if names is None else list(names)

        self.__init_handle_by_constructor__(
            _ffi_api.MakePrintInstrument,
            type(self).__name__,
            listed(print_before_pass_names),
            listed(print_after_pass_names),
        )


def PrintBefore(*pass_names: str) -> PassInstrument:
    """An instrument that prints the module before the named passes (before all if none)."""
    return PassPrintingInstrument(pass_names or None, ())


def PrintAfter(*pass_names: str) -> PassInstrument:
    """An instrument that prints the module after the named passes (after all if none)."""
    return PassPrintingInstrument((), pass_names or None)


@pass_instrument
class PrintBeforeAll:
    """Prints every pass and the module before it to Python's output."""

    def run_before_pass(self, mod: Any, info: Any) -> None:
        _print_module("Before", mod, info)


@pass_instrument
class PrintAfterAll:
    """Prints every pass and the module after it to Python's output."""

    def run_after_pass(self, mod: Any, info: Any) -> None:
        _print_module("After", mod, info)


def _print_module(when: str, mod: Any, info: Any) -> None:
    print(f"{when} Running Pass: pass name: {info.name}, opt level: {info.opt_level}\n{mod}")


@pass_instrument
class DumpIR:
    """Writes the module after every pass to a file of its own, numbered in the order of passes.

    Parameters
    ----------
    dump_dir : folder of the files, made if missing.
    refresh : delete the folder's files of an earlier run first.
    """

    def __init__(self, dump_dir: str | os.PathLike[str], refresh: bool = False) -> None:
        self._folder = Path(dump_dir)
        self._folder.mkdir(parents=True, exist_ok=True)
        if refresh:
            for old in self._folder.glob("[0-9][0-9][0-9]_*.py"):
                old.unlink()
        self._count = 0

    def run_after_pass(self, mod: Any, info: Any) -> None:
        name = re.sub(r"[^\w.-]+", "_", str(info.name))
        path = self._folder / f"{self._count:03d}_{name}.py"
        path.write_text(mod.script() + "\n", encoding="utf-8")
        self._count += 1
