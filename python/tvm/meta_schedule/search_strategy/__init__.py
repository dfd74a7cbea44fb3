"""How a search goes through a space."""

from collections.abc import Callable
from typing import Any

from ..candidate import MeasureCandidate
from .evolutionary_search import EvolutionarySearch
from .replay import ReplayFunc, ReplayTrace
from .search_strategy import PySearchStrategy, SearchStrategy


def _gradient_search(*args: Any, **kwargs: Any) -> SearchStrategy:
    # PyTorch takes a second to import, and the other strategies do without.
    from .gradient_search import GradientSearch

    return GradientSearch(*args, **kwargs)


_KINDS: dict[str, Callable[..., SearchStrategy]] = {
    "evolutionary": EvolutionarySearch,
    "replay-trace": ReplayTrace,
    "replay-func": ReplayFunc,
    "felix": _gradient_search,
}


def create(kind: Any = "evolutionary", *args: Any, **kwargs: Any) -> SearchStrategy:
    """A strategy by name: "evolutionary", "replay-trace", "replay-func" or "felix".

    Raises
    ------
    ValueError : another name.
    """
    if isinstance(kind, SearchStrategy):
        return kind
    if kind not in _KINDS:
        raise ValueError(
            f"SearchStrategy.create: unknown kind {kind!r}; there are {sorted(_KINDS)}"
        )
    return _KINDS[kind](*args, **kwargs)


SearchStrategy.create = staticmethod(create)
