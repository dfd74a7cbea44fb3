"""What the search evaluates for one sketch: features and constraints over exponent variables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import tvm._ffi
from tvm.runtime import Object

from . import tape as _tape  # noqa: F401  (registers the class of `tape`)

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


@tvm._ffi.register_object("felix.FeaturePackPy")
class FeaturePackPy(Object):
    """Features and constraints of one sketch (Felix, ASPLOS 2024, section 4).

    Every knob is a product of powers of the primes of its extent; the exponents are the variables.
    Where they are integers, the features are those of the concrete program; in between they are
    interpolated so that gradients exist.

    Native fields: `tape` (a `Tape` over the exponents: features row by row, then the constraints
    that are not linear), `feature_names` (of one row), `store_names` (of the rows),
    `constraint_names` (of the constraints that are not linear), `n_stores`, `linear_cons` (of
    LinearExpr, each <= 0), `var_factors` (knob to pairs of prime and exponent variable),
    `fixed_factors` (knob to the part of its value that is not free) and `buffer_order` (which
    buffers the slots of each row describe).
    """

    @property
    def variables(self) -> list[str]:
        """Names of the free exponents, in column order."""
        return [variable.name for variable in self.tape.variables]

    @property
    def n_features(self) -> int:
        """Columns of a feature row."""
        return len(self.feature_names)

    @property
    def n_constraints(self) -> int:
        """Number of constraints that are not linear in the exponents."""
        return len(self.constraint_names)

    def linear_constraints(self) -> tuple[np.ndarray, np.ndarray]:
        """A of shape (n_linear, n_variables) and b of shape (n_linear,): ``A x + b <= 0``."""
        column = {name: i for i, name in enumerate(self.variables)}
        matrix = np.zeros((len(self.linear_cons), len(column)))
        offset = np.zeros(len(self.linear_cons))
        for row, linear in enumerate(self.linear_cons):
            offset[row] = float(linear.constant)
            for name, coefficient in linear.coefficients.items():
                matrix[row, column[str(name)]] = float(coefficient)
        return matrix, offset

    def fixed_factor(self, knob: str) -> int:
        """The part of a knob's value that no exponent changes."""
        return int(self.fixed_factors[knob])
