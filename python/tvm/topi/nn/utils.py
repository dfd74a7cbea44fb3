"""Padding by the names that TVM's operators use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..utils import Extent, as_pads

__all__ = ["get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d", "get_pad_tuple_generic"]


def get_pad_tuple(padding: Any, kernel: Sequence[Extent]) -> tuple[Extent, ...]:
    """Padding of two axes as (top, left, bottom, right); see :func:`tvm.topi.utils.as_pads`."""
    return as_pads(padding, 2, kernel)


def get_pad_tuple1d(padding: Any, kernel: Sequence[Extent]) -> tuple[Extent, ...]:
    """Padding of one axis as (left, right)."""
    return as_pads(padding, 1, kernel)


def get_pad_tuple3d(padding: Any, kernel: Sequence[Extent]) -> tuple[Extent, ...]:
    """Padding of three axes as (front, top, left, back, bottom, right)."""
    return as_pads(padding, 3, kernel)


def get_pad_tuple_generic(
    padding: Any, kernel: Sequence[Extent]
) -> tuple[tuple[Extent, ...], tuple[Extent, ...]]:
    """Padding in front of each axis of the kernel, and behind each."""
    pads = as_pads(padding, len(kernel), kernel)
    return pads[: len(kernel)], pads[len(kernel) :]
