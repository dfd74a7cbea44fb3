"""Requests to read ahead become prefetch instructions."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import apply, floats, lines, loop
from tvm import te, tir
from tvm.tir import transform


def column_sums(request):
    """B[j] = sum over k of A[k, j], with what `request` asks of its schedule."""
    A = te.placeholder((64, 16), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((16,), lambda j: te.sum(A[k, j], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].reorder(k, B.op.axis[0])
    request(s[B], A, k)
    return s, [A, B]


REQUESTS = {
    "prefetch": lambda stage, A, k: stage.prefetch(A, k, 4),
    "pragma": lambda stage, A, k: stage.pragma(k, "prefetch", 4),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())
def test_what_the_loop_reads_is_fetched_trips_ahead(request_):
    s, args = column_sums(request_)
    func = tvm.driver.form_irmodule(s, args)["main"]
    text = str(apply(transform.InjectPrefetch(), func))
    assert "T.prefetch(A, [T.Range(k + 4, k + 4 + 1), T.Range(0, 16)])" in text
    assert "prefetch_scope" not in text
    assert "pragma_prefetch" not in text


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())
def test_prefetch_reaches_llvm_and_changes_nothing(request_):
    s, args = column_sums(request_)
    module = tvm.build(s, args, target="llvm")
    assert "llvm.prefetch" in module.get_source("ll")
    values, result = floats(64, 16), tvm.nd.empty((16,))
    module(tvm.nd.array(values), result)
    np.testing.assert_allclose(result.numpy(), values.sum(axis=0), rtol=1e-5)


def test_a_region_that_stays_is_not_fetched():
    a, b = tir.decl_buffer((4,), name="A"), tir.decl_buffer((64,), name="B")
    store = loop(64, lambda i: tir.BufferStore(b, a[1], [i]))
    body = tir.For(
        store.loop_var, 0, 64, store.kind, store.body, annotations={"pragma_prefetch": 2}
    )
    assert lines(apply(transform.InjectPrefetch(), tir.PrimFunc([a, b], body))) == [
        "for i in range(64):",
        "    B[i] = A[1]",
    ]


@pytest.mark.parametrize(
    ("shape", "region", "expected"),
    [
        # One line, aligned; one line that a later offset may cut in two; one that may not.
        ((64, 16), [(8, 1), (0, 16)], [128]),
        ((64, 20), [(1, 1), (0, 16)], [20, 35]),
        ((64, 16), [(8, 1), (3, 1)], [131]),
        # Rows without gaps are one run, rows with gaps are not.
        ((64, 16), [(2, 3), (0, 16)], [32, 48, 64]),
        ((64, 64), [(2, 2), (16, 32)], [144, 160, 208, 224]),
    ],
)
def test_every_cache_line_of_the_region_is_fetched(shape, region, expected):
    buffer = tir.decl_buffer(shape, name="A")
    request = tir.Prefetch(buffer, [tvm.ir.Range.from_min_extent(*bound) for bound in region])
    func = tir.PrimFunc([buffer], request)
    flat = apply(transform.StorageFlatten(64), func)
    marked = tir.stmt_functor.ir_transform(
        flat.body, None, lambda s: tir.For(s.loop_var, s.min, s.extent, 3, s.body), ["tir.For"]
    )
    text = lines(apply(transform.Simplify(), apply(transform.UnrollLoop(), flat.with_body(marked))))
    assert text == [f"T.evaluate(T.prefetch(T.address_of(A[{i}]), 0, 3, 1))" for i in expected]


def test_places_in_blocks_are_not_taken_apart():
    # Of a packed operand, blocks of 8 steps follow each other in memory.
    A, W = te.placeholder((64,), name="A"), te.placeholder((8, 8, 16), name="W")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((16,), lambda j: te.sum(A[k] * W[k // 8, k % 8, j], axis=k), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(k, factor=8)
    s[B].reorder(outer, inner, B.op.axis[0])
    s[B].prefetch(W, inner, 4)
    text = str(tvm.lower(s, [A, W, B], simple_mode=True))
    assert "T.prefetch(T.address_of(W_1[k_outer * 128 + k_inner * 16 + 64])" in text
    values, weight, result = floats(64), floats(8, 8, 16), tvm.nd.empty((16,))
    tvm.build(s, [A, W, B], target="llvm")(tvm.nd.array(values), tvm.nd.array(weight), result)
    expected = values @ weight.reshape(64, 16)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)
