"""Executors that ahead-of-time compilation makes."""

from __future__ import annotations

from .graph_functions import GraphFunctions

__all__ = ["AotModule"]


class AotModule(GraphFunctions):
    """A face on what ``factory["default"](device)`` of ``Executor("aot")`` gives.

    A library holds the list of calls and its parameters compiled, as those of graph executors do.
    """
