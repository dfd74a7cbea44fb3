"""Functions of blocks, and what the tests of their schedules share."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import te, tir, topi


def matmul(m=12, n=20, k=18, epilogue=False):
    """C = A @ B, and a function of NumPy; with `epilogue` D = max(C, 0) + 1."""
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    if not epilogue:
        return te.create_prim_func([A, B, C]), lambda a, b: a @ b
    D = te.compute((m, n), lambda i, j: te.max(C[i, j], 0.0) + 1.0, name="D")
    return te.create_prim_func([A, B, D]), lambda a, b: np.maximum(a @ b, 0) + 1


def chain(m=10, n=14):
    """Elementwise: D = (A + 1) * 2 - A."""
    A = te.placeholder((m, n), name="A")
    B = te.compute((m, n), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((m, n), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((m, n), lambda i, j: C[i, j] - A[i, j], name="D")
    return te.create_prim_func([A, D]), lambda a: (a + 1) * 2 - a


def blur(n=21):
    """B = A * 2 in a padded row P, then sums of three neighbours, then halves of them."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    P = te.compute(
        (n + 2,), lambda i: tir.if_then_else(tir.all(i >= 1, i < n + 1), B[i - 1], 0.0), name="P"
    )
    r = te.reduce_axis((0, 3), name="r")
    S = te.compute((n,), lambda i: te.sum(P[i + r], axis=r), name="S")
    H = te.compute((n,), lambda i: S[i] * 0.5, name="H")

    def answer(a):
        p = np.pad(a * 2, 1)
        return (p[:-2] + p[1:-1] + p[2:]) * 0.5

    return te.create_prim_func([A, H]), answer


def row_sums(m=9, n=16):
    """Sums of rows, and rows divided by them."""
    A = te.placeholder((m, n), name="A")
    r = te.reduce_axis((0, n), name="r")
    S = te.compute((m,), lambda i: te.sum(A[i, r], axis=r), name="S")
    D = te.compute((m, n), lambda i, j: A[i, j] + S[i], name="D")
    return te.create_prim_func([A, D]), lambda a: a + a.sum(axis=1, keepdims=True)


def pairs(m=6, n=8):
    """A block with two results, one of which is read backwards."""
    A = te.placeholder((m, n), name="A")
    P, Q = te.compute((m, n), lambda i, j: (A[i, j] + 1.0, A[i, j] * 2.0), name="P")
    C = te.compute((m, n), lambda i, j: P[i, j] * Q[i, n - 1 - j], name="C")
    return te.create_prim_func([A, C]), lambda a: (a + 1) * (a * 2)[:, ::-1]


def best(m=5, n=9):
    """Places of the maxima plus the maxima: a reduction with two results."""
    X = te.placeholder((m, n), name="X")
    pair = te.comm_reducer(
        lambda x, y: (
            tir.Select(x[1] >= y[1], x[0], y[0]),
            tir.Select(x[1] >= y[1], x[1], y[1]),
        ),
        lambda i, v: (tir.const(-1, i), te.min_value(v)),
    )
    k = te.reduce_axis((0, n), name="k")
    at, value = te.compute((m,), lambda i: pair((k, X[i, k]), axis=k), name="best")
    D = te.compute((m,), lambda i: value[i] + at[i].astype("float32"), name="D")
    return te.create_prim_func([X, D]), lambda x: x.max(axis=1) + x.argmax(axis=1)


def guarded(n=9):
    """Running sums by a condition, of which some elements are never used."""
    A = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((n,), lambda i: te.sum(B[k], axis=k, where=k <= i), name="C")
    D = te.compute((n,), lambda i: tir.if_then_else(i < 4, C[i], B[n - 1 - i]), name="D")

    def answer(a):
        return np.where(np.arange(n) < 4, np.cumsum(a * 2), (a * 2)[::-1])

    return te.create_prim_func([A, D]), answer


