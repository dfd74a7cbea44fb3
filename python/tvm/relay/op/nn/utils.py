"""Borders of windows as settings."""

from __future__ import annotations

from typing import Any

from .windows import pads_of

__all__ = ["get_pad_tuple1d", "get_pad_tuple2d", "get_pad_tuple3d"]


def _pads(where: str, padding: Any, rank: int) -> tuple[Any, ...]:
    return tuple(pads_of(f"relay.op.nn.utils.{where}", padding, rank))


def get_pad_tuple1d(padding: Any) -> tuple[Any, ...]:
    """Borders (left, right) of one size, or of those two.

    Raises
    ------
    ValueError : there is another number of sizes.
    """
    return _pads("get_pad_tuple1d", padding, 1)


def get_pad_tuple2d(padding: Any) -> tuple[Any, ...]:
    """Borders (top, left, bottom, right) of one size, of two, or of those four.

    Raises
    ------
    ValueError : there is another number of sizes.
    """
    return _pads("get_pad_tuple2d", padding, 2)


def get_pad_tuple3d(padding: Any) -> tuple[Any, ...]:
    """Borders (front, top, left, back, bottom, right) of one size, of three, or of those six.

    Raises
    ------
    ValueError : there is another number of sizes.
    """
    return _pads("get_pad_tuple3d", padding, 3)
