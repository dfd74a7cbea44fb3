"""The function class."""

from __future__ import annotations

from tvm._ffi.base import core

__all__ = ["PackedFunc"]

PackedFunc = core.PackedFunc
