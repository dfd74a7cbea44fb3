"""Random statements compute the same after every pass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_programs import apply
from testing_tir import run_prim_func
from tvm import tir
from tvm.tir import transform

SIZE = 24

PASSES = {
    "Simplify": transform.Simplify(),
    "NarrowDataType": transform.NarrowDataType(16),
    "BF16Legalize": transform.BF16Legalize(),
    "InjectPrefetch": transform.InjectPrefetch(),
    "InjectDoubleBuffer": transform.InjectDoubleBuffer(),
    "LoopPartition": transform.LoopPartition(),
    "VectorizeLoop": transform.VectorizeLoop(True, 128),
    "StorageRewrite": transform.StorageRewrite(),
    "UnrollLoop": transform.UnrollLoop(),
    "HoistIfThenElse": transform.HoistIfThenElse(),
    "UnswitchLoops": transform.UnswitchLoops(),
    "RemoveNoOp": transform.RemoveNoOp(),
    "RewriteUnsafeSelect": transform.RewriteUnsafeSelect(),
    "ConvertForLoopsToSerial": transform.ConvertForLoopsToSerial(),
    "WidenIndex": transform.WidenIndex(),
}
OPTIONS = {
    "tir.LoopPartition": {"partition_const_loop": True},
    "tir.UnrollLoop": {"auto_max_step": 8},
    "tir.InjectDoubleBuffer": {"split_loop": 2},
}


@st.composite
def programs(draw):
    """A function A, B -> B of loops, branches, temporaries and stores with indices in range."""
    a, b = (tir.decl_buffer((SIZE,), name=name) for name in "AB")
    names = iter("ijklmnopqrstuvw")

    def index(loops):
        value = tir.const(draw(st.integers(0, 5)), "int32")
        for var in loops:
            value = value + var * draw(st.integers(0, 3))
        return tir.floormod(value, tir.const(SIZE, "int32"))

    def condition(loops):
        left = index(loops) if draw(st.booleans()) or not loops else draw(st.sampled_from(loops))
        test = left < draw(st.integers(0, 12))
        return tir.likely(test) if draw(st.booleans()) else test

    def value(loops, sources):
        first = draw(st.sampled_from(sources))[index(loops)]
        kind = draw(st.sampled_from(["plain", "sum", "max", "select", "lazy"]))
        if kind == "sum":
            return first + draw(st.sampled_from(sources))[index(loops)] * 0.5
        if kind == "max":
            return tir.max(first, 0.25)
        if kind == "select":
            return tir.Select(condition(loops), first, tir.const(1.0, "float32"))
        if kind == "lazy":
            return tir.if_then_else(condition(loops), first, 2.0)
        return first

    def statement(depth, loops, targets):
        kind = draw(st.sampled_from(["store", "loop", "loop", "branch", "temporary", "pair"]))
        if depth == 0 or kind == "store":
            target = draw(st.sampled_from(targets))
            return tir.BufferStore(target, value(loops, [a, *targets]), [index(loops)])
        if kind == "loop":
            var = tir.Var(next(names), "int32")
            plain = draw(st.sampled_from([tir.ForKind.SERIAL, tir.ForKind.UNROLLED]))
            body = statement(depth - 1, [*loops, var], targets)
            return tir.For(var, 0, draw(st.integers(1, 6)), plain, body)
        if kind == "branch":
            otherwise = statement(depth - 1, loops, targets) if draw(st.booleans()) else None
            return tir.IfThenElse(condition(loops), statement(depth - 1, loops, targets), otherwise)
        if kind == "temporary":
            t = tir.decl_buffer((SIZE,), name="T")
            var = tir.Var(next(names), "int32")
            fill = tir.For(
                var,
                0,
                SIZE,
                draw(st.sampled_from([tir.ForKind.SERIAL, tir.ForKind.VECTORIZED])),
                tir.BufferStore(t, a[var] + 1.0, [var]),
            )
            body = tir.stmt_seq(fill, statement(depth - 1, loops, [*targets, t]))
            return tir.Allocate(t.data, "float32", [SIZE], True, body)
        return tir.stmt_seq(*(statement(depth - 1, loops, targets) for _ in range(2)))

    return tir.PrimFunc([a, b], statement(4, [], [b]))


def result(func):
    values = np.linspace(-1, 1, SIZE).astype("float32")
    out = np.arange(SIZE, dtype="float32")
    run_prim_func(func, values, out)
    return out


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=15, deadline=None)
@given(func=programs())
def test_a_pass_keeps_what_a_program_computes(name, func):
    with tvm.transform.PassContext(config=OPTIONS):
        after = apply(PASSES[name], func)
    np.testing.assert_allclose(result(after), result(func), rtol=1e-6)


@settings(max_examples=10, deadline=None)
@given(func=programs())
def test_compiled_programs_agree_with_the_reference(func):
    values = tvm.nd.array(np.linspace(-1, 1, SIZE).astype("float32"))
    out = tvm.nd.array(np.arange(SIZE, dtype="float32"))
    with tvm.transform.PassContext(config=OPTIONS):
        tvm.build(func, target="llvm")(values, out)
    np.testing.assert_allclose(out.numpy(), result(func), rtol=1e-5, atol=1e-6)
