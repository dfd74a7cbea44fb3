"""Integer arithmetic: bounds, simplification, proofs, sets."""

from __future__ import annotations

from .analyzer import Analyzer, ConstIntBound, ConstraintScope, Extension, ModularSet, ProofStrength
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
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    eval_set,
    intersect_sets,
    neg_inf,
    pos_inf,
    union_lower_bound,
    union_sets,
)
from .iter_affine_map import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
)
from .pattern import (
    deduce_bound,
    detect_clip_bound,
    detect_common_subexpr,
    detect_linear_equation,
    domain_touched,
    narrow_predicate_expression,
)
from .subspace import subspace_divide
from .var_context import SplitGroup, VarContext, VarDef

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "ConstraintScope",
    "Extension",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "IntSet",
    "IntervalSet",
    "IterMapExpr",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "ProofStrength",
    "SplitGroup",
    "VarContext",
    "VarDef",
    "deduce_bound",
    "detect_clip_bound",
    "detect_common_subexpr",
    "detect_iter_map",
    "detect_linear_equation",
    "domain_touched",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "eval_set",
    "intersect_sets",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "narrow_predicate_expression",
    "neg_inf",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
    "pos_inf",
    "solve_linear_equations",
    "solve_linear_inequalities",
    "subspace_divide",
    "union_lower_bound",
    "union_sets",
]
