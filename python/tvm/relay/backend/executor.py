"""How a program is run, as builds are asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import error

__all__ = ["Executor", "Runtime"]


class Executor:
    """The kind of executor: "graph", or "aot", which is the same list of calls.

    Raises
    ------
    ValueError : there is no such kind.
    """

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        if name not in ("graph", "aot"):
            raise error.ValueError(f'relay: an executor is "graph" or "aot", got "{name}"')
        self.name = name
        self.options = dict(options or {})

    def __getitem__(self, name: str) -> Any:
        """An option, None if it is not given."""
        return self.options.get(name)


class Runtime:
    """The runtime that libraries are linked with, which is the C++ one.

    Raises
    ------
    ValueError : another one.
    """

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        if name != "cpp":
            raise error.ValueError(f'relay: libraries are for the runtime "cpp", got "{name}"')
        self.name = name
        self.options = dict(options or {})

    def __getitem__(self, name: str) -> Any:
        """An option, None if it is not given."""
        return self.options.get(name)
