"""What is handed to builders and runners, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import tvm._ffi
from tvm import te
from tvm.runtime import Object

from . import _ffi_api
from .loop_state import State, StateObject, state_object_of
from .search_task import SearchTask

__all__ = [
    "MAX_FLOAT",
    "BuildResult",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "shorten_error_text",
]

# Cost in seconds of a program that could not be measured.
MAX_FLOAT = 1e10
# Half of what is kept of an error text: its beginning and its end say most.
_ERROR_TEXT_HALF = 256


class MeasureErrorNo(IntEnum):
    """Why a measurement gave no cost; the values are those of the record format."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


def shorten_error_text(text: str) -> str:
    """The first and last 256 characters of a longer text."""
    if len(text) <= 2 * _ERROR_TEXT_HALF:
        return text
    return text[:_ERROR_TEXT_HALF] + "\n...\n" + text[-_ERROR_TEXT_HALF:]


@tvm._ffi.register_object("auto_scheduler.MeasureInput")
class MeasureInput(Object):
    """A program to measure: `task` and `state`."""

    def __init__(self, task: SearchTask, state: State | StateObject) -> None:
        self.__init_handle_by_constructor__(_ffi_api.MeasureInput, task, state_object_of(state))

    def serialize(self) -> tuple[str, tuple[str, Any]]:
        """A form that another process can `deserialize`, the workload included."""
        from .measure_record import dump_input
        from .workload_registry import serialize_workload_registry_entry

        return dump_input(self), serialize_workload_registry_entry(self.task.workload_key)

    @staticmethod
    def deserialize(data: tuple[str, tuple[str, Any]]) -> MeasureInput:
        """Inverse of `serialize`."""
        from .measure_record import load_input
        from .workload_registry import deserialize_workload_registry_entry

        text, entry = data
        deserialize_workload_registry_entry(entry)
        return load_input(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return MeasureInput.deserialize, (self.serialize(),)


@tvm._ffi.register_object("auto_scheduler.BuildResult")
class BuildResult(Object):
    """A compiled program.

    Parameters
    ----------
    filename : path of the library, None if the build failed.
    args : the function's arguments.
    error_no, error_msg : what went wrong.
    time_cost : seconds that the build took.
    """

    def __init__(
        self,
        filename: str | None,
        args: Sequence[te.Tensor],
        error_no: int,
        error_msg: str | None,
        time_cost: float,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.BuildResult,
            filename or "",
            list(args),
            int(error_no),
            error_msg or None,
            float(time_cost),
        )


@tvm._ffi.register_object("auto_scheduler.MeasureResult")
class MeasureResult(Object):
    """Times of one program.

    Parameters
    ----------
    costs : seconds per run, one value a repeat; [1e10] on failure.
    error_no, error_msg : what went wrong.
    all_cost : seconds for build and run together.
    timestamp : seconds since the epoch.
    """

    def __init__(
        self,
        costs: Sequence[float],
        error_no: int,
        error_msg: str | None,
        all_cost: float,
        timestamp: float,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.MeasureResult,
            [float(cost) for cost in costs],
            int(error_no),
            error_msg or None,
            float(all_cost),
            float(timestamp),
        )

    @property
    def mean_cost(self) -> float:
        """Mean of the costs in seconds, 1e10 on failure."""
        if int(self.error_no) != MeasureErrorNo.NO_ERROR or len(self.costs) == 0:
            return MAX_FLOAT
        return sum(float(cost) for cost in self.costs) / len(self.costs)

    def __reduce__(self) -> tuple[Any, ...]:
        error_msg = None if self.error_msg is None else str(self.error_msg)
        costs = [float(cost) for cost in self.costs]
        values = (costs, int(self.error_no), error_msg, self.all_cost, self.timestamp)
        return MeasureResult, values
