"""Transform steps as JSON, and what is wrong with JSON from a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tvm.error import ScheduleError

from . import _ffi_api
from .loop_state import state_object_of

__all__ = ["malformed_is_value_error", "steps_from_json", "steps_to_json"]


def _plain(value: Any) -> Any:
    """A field of a step record as JSON knows it."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    return [_plain(element) for element in value]


def steps_to_json(state: Any) -> list[list[Any]]:
    """The history of a state as a list of step records."""
    steps = state_object_of(state).transform_steps
    return [_plain(_ffi_api.StepToRecord(step)) for step in steps]


def steps_from_json(records: Sequence[Sequence[Any]]) -> list[Any]:
    """Inverse of `steps_to_json`.

    Raises
    ------
    ValueError : a step has an unknown tag or a wrong field.
    """
    return [_ffi_api.StepFromRecord(list(record)) for record in records]


@contextlib.contextmanager
def malformed_is_value_error(what: str) -> Iterator[None]:
    """Text from a file may hold any JSON: taking it apart fails in many ways, which are one."""
    try:
        yield
    except ValueError as error:
        if str(error).startswith(f"{what}:"):
            raise
        raise ValueError(f"{what}: {error}") from error
    except (
        ScheduleError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ValueError(f"{what}: {type(error).__name__}: {error}") from error
