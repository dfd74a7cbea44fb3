"""Values of JSON from a file, which may be any: what is wrong is said by the name of its field."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from tvm.error import ScheduleError

from .utils import shorten_error_text

__all__ = [
    "elements_of",
    "integer_of",
    "malformed_is_value_error",
    "number_of",
    "numbers_of",
    "parts_of",
    "text_of",
    "texts_of",
]

# Characters of a wrong value that a message shows.
_SHOWN = 60


@contextlib.contextmanager
def malformed_is_value_error(what: str) -> Iterator[None]:
    """Text from a file may hold any JSON: taking it apart fails in many ways, which are one."""
    try:
        yield
    except ValueError as error:
        if str(error).startswith(f"{what}:"):
            raise
        raise ValueError(f"{what}: {shorten_error_text(str(error))}") from error
    except (
        ScheduleError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        reason = shorten_error_text(str(error))
        raise ValueError(f"{what}: {type(error).__name__}: {reason}") from error


def parts_of(value: Any, what: str, *names: str, least: int | None = None) -> list[Any]:
    """The elements of a list that has one for each name.

    Parameters
    ----------
    least : how many there must be, if not all; None stands for those that are missing.
    """
    least = len(names) if least is None else least
    if not isinstance(value, list) or not least <= len(value) <= len(names):
        raise _wrong(value, what, f"a list [{', '.join(names)}]")
    return [*value, *[None] * (len(names) - len(value))]


def elements_of(value: Any, what: str) -> list[Any]:
    """The elements of a list of any length."""
    if not isinstance(value, list):
        raise _wrong(value, what, "a list")
    return value


def number_of(value: Any, what: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
        raise _wrong(value, what, "a finite number")
    return float(value)


def integer_of(value: Any, what: str) -> int:
    """An integer of 32 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise _wrong(value, what, "an integer of 32 bits")
    return value


def text_of(value: Any, what: str) -> str:
    """A text that UTF-8 can say."""
    if not isinstance(value, str) or not value.isascii() and _has_surrogates(value):
        raise _wrong(value, what, "a text")
    return value


def numbers_of(value: Any, what: str) -> list[float]:
    """A list of finite numbers."""
    return [
        number_of(element, f"{what}[{i}]") for i, element in enumerate(elements_of(value, what))
    ]


def texts_of(value: Any, what: str) -> list[str]:
    """A list of texts."""
    return [text_of(element, f"{what}[{i}]") for i, element in enumerate(elements_of(value, what))]


def _has_surrogates(value: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float holds
        return False


def _wrong(value: Any, what: str, wanted: str) -> ValueError:
    shown = ascii(value)
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}..."
    return ValueError(f"{what} must be {wanted}, got {shown}")
