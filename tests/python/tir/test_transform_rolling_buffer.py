"""Stages of which each trip computes only what is new."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir

ROLLING = [(0, tir.transform.InjectRollingBuffer())]


def pools(rows=20, columns=20, window=3):
    """Maxima of windows of rows, and their sums over windows."""
    A = te.placeholder((rows, columns), name="A")
    k1, k2 = (te.reduce_axis((0, window), name) for name in ("k1", "k2"))
    n = rows - window + 1
    B = te.compute((n, columns), lambda i, j: te.max(A[i + k1, j], axis=k1), name="B")
    m = n - window + 1
    C = te.compute((m, columns), lambda i, j: te.sum(B[i + k2, j], axis=k2), name="C")
    return A, B, C


def expected(a, window=3):
    b = np.lib.stride_tricks.sliding_window_view(a, window, 0).max(-1)
    return np.lib.stride_tricks.sliding_window_view(b, window, 0).sum(-1)


def run(schedule, A, C, passes=ROLLING):
    a = np.random.default_rng(0).random([int(n) for n in A.shape], "float32")
    out = tvm.nd.empty([int(n) for n in C.shape])
    with tvm.transform.PassContext(config={"tir.add_lower_pass": passes}):
        tvm.build(schedule, [A, C], target="llvm")(tvm.nd.array(a), out)
        text = str(tvm.lower(schedule, [A, C], simple_mode=True))
    np.testing.assert_allclose(out.numpy(), expected(a), rtol=1e-6)
    return text


def stores_of(text):
    return [line.strip() for line in text.splitlines() if line.strip().startswith("B[")]


def test_rows_are_kept_between_tiles():
    A, B, C = pools()
    s = te.create_schedule(C.op)
    y, x = C.op.axis
    yo, xo, _, _ = s[C].tile(y, x, 4, 5)
    s[B].compute_at(s[C], xo)
    s[B].rolling_buffer()
    text = run(s, A, C)
    # Six rows of all tiles of a row, of which four are new each time.
    assert 'T.allocate([120], "float32"' in text
    assert all("% 6" in line for line in stores_of(text))


def test_passes_may_simplify_behind_it():
    A, B, C = pools()
    s = te.create_schedule(C.op)
    yo, _ = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], yo)
    s[B].rolling_buffer()
    run(s, A, C, [*ROLLING, (0, tir.transform.Simplify())])


@pytest.mark.parametrize("rows", [21, 23])
def test_the_last_tile_may_be_smaller(rows):
    A, B, C = pools(rows)
    s = te.create_schedule(C.op)
    yo, _ = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], yo)
    s[B].rolling_buffer()
    run(s, A, C)


def test_elements_are_computed_once():
    A = te.placeholder((34,), name="A")
    B = te.compute((34,), lambda i: tir.call_pure_extern("float32", "seen", A[i]), name="B")
    k = te.reduce_axis((0, 3), "k")
    C = te.compute((32,), lambda i: te.sum(B[i + k], axis=k), name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].rolling_buffer()
    with tvm.transform.PassContext(config={"tir.add_lower_pass": ROLLING}):
        body = tvm.lower(s, [A, C])["main"]
    calls = []

    # Trips are counted by running the loops in Python.
    def count(node, values):
        analyzer = tvm.arith.Analyzer()
        if isinstance(node, tir.For):
            low, extent = (
                int(analyzer.simplify(tir.stmt_functor.substitute(e, values)))
                for e in (node.min, node.extent)
            )
            for i in range(low, low + extent):
                count(node.body, {**values, node.loop_var: tir.const(i, "int32")})
        elif isinstance(node, tir.SeqStmt):
            for each in node.seq:
                count(each, values)
        elif isinstance(node, tir.IfThenElse):
            test = analyzer.simplify(tir.stmt_functor.substitute(node.condition, values))
            if int(test.args[0] if isinstance(test, tir.Call) else test):
                count(node.then_case, values)
        elif isinstance(node, tir.BufferStore):
            if "seen" in str(node.value):
                calls.append(1)
        else:
            count(node.body, values)

    count(body.body, {})
    assert len(calls) == 34


def test_a_stage_without_overlap_is_refused():
    A, B, C = pools(window=1)
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].rolling_buffer()
    with pytest.raises(tvm.error.ValueError, match="no trip of a loop needs of B"):
        run(s, A, C)


def test_trips_have_to_follow_each_other():
    A, B, C = pools()
    s = te.create_schedule(C.op)
    yo, _ = s[C].split(C.op.axis[0], 4)
    s[C].parallel(yo)
    s[B].compute_at(s[C], yo)
    s[B].rolling_buffer()
    with pytest.raises(tvm.error.ValueError, match=r"would roll over the loop i.*make it serial"):
        run(s, A, C)
