"""Random points of a sketch's exponent polytope, and rounding of real points to integer ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog

__all__ = ["Polytope", "RandConfigMaker", "distinct_rows"]

_TOLERANCE = 1e-6
# A coordinate that can move less than this has no freedom; well above what the solver's own
# tolerances leave open, well below the unit distance between configurations.
_FREEDOM = 1e-4
_PROPAGATIONS = 8
# How often a chain draws every coordinate anew, and steps that it walks in other directions after
# each such sweep. After 8 sweeps the means of all coordinates of the sketches tried are within 0.1
# of their deviations from those of chains that are 25 times as long; 0.23 where extents are large
# primes, so that few tilings have the threads that a GPU wants.
_SWEEPS = 8
_STEPS_BETWEEN = 4
# In place of none, which nothing can be divided by.
_NO_SLACK = 1e-200


def distinct_rows(points: np.ndarray) -> np.ndarray:
    """The distinct ones of points of integers below 2^15: ``np.unique(points, axis=0)``.

    Rows are compared as strings of bytes, which is seven times faster than column after column.

    Parameters
    ----------
    points : shape (n_points, n_variables).

    Returns
    -------
    In lexicographic order, shape (<= n_points, n_variables).
    """
    if not points.size:
        return points[:1]
    # Of numbers without sign, the highest byte first, strings have the order of the numbers.
    coded = np.ascontiguousarray((points + 2.0**15).astype(">u2"))
    _, first = np.unique(coded.view(f"V{2 * coded.shape[1]}").ravel(), return_index=True)
    return points[first]


class Polytope:
    """The set ``{x : A x + b <= 0}`` of real exponents, with operations on batches of points.

    Parameters
    ----------
    matrix : float64, shape (n_constraints, n_variables); A.
    offset : float64, shape (n_constraints,); b.

    Raises
    ------
    ValueError : the shapes disagree, or the set is empty or unbounded.
    """

    def __init__(self, matrix: np.ndarray, offset: np.ndarray) -> None:
        self.matrix = np.asarray(matrix, dtype=np.float64)
        self.offset = np.asarray(offset, dtype=np.float64)
        if self.matrix.ndim != 2 or self.offset.shape != (self.matrix.shape[0],):
            raise ValueError(
                f"Polytope: matrix has shape {self.matrix.shape} and offset {self.offset.shape}; "
                "expected (n_constraints, n_variables) and (n_constraints,)"
            )
        self.n_variables = self.matrix.shape[1]
        self.center, self._free = self._find_center()

    def violation(self, points: np.ndarray) -> np.ndarray:
        """``A x + b`` per point: float64, shape (n_points, n_constraints); <= 0 holds inside."""
        return points @ self.matrix.T + self.offset

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Whether each point lies inside: bool, shape (n_points,)."""
        return np.asarray((self.violation(points) <= _TOLERANCE).all(axis=1))

    def sample(self, n_points: int, rng: np.random.Generator) -> np.ndarray:
        """Points drawn by hit-and-run: float64, shape (n_points, n_variables).

        Every point is the end of a chain of its own that starts at the Chebyshev centre, so points
        are independent (Smith, "Efficient Monte Carlo procedures...", Operations Research 32(6),
        1984). Most steps are along one coordinate: coordinates are of different widths, and what a
        step in any direction may be long is up to the narrowest. Coordinates that the constraints
        leave no freedom keep their only value.
        """
        points = np.tile(self.center, (n_points, 1))
        free = np.flatnonzero(self._free)
        if free.size == 0 or n_points == 0:
            return points
        # Constraints and coordinates are rows: a step along a coordinate touches few constraints.
        rows = np.flatnonzero((self.matrix[:, free] != 0).any(axis=1))
        matrix = self.matrix[np.ix_(rows, free)]
        slack = np.ascontiguousarray(-self.violation(points)[:, rows].T)
        moved = np.ascontiguousarray(points[:, free].T)
        touched = [np.flatnonzero(column) for column in matrix.T]
        for _ in range(_SWEEPS):
            for k in rng.permutation(free.size):
                slope = matrix[touched[k], k, None]
                left = slack[touched[k]]
                step = self._step(left, slope, rng)
                moved[k] += step
                slack[touched[k]] = left - step * slope
            for _ in range(_STEPS_BETWEEN):
                direction = rng.standard_normal((n_points, free.size)).T
                slope = matrix @ direction
                step = self._step(slack, slope, rng)
                moved += step * direction
                slack -= step * slope
        points[:, free] = moved.T
        return points

    @staticmethod
    def _step(slack: np.ndarray, slope: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Steps drawn from what the constraints leave of a line: shape (n_points,).

        Parameters
        ----------
        slack : how far each constraint is from being violated, shape (n_constraints, n_points).
        slope : how fast a step uses it up, of that shape or (n_constraints, 1).
        """
        # A step in either direction ends at the constraint that it uses up at the highest rate.
        rate = slope / np.maximum(slack, _NO_SLACK)
        return rng.uniform(1.0 / rate.min(axis=0), 1.0 / rate.max(axis=0))

    def round(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nearest integer points, moved back inside where plain rounding leaves the polytope.

        While a constraint is violated, the coordinate whose unit move towards it costs the least
        extra distance from the real point is moved. Where that goes round in circles, coordinates
        that were moved before cost more.

        Returns
        -------
        rounded : float64 with integer values, shape (n_points, n_variables).
        valid : bool, shape (n_points,); False where the repair did not reach the polytope.
        """
        rounded = np.rint(points)
        if not len(self.offset):
            return rounded, np.ones(len(points), dtype=bool)
        moves = np.zeros_like(rounded)
        for turn in range(4 * self.n_variables + 4):
            violation = self.violation(rounded)
            worst = violation.argmax(axis=1)
            bad = np.flatnonzero(violation[np.arange(len(rounded)), worst] > _TOLERANCE)
            if bad.size == 0:
                break
            direction = -np.sign(self.matrix[worst[bad]])
            current = rounded[bad]
            extra = np.abs(current + direction - points[bad]) - np.abs(current - points[bad])
            if turn > self.n_variables:
                extra += moves[bad]
            extra[direction == 0] = np.inf
            chosen = extra.argmin(axis=1)
            rows = np.arange(bad.size)
            rounded[bad, chosen] += direction[rows, chosen]
            moves[bad, chosen] += 1
        return rounded, self.contains(rounded)

    def _find_center(self) -> tuple[np.ndarray, np.ndarray]:
        n = self.n_variables
        if n == 0:
            if (self.offset > _TOLERANCE).any():
                raise ValueError("Polytope: the constraints cannot be met (no variable is left)")
            return np.zeros(0), np.zeros(0, dtype=bool)
        low, high = self._propagated_bounds()
        free = high - low > _FREEDOM
        center, radius = self._chebyshev(free, np.where(free, 0.0, low))
        if radius > _FREEDOM:
            return center, free
        # What is left is flat, too: find the coordinates without freedom, fix them, and take the
        # centre of the rest.
        low = np.array([self._extreme(i, 1.0) for i in range(n)])
        high = np.array([self._extreme(i, -1.0) for i in range(n)])
        free = high - low > _FREEDOM
        if not free.any():
            return low, free
        center, _ = self._chebyshev(free, low)
        return center, free

    def _propagated_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of each coordinate that follow from single constraints, one after another.

        They hold everywhere in the set but need not be reached. Many knobs have one value only,
        which this finds without a linear program for each.
        """
        low, high = np.full(self.n_variables, -np.inf), np.full(self.n_variables, np.inf)
        rises, falls = self.matrix > 0, self.matrix < 0
        for _ in range(_PROPAGATIONS):
            with np.errstate(divide="ignore", invalid="ignore"):
                # The least that each term can be; what a term may be is what the others leave.
                least = np.where(rises, self.matrix * low, 0.0)
                least = np.where(falls, self.matrix * high, least)
                open_ = np.isinf(least)
                finite = np.where(open_, 0.0, least)
                others_open = open_.sum(1, keepdims=True) - open_
                rest = finite.sum(1, keepdims=True) - finite + self.offset[:, None]
                limit = -rest / self.matrix
            known = others_open == 0
            below = np.where(rises & known, limit, np.inf).min(0, initial=np.inf)
            above = np.where(falls & known, limit, -np.inf).max(0, initial=-np.inf)
            tightened = np.minimum(high, below), np.maximum(low, above)
            if np.array_equal(tightened[0], high) and np.array_equal(tightened[1], low):
                break
            high, low = tightened
        return low, high

    def _chebyshev(self, free: np.ndarray, fixed: np.ndarray) -> tuple[np.ndarray, float]:
        """Centre and radius of the largest ball over the free coordinates."""
        matrix = self.matrix[:, free]
        offset = self.offset + self.matrix[:, ~free] @ fixed[~free]
        norms = np.linalg.norm(matrix, axis=1)
        relevant = norms > 0
        result = linprog(
            np.append(np.zeros(matrix.shape[1]), -1.0),
            A_ub=np.column_stack([matrix[relevant], norms[relevant]]),
            b_ub=-offset[relevant] + _TOLERANCE / 2,
            bounds=[(None, None)] * matrix.shape[1] + [(0, 1e3)],
            method="highs",
        )
        broken = np.flatnonzero(offset[~relevant] > _TOLERANCE)
        if not result.success or len(broken):
            reason = f"{len(broken)} of no variable are broken" if len(broken) else result.message
            raise ValueError(f"Polytope: the constraints cannot be met ({reason})")
        center = fixed.copy()
        center[free] = result.x[:-1]
        return center, float(result.x[-1])

    def _extreme(self, index: int, sign: float) -> float:
        objective = np.zeros(self.n_variables)
        objective[index] = sign
        result = linprog(
            objective,
            A_ub=self.matrix,
            b_ub=-self.offset + _TOLERANCE / 2,
            bounds=[(None, None)] * self.n_variables,
            method="highs",
        )
        if not result.success:
            raise ValueError(
                f"Polytope: coordinate {index} has no finite extreme ({result.message})"
            )
        return float(result.x[index])


class RandConfigMaker:
    """Random integer exponents that satisfy every constraint of one sketch.

    Parameters
    ----------
    polytope : the linear constraints.
    is_valid : maps float64 points of shape (n, n_variables) to bool of shape (n,); the constraints
        that are not linear in the exponents.
    """

    # Sampling gives up after this many points per requested one; a sketch whose valid share is
    # smaller than 1/200 is better searched from the points that were found.
    _MAX_OVERSAMPLING = 200
    # So few may be asked for that chance alone would find none.
    _LEAST_REQUEST = 16

    def __init__(
        self, polytope: Polytope, is_valid: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> None:
        self.polytope = polytope
        self._is_valid = is_valid

    def valid(self, points: np.ndarray) -> np.ndarray:
        """Whether each point meets all constraints: bool, shape (n_points,)."""
        inside = self.polytope.contains(points)
        if self._is_valid is not None and inside.any():
            inside[inside] = self._is_valid(points[inside])
        return inside

    def make(self, n_points: int, rng: np.random.Generator) -> np.ndarray:
        """Up to `n_points` random valid integer points, distinct where the space allows it.

        Returns
        -------
        float64 with integer values, shape (<= n_points, n_variables). Fewer rows mean that the
        valid share of the polytope is tiny; zero rows that none was found.
        """
        found: dict[bytes, np.ndarray] = {}
        drawn = 0
        batch = max(4 * n_points, 256)
        most = self._MAX_OVERSAMPLING * max(n_points, self._LEAST_REQUEST)
        while len(found) < n_points and drawn < most:
            candidates, inside = self.polytope.round(self.polytope.sample(batch, rng))
            candidates = candidates[inside] + 0.0  # -0.0 and 0.0 are one point
            for point in candidates[self.valid(candidates)]:
                found.setdefault(point.tobytes(), point)
            drawn += batch
            if self.polytope.n_variables == 0:
                break
        points = list(found.values())[:n_points]
        return np.array(points).reshape(len(points), self.polytope.n_variables)
