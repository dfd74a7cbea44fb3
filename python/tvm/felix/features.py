"""Features and constraints of a sketch as computations of torch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch

from .feature_pack import FeaturePackPy, LinearExpr
from .sampling import Polytope, RandConfigMaker
from .tape import TorchExprRunner, torch_function

__all__ = ["FeaturePackPy", "LinearExpr", "RandConfigMaker", "TorchExprRunner", "TorchFeatures"]

_VALID_TOLERANCE = 1e-6
# Gradient steps of a sketch after which its tape is simplified, and the result once more. The first
# takes as long as it saves in some 1500 steps, which most sketches never see, the second as long as
# in some 20000: it finds 3 % of the cost, 2 % of the time. A third finds nothing worth its time
# (benchmarks/tape.py).
_STEPS_WORTH_SIMPLIFYING = (1500, 20_000)


class TorchFeatures(torch.nn.Module):
    """A feature pack as a computation of torch, and what its exponents mean.

    Points are float64 of shape (n_points, n_variables), columns in the order of `variables`.

    Attributes
    ----------
    pack : the features and constraints.
    variables : names of the free exponents.
    polytope : the constraints that are linear in the exponents.
    config_maker : draws integer points that meet all constraints.
    """

    def __init__(self, pack: FeaturePackPy) -> None:
        super().__init__()
        self.pack = pack
        self.variables: list[str] = pack.variables
        self._n_feature_roots = pack.n_stores * pack.n_features
        self._tape = pack.tape
        self._evaluate = torch_function(self._tape)
        self._steps = 0
        self.polytope = Polytope(*pack.linear_constraints())
        self.config_maker = RandConfigMaker(self.polytope, self._nonlinear_valid)
        self._known_exponents: dict[tuple[str, int], list[int]] = {}
        names = [name for factors in pack.var_factors.values() for _, name in factors]
        self._column_of_variable = [names.index(name) for name in self.variables]

    def forward(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Features (n, n_stores, n_features) and constraint values (n, n_linear + n_nonlinear).

        A constraint holds where its value is <= 0. Both are differentiable in `points`.
        """
        if points.requires_grad:
            self._steps += 1
            if self._steps in _STEPS_WORTH_SIMPLIFYING:
                self._tape = self._tape.simplify().tape
                self._evaluate = torch_function(self._tape)
        roots = self._evaluate(points)
        features = roots[:, : self._n_feature_roots]
        linear = points @ torch.from_numpy(self.polytope.matrix).to(points.dtype).T
        linear = linear + torch.from_numpy(self.polytope.offset).to(points.dtype)
        constraints = torch.cat([linear, roots[:, self._n_feature_roots :]], dim=1)
        shape = (len(points), self.pack.n_stores, self.pack.n_features)
        return features.reshape(shape), constraints

    def rows(self, points: np.ndarray) -> np.ndarray:
        """Features without gradients: float32, shape (n_points, n_stores, n_features)."""
        with torch.no_grad():
            return self(torch.from_numpy(points))[0].float().numpy()

    def config(self, point: np.ndarray) -> dict[str, int]:
        """Knob values at an integer point: each the product of its prime powers."""
        exponents = dict(zip(self.variables, point))
        return {
            knob: math.prod(prime ** int(round(exponents.get(name, 0))) for prime, name in factors)
            * self.pack.fixed_factor(knob)
            for knob, factors in self.pack.var_factors.items()
        }

    def point(self, config: Mapping[str, int]) -> np.ndarray:
        """Exponents of knob values; inverse of `config`.

        Raises
        ------
        ValueError : a knob is missing, or its value has a prime that the sketch does not allow.
        """
        exponents: list[int] = []
        for knob in self.pack.var_factors:
            if knob not in config:
                raise ValueError(f"the configuration lacks {knob}")
            value = int(config[knob])
            if (knob, value) not in self._known_exponents:
                self._known_exponents[knob, value] = self._exponents(knob, value)
            exponents += self._known_exponents[knob, value]
        return np.array(exponents, dtype=np.float64)[self._column_of_variable]

    def _exponents(self, knob: str, value: int) -> list[int]:
        """Exponents of the primes of one knob, in the order of its factors."""
        rest, remainder = divmod(value, self.pack.fixed_factor(knob))
        exponents = []
        for prime, _ in self.pack.var_factors[knob]:
            exponents.append(0)
            while rest % prime == 0 and rest > 0:
                rest //= prime
                exponents[-1] += 1
        if rest != 1 or remainder:
            primes = [int(prime) for prime, _ in self.pack.var_factors[knob]]
            raise ValueError(f"{knob}={value} is not a product of {primes}")
        return exponents

    def _nonlinear_valid(self, points: np.ndarray) -> np.ndarray:
        if self.pack.n_constraints == 0:
            return np.ones(len(points), dtype=bool)
        with torch.no_grad():
            roots = self._evaluate(torch.from_numpy(points))
        return (roots[:, self._n_feature_roots :] <= _VALID_TOLERANCE).all(dim=1).numpy()
