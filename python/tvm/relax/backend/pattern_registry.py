"""Patterns for other compilers, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..transform import FusionPattern
from ..transform.fuse_by_pattern import as_fusion_pattern

__all__ = ["get_pattern", "get_patterns_with_prefix", "register_patterns"]

_PATTERNS: dict[str, FusionPattern] = {}


def register_patterns(patterns: Sequence[FusionPattern | Sequence[Any]]) -> None:
    """Keep patterns under their names; what is registered later goes before.

    Parameters
    ----------
    patterns : as `transform.FuseOpsByPattern` takes them, the general ones first. One of a name
        that is taken replaces the other.
    """
    for given in patterns:
        pattern = as_fusion_pattern(given)
        _PATTERNS.pop(pattern.name, None)
        _PATTERNS[pattern.name] = pattern


def get_patterns_with_prefix(prefix: str) -> list[FusionPattern]:
    """The patterns whose names begin with a prefix ("cublas"), those that go before first."""
    return [p for name, p in reversed(_PATTERNS.items()) if name.startswith(prefix)]


def get_pattern(name: str) -> FusionPattern | None:
    """The pattern of a name; None if there is none."""
    return _PATTERNS.get(name)
