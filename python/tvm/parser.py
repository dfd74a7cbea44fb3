"""Reading programs from text under the name of older TVM versions; see `tvm.script`."""

from __future__ import annotations

import re
from typing import Any

from tvm import relay
from tvm.script import from_source

__all__ = ["parse"]


# How a text in relay's own format begins, comments aside.
_RELAY = re.compile(r"(\s|//[^\n]*)*(#\[version|def @|fn\b|type \w|extern type \w|free_var)")


def parse(source: str, source_name: str = "from_string") -> Any:
    """The function or module that ``astext()`` has written, as TVMScript or in relay's format.

    >>> tvm.parser.parse(func.astext())

    Parameters
    ----------
    source_name : what errors call the text.

    Raises
    ------
    DiagnosticError : the text is not a program; the message has line, column and a way out.
    """
    if _RELAY.match(source):
        return relay.parse(source, source_name)
    return from_source(source, name=source_name)
