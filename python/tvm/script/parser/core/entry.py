"""Reading texts, functions and classes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

from tvm.script.decorate import text_around
from tvm.script.module import read_definition
from tvm.script.reader import DIALECTS, Surroundings
from tvm.script.source import Source

__all__ = ["parse", "scan_macro"]


def _around(extra_vars: Mapping[str, Any] | None) -> Surroundings:
    known = dict(extra_vars or {})
    by_module = {path: dialect for dialect, path in DIALECTS.items()}
    dialects = {
        name: by_module[value.__name__]
        for name, value in known.items()
        if inspect.ismodule(value) and value.__name__ in by_module
    }
    usual = {"tir": "T", "ir": "I", "relax": "R"}
    return Surroundings(known, {**usual, **dialects}, exact=False)


def _source(program: Any) -> Source:
    if isinstance(program, Source):
        return program
    if isinstance(program, str):
        return Source(program)
    return text_around(program, sys._getframe(2))[0]


def parse(
    program: Any, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True
) -> Any:
    """The function or module that a text, a function or a class describes.

    Parameters
    ----------
    extra_vars : what the names mean that the text uses, such as `utils.inspect_function_capture`.
    check_well_formed : refuse tensor programs whose variables are not bound once before their use.

    Raises
    ------
    DiagnosticError : the text is not a program; the message has line, column and a way out.
    """
    return read_definition(_source(program), _around(extra_vars), check_well_formed)


def scan_macro(
    program: Any, extra_vars: Mapping[str, Any] | None = None
) -> tuple[Source, dict[str, Any]]:
    """The text of a macro, and what its names mean."""
    return _source(program), dict(extra_vars or {})
