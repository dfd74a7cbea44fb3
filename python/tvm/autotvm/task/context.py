"""Which point of its space a template is run with."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

from tvm.target import Target

from ..env import GLOBAL_SCOPE
from .space import ConfigSpace, FallbackConfigEntity

__all__ = [
    "ApplyConfig",
    "ApplyFixedConfig",
    "DispatchContext",
    "FallbackContext",
    "clear_fallback_cache",
    "get_config",
]

logger = logging.getLogger("autotvm")


class DispatchContext:
    """Answers which configuration a workload is compiled with.

    Contexts nest: what the innermost does not know, the one around it is asked. The outermost one,
    which is there from the start, is a `FallbackContext`.
    """

    current: ClassVar[DispatchContext]

    def __init__(self) -> None:
        self._old_ctx: DispatchContext | None = None

    def query(self, target: Target | None, workload: Any) -> Any:
        """The configuration for a workload.

        Parameters
        ----------
        target : what is compiled for; None outside of all targets.
        workload : name of the template and its arguments, see `args_to_workload`.
        """
        found = self._query_inside(target, workload)
        if found is None and self._old_ctx is not None:
            found = self._old_ctx.query(target, workload)
        return found

    def recorded(self, target: Target | None, workload: Any) -> Any:
        """Like `query`, but None where a fallback would be made."""
        found = self._query_inside(target, workload)
        if found is None and self._old_ctx is not None:
            found = self._old_ctx.recorded(target, workload)
        return found

    def update(self, target: Target | str, workload: Any, cfg: Any) -> None:
        """Set the configuration of a workload.

        Raises
        ------
        TypeError : the context holds none.
        """
        raise TypeError(f"{type(self).__name__} holds no configurations to update")

    def _query_inside(self, target: Target | None, workload: Any) -> Any:
        raise TypeError(f"{type(self).__name__} does not define _query_inside")

    def __enter__(self) -> Any:
        self._old_ctx = DispatchContext.current
        DispatchContext.current = self
        return self

    def __exit__(self, *exception: Any) -> None:
        assert self._old_ctx is not None
        DispatchContext.current = self._old_ctx
        self._old_ctx = None


class ApplyConfig(DispatchContext):
    """One configuration for the template that runs inside.

    Parameters
    ----------
    config : a point of its space, or the space itself to learn the knobs.
    """

    def __init__(self, config: Any) -> None:
        super().__init__()
        self._config = config
        self.workload: Any = None

    def _query_inside(self, target: Target | None, workload: Any) -> Any:
        self.workload = workload
        return self._config

    def update(self, target: Target | str, workload: Any, cfg: Any) -> None:
        self.workload = workload
        self._config = cfg


class ApplyFixedConfig(DispatchContext):
    """Configurations by the name of the task, whatever its arguments.

    Parameters
    ----------
    tasks : `Task` objects; the schedule of each is a point of its space.
    schedule_names : index into each task's space, in the same order, or one of them by name.
    """

    def __init__(self, tasks: Any, schedule_names: Any) -> None:
        super().__init__()
        tasks = list(tasks) if isinstance(tasks, (list, tuple)) else [tasks]
        indices = schedule_names if isinstance(schedule_names, (list, tuple)) else [schedule_names]
        if len(indices) != len(tasks):
            raise ValueError(
                f"ApplyFixedConfig: {len(tasks)} tasks need as many configurations, got "
                f"{len(indices)}"
            )
        self._configs = {
            task.workload: index if isinstance(index, ConfigSpace) else task.config_space.get(index)
            for task, index in zip(tasks, indices)
        }

    def _query_inside(self, target: Target | None, workload: Any) -> Any:
        return self._configs.get(workload)

    def update(self, target: Target | str, workload: Any, cfg: Any) -> None:
        self._configs[workload] = cfg


class FallbackContext(DispatchContext):
    """Answers everything with a configuration that fills itself, and warns once a workload."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[tuple[str, Any], Any] = {}
        self.silent = False
        self.messages: set[tuple[str, Any]] = set()

    def _query_inside(self, target: Target | None, workload: Any) -> Any:
        key = (str(target), workload)
        if key in self.memory:
            return self.memory[key]
        if workload is not None and not self.silent and not GLOBAL_SCOPE.silent:
            if key not in self.messages:
                logger.warning(
                    "no configuration is recorded for target %s and workload %s: a fallback is "
                    "used, which may be far slower",
                    target,
                    workload,
                )
            self.messages.add(key)
        # Knobs are filled in by each run of the template, so it is never shared.
        return FallbackConfigEntity()

    def recorded(self, target: Target | None, workload: Any) -> Any:
        return self.memory.get((str(target), workload))

    def clear_cache(self, target: Target | str, workload: Any) -> None:
        """Forget what was set for a workload."""
        self.memory.pop((str(target), workload), None)

    def update(self, target: Target | str, workload: Any, cfg: Any) -> None:
        self.memory[(str(target), workload)] = cfg


DispatchContext.current = FallbackContext()


def clear_fallback_cache(target: Target | str, workload: Any) -> None:
    """Forget what the outermost context was told of a workload by `FallbackContext.update`."""
    context = DispatchContext.current
    while context._old_ctx is not None:
        context = context._old_ctx
    assert isinstance(context, FallbackContext)
    context.clear_cache(target, workload)


def get_config(default: Callable[[], Any] | None = None) -> Any:
    """The configuration that the running template is to use.

    Parameters
    ----------
    default : makes one where nothing was recorded, instead of a `FallbackConfigEntity`.
    """
    config = DispatchContext.current.query(Target.current(), None)
    if default is not None and config.is_fallback:
        return default()
    return config
