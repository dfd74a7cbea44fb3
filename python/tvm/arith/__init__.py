"""Integer arithmetic: bounds, simplification, proofs, sets."""

from __future__ import annotations

from .analyzer import Analyzer, ConstIntBound, ConstraintScope, ModularSet
from .int_constraints import (
    IntConstraints,
    IntConstraintsTransform,
    IntGroupBounds,
    solve_linear_equations,
    solve_linear_inequalities,
)
from .int_set import (
    IntervalSet,
    IntSet,
    eval_set,
    intersect_sets,
    neg_inf,
    pos_inf,
    union_sets,
)
from .iter_affine_map import (
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    normalize_iter_map_to_expr,
)
from .pattern import deduce_bound, detect_clip_bound, detect_linear_equation, domain_touched
from .var_context import SplitGroup, VarContext, VarDef

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "ConstraintScope",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "IntSet",
    "IntervalSet",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "SplitGroup",
    "VarContext",
    "VarDef",
    "deduce_bound",
    "detect_clip_bound",
    "detect_iter_map",
    "detect_linear_equation",
    "domain_touched",
    "eval_set",
    "intersect_sets",
    "neg_inf",
    "normalize_iter_map_to_expr",
    "pos_inf",
    "solve_linear_equations",
    "solve_linear_inequalities",
    "union_sets",
]
