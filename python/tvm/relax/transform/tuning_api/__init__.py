"""Passes that choose among several rewritings by measuring what comes out.

A :class:`Choice` is a rewriting with a condition, a :class:`Knob` a point where one of several is
chosen, a :class:`Trace` the decisions that made a module. A tuning pass takes the trace of its
context, makes candidates of it, measures them and leaves the best.
"""

from .database import Database, JSONDatabase, TuningRecord, Workload
from .default_functions import (
    default_consider_eval_passes,
    default_evaluate,
    default_generate_candidate,
    select_best_candidate,
)
from .primitives import Choice, Knob, Trace, get_trace

__all__ = [
    "Choice",
    "Database",
    "JSONDatabase",
    "Knob",
    "Trace",
    "TuningRecord",
    "Workload",
    "default_consider_eval_passes",
    "default_evaluate",
    "default_generate_candidate",
    "get_trace",
    "select_best_candidate",
]
