"""Index arithmetic in fewer bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_programs import apply, floats, lines
from testing_tir import run_prim_func
from tvm import te, tir
from tvm.tir import transform

I64 = "int64"


def wide_loop(extent, index, size):
    """B[index(i)] = A[i] for an int64 loop variable."""
    a = tir.decl_buffer((tir.const(extent, I64),), name="A")
    b = tir.decl_buffer((tir.const(size, I64),), name="B")
    i = tir.Var("i", I64)
    store = tir.BufferStore(b, a[i], [index(i)])
    return tir.PrimFunc([a, b], tir.For(i, tir.const(0, I64), tir.const(extent, I64), 0, store))


def test_a_loop_that_fits_becomes_narrow():
    func = apply(transform.NarrowDataType(32), wide_loop(10, lambda i: i * 3 + 1, 40))
    assert lines(func) == ["for i in range(10):", "    B[i * 3 + 1] = A[i]"]
    assert func.body.loop_var.dtype == "int32"


def test_the_variables_of_an_index_that_does_not_fit_stay_wide():
    func = apply(transform.NarrowDataType(32), wide_loop(10, lambda i: i * (1 << 31), 1 << 35))
    assert func.body.loop_var.dtype == "int64"
    assert func.body.body.indices[0].dtype == "int64"
    assert func.body.body.value.indices[0].dtype == "int64"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (lambda i: (i * 3 + 1).astype("float32"), 'T.Cast("float32", i * 3 + 1)'),
        (
            lambda i: (i * 3).astype("int8").astype("float32"),
            'T.Cast("float32", T.Cast("int8", i * 3))',
        ),
        (
            lambda i: tir.max(i - 4, 0).astype("int32").astype("float32"),
            'T.Cast("float32", T.max(i - 4, 0))',
        ),
        # Two to the fortieth does not fit.
        (
            lambda i: (i * (1 << 40)).astype("float32"),
            'T.Cast("float32", i * T.int64(1099511627776))',
        ),
    ],
)
def test_values_that_do_not_stay_wide_are_computed_narrow(value, text):
    b = tir.decl_buffer((tir.const(10, I64),), name="B")
    i = tir.Var("i", I64)
    store = tir.BufferStore(b, value(i), [i])
    loop = tir.For(i, tir.const(0, I64), tir.const(10, I64), 0, store)
    func = apply(transform.NarrowDataType(32), tir.PrimFunc([b], loop))
    assert lines(func)[-1].strip() == f"B[i] = {text}"
    made, asked = np.zeros((2, 10), "float32")
    run_prim_func(func, made)
    run_prim_func(tir.PrimFunc([b], loop), asked)
    np.testing.assert_array_equal(made, asked)


def test_an_intermediate_value_that_does_not_fit_keeps_the_expression_wide():
    func = apply(
        transform.NarrowDataType(32), wide_loop(10, lambda i: i * (1 << 40) // (1 << 40), 9)
    )
    assert func.body.body.indices[0].dtype == "int64"


def test_a_loop_of_unknown_extent_stays_wide():
    n = tir.Var("n", I64)
    b = tir.decl_buffer((n,), name="B")
    i = tir.Var("i", I64)
    body = tir.For(i, tir.const(0, I64), n, 0, tir.BufferStore(b, 1.0, [i]))
    func = tir.PrimFunc([b], body)
    assert apply(transform.NarrowDataType(32), func).body.loop_var.dtype == "int64"


def test_sixty_four_bits_change_nothing():
    func = wide_loop(10, lambda i: i, 10)
    assert apply(transform.NarrowDataType(64), func).body.same_as(func.body)


def test_another_width_is_refused():
    with pytest.raises(ValueError, match="must be 8, 16, 32 or 64, got 24"):
        transform.NarrowDataType(24)


@settings(max_examples=25, deadline=None)
@given(
    extent=st.integers(1, 12),
    scale=st.integers(1, 40),
    divisor=st.integers(1, 9),
    bits=st.sampled_from([8, 16, 32]),
)
def test_narrow_programs_compute_the_same(extent, scale, divisor, bits):
    def index(i):
        return tir.floormod(tir.floordiv(i * scale, divisor) + i, tir.const(extent, I64))

    func = wide_loop(extent, index, extent)
    values = floats(extent)
    outs = [np.zeros(extent, "float32") for _ in range(2)]
    run_prim_func(func, values, outs[0])
    run_prim_func(apply(transform.NarrowDataType(bits), func), values, outs[1])
    np.testing.assert_array_equal(outs[0], outs[1])


def test_int64_shapes_run_compiled():
    n = tir.const(33, I64)
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[j, i] + 1.0, name="B")
    module = tvm.build(te.create_schedule(B.op), [A, B], target="llvm")
    values, out = floats(33, 33), tvm.nd.empty((33, 33))
    module(tvm.nd.array(values), out)
    np.testing.assert_allclose(out.numpy(), values.T + 1)


def test_variables_of_blocks_become_narrow():
    a, b = tir.decl_buffer((128,), name="A"), tir.decl_buffer((128,), name="B")
    i, v = tir.Var("i", I64), tir.Var("v", I64)
    axis = tir.IterVar(tvm.ir.Range(tir.const(0, I64), tir.const(128, I64)), v, 0)
    region = [tvm.ir.Range.from_min_extent(v, tir.const(1, I64))]
    reads, writes = tir.BufferRegion(a, region), tir.BufferRegion(b, region)
    block = tir.Block([axis], [reads], [writes], "b", tir.BufferStore(b, a[v], [v]))
    body = tir.For(i, tir.const(0, I64), tir.const(128, I64), 0, tir.BlockRealize([i], True, block))
    realize = apply(transform.NarrowDataType(32), tir.PrimFunc([a, b], body)).body.body
    block = realize.block
    assert block.iter_vars[0].var.dtype == "int32"
    assert realize.iter_values[0].dtype == "int32"
    assert block.body.indices[0].same_as(block.iter_vars[0].var)
    assert block.reads[0].region[0].min.same_as(block.iter_vars[0].var)
