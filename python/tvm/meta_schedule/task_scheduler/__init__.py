"""Which task is searched next."""

from typing import Any

from .task_scheduler import GradientBased, PyTaskScheduler, RoundRobin, TaskRecord, TaskScheduler


def create(kind: Any = "gradient", *args: Any, **kwargs: Any) -> TaskScheduler:
    """A scheduler by name: "gradient" or "round-robin".

    Raises
    ------
    ValueError : another name.
    """
    if isinstance(kind, TaskScheduler):
        return kind
    kinds: dict[str, Any] = {"gradient": GradientBased, "round-robin": RoundRobin}
    if kind not in kinds:
        raise ValueError(f"TaskScheduler.create: unknown kind {kind!r}; there are {sorted(kinds)}")
    return kinds[kind](*args, **kwargs)


TaskScheduler.create = staticmethod(create)
