"""Transform steps as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _ffi_api
from .json_fields import malformed_is_value_error
from .loop_state import state_object_of

__all__ = ["steps_from_json", "steps_to_json"]


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
    steps = []
    for i, record in enumerate(records):
        with malformed_is_value_error(f"steps[{i}]"):
            steps.append(_ffi_api.StepFromRecord(list(record)))
    return steps
