"""Patterns that other compilers take, by their name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error

__all__ = ["get_pattern_table", "register_pattern_table"]

PatternTable = Sequence[tuple[Any, ...]]
"""What `MergeComposite` takes: names, patterns, and perhaps conditions."""

_TABLES: dict[str, Callable[[], PatternTable]] = {}


def register_pattern_table(
    compiler: str, table: Callable[[], PatternTable] | None = None
) -> Callable[..., Any]:
    """Say which patterns a compiler takes; also a decorator of a function that gives them.

    Raises
    ------
    ValueError : the compiler has a table already.
    """

    def register(make: Callable[[], PatternTable]) -> Callable[[], PatternTable]:
        if compiler in _TABLES:
            raise error.ValueError(f"register_pattern_table: '{compiler}' has a table already")
        _TABLES[compiler] = make
        return make

    return register if table is None else register(table)


def get_pattern_table(compiler: str) -> PatternTable | None:
    """The patterns of a compiler, for :func:`tvm.relay.transform.MergeComposite`; None if nobody
    registered any."""
    make = _TABLES.get(compiler)
    return None if make is None else make()
