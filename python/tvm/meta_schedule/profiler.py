"""Where the time of a search goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

__all__ = ["Profiler"]


class Profiler:
    """Sums seconds by name while it is entered; "Total" is the whole.

    Examples
    --------
    >>> with Profiler() as profiler:
    ...     with Profiler.timeit("Build"):
    ...         pass
    >>> sorted(profiler.get())
    ['Build', 'Total']
    """

    _active: ClassVar[list[Profiler]] = []

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._start = 0.0

    def get(self) -> dict[str, float]:
        """Seconds by name."""
        return dict(self._seconds)

    def table(self) -> str:
        """The seconds as text, the largest first, with their share of the total."""
        total = self._seconds.get("Total", 0.0) or 1.0
        rows = sorted(self._seconds.items(), key=lambda item: -item[1])
        width = max((len(name) for name, _ in rows), default=4)
        lines = [f"{'Name':{width}}  {'Seconds':>10}  {'Percent':>8}"]
        lines += [f"{name:{width}}  {s:10.3f}  {100 * s / total:8.2f}" for name, s in rows]
        return "\n".join(lines)

    @staticmethod
    def current() -> Profiler | None:
        """The profiler that was entered last, None outside of all."""
        return Profiler._active[-1] if Profiler._active else None

    @staticmethod
    @contextmanager
    def timeit(name: str) -> Iterator[None]:
        """Count what runs inside under a name; nothing happens without a profiler."""
        profiler = Profiler.current()
        start = time.perf_counter()
        try:
            yield
        finally:
            if profiler is not None:
                spent = time.perf_counter() - start
                profiler._seconds[name] = profiler._seconds.get(name, 0.0) + spent

    def __enter__(self) -> Profiler:
        self._start = time.perf_counter()
        Profiler._active.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        Profiler._active.pop()
        spent = time.perf_counter() - self._start
        self._seconds["Total"] = self._seconds.get("Total", 0.0) + spent
