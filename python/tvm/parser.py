"""Reading programs from text under the name of older TVM versions; see `tvm.script`."""

from __future__ import annotations

from typing import Any

from tvm.script import from_source

__all__ = ["parse"]


def parse(source: str, source_name: str = "from_string") -> Any:
    """The function or module that ``astext()`` has written.

    >>> tvm.parser.parse(func.astext())

    Parameters
    ----------
    source_name : what errors call the text.

    Raises
    ------
    DiagnosticError : the text is not a program; the message has line, column and a way out.
    """
    return from_source(source, name=source_name)
