"""Tests that loops do not change are made outside of them."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


def lowered_text(sch, args):
    return tvm.lower(sch, args, "main")["main"].script()


def test_a_remainder_of_a_fused_tile_becomes_a_loop_nest_of_its_own():
    A = te.placeholder((7, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((7, 16), lambda i, j: te.sum(A[i, k] * A[i, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    outer, inner = s[C].split(i, factor=3)
    s[C].reorder(outer, j, k, inner)
    s[C].unroll(inner)
    s[C].fuse(outer, j)
    text = lowered_text(s, [A, C])
    inner_loop = text[text.index("for k") :]
    assert text.count("for k") == 2
    assert text.index("if ") < text.index("for k")
    assert "if " not in inner_loop[: inner_loop.index("else")]


def test_a_padded_border_is_tested_once_per_row():
    A = te.placeholder((8, 32), name="A")
    P = te.compute(
        (10, 32),
        lambda i, j: tir.if_then_else(
            tir.all(i >= 1, i < 9), A[i - 1, j], tir.const(0.0, "float32")
        ),
        name="P",
    )
    text = lowered_text(te.create_schedule(P.op), [A, P])
    assert "if_then_else" not in text
    assert text.index("if ") < text.index("for j")


@pytest.mark.parametrize("rows", [5, 7, 8, 13])
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_hoisting_keeps_the_result(rows, factor):
    A = te.placeholder((rows, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute((rows, 16), lambda i, j: te.sum(A[i, k] * A[i, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    outer, inner = s[C].split(i, factor=factor)
    s[C].reorder(outer, j, k, inner)
    s[C].unroll(inner)
    s[C].fuse(outer, j)
    f = tvm.build(s, [A, C], target="llvm", name="main")
    a = np.random.default_rng(rows).standard_normal((rows, 16)).astype("float32")
    c = tvm.nd.empty((rows, 16), "float32")
    f["main"](tvm.nd.array(a), c)
    np.testing.assert_allclose(c.numpy(), a * a.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)
