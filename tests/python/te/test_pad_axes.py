"""Sums over longer axes than a tensor has, so that tiles divide them."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError


def product(n, m, k, dtype="float32"):
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    return a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")


def run(schedule, args, *inputs):
    out = tvm.nd.array(np.full([int(extent) for extent in args[-1].shape], np.nan, "float32"))
    tvm.build(schedule, args, target="llvm")(*map(tvm.nd.array, inputs), out)
    return out.numpy()


@pytest.mark.parametrize("tile", [4, 16, 32])
@pytest.mark.parametrize("has_consumer", [True, False])
def test_tiles_of_a_padded_product_divide_its_axes(tile, has_consumer):
    a, b, c = product(29, 13, 23)
    out = te.compute(c.shape, lambda i, j: c[i, j] + 1.0, name="out") if has_consumer else c
    s = te.create_schedule(out.op)
    s.pad_read(a, c, (32, 32))
    s.pad_read(b, c, (32, 16))
    sums = s.pad_axes(c, (32, 16, 32))
    assert [int(extent) for extent in sums.shape] == [32, 16]
    if has_consumer:
        s[c].compute_inline()
    once, rows = s[out].pad(s[out].op.axis[0], 32)
    _, inner = s[out].split(rows, tile)
    s[out].reorder(once, s[out].op.axis[1])
    s[sums].compute_at(s[out], _)
    r, _ = s[sums].split(s[sums].op.reduce_axis[0], 8)
    # The sums have no guard; what is written has one.
    text = str(tvm.lower(s, [a, b, out]))
    assert "likely" not in text.split("C_padded[")[1].split("out[" if has_consumer else "C[")[0]
    generator = np.random.default_rng(0)
    x, y = generator.random((29, 23), "float32"), generator.random((23, 13), "float32")
    # Zeros behind the end of a reduction count for nothing, whatever lies behind the other operand.
    y[3, 4] = np.inf
    np.testing.assert_allclose(run(s, [a, b, out], x, y), x @ y + has_consumer, rtol=1e-5)


def test_a_longer_copy_has_zeros_behind_its_ends():
    a = te.placeholder((3, 5), name="a")
    out = te.compute((4, 5), lambda i, j: te.if_then_else(i < 3, a[te.min(i, 2), j], 7.0))
    s = te.create_schedule(out.op)
    longer = s.pad_read(a, out, (4, 8))
    assert [int(extent) for extent in longer.shape] == [4, 8]
    x = np.random.default_rng(0).random((3, 5), "float32")
    alone = te.create_schedule(longer.op)
    np.testing.assert_array_equal(run(alone, [a, longer], x), np.pad(x, [(0, 1), (0, 3)]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, a, b, c: s.pad_read(a, b, (32, 32)), "does not read this tensor"),
        (lambda s, a, b, c: s.pad_read(a, c, (32,)), "an extent for each of 2 dimensions"),
        (lambda s, a, b, c: s.pad_read(a, c, (28, 23)), "a copy of 28 would lose some"),
        (lambda s, a, b, c: s.pad_axes(c, (32, 13)), "an extent for each of 3 axes"),
        (lambda s, a, b, c: s.pad_axes(c, (28, 13, 23)), "cannot end at 28"),
        (lambda s, a, b, c: s.pad_axes(c, (32, 13, 23)), "beyond the 29 elements of dimension 0"),
        (lambda s, a, b, c: s.pad_axes(c, (29, 13, 24)), "not known to be zero where k is 23"),
        (lambda s, a, b, c: s[c].pad(c.op.axis[0], 28), "28 is no more"),
        (lambda s, a, b, c: s[c].pad(c.op.reduce_axis[0], 32), "loop over space"),
        (
            lambda s, a, b, c: (s[c].split(c.op.axis[0], 4), s.pad_axes(c, (29, 13, 23))),
            "split or fused; pad them before",
        ),
    ],
)
def test_what_cannot_be_padded_says_why(change, message):
    a, b, c = product(29, 13, 23)
    out = te.compute(c.shape, lambda i, j: c[i, j] + b[0, j], name="out")
    with pytest.raises(ScheduleError, match=message):
        change(te.create_schedule(out.op), a, b, c)


def test_only_sums_of_products_are_padded():
    a = te.placeholder((29, 23), name="a")
    r = te.reduce_axis((0, 23), name="r")
    out = te.compute((29,), lambda i: te.max(a[i, r], axis=r), name="out")
    with pytest.raises(ScheduleError, match="expected a sum of products of two operands"):
        te.create_schedule(out.op).pad_axes(out, (32, 24))
