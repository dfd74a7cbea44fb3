"""What schedules share besides their primitives: the module, the trace, copies, seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import tvm.error
from tvm.ir import IRModule
from tvm.runtime import Object

from ..function import PrimFunc
from . import _ffi_api
from .trace import Trace

__all__ = ["State"]

S = TypeVar("S", bound="State")
_LEVELS = ("none", "fast", "detail")
_MASKS = {"none": 0, "all": -1}
_KINDS = {str(method): kind for method, kind in _ffi_api.InstructionKinds().items()}


class State(Object):
    """Base of schedules, which live in C++."""

    def __init__(
        self,
        mod: IRModule | PrimFunc,
        seed: int | None,
        debug_mask: str | int,
        error_render_level: str,
    ) -> None:
        if isinstance(mod, PrimFunc):
            mod = IRModule({"main": mod})
        if not isinstance(mod, IRModule):
            raise tvm.error.TypeError(
                f"Schedule: expected an IRModule or a PrimFunc, got {type(mod).__name__}"
            )
        if error_render_level not in _LEVELS:
            raise tvm.error.ValueError(
                f"Schedule: error_render_level is one of {', '.join(reversed(_LEVELS))}, got "
                f"{error_render_level!r}"
            )
        if not isinstance(debug_mask, int) and debug_mask not in _MASKS:
            raise tvm.error.ValueError(
                f'Schedule: debug_mask is "all", "none" or a number, got {debug_mask!r}'
            )
        checks = bool(_MASKS[debug_mask] if isinstance(debug_mask, str) else debug_mask)
        level = _LEVELS.index(error_render_level)
        self.__init_handle_by_constructor__(_ffi_api.Schedule, mod, _seed(seed), checks, level)

    def _apply(self, method: str, arguments: Sequence[Any], decision: Any = None) -> list[Any]:
        """Carry out a primitive; its results."""
        return list(_ffi_api.ScheduleApply(self, _KINDS[method], arguments, decision))

    @property
    def mod(self) -> IRModule:
        """The module as it is now. Changing it does not change the schedule."""
        return _ffi_api.ScheduleMod(self)

    @property
    def trace(self) -> Trace:
        """What was done so far."""
        return _ffi_api.ScheduleTrace(self)

    @property
    def func_working_on(self) -> str | None:
        """Name of the function that :meth:`get_block` looks in.

        The one that :meth:`work_on` set, else the only one of the module, if that is a function of
        blocks; else None, which stands for ``main``.
        """
        name = _ffi_api.ScheduleWorkingOn(self)
        return str(name) if name else None

    def work_on(self, func_name: str) -> None:
        """Let :meth:`get_block` look in a function when it is not told which.

        Raises
        ------
        ScheduleError : the module has no such function.
        """
        _ffi_api.ScheduleWorkOn(self, func_name)

    def copy(self: S) -> S:
        """A schedule that goes its own way from here; variables stand for the same in both."""
        other = type(self).__new__(type(self))
        other._take_handle(_ffi_api.ScheduleCopy(self))
        return other

    def seed(self, seed: int) -> None:
        """Start the random numbers anew."""
        _ffi_api.ScheduleSeed(self, _seed(seed))

    def fork_seed(self) -> int:
        """A seed for another schedule, drawn from this one's."""
        return _ffi_api.ScheduleForkSeed(self)

    def show(self, style: str | None = None, black_format: bool = False, **options: Any) -> None:
        """Print the module and the trace; the arguments are those of `IRModule.show`."""
        self.mod.show(style, black_format, **options)
        if self.trace is not None:
            self.trace.show(style, black_format)


def _seed(seed: int | None) -> int:
    if seed is not None and (not isinstance(seed, int) or seed < -1):
        raise tvm.error.ValueError(f"Schedule: the seed is a number from 0 on, got {seed!r}")
    return -1 if seed is None else seed
