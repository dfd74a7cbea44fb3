"""Sequences and mappings that live in C++."""

from __future__ import annotations

from tvm.runtime.container import Array, Map

__all__ = ["Array", "Map"]
