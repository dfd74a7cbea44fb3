"""Programs lowered with their tile sizes left in: putting numbers in gives a correct program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_tir import run_prim_func
from tvm import te, tir
from tvm.arith import VarContext

SIZES = {"n": 12, "m": 8, "l": 6}


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def matmul_relu():
    n, m, l = SIZES.values()
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((n, m), lambda i, j: te.max(C[i, j], 0.0), name="D")
    return A, B, C, D


def split_by(stage, axis, factors):
    """Loops from a split into len(factors) + 1 parts, outermost first, made from the inside."""
    loops = []
    for factor in reversed(factors):
        axis, inner = stage.split(axis, factor)
        loops.insert(0, inner)
    return [axis, *loops]


def lower(sch, args, context=None):
    n = sch.normalize()
    bounds = te.InferBound(n, context)
    func = te.SchedulePostProcToPrimFunc(args, te.ScheduleOps(n, bounds))
    return func, bounds


def with_values(func, values):
    return func.with_body(tir.stmt_functor.substitute(func.body, values))


def run(func, seed):
    n, m, l = SIZES.values()
    rng = np.random.default_rng(seed)
    a = rng.integers(-4, 5, (n, l)).astype("float32")
    b = rng.integers(-4, 5, (l, m)).astype("float32")
    d = np.full((n, m), np.nan, "float32")
    run_prim_func(func, a, b, d)
    np.testing.assert_array_equal(d, np.maximum(a @ b, 0), err_msg=str(func))


def tiled_sketch(context):
    """SSRSRS tiling of C inside tiles of D, every size a knob."""
    A, B, C, D = matmul_relu()
    s = te.create_schedule(D.op)
    groups = [context.define_split_group(SIZES["n"], 3), context.define_split_group(SIZES["m"], 3)]
    group_k = context.define_split_group(SIZES["l"], 1)
    tiles_c = [split_by(s[C], axis, list(g.vars)) for axis, g in zip(C.op.axis, groups)]
    (ko, ki) = split_by(s[C], C.op.reduce_axis[0], list(group_k.vars))
    (i0, i1, i2, i3), (j0, j1, j2, j3) = tiles_c
    s[C].reorder(i0, j0, i1, j1, ko, i2, j2, ki, i3, j3)
    tiles_d = [
        split_by(s[D], axis, [g.vars[0], g.vars[1] * g.vars[2]])
        for axis, g in zip(D.op.axis, groups)
    ]
    (x0, x1, x2), (y0, y1, y2) = tiles_d
    s[D].reorder(x0, y0, x1, y1, x2, y2)
    fused = s[D].fuse(x0, y0, x1, y1)
    s[D].parallel(fused)
    s[C].compute_at(s[D], fused)
    s[C].unroll(i3)
    s[C].vectorize(j3)
    return s, [A, B, D], [*groups, group_k], (ki, i3, j3)


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_exact_tiling_with_any_knob_values_equals_numpy(data):
    context = VarContext()
    s, args, groups, _ = tiled_sketch(context)
    func, _ = lower(s, args, context)
    values = {}
    for group, extent in zip(groups, SIZES.values()):
        rest = extent
        for knob in group.vars:
            values[knob] = data.draw(st.sampled_from(divisors(rest)), label=str(knob))
            rest //= values[knob]
        values[group.quotient] = rest
    for definition in context.var_defs:
        if definition.var not in values:
            known = {var: tir.const(value) for var, value in values.items()}
            value = tvm.arith.Analyzer().simplify(
                tir.stmt_functor.substitute(definition.value, known)
            )
            values[definition.var] = int(value)
    run(with_values(func, {var: tir.const(value) for var, value in values.items()}), seed=1)


def test_exact_tiling_has_monomial_extents():
    context = VarContext()
    s, args, groups, loops = tiled_sketch(context)
    _, bounds = lower(s, args, context)
    ki, i3, j3 = (bounds[loop].extent for loop in loops)
    assert ki.same_as(groups[2].vars[0])
    assert i3.same_as(groups[0].vars[2])
    assert j3.same_as(groups[1].vars[2])


@given(
    factors=st.tuples(*(st.integers(1, 15) for _ in range(4))),
    attach=st.booleans(),
    nparts=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_free_split_sizes_equal_numpy(factors, attach, nparts):
    A, B, C, D = matmul_relu()
    s = te.create_schedule(D.op)
    knobs = [te.size_var(name) for name in ("fi", "fj", "fk", "fc")]
    how = "nparts" if nparts else "factor"
    io, ii = s[D].split(D.op.axis[0], **{how: knobs[0]})
    jo, ji = s[D].split(D.op.axis[1], **{how: knobs[1]})
    s[D].reorder(io, jo, ii, ji)
    ko, ki = s[C].split(C.op.reduce_axis[0], **{how: knobs[2]})
    co, ci = s[C].split(C.op.axis[0], factor=knobs[3])
    s[C].reorder(ko, co, ki, ci)
    if attach:
        s[C].compute_at(s[D], jo)
    func, _ = lower(s, [A, B, D])
    run(with_values(func, dict(zip(knobs, map(tir.const, factors)))), seed=2)


@pytest.mark.parametrize("factor", ["knob", 4])
def test_loop_of_one_trip_splits_into_ones(factor):
    A = te.placeholder((1,), name="A")
    B = te.compute((1,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    size = te.size_var("t") if factor == "knob" else factor
    outer, inner = s[B].split(B.op.axis[0], size)
    _, bounds = lower(s, [A, B])
    assert (bounds[outer].extent.value, bounds[inner].extent.value) == (1, 1)


def test_symbolic_shape_is_guarded_only_where_the_split_may_not_divide():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    assert "likely" not in str(lower(s, [A, B])[0])
    s[B].split(B.op.axis[0], 4)
    func, _ = lower(s, [A, B])
    assert "likely" in str(func)
    a, b = np.arange(7, dtype="float32"), np.zeros(7, "float32")
    run_prim_func(func, a, b)
    np.testing.assert_array_equal(b, a + 1)
