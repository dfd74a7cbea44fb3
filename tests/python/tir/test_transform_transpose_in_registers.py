"""Loops that read columns, read as rows and transposed in registers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.tir.transform import TransposeInRegisters

DTYPES = ["float32", "float64", "int8", "uint16", "int64", "float16"]


def shuffles(module):
    """Shuffles of two vectors in all functions."""
    count = 0

    def visit(node):
        nonlocal count
        count += isinstance(node, tir.Shuffle) and len(node.vectors) == 2

    for _, function in module.functions_items():
        tir.stmt_functor.post_order_visit(function.body, visit)
    return count


def transposed(function):
    """The function after the pass, and whether it was rewritten."""
    module = TransposeInRegisters()(tvm.IRModule({"main": function}))
    return module, shuffles(module) > 0


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 70),
    columns=st.integers(1, 70),
    lanes=st.sampled_from([4, 8, 16, 32, 64]),
    block=st.sampled_from([3, 4, 8, 16, 24, 64]),
    dtype=st.sampled_from(DTYPES),
    extra=st.booleans(),
)
def test_transposes_equal_numpy(rows, columns, lanes, block, dtype, extra):
    a = te.placeholder((rows, columns), name="a", dtype=dtype)
    b = te.placeholder((rows, columns), name="b", dtype=dtype)
    out = te.compute(
        (columns, rows),
        lambda i, j: a[j, i] + b[j, i] if extra else a[j, i],
        name="out",
    )
    s = te.create_schedule(out.op)
    i, j = s[out].op.axis
    jo, ji = s[out].split(j, lanes)
    io, ii = s[out].split(i, block)
    s[out].reorder(io, jo, ii, ji)
    s[out].vectorize(ji)
    function = tvm.build(s, [a, b, out], "llvm")
    rng = np.random.default_rng(rows * 100 + columns)
    x, y = (rng.integers(0, 50, (rows, columns)).astype(dtype) for _ in range(2))
    result = tvm.nd.empty((columns, rows), dtype)
    function(tvm.nd.array(x), tvm.nd.array(y), result)
    np.testing.assert_array_equal(result.numpy(), (x + y if extra else x).T)


@T.prim_func
def panel(a: T.Buffer((4096,), "float32"), out: T.Buffer((4096,), "float32")):
    for k in range(64):
        out[T.Ramp(k * 64, 1, 16)] = a[T.Ramp(k, 64, 16)]
        out[T.Ramp(k * 64 + 16, 1, 16)] = a[T.Ramp(k + 1024, 64, 16)]
        out[T.Ramp(k * 64 + 32, 1, 16)] = a[T.Ramp(k + 2048, 64, 16)]
        out[T.Ramp(k * 64 + 48, 1, 16)] = a[T.Ramp(k + 3072, 64, 16)]


def test_a_panel_of_several_vectors_takes_one_tile_at_a_time():
    module, rewritten = transposed(panel)
    assert rewritten
    # Four tiles of 16 rows, each by four steps of 16 shuffles.
    assert shuffles(module) == 4 * 4 * 16
    x = np.arange(4096, dtype="float32")
    out = tvm.nd.empty((4096,))
    tvm.build(panel, target="llvm")(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x.reshape(64, 64).T.ravel())


@T.prim_func
def sums_of_rows(
    a: T.Buffer((1600,), "float32"), x: T.Buffer((100,), "float32"), out: T.Buffer((16,), "float32")
):
    for k in range(100):
        out[T.Ramp(0, 1, 16)] = out[T.Ramp(0, 1, 16)] + a[T.Ramp(k, 100, 16)] * T.Broadcast(
            x[k], 16
        )


def test_a_reduction_adds_in_the_order_it_did():
    _, rewritten = transposed(sums_of_rows)
    assert rewritten
    rng = np.random.default_rng(0)
    a, x = rng.random(1600, dtype="float32"), rng.random(100, dtype="float32")
    results = []
    for disabled in ([], ["tir.TransposeInRegisters"]):
        out = tvm.nd.array(np.zeros(16, "float32"))
        with tvm.transform.PassContext(disabled_pass=disabled):
            function = tvm.build(sums_of_rows, target="llvm")
        function(tvm.nd.array(a), tvm.nd.array(x), out)
        results.append(out.numpy())
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], a.reshape(16, 100) @ x, rtol=1e-5)


@T.prim_func
def in_place(a: T.Buffer((4096,), "float32")):
    for k in range(16):
        a[T.Ramp(k * 64, 1, 16)] = a[T.Ramp(k, 64, 16)]


@T.prim_func
def behind_a_test(a: T.Buffer((4096,), "float32"), out: T.Buffer((4096,), "float32")):
    for k in range(64):
        out[T.Ramp(k * 64, 1, 16)] = T.if_then_else(
            k < 40, a[T.Ramp(k, 64, 16)], T.Broadcast(T.float32(0), 16)
        )


@T.prim_func
def overlapping_rows(a: T.Buffer((4096,), "float32"), out: T.Buffer((4096,), "float32")):
    for k in range(16):
        out[T.Ramp(k * 64, 1, 16)] = a[T.Ramp(k, 2, 16)]


@T.prim_func
def few_trips(a: T.Buffer((4096,), "float32"), out: T.Buffer((4096,), "float32")):
    for k in range(3):
        out[T.Ramp(k * 64, 1, 16)] = a[T.Ramp(k, 64, 16)]


@T.prim_func
def by_a_table(
    a: T.Buffer((4096,), "float32"), at: T.Buffer((16,), "int32"), out: T.Buffer((4096,), "float32")
):
    for k in range(16):
        out[T.Ramp(k * 64, 1, 16)] = a[T.Ramp(k + at[0], 64, 16)]


@T.prim_func
def overlapping_stores(a: T.Buffer((4096,), "float32"), out: T.Buffer((4096,), "float32")):
    for k in range(16):
        out[T.Ramp(k * 24, 1, 16)] = a[T.Ramp(k, 64, 16)]
        out[T.Ramp(k * 24 + 16, 1, 16)] = a[T.Ramp(k + 1024, 64, 16)]


@T.prim_func
def more_rows_than_registers(a: T.Buffer((4096,), "int8"), out: T.Buffer((4096,), "int8")):
    for k in range(64):
        out[T.Ramp(k * 64, 1, 64)] = a[T.Ramp(k, 64, 64)]


@T.prim_func(private=True)
def may_alias(a: T.Buffer((4096,), "float32"), out: T.Buffer((4096,), "float32")):
    T.func_attr({"tir.noalias": False})
    for k in range(16):
        out[T.Ramp(k * 64, 1, 16)] = a[T.Ramp(k, 64, 16)]


LEFT_ALONE = {
    "stored where it is read": in_place,
    "behind a test": behind_a_test,
    "overlapping rows": overlapping_rows,
    "few trips": few_trips,
    "a place from memory": by_a_table,
    "overlapping stores": overlapping_stores,
    "more rows than registers": more_rows_than_registers,
    "pointers that may be equal": may_alias,
}


@pytest.mark.parametrize("function", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_may_change_a_result_or_gains_nothing_is_left_alone(function):
    module, rewritten = transposed(function)
    assert not rewritten
    tvm.ir.assert_structural_equal(module["main"].body, function.body)


def test_an_extent_that_is_known_at_run_time_has_a_rest():
    @T.prim_func
    def columns(a_handle: T.handle, out_handle: T.handle, n: T.int32):
        a = T.match_buffer(a_handle, (16 * n,), "float32")
        out = T.match_buffer(out_handle, (16 * n,), "float32")
        for k in range(n):
            out[T.Ramp(k * 16, 1, 16)] = a[T.Ramp(k, n, 16)]

    assert transposed(columns)[1]
    function = tvm.build(columns, target="llvm")
    for n in (1, 15, 16, 37):
        x = np.arange(16 * n, dtype="float32")
        out = tvm.nd.empty((16 * n,))
        function(tvm.nd.array(x), out, n)
        np.testing.assert_array_equal(out.numpy(), x.reshape(16, n).T.ravel())


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("cpu", ["x86-64", "haswell"])
def test_types_that_are_computed_as_others_move_as_they_are(dtype, cpu):
    a = te.placeholder((64, 48), name="a", dtype=dtype)
    out = te.compute((48, 64), lambda i, j: a[j, i], name="out")
    target = tvm.target.Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
    with target:
        s = te.create_schedule(out.op)
        i, j = s[out].op.axis
        (jo, ji), (io, ii) = s[out].split(j, 16), s[out].split(i, 16)
        s[out].reorder(io, jo, ii, ji)
        s[out].vectorize(ji)
        assert shuffles(TransposeInRegisters()(tvm.lower(s, [a, out]))) > 0
        function = tvm.build(s, [a, out], target)
    values = tvm.nd.array((np.arange(64 * 48) % 7).reshape(64, 48).astype("float32"))
    wide = te.placeholder((64, 48), name="wide")
    narrow = te.compute((64, 48), lambda i, j: wide[i, j].astype(dtype), name="narrow")
    x, result = tvm.nd.empty((64, 48), dtype), tvm.nd.empty((48, 64), dtype)
    tvm.build(te.create_schedule(narrow.op), [wide, narrow], "llvm")(values, x)
    function(x, result)
    np.testing.assert_array_equal(result.numpy(), x.numpy().T)
