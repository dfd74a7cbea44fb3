"""Random points of exponent polytopes and rounding back into them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm.felix.sampling import Polytope, RandConfigMaker, distinct_rows


def simplex(n: int, total: float) -> Polytope:
    """x >= 0 and sum(x) <= total."""
    matrix = np.vstack([-np.eye(n), np.ones((1, n))])
    return Polytope(matrix, np.append(np.zeros(n), -total))


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 7)), min_size=1, max_size=5),
    seed=st.integers(0, 2**16),
)
def test_sampled_and_rounded_points_stay_inside_products_of_simplices(sizes, seed):
    n = sum(count for count, _ in sizes)
    rows, offsets, column = [-np.eye(n)], [np.zeros(n)], 0
    for count, total in sizes:
        row = np.zeros((1, n))
        row[0, column : column + count] = 1
        column += count
        rows.append(row)
        offsets.append(np.array([-float(total)]))
    polytope = Polytope(np.vstack(rows), np.concatenate(offsets))
    points = polytope.sample(64, np.random.default_rng(seed))
    assert polytope.contains(points).all()
    rounded, valid = polytope.round(points)
    assert valid.all()
    assert (rounded == np.rint(rounded)).all()


def test_sampling_reaches_every_vertex_region_of_a_simplex():
    points = simplex(2, 6.0).sample(4000, np.random.default_rng(0))
    rounded = {tuple(p) for p in np.rint(points).astype(int)}
    assert {(0, 0), (6, 0), (0, 6), (3, 3)} <= rounded
    # A uniform point of the triangle has mean total/3 in each coordinate.
    assert np.allclose(points.mean(axis=0), 2.0, atol=0.15)


def test_rounding_moves_the_coordinate_that_was_rounded_up_most():
    rounded, valid = simplex(3, 2.0).round(np.array([[0.9, 0.6, 0.5001]]))
    assert valid.all()
    assert rounded.tolist() == [[1.0, 1.0, 0.0]]


def test_narrow_coordinates_do_not_keep_wide_ones_at_the_centre():
    # Twenty coordinates that share a sum of 1 beside one from 0 to 8, of which the centre says
    # nothing.
    n = 21
    matrix = np.concatenate([-np.eye(n), np.eye(n)[-1:], [[1.0] * (n - 1) + [0.0]]])
    offset = np.concatenate([np.zeros(n), [-8.0, -1.0]])
    wide = Polytope(matrix, offset).sample(2000, np.random.default_rng(0))[:, -1]
    counts, _ = np.histogram(wide, bins=8, range=(0.0, 8.0))
    # 250 in each, with a deviation of 15.
    assert counts.min() > 175 and counts.max() < 325


def test_equalities_fix_coordinates_and_leave_the_rest_free():
    # x0 == 3 through two inequalities; 0 <= x1 <= 4.
    matrix = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    polytope = Polytope(matrix, np.array([-3.0, 3.0, -4.0, 0.0]))
    points = polytope.sample(200, np.random.default_rng(1))
    assert np.allclose(points[:, 0], 3.0, atol=1e-5)
    assert points[:, 1].min() < 1.0 < 3.0 < points[:, 1].max()


def test_contradictory_constraints_are_refused():
    with pytest.raises(ValueError, match="cannot be met"):
        Polytope(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0]))


def test_mismatched_shapes_are_refused():
    with pytest.raises(ValueError, match=r"matrix has shape \(1, 2\) and offset \(3,\)"):
        Polytope(np.zeros((1, 2)), np.zeros(3))


def test_made_configurations_meet_nonlinear_constraints_and_are_distinct():
    def product_at_most_sixteen(points: np.ndarray) -> np.ndarray:
        return np.prod(2.0**points, axis=1) <= 16

    maker = RandConfigMaker(simplex(3, 9.0), product_at_most_sixteen)
    points = maker.make(20, np.random.default_rng(3))
    assert len(points) == 20
    assert product_at_most_sixteen(points).all()
    assert len(np.unique(points, axis=0)) == 20


def test_a_space_without_variables_has_one_configuration():
    maker = RandConfigMaker(Polytope(np.zeros((0, 0)), np.zeros(0)))
    assert maker.make(5, np.random.default_rng(0)).shape == (1, 0)


def test_equal_seeds_make_equal_configurations():
    maker = RandConfigMaker(simplex(4, 6.0))
    first = maker.make(10, np.random.default_rng(7))
    assert (first == maker.make(10, np.random.default_rng(7))).all()


@given(st.integers(0, 60), st.integers(0, 5), st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_distinct_rows_are_those_of_numpy_in_its_order(n_points, n_variables, seed):
    points = np.random.default_rng(seed).integers(-2, 3, (n_points, n_variables)).astype(float)
    np.testing.assert_array_equal(distinct_rows(points), np.unique(points, axis=0))


@pytest.mark.parametrize("seed", range(8))
def test_one_point_is_found_where_few_are_valid(seed):
    # One of 495 whole points.
    maker = RandConfigMaker(simplex(4, 8.0), lambda points: (points == [2, 2, 2, 2]).all(axis=1))
    np.testing.assert_array_equal(maker.make(1, np.random.default_rng(seed)), [[2, 2, 2, 2]])
