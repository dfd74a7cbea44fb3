"""Which sizes of a graph are compiled, where sizes change from call to call."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

__all__ = ["Patience"]

# Sizes that never come again must not be remembered for good.
_MOST_REMEMBERED = 4096


class Patience:
    """Weighs the time that compiling a size takes against the time that PyTorch takes without.

    The first sizes are compiled when they come. Of a graph that has more, as those of a text that
    grows word by word, a further size is compiled once PyTorch has spent as long on it as compiling
    took on average; so no more than twice the time is spent that the better choice would take.

    Parameters
    ----------
    at_once : sizes that are compiled when they come.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._compiling: list[float] = []
        self._running: OrderedDict[Hashable, float] = OrderedDict()

    def is_worth(self, size: Hashable, compiled: int) -> bool:
        """Whether to compile a size now, if as many others are compiled already."""
        if compiled < self._at_once or not self._compiling:
            return True
        mean = sum(self._compiling) / len(self._compiling)
        return self._running.get(size, 0.0) >= mean

    @contextmanager
    def compiling(self, size: Hashable) -> Iterator[None]:
        """The time inside is spent on compiling a size."""
        start = time.perf_counter()
        yield
        self._compiling.append(time.perf_counter() - start)
        self._running.pop(size, None)

    @contextmanager
    def running(self, size: Hashable) -> Iterator[None]:
        """The time inside is PyTorch's, for a size that is not compiled."""
        start = time.perf_counter()
        yield
        spent = self._running.pop(size, 0.0)
        self._running[size] = spent + time.perf_counter() - start
        if len(self._running) > _MOST_REMEMBERED:
            self._running.popitem(last=False)
