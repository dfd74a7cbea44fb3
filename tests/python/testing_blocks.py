"""Functions of blocks, and what the tests of their schedules share."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import te, tir


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
