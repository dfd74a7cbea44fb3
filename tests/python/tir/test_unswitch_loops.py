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


def shifted_rows(rows=6, columns=16):
    """B[i, j] = A[i - 1, j] by one thread per column and all rows of a block in a loop of its."""
    A = te.placeholder((rows, columns), name="A")
    B = te.compute(
        (rows, columns, 4),
        lambda i, j, c: te.if_then_else(i >= 1, A[i - 1, j], 0.0) * (c + 1),
        name="B",
    )
    s = te.create_schedule(B.op)
    i, j, _ = B.op.axis
    s[B].bind(i, te.thread_axis("blockIdx.x"))
    s[B].bind(j, te.thread_axis("threadIdx.x"))
    return s, A, B


@pytest.mark.parametrize(
    "spelling", ["support_block_scope_hoisting", "support_block_scope_hosting"]
)
def test_kernels_are_rewritten_when_asked(spelling):
    s, A, B = shifted_rows()
    plain = lowered_text(s, [A, B])
    assert plain.index("for c") < plain.index("if_then_else")
    with tvm.transform.PassContext(config={"tir.HoistIfThenElse": {spelling: True}}):
        text = lowered_text(s, [A, B])
        func = tvm.build(s, [A, B], target=tvm.target.emulated("cuda", check_races=True))
    assert "if_then_else" not in text
    assert text.count("for c") == 2
    assert text.index("if ") < text.index("for c")
    x, out = np.random.default_rng(0).random((6, 16)).astype("float32"), tvm.nd.empty((6, 16, 4))
    func(tvm.nd.array(x), out)
    shifted = np.vstack([np.zeros((1, 16), "float32"), x[:-1]])
    np.testing.assert_allclose(out.numpy(), shifted[..., None] * np.arange(1, 5, dtype="float32"))


def test_tests_that_threads_answer_differently_stay_inside():
    A = te.placeholder((16,), name="A")
    B = te.compute((16, 4), lambda j, c: te.if_then_else(j >= 3, A[j - 3], 0.0) * c, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    config = {"tir.HoistIfThenElse": {"support_block_scope_hoisting": True}}
    with tvm.transform.PassContext(config=config):
        text = lowered_text(s, [A, B])
    assert text.index("for c") < text.index("if_then_else")


def test_an_unknown_option_is_refused():
    s, A, B = shifted_rows()
    with (
        tvm.transform.PassContext(config={"tir.HoistIfThenElse": {"everywhere": True}}),
        pytest.raises(ValueError, match="has no option everywhere"),
    ):
        lowered_text(s, [A, B])
