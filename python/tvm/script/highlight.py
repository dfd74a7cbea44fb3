"""Programs on the terminal, in colour."""

from __future__ import annotations

from typing import Any

from tvm.ir.script_text import Scriptable, show_text

__all__ = ["cprint"]


def cprint(printable: Any, style: str | None = None, black_format: bool = False) -> None:
    """Print a program, in colour where the output is a terminal and pygments is there.

    Parameters
    ----------
    printable : a program, or the text of one.
    style : name of a style of pygments; "light", "dark" and "ansi" are TVM's.
    black_format : lay the lines out with black, which must be installed.

    Raises
    ------
    TypeError : `printable` is neither.
    """
    if isinstance(printable, Scriptable):
        printable.show(style, black_format)
    elif isinstance(printable, str):
        show_text(printable, style, black_format)
    else:
        raise TypeError(f"cprint: expected a program or its text, got {type(printable).__name__}")