def reshaped(m=6, n=5, k=4):
    """Transposed, flattened and reversed."""
    A = te.placeholder((m, n, k), name="A")
    B = te.compute((k, m, n), lambda i, j, l: A[j, l, i] + 1.0, name="B")
    C = te.compute((m * n, k), lambda i, j: B[j, i // n, i % n] * 2.0, name="C")
    D = te.compute((k, m * n), lambda i, j: C[m * n - 1 - j, i] - 1.0, name="D")
    return te.create_prim_func([A, D]), lambda a: ((a + 1) * 2 - 1).reshape(m * n, k)[::-1].T


def offset(n=12, dtype="int64"):
    """A reduction that does not start at zero, with wide indices."""
    m = tir.const(7, dtype)
    A = te.placeholder((m, tir.const(n, dtype)), name="A")
    k = te.reduce_axis((tir.const(2, dtype), tir.const(n - 1, dtype)), name="k")
    B = te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((m,), lambda i: B[m - 1 - i] * 2.0, name="C")
    return te.create_prim_func([A, C]), lambda a: (a[:, 2 : n - 1].sum(axis=1) * 2)[::-1]


def concat(m=4, n=6, k=5):
    """Two computed matrices beside each other, and what follows."""
    A, B = te.placeholder((m, n), name="A"), te.placeholder((m, k), name="B")
    P = te.compute((m, n), lambda i, j: A[i, j] + 1.0, name="P")
    Q = te.compute((m, k), lambda i, j: B[i, j] * 2.0, name="Q")
    C = te.compute((m, n + k), lambda i, j: tir.if_then_else(j < n, P[i, j], Q[i, j - n]), name="C")
    D = te.compute((m, n + k), lambda i, j: C[i, j] - 3.0, name="D")
    return te.create_prim_func([A, B, D]), lambda a, b: np.concatenate([a + 1, b * 2], 1) - 3


def dilated(m=5, n=4):
    """Rows with zeros between their elements, where an "and" guards what is read."""
    A = te.placeholder((m, n), name="A")
    P = te.compute((m, n), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute(
        (m + 2, 2 * n),
        lambda i, j: tir.if_then_else(tir.all(i < m, tir.floormod(j, 2) == 0), P[i, j // 2], 0.0),
        name="C",
    )
    D = te.compute((m + 2, 2 * n), lambda i, j: C[i, j] + C[i, 2 * n - 1 - j], name="D")

    def answer(a):
        c = np.zeros((m + 2, 2 * n), "float32")
        c[:m, ::2] = a * 2
        return c + c[:, ::-1]

    return te.create_prim_func([A, D]), answer


def convolution(h=6, c=3, o=5):
    """A padded convolution and what follows it in a network."""
    X, W = te.placeholder((1, h, 7, c), name="X"), te.placeholder((3, 3, c, o), name="W")
    Y = topi.nn.relu(topi.nn.conv2d_nhwc(X, W, 1, 1, 1))

    def answer(x, w):
        p = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = [(r, s) for r in range(3) for s in range(3)]
        parts = [
            np.einsum("nhwc,co->nhwo", p[:, r : r + h, s : s + 7], w[r, s]) for r, s in windows
        ]
        return np.maximum(sum(parts), 0)

    return te.create_prim_func([X, W, Y]), answer


def softmax(m=6, n=10):
    """Exponentials over their sums, with the maximum taken off."""
    X = te.placeholder((m, n), name="X")

    def answer(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return te.create_prim_func([X, topi.nn.softmax(X)]), answer


def arrays_for(func):
    """Random arguments of a function, the last of which is the result: full of NaN."""
    rng = np.random.default_rng(3)
    buffers = [func.buffer_map[param] for param in func.params]
    arrays = [rng.standard_normal([int(e) for e in b.shape]).astype(b.dtype) for b in buffers]
    arrays[-1][...] = np.nan
    return arrays


def check(sch, func, answer, target="llvm"):
    """What a schedule of `func` computes is the answer of NumPy."""
    arrays = arrays_for(func)
    given = [tvm.nd.array(a) for a in arrays]
    tvm.build(sch.mod, target=target)(*given)
    want = answer(*arrays[:-1])
    np.testing.assert_allclose(given[-1].numpy(), want, rtol=1e-4, atol=1e-4)


def replay(sch, func):
    """A fresh schedule after the printed trace of `sch`."""
    names: dict = {"tir": tir}
    exec(str(sch.trace), names)
    fresh = tir.Schedule(func)
    names["apply_trace"](fresh)
    return fresh


def body(sch, name="main"):
    """Lines of the scheduled function below its root block, unindented by what they share."""
    lines = str(sch.mod[name]).split("\n")
    start = next(i for i, line in enumerate(lines) if 'T.block("root")' in line) + 1
    return [line[4:] for line in lines[start:]]
