"""What tvm.arith derives from random expressions holds at every sample point."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import arith, tir
from tvm.testing.index_exprs import ExprSampler, evaluate

SEEDS = range(12)
PER_SEED = 40


def samplers(seed: int, dtype: str = "int32"):
    """A few expressions of every family over one set of variables."""
    sampler = ExprSampler(np.random.default_rng(seed), dtype=dtype)
    families = [
        sampler.affine,
        sampler.layout,
        lambda: sampler.integer(2),
        lambda: sampler.integer(3),
        lambda: sampler.condition(2),
    ]
    return sampler, [families[n % len(families)]() for n in range(PER_SEED)]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
@pytest.mark.parametrize("seed", SEEDS)
def test_all_simplifiers_keep_values(seed, dtype):
    sampler, samples = samplers(seed, dtype)
    analyzer = sampler.analyzer()
    for simplify in (
        analyzer.simplify,
        analyzer.rewrite_simplify,
        analyzer.canonical_simplify,
        arith.Analyzer().simplify,
    ):
        for sample in samples:
            result = simplify(sample.expr)
            assert result.dtype == sample.expr.dtype
            found = evaluate(result, sampler.values)
            assert np.all(found == sample.values), f"{sample.expr} became {result}"


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_and_congruences_hold_all_values(seed):
    sampler, samples = samplers(seed)
    analyzer = sampler.analyzer()
    for sample in samples:
        bound = analyzer.const_int_bound(sample.expr)
        assert bound.min_value <= sample.values.min(), sample.expr
        assert sample.values.max() <= bound.max_value, sample.expr
        if sample.expr.dtype == "bool":
            continue
        known = analyzer.modular_set(sample.expr)
        coeff, base = int(known.coeff), int(known.base)
        off = sample.values - base if coeff == 0 else (sample.values - base) % coeff
        assert not off.any(), f"{sample.expr} is not {coeff}k + {base}"


@pytest.mark.parametrize("seed", SEEDS)
def test_int_sets_hold_all_values(seed):
    sampler, samples = samplers(seed)
    domains = {
        loop: arith.IntervalSet(0, extent - 1)
        for loop, extent in zip(sampler.loops, sampler.extents)
    }
    domains[sampler.signed] = arith.IntervalSet(-9, 9)
    ends = sampler.sizes
    for sample in samples:
        if sample.expr.dtype == "bool":
            continue
        found = arith.eval_set(sample.expr, domains)
        for end, worst in ((found.min_value, np.greater), (found.max_value, np.less)):
            if end.same_as(arith.neg_inf()) or end.same_as(arith.pos_inf()):
                continue
            assert not np.any(worst(evaluate(end, sampler.values), sample.values)), (
                f"{sample.expr} leaves {found}"
            )
            free = tir.analysis.undefined_vars(tir.Evaluate(end), [])
            assert all(any(var.same_as(size) for size in ends) for var in free), found


@pytest.mark.parametrize("seed", SEEDS)
def test_proofs_and_known_conditions_are_true(seed):
    sampler, _ = samplers(seed)
    analyzer = sampler.analyzer()
    for _ in range(PER_SEED):
        given, asked = sampler.condition(2), sampler.condition(2)
        if analyzer.can_prove(asked.expr):
            assert asked.values.all(), asked.expr
        holds = given.values != 0
        with analyzer.constraint_scope(given.expr):
            if analyzer.can_prove(asked.expr):
                assert asked.values[holds].all(), f"{given.expr} does not imply {asked.expr}"
            value = sampler.integer(2)
            short = analyzer.simplify(value.expr)
            found = np.broadcast_to(evaluate(short, sampler.values), holds.shape)
            assert np.all(found[holds] == value.values[holds]), (
                f"given {given.expr}: {value.expr} became {short}"
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_linear_forms_have_the_value_of_the_expression(seed):
    sampler, _ = samplers(seed)
    for _ in range(PER_SEED):
        sample = sampler.affine()
        form = arith.detect_linear_equation(sample.expr, sampler.loops)
        if len(form) == 0:
            continue
        *scales, base = form
        total = evaluate(base, sampler.values)
        for scale, loop in zip(scales, sampler.loops):
            total = total + evaluate(scale, sampler.values) * sampler.values[loop]
        assert np.all(total == sample.values), f"{sample.expr} is not {list(form)}"


@pytest.mark.parametrize("seed", SEEDS)
def test_deduced_bounds_imply_the_condition(seed):
    rng = np.random.default_rng(seed)
    solved = 0
    for _ in range(PER_SEED):
        sampler = ExprSampler(rng)
        var, other = sampler.signed, sampler.loops[0]
        scale = int(rng.choice([-3, -2, -1, 1, 2, 5]))
        left = tir.floordiv(var * scale + other, int(rng.integers(1, 5))) + 1
        compare = [tir.LT, tir.LE, tir.GT, tir.GE][rng.integers(4)]
        cond = compare(left, tir.IntImm("int32", int(rng.integers(-9, 10))))
        domains = {other: arith.IntervalSet(0, sampler.extents[0] - 1)}
        found = arith.deduce_bound(var, cond, domains, domains)
        if found.is_nothing():
            continue
        solved += 1
        low = None if found.min_value.same_as(arith.neg_inf()) else int(found.min_value)
        high = None if found.max_value.same_as(arith.pos_inf()) else int(found.max_value)
        for value in range(-40, 41):
            if (low is None or value >= low) and (high is None or value <= high):
                values = {var: np.int64(value), other: np.arange(sampler.extents[0])}
                assert np.all(evaluate(cond, values)), f"{cond} fails at {value} in {found}"
    assert solved > PER_SEED // 2


@pytest.mark.parametrize("seed", SEEDS)
def test_unions_cover_and_intersections_keep_what_is_shared(seed):
    rng = np.random.default_rng(seed)
    size = tir.SizeVar("n", "int32")
    for _ in range(PER_SEED):
        ends = rng.integers(-6, 7, (3, 2))
        ends.sort(axis=1)
        symbolic = rng.random(3) < 0.4
        sets = [
            arith.IntervalSet(int(low), size + int(high) + 6 if s else int(high))
            for (low, high), s in zip(ends, symbolic)
        ]
        for n in (1, 5):
            at = {size: np.int64(n)}
            members = [
                set(range(int(low), (n + int(high) + 6 if s else int(high)) + 1))
                for (low, high), s in zip(ends, symbolic)
            ]
            for join, expected in (
                (arith.union_sets, set.union(*members)),
                (arith.intersect_sets, set.intersection(*members)),
            ):
                found = join(sets)
                if found.is_nothing():
                    assert not expected
                    continue
                low, high = (int(evaluate(e, at)) for e in (found.min_value, found.max_value))
                assert expected <= set(range(low, high + 1)), f"{join.__name__} of {sets}: {found}"


def test_touched_domains_hold_all_accesses():
    rng = np.random.default_rng(0)
    for _ in range(20):
        sampler = ExprSampler(rng)
        samples = [sampler.affine(), sampler.integer(2)]
        buffer = tir.decl_buffer((1 << 20, 1 << 20), "float32", "data")
        body = tir.Evaluate(tir.BufferLoad(buffer, [sample.expr for sample in samples]))
        for loop, extent in zip(sampler.loops, sampler.extents):
            body = tir.For(loop, 0, extent, tir.ForKind.SERIAL, body)
        touched = arith.domain_touched(body, buffer)
        for range_, sample in zip(touched, samples):
            low = evaluate(range_.min, sampler.values)
            end = low + evaluate(range_.extent, sampler.values)
            assert np.all((low <= sample.values) & (sample.values < end)), sample.expr


def test_wrapping_casts_and_constants_at_the_edges_keep_their_value():
    x = tir.Var("x", "int64")
    analyzer = arith.Analyzer()
    analyzer.update(x, arith.ConstIntBound(0, 2**40))
    short = analyzer.simplify(tir.Cast("int64", tir.Cast("int32", x)))
    narrow = evaluate(short, {x: np.arange(4)})
    assert np.all(narrow == np.arange(4))
    assert not analyzer.can_prove_equal(tir.Cast("int64", tir.Cast("int32", x)), x)
    for dtype, bits in (("int8", 8), ("int32", 32), ("int64", 64)):
        top = tir.IntImm(dtype, 2 ** (bits - 1) - 1)
        bottom = tir.IntImm(dtype, -(2 ** (bits - 1)))
        assert int(analyzer.simplify(tir.Max(top, bottom))) == 2 ** (bits - 1) - 1
        assert evaluate(analyzer.simplify(tir.LT(bottom, top)), {}) == 1
        analyzer.simplify(tir.Add(top, top))
        bound = analyzer.const_int_bound(tir.Sub(top, top))
        assert bound.min_value <= 0 <= bound.max_value


def test_huge_numbers_end_in_no_bound_rather_than_a_wrong_one():
    x = tir.Var("x", "int64")
    analyzer = arith.Analyzer()
    analyzer.update(x, arith.ConstIntBound(-(2**62), 2**62))
    for expr in (x * x, x * 8, x + x + x, x * x * x - x):
        bound = analyzer.const_int_bound(expr)
        assert bound.max_value >= 2**62
        tvm.ir.structural_hash(analyzer.simplify(expr), map_free_vars=True)
