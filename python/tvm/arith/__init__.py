"""Integer arithmetic: bounds, simplification, proofs, sets."""

from __future__ import annotations

from .analyzer import Analyzer, ConstIntBound, ConstraintScope, ModularSet
from .int_set import (
    IntervalSet,
    IntSet,
    eval_set,
    intersect_sets,
    neg_inf,
    pos_inf,
    union_sets,
)
from .pattern import deduce_bound, detect_clip_bound, detect_linear_equation, domain_touched
from .var_context import SplitGroup, VarContext, VarDef

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "ConstraintScope",
    "IntSet",
    "IntervalSet",
    "ModularSet",
    "SplitGroup",
    "VarContext",
    "VarDef",
    "deduce_bound",
    "detect_clip_bound",
    "detect_linear_equation",
    "domain_touched",
    "eval_set",
    "intersect_sets",
    "neg_inf",
    "pos_inf",
    "union_sets",
]
