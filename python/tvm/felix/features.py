"""What the search evaluates for one sketch: features and constraints over exponent variables."""

from __future__ import annotations

from collections.abc import Mapping

import tvm._ffi
from tvm.runtime import Object

__all__ = ["FeaturePackPy", "LinearExpr"]


@tvm._ffi.register_object("felix.LinearExpr")
class LinearExpr(Object):
    """``constant + sum(coefficients[name] * name)`` over exponent variables.

    Attributes
    ----------
    constant : float.
    coefficients : variable name to float.
    """

    def evaluate(self, values: Mapping[str, float]) -> float:
        """Value at a point given by variable names."""
        return float(self.constant) + sum(
            float(c) * values[str(name)] for name, c in self.coefficients.items()
        )


@tvm._ffi.register_object("felix.FeaturePack")
class FeaturePackPy(Object):
    """Features and constraints of one sketch (Felix, ASPLOS 2024, section 4).

    Native fields: `var_names` (free exponent variables, the columns of a point), `feature_names`
    (of one row), `constraint_names` (of the constraints that are not linear), `n_stores` (rows),
    `tape_ops`, `tape_args`, `tape_payload`, `tape_roots` (the tape as byte strings of uint8,
    int32, int64 and int32), `var_lower`, `var_upper`, `linear_cons` (of LinearExpr, each <= 0) and
    `var_factors` (knob to list of [prime, exponent variable]) and `fixed_factors` (knob to the
    part of its value that is not free). Roots are the features, row by row, then the constraints.
    """

    @property
    def variables(self) -> list[str]:
        """Names of the free exponents, in column order."""
        return [str(name) for name in self.var_names]

    @property
    def n_features(self) -> int:
        """Columns of a feature row."""
        return len(self.feature_names)

    @property
    def n_constraints(self) -> int:
        """Number of constraints that are not linear in the exponents."""
        return len(self.constraint_names)
