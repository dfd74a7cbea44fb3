"""Subgraphs that can be computed in two forms, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ..expr import Constant, const

__all__ = ["Forms"]


class Forms:
    """Which subgraphs stay as they are, of those that a pass would write in another form.

    A name says the form and the sizes, so that equal subgraphs share a choice and the names of a
    network are the same in every process.

    Parameters
    ----------
    plain : names of the subgraphs that stay as they are.
    alike : forms of the same module with other choices; constants are made once for all of them.
    """

    def __init__(self, plain: Iterable[str] = (), alike: Forms | None = None) -> None:
        self._plain = frozenset(plain)
        self._offered: dict[str, None] = {}
        self._made: dict[tuple[Constant, object], Constant] = {} if alike is None else alike._made

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of all that passes asked about, in order of the first question."""
        return tuple(self._offered)

    def rewrites(self, form: str, *sizes: int) -> bool:
        """Whether a subgraph of these sizes is written in the form."""
        name = f"{form} {'x'.join(map(str, sizes))}"
        self._offered[name] = None
        return name not in self._plain

    def constant(
        self, source: Constant, purpose: object, make: Callable[[], np.ndarray]
    ) -> Constant:
        """What a form needs of a constant, by its purpose; made where nobody needed it before."""
        key = source, purpose
        if key not in self._made:
            array = make()
            self._made[key] = const(array, str(array.dtype))
        return self._made[key]
