"""The error of a wrong use."""

from __future__ import annotations

from tvm import error

__all__ = ["TVMCException"]


class TVMCException(error.ValueError):
    """What was asked for cannot be done; the command prints the message and ends with status 1."""
