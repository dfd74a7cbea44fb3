"""Faces on the executors of compiled graphs."""

from .aot_executor import AotModule
from .graph_functions import GraphFunctions

__all__ = ["AotModule", "GraphFunctions"]
