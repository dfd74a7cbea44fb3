"""Names of generated C code: functions, variables and constants of one prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tvm import error

__all__ = [
    "prefix_generated_name",
    "prefix_name",
    "sanitize_name",
    "to_c_constant_style",
    "to_c_function_style",
    "to_c_variable_style",
]


def _words(name: str, kind: str) -> list[str]:
    if not name:
        raise error.ValueError("Name is empty")
    if not name.startswith("TVM"):
        raise error.ValueError(f"{kind} not TVM prefixed: '{name}' must begin with TVM")
    return name.split("_")


def to_c_function_style(original_name: str) -> str:
    """A prefixed name without underscores, each word with a capital: "TVM_run_net" is "TVMRunNet".

    Raises
    ------
    ValueError : the name is empty, or does not begin with TVM.
    """
    return "".join(word[:1].upper() + word[1:] for word in _words(original_name, "Function"))


def to_c_variable_style(original_name: str) -> str:
    """A prefixed name in small letters; see :func:`to_c_function_style` for the errors."""
    return "_".join(_words(original_name, "Variable")).lower()


def to_c_constant_style(original_name: str) -> str:
    """A prefixed name in capitals; see :func:`to_c_function_style` for the errors."""
    return "_".join(_words(original_name, "Constant")).upper()


def _prefixed(prefix: str) -> Callable[[str | Sequence[str]], str]:
    def join(names: str | Sequence[str]) -> str:
        parts = [names] if isinstance(names, str) else [str(name) for name in names]
        if not parts or parts == [""]:
            raise error.ValueError("Name is empty" if parts else "Name segments empty")
        if "" in parts:
            raise error.ValueError("Name segment is empty")
        return "_".join([prefix, *parts])

    return join


prefix_name = _prefixed("TVM")
prefix_name.__doc__ = """The parts of a name, after "TVM" and with underscores between.

Raises
------
ValueError : there are no parts, or one is empty.
"""

prefix_generated_name = _prefixed("TVMGen")
prefix_generated_name.__doc__ = """As `prefix_name`, after "TVMGen"."""


def sanitize_name(name: str) -> str:
    """The name with an underscore for each character that C does not take.

    Raises
    ------
    ValueError : the name is empty.
    """
    if not name:
        raise error.ValueError("Name is empty")
    return re.sub(r"[^0-9A-Za-z_]", "_", name)
