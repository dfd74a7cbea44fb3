"""How candidates are timed."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EvaluatorConfig"]


class EvaluatorConfig(NamedTuple):
    """Options of the clock.

    Attributes
    ----------
    number : calls in a repeat, at least.
    repeat : repeats, each giving one value.
    min_repeat_ms : a repeat is at least this long.
    enable_cpu_cache_flush : evict the caches before each repeat.
    """

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False
