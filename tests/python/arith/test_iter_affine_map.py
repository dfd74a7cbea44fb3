"""Indices as digits of loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tvm
from tvm import arith, tir
from tvm.arith import IterMapLevel
from tvm.testing.index_exprs import evaluate

I, J, K = (tir.Var(name, "int32") for name in "ijk")
EXTENTS = {I: 8, J: 16, K: 6}
RANGES = {var: tvm.ir.Range(0, extent) for var, extent in EXTENTS.items()}


def detect(*indices, level=IterMapLevel.Surjective):
    return arith.detect_iter_map(indices, RANGES, check_level=level)


def all_points(ranges):
    """Values of the loops at every point of the nest."""
    axes = [np.arange(int(r.min), int(r.min) + int(r.extent)) for r in ranges.values()]
    return dict(zip(ranges, (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))))


@pytest.mark.parametrize(
    ("index", "extent", "scale", "base"),
    [
        (I, 8, 1, 0),
        (I * 3 + 5, 8, 3, 5),
        (I * 16 + J, 128, 1, 0),
        (J // 4, 4, 1, 0),
        (J % 4 * 8 + 1, 4, 8, 1),
        ((I * 16 + J) // 32, 4, 1, 0),
        ((I * 16 + J + 64) % 32, 32, 1, 0),
        (J // 4 * 4 + J % 4, 16, 1, 0),
        ((J * 6 + K) // 8 % 3, 3, 1, 0),
    ],
)
def test_index_is_one_split_of_the_stated_size(index, extent, scale, base):
    (found,) = detect(index).indices
    (split,) = found.args
    assert (split.extent, split.scale, int(found.base)) == (extent, scale, base)
    points = all_points(RANGES)
    plain = arith.normalize_iter_map_to_expr(found)
    assert np.array_equal(evaluate(plain, points), evaluate(index, points))


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (I * J, "not constant"),
        (I * 8 + J, "gaps"),
        (J // 3, "partial tile"),
        ((J + 1) // 4, "offset"),
        (tir.min(I, J), "not linear"),
        (tir.floordiv(I, J), "divisor"),
    ],
)
def test_index_that_is_no_split_says_why(index, reason):
    result = detect(index, level=IterMapLevel.Bijective)
    assert len(result.indices) == 0
    assert reason in str(result.errors[0])


TILED = [
    (13, lambda x: [x // 4, x % 4]),
    (13, lambda x: [(x + 3) // 4, (x + 3) % 4]),
    (116, lambda x: [x // 32, x // 4 % 8, x % 4]),
    (14, lambda x: [(x + 5) // 16, (x + 5) // 4 % 4, (x + 5) % 4]),
    (14, lambda x: [(x + 5) % 4, (x + 5) // 16, (x + 5) // 4 % 4]),
    (30, lambda x: [x // 4 // 3, x // 4 % 3, x % 4]),
    (10, lambda x: [x // 3 + 1, x % 3 * 2]),
    (10, lambda x: [(x - 7) // 3, (x - 7) % 3]),
]


@pytest.mark.parametrize(("extent", "indices"), TILED)
def test_partial_tiles_lengthen_the_iterator(extent, indices):
    x = tir.Var("x", "int32")
    ranges = {x: tvm.ir.Range(0, extent)}
    indices = indices(x)
    result = arith.detect_iter_map(indices, ranges)
    splits = [found.args[0] for found in result.indices]
    points = all_points(ranges)
    for index, found in zip(indices, result.indices):
        plain = arith.normalize_iter_map_to_expr(found)
        assert np.array_equal(evaluate(plain, points), evaluate(index, points))
    assert not evaluate(result.padding_predicate, points).any()
    # Every point of the box has an origin, or is padding.
    outputs = [tir.Var(f"o{n}", "int32") for n in range(len(indices))]
    back = arith.inverse_affine_iter_map(result.indices, outputs)[x]
    axes = [
        np.arange(int(split.extent)) * int(split.scale) + int(found.base)
        for split, found in zip(splits, result.indices)
    ]
    box = dict(zip(outputs, (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))))
    origin = evaluate(back, box)
    outside = evaluate(result.padding_predicate, {x: origin})
    np.testing.assert_array_equal(outside, (origin < 0) | (origin >= extent))
    for output, index in zip(outputs, indices):
        np.testing.assert_array_equal(evaluate(index, {x: origin}), box[output])
    assert sorted(origin[~outside.astype(bool)]) == list(range(extent))


def test_tiles_of_different_offsets_are_refused():
    x = tir.Var("x", "int32")
    result = arith.detect_iter_map([x // 4, (x + 1) % 4], {x: tvm.ir.Range(0, 16)})
    assert "offset" in str(result.errors[0])


def test_sizes_may_be_expressions():
    n, m = tir.SizeVar("n", "int32"), tir.SizeVar("m", "int32")
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    whole = arith.detect_iter_map(
        [x * m + y], {x: tvm.ir.Range(0, n), y: tvm.ir.Range(0, m)}, check_level="bijective"
    )
    (split,) = whole.indices[0].args
    assert arith.Analyzer().can_prove_equal(split.extent, n * m)
    assert int(split.scale) == 1
    cut = arith.detect_iter_map([x // m, x % m], {x: tvm.ir.Range(0, n * m)}, True, "bijective")
    assert [str(found.args[0].extent) for found in cut.indices] == ["n", "m"]
    tiled = arith.detect_iter_map([x // 8, x % 8], {x: tvm.ir.Range(0, n)})
    predicate = tiled.padding_predicate
    for size in range(1, 20):
        points = np.arange((size + 7) // 8 * 8)
        outside = evaluate(predicate, {x: points, n: np.full_like(points, size)})
        np.testing.assert_array_equal(outside, points >= size)
    assert len(arith.detect_iter_map([x // n], {x: tvm.ir.Range(0, m)}, True, "bijective").errors)


def test_predicates_may_have_expressions():
    n = tir.SizeVar("n", "int32")
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    ranges = {x: tvm.ir.Range(0, (n + 31) // 32), y: tvm.ir.Range(0, 32)}
    (found,) = arith.detect_iter_map([x * 32 + y], ranges, x * 32 + y < n, "bijective").indices
    assert arith.Analyzer().can_prove_equal(found.args[0].extent, n)


@pytest.mark.parametrize(
    ("predicate", "extent"),
    [
        (tir.all(I * 16 + J >= 10, I * 16 + J < 90), 80),
        (tir.all(I * 16 + J >= 3, J < 10), None),
        (tir.all(tir.likely(I * 16 + J < 100), I >= 0), 100),
        (I * 16 < 90 - J, 90),
    ],
)
def test_sums_are_bounded_from_both_sides(predicate, extent):
    result = arith.detect_iter_map([I * 16 + J], RANGES, predicate)
    if extent is None:
        assert len(result.errors)
        return
    (found,) = result.indices
    assert int(found.args[0].extent) == extent
    points = all_points(RANGES)
    runs = evaluate(predicate, points).astype(bool) if extent != 100 else None
    inside = {var: values[runs] if runs is not None else values for var, values in points.items()}
    plain = evaluate(arith.normalize_iter_map_to_expr(found), inside)
    np.testing.assert_array_equal(plain, evaluate(I * 16 + J, inside))


def test_a_shortened_sum_may_be_a_digit():
    ranges = {**RANGES, K: tvm.ir.Range(0, 6)}
    result = arith.detect_iter_map([K * 100 + I * 16 + J], ranges, I * 16 + J < 100, "bijective")
    assert int(result.indices[0].args[0].extent) == 600


@pytest.mark.parametrize(
    ("index", "scales", "base"),
    [
        (J + I * 20 + 3 + I * 4, [24, 1], 3),
        (J // 4 * 3 + J % 4 - I, [3, 1, -1], 0),
        (tir.min(I, J) * 7 + K, [7, 1], 0),
    ],
)
def test_sums_are_normalized(index, scales, base):
    found = arith.normalize_to_iter_sum(index, RANGES)
    assert ([int(split.scale) for split in found.args], int(found.base)) == (scales, base)
    points = all_points(RANGES)
    plain = arith.normalize_iter_map_to_expr(found)
    np.testing.assert_array_equal(evaluate(plain, points), evaluate(index, points))


def test_overlapping_digits_are_refused_unless_unchecked():
    assert "used twice" in str(detect(J // 4, J % 8).errors[0])
    assert len(detect(J // 4, J % 8, level=IterMapLevel.NoCheck).indices) == 2
    assert len(detect(J // 4, J % 4).indices) == 2


@pytest.mark.parametrize(
    ("index", "extent", "scale"),
    [
        (I + J, 23, 1),
        (I * 4 + J, 44, 1),
        (I * 6 + J * 3, 30, 3),
        (I * 5 + J + K, 56, 1),
        ((I + J) * 2, 23, 2),
        (I * 2 + K * 4, 18, 2),
    ],
)
def test_sums_of_digits_that_reach_into_each_other_are_one_iterator(index, extent, scale):
    [found] = detect(index).indices
    [split] = found.args
    assert (int(split.extent), int(split.scale)) == (extent, scale)
    points = all_points(RANGES)
    values = np.unique(evaluate(index, points))
    assert np.array_equal(values, np.arange(extent) * scale)
    plain = arith.normalize_iter_map_to_expr(found)
    assert np.array_equal(evaluate(plain, points), evaluate(index, points))
    assert "gaps" in str(detect(index, level=IterMapLevel.Bijective).errors[0])


def test_windows_are_cut_like_any_iterator():
    whole, part = detect((I + J) // 5, (I + J) % 5).indices
    assert int(whole.args[0].extent) == 5 and int(part.args[0].extent) == 5
    assert whole.args[0].source.same_as(part.args[0].source)
    assert "gaps" in str(detect(I * 20 + J).errors[0])
    assert "used twice" in str(detect(I + J, J).errors[0])


def test_maps_print_as_in_tvm():
    [found] = detect(I * 16 + J + 3).indices
    loops = ", ".join(
        f"IterSplit(IterMark({name}, extent={extent}), lower_factor=1, extent={extent}, "
        f"scale={scale})"
        for name, extent, scale in (("i", 8, 16), ("j", 16, 1))
    )
    assert str(found) == (
        f"IterSum([IterSplit(IterMark(IterSum([{loops}], 0), extent=128), lower_factor=1, "
        "extent=128, scale=1)], 3)"
    )


def test_bijective_maps_use_every_digit():
    whole = [I * 16 + J, K]
    assert len(detect(*whole, level=IterMapLevel.Bijective).indices) == 2
    for partial in ([I, J], [I, J // 4, K], [I * 16 + J]):
        assert "not used" in str(detect(*partial, level=IterMapLevel.Bijective).errors[0])


def test_offsets_of_loops_stay_outside_the_digits():
    ranges = {I: tvm.ir.Range(2, 10), J: tvm.ir.Range(0, 4)}
    (found,) = arith.detect_iter_map([I * 4 + J], ranges).indices
    points = all_points(ranges)
    plain = arith.normalize_iter_map_to_expr(found)
    assert np.array_equal(evaluate(plain, points), evaluate(I * 4 + J, points))


def test_loops_have_to_run():
    with pytest.raises(ValueError, match="extent of i must be positive, got 0"):
        arith.detect_iter_map([I], {I: tvm.ir.Range(0, 0)})


def test_detected_maps_keep_values_and_bijections_are_bijective():
    rng = np.random.default_rng(0)

    leaves = [I, J, K, I // 2, I % 2, J // 4, J % 4, J // 8, K // 3, K % 3, I % 4]
    points = all_points(RANGES)
    for _ in range(400):
        picked = [leaves[n] for n in rng.permutation(len(leaves))[: rng.integers(1, 5)]]
        indices = []
        while picked:
            total = picked.pop()
            scale = 1
            while picked and rng.random() < 0.6:
                scale *= int(rng.choice([2, 3, 4, 8, 16]))
                total = total + picked.pop() * scale
            divisor = int(rng.choice([1, 2, 4, 6]))
            indices.append([total, total // divisor, total % divisor][rng.integers(3)])
        for level in (IterMapLevel.NoCheck, IterMapLevel.Bijective):
            result = detect(*indices, level=level)
            values = [np.broadcast_to(evaluate(x, points), (8 * 16 * 6,)) for x in indices]
            for index, found, value in zip(indices, result.indices, values):
                plain = arith.normalize_iter_map_to_expr(found)
                assert np.all(evaluate(plain, points) == value), f"{index} became {plain}"
            if level == IterMapLevel.Bijective and len(result.indices):
                assert len(set(zip(*values))) == 8 * 16 * 6, indices


def test_bijections_of_reshapes_are_found():
    for order in itertools.permutations([I, J // 4, J % 4, K]):
        result = detect(*order, level=IterMapLevel.Bijective)
        assert len(result.indices) == 4


def test_loops_must_not_depend_on_each_other():
    with pytest.raises(ValueError, match="range of j must not depend on other iterators"):
        arith.detect_iter_map([I, J], {I: RANGES[I], J: tvm.ir.Range.from_min_extent(I, 4)})


@pytest.mark.parametrize("index", [I.astype("float32"), tir.Var("f", "float32"), tir.Ramp(I, 1, 4)])
def test_an_index_is_a_scalar_integer(index):
    assert "not a scalar integer" in str(detect(index).errors[0])


def test_iterators_and_ranges_of_the_wrong_type_are_named():
    with pytest.raises(TypeError, match="argument 1: expected Map"):
        arith.detect_iter_map([I], [I])
    with pytest.raises(TypeError, match="argument 0: expected Array"):
        arith.detect_iter_map(I, RANGES)


@pytest.mark.parametrize(
    ("predicate", "extent", "base"),
    [(I < 4, 4, 0), (tir.all(I >= 2, I < 8), 6, 2), (tir.all(I < 4, J < 16), 4, 0), (True, 8, 0)],
)
def test_predicates_shorten_loops(predicate, extent, base):
    (found,) = arith.detect_iter_map([I], RANGES, predicate).indices
    assert (found.args[0].extent, int(found.base)) == (extent, base)


@pytest.mark.parametrize(
    ("predicate", "index", "extent"),
    [
        (I * 16 + J < 100, I * 16 + J, 100),
        (tir.all(I * 16 + J <= 95, K < 3), (I * 16 + J) // 4, 24),
        (I * 16 + J + 4 < 100, (I * 16 + J) % 32, 32),
    ],
)
def test_predicates_shorten_sums(predicate, index, extent):
    result = arith.detect_iter_map([index], RANGES, predicate)
    (found,) = result.indices
    assert int(found.args[0].extent) == extent
    points = all_points(RANGES)
    runs = evaluate(predicate, points).astype(bool)
    inside = {var: values[runs] for var, values in points.items()}
    plain = evaluate(arith.normalize_iter_map_to_expr(found), inside)
    np.testing.assert_array_equal(plain, evaluate(index, inside))
    assert set(plain) == set(range(extent))
    assert not bool(result.padding_predicate)


def test_shortened_sums_have_to_be_used_as_a_whole():
    for indices in ([I], [I, J], [I * 16 + J, K * 8 + I]):
        assert len(arith.detect_iter_map(indices, RANGES, I * 16 + J < 100).errors)
    tiles = arith.detect_iter_map([(I * 16 + J) // 8], RANGES, I * 16 + J < 100)
    assert int(tiles.indices[0].args[0].extent) == 13


def test_loops_of_one_trip_may_be_digits():
    once = tir.Var("once", "int32")
    ranges = {once: tvm.ir.Range(0, 1), J: RANGES[J]}
    (plain,) = arith.detect_iter_map([once * 16 + J], ranges).indices
    assert "once" not in str(plain)
    (whole, single) = arith.detect_iter_map(
        [once * 16 + J, once], ranges, True, "nocheck", simplify_trivial_iterators=False
    ).indices
    assert "IterMark(once, extent=1)" in str(whole)
    assert str(arith.normalize_iter_map_to_expr(single)) == "once"


SUBSPACES = [
    ([I * 16 + J], [J]),
    ([I, J], [J]),
    ([I * 96 + J * 6 + K], [J, K]),
    ([I * 96 + J * 6 + K], [K]),
    ([I // 2, J * 6 + K], [K]),
    ([(I * 16 + J) // 4], [J]),
    ([(I * 16 + J) // 32, (I * 16 + J) % 32], [J]),
    ([I * 4 + J // 4, J % 4 * 6 + K], [J, K]),
    ([J + 3, I], [J]),
    ([I * 2 + 1, J], [J]),
]


@pytest.mark.parametrize(("indices", "inner"), SUBSPACES)
def test_indices_are_divided_between_loops(indices, inner):
    divided = arith.subspace_divide(indices, RANGES, inner)
    assert len(divided) == len(indices) + 1
    assert all(bool(condition) for condition in divided[-1])
    points = all_points(RANGES)
    for index, (outer, block) in zip(indices, divided):
        high, low = (arith.normalize_iter_map_to_expr(part) for part in (outer, block))
        used = {v for part in block.args for v in tir.analysis.undefined_vars(tir.Evaluate(low))}
        assert used <= set(inner)
        count = int(block.args[0].extent) if len(block.args) else 1
        factor = count if len(outer.args) and len(block.args) else 1
        value = evaluate(high, points) * factor + evaluate(low, points)
        np.testing.assert_array_equal(value, evaluate(index, points))
        assert not set(inner) & set(tir.analysis.undefined_vars(tir.Evaluate(high)))


@pytest.mark.parametrize(
    ("index", "inner"), [(I * 16 + J, [I]), (I * 96 + J * 6 + K, [J]), (I + J, [J])]
)
def test_indices_that_cannot_be_divided(index, inner):
    assert arith.subspace_divide([index], RANGES, inner) == []


def test_conditions_belong_to_one_side():
    *_, (outer, inner) = arith.subspace_divide([I, J], RANGES, [J], tir.all(I < 5, J < 9))
    assert str(outer) == "i < 5" and str(inner) == "j < 9"
    assert arith.subspace_divide([I, J], RANGES, [J], I + J < 9) == []


@pytest.mark.parametrize("predicate", [I + J < 7, I < 0, tir.any(I < 2, J < 2), False])
def test_other_predicates_say_why(predicate):
    assert arith.detect_iter_map([I], RANGES, predicate).errors


def test_maps_are_undone_and_simplified():
    found = arith.detect_iter_map(
        [I // 4, J, I % 4], {I: RANGES[I], J: RANGES[J]}, True, "bijective"
    )
    a, b, c = (tir.Var(name, "int32") for name in "abc")
    back = arith.inverse_affine_iter_map(found.indices, [a, b, c])
    assert tvm.ir.structural_equal(arith.Analyzer().simplify(back[I]), a * 4 + c)
    assert back[J].same_as(b)
    simple = arith.iter_map_simplify([(I * 16 + J) // 16, (I * 16 + J) % 16], RANGES)
    assert [str(index) for index in simple] == ["(i * 16 + j) // 16", "(i * 16 + j) % 16"]
    whole = arith.iter_map_simplify([(I // 4) * 4 + I % 4, J // 8 % 2 + 3], RANGES)
    assert [str(index) for index in whole] == ["i", "j // 8 + 3"]
    # A predicate that no index takes as a whole is left out.
    [kept] = arith.iter_map_simplify([I * 16 + J], RANGES, I * 16 + J < 40)
    assert str(kept) == "i * 16 + j"
    assert arith.iter_map_simplify([I * J], RANGES)[0].a.same_as(I)
    with pytest.raises(ValueError, match="none of nocheck, surjective, bijective"):
        arith.detect_iter_map([I], RANGES, True, "loose")


def test_digits_can_be_written_by_hand():
    i = tir.Var("i", "int32")
    whole = arith.IterMark(i, 32)
    tile, lane = arith.IterSplitExpr(whole, 8, 4, 16), arith.IterSplitExpr(whole, 1, 8, 1)
    total = arith.IterSumExpr([tile, lane], 3)
    assert all(isinstance(part, arith.IterMapExpr) for part in (tile, total))
    expr = arith.normalize_iter_map_to_expr(total)
    for value in range(32):
        at = arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, {i: value}))
        assert int(at) == value // 8 * 16 + value % 8 + 3
    found = arith.detect_iter_map([i // 8 * 16], {i: tvm.ir.Range(0, 32)}).indices[0]
    tvm.ir.assert_structural_equal(found, arith.IterSumExpr([tile], 0))


def test_digits_have_sizes():
    i = tir.Var("i", "int32")
    with pytest.raises(TypeError, match="IterMark: extent must be an integer or an expression"):
        arith.IterMark(i, "all")
    with pytest.raises(ValueError, match="IterSplitExpr: extent must be positive, got 0"):
        arith.IterSplitExpr(arith.IterMark(i, 4), 1, 0, 1)
    assert str(arith.IterMark(i, tir.Var("n", "int32")).extent) == "n"


def test_maps_of_open_sizes_are_undone():
    n = tir.SizeVar("n", "int32")
    tiles = tir.IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
    back, outside = tiles.non_surjective_inverse([n])
    rows, _ = tiles.map_shape([n])
    tile, lane = back.initial_indices
    for size in range(1, 14):
        count = int(evaluate(rows, {n: np.array([size])})[0])
        assert count == (size + 3) // 4
        grid = np.mgrid[0:count, 0:4].reshape(2, -1)
        at = {tile: grid[0], lane: grid[1], n: np.full(grid.shape[1], size)}
        origin = evaluate(back.final_indices[0], at)
        np.testing.assert_array_equal(origin, grid[0] * 4 + grid[1])
        np.testing.assert_array_equal(evaluate(outside, at).astype(bool), origin >= size)
