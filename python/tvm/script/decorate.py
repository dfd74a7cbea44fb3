"""Decorators: from the Python function or class under them to its text and what surrounds it."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from tvm import error

from .macro import Macro
from .module import read_definition
from .reader import Surroundings, dialect_of
from .source import Source

__all__ = ["function_decorator", "is_in_class", "read_object", "text_around"]

_TOKENS = {"T.prim_func": "tir", "R.function": "relax"}


def read_object(
    thing: Any,
    frame: FrameType,
    check_well_formed: bool = True,
    decorator: str = "",
    options: Mapping[str, Any] | None = None,
) -> Any:
    """The program that the text of a Python function or class describes.

    Parameters
    ----------
    frame : where it is defined; the names known there have their values in the program.
    decorator : what reads a function, "T.prim_func", where its text need not say so.
    options : those that the decorator was given beside the text.

    Raises
    ------
    ValueError : the text is not to be found.
    """
    source, around = text_around(thing, frame)
    around.decorator, around.options = decorator, dict(options or {})
    return read_definition(source, around, check_well_formed)


def text_around(thing: Any, frame: FrameType) -> tuple[Source, Surroundings]:
    """The text of a Python function or class, and what its names mean.

    Raises
    ------
    ValueError : the text is not to be found.
    """
    lines, first_line, name = _lines_of(thing, frame)
    known: ChainMap[str, Any] = ChainMap(frame.f_locals, frame.f_globals)
    if inspect.isfunction(thing):
        if thing.__globals__ is not frame.f_globals:
            known = ChainMap(thing.__globals__)
        # What an inner function uses stays known after the outer one has returned.
        known = known.new_child(dict(inspect.getclosurevars(thing).nonlocals))
    dialects = {
        alias: found for alias, value in known.items() if (found := dialect_of(value)) is not None
    }
    source = Source("".join(lines), name, first_line)
    return source, Surroundings(known, dialects, exact=False)


def _lines_of(thing: Any, frame: FrameType) -> tuple[list[str], int, str]:
    """The lines of a function or class with its decorators, the number of the first, the file."""
    try:
        lines, first = inspect.getsourcelines(thing)
        return lines, first, inspect.getsourcefile(thing) or "<str>"
    except (OSError, TypeError):
        pass
    # The module of a notebook has no file in which Python looks for a class, but the lines of a
    # cell are known under the name of its code.
    name = frame.f_code.co_filename
    lines = linecache.getlines(name, frame.f_globals)
    for node in ast.walk(ast.parse("".join(lines))):
        if isinstance(node, ast.ClassDef) and node.name == thing.__name__:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            last = node.end_lineno or first
            if first <= frame.f_lineno <= last:
                return lines[first - 1 : last], first, name
    raise error.ValueError(
        f"tvm.script: the text of {thing.__name__} is not in a file that can be read; give the "
        "text itself to tvm.script.from_source"
    )


def function_decorator(name: str, positional: Sequence[str]) -> Callable[..., Any]:
    """A decorator of functions, with and without options in parentheses.

    In the body of a class it leaves the function alone: the decorator of the class reads all. A
    decorator of a program's own may call it, if its attribute `dispatch_token` is that of this one.

    Parameters
    ----------
    positional : options in the order in which a call may give them behind the function.
    """

    def decorator(func: Callable[..., Any] | None = None, *given: Any, **options: Any) -> Any:
        frame = sys._getframe(1)
        if len(given) > len(positional):
            raise error.TypeError(f"{name} takes {len(positional)} options, got {len(given)}")
        options = dict(zip(positional, given)) | options
        if func is None:
            return lambda inner: _read(inner, frame, name, options)
        if not inspect.isfunction(func):
            raise error.TypeError(f"{name} decorates a function, got {type(func).__name__}")
        return _read(func, frame, name, options)

    decorator.__name__ = decorator.__qualname__ = name.rsplit(".", 1)[-1]
    decorator.dispatch_token = _TOKENS[name]  # type: ignore[attr-defined]
    return decorator


def is_in_class(frame: FrameType) -> bool:
    """Whether a frame runs the body of a class whose decorator reads all of it.

    Other classes, such as those of tests, hold functions that are read at once.
    """
    if "__qualname__" not in frame.f_locals or frame.f_code.co_name == "<module>":
        return False
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    above = lines[frame.f_code.co_firstlineno - 1 :]
    decorators = list(itertools.takewhile(lambda line: line.strip().startswith("@"), above))
    # Without the text, as from an interactive session, the class may have one.
    return not above or any("ir_module" in line or "rewriter" in line for line in decorators)


def _read(
    func: Callable[..., Any], frame: FrameType, decorator: str, options: Mapping[str, Any]
) -> Any:
    around: FrameType | None = frame
    # A decorator of the program's own stands between the definition and ours.
    while around is not None and around.f_globals is not func.__globals__:
        around = around.f_back
    frame = around or frame
    if is_in_class(frame):
        return func
    return read_object(func, frame, options.get("check_well_formed", True), decorator, options)


def macro_decorator(name: str) -> Callable[..., Any]:
    """The decorator of macros of a dialect, such as "T.macro"."""

    def macro(func: Callable[..., Any] | None = None, *, hygienic: bool = True) -> Any:
        """Decorator: a function whose body is read wherever a function of the dialect calls it.

        Parameters
        ----------
        hygienic : names in the body mean what they mean here; otherwise those of the caller come
            first.
        """
        frame = sys._getframe(1)

        def decorate(inner: Callable[..., Any]) -> Macro:
            if not inspect.isfunction(inner):
                raise error.TypeError(f"{name} decorates a function, got {type(inner).__name__}")
            source, around = text_around(inner, frame)
            definition = source.tree().body[0]
            assert isinstance(definition, ast.FunctionDef)
            return Macro(name, source, definition, around, hygienic)

        return decorate if func is None else decorate(func)

    return macro
