"""Small te programs with their NumPy meaning, and random schedules for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm import te, tir
from tvm.tir import IterVar


@dataclass(frozen=True)
class Program:
    """Inputs and outputs as tensors, and what the outputs are for given arrays."""

    inputs: list[te.Tensor]
    outputs: list[te.Tensor]
    reference: Callable[..., Any]

    def random_inputs(self, seed: int) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        shapes = [tuple(int(n) for n in t.shape) for t in self.inputs]
        # Small integers: sums are exact, so results compare with == whatever the order of adding.
        return [rng.integers(-4, 5, shape).astype("float32") for shape in shapes]

    def expected(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        result = self.reference(*arrays)
        return list(result) if isinstance(result, tuple) else [result]


def matmul(rng: random.Random) -> Program:
    """max(A @ B + bias, 0)."""
    n, m, l = (rng.randint(1, 9) for _ in range(3))
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    bias = te.placeholder((m,), name="bias")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((n, m), lambda i, j: C[i, j] + bias[j], name="D")
    E = te.compute((n, m), lambda i, j: te.max(D[i, j], 0.0), name="E")
    return Program([A, B, bias], [E], lambda a, b, c: np.maximum(a @ b + c, 0))


def conv2d(rng: random.Random) -> Program:
    """Padded, strided convolution of one image, channels last."""
    size, ci, co = rng.randint(3, 5), rng.randint(1, 3), rng.randint(1, 4)
    kernel, stride, pad = rng.choice([1, 2, 3]), rng.choice([1, 2]), rng.choice([0, 1])
    out = (size + 2 * pad - kernel) // stride + 1
    X = te.placeholder((size, size, ci), name="X")
    W = te.placeholder((kernel, kernel, ci, co), name="W")
    P = te.compute(
        (size + 2 * pad, size + 2 * pad, ci),
        lambda h, w, c: te.if_then_else(
            te.all(h >= pad, h < size + pad, w >= pad, w < size + pad),
            X[h - pad, w - pad, c],
            0.0,
        ),
        name="P",
    )
    kh = te.reduce_axis((0, kernel), name="kh")
    kw = te.reduce_axis((0, kernel), name="kw")
    kc = te.reduce_axis((0, ci), name="kc")
    C = te.compute(
        (out, out, co),
        lambda h, w, c: te.sum(
            P[h * stride + kh, w * stride + kw, kc] * W[kh, kw, kc, c], axis=[kh, kw, kc]
        ),
        name="C",
    )
    R = te.compute((out, out, co), lambda h, w, c: te.max(C[h, w, c], 0.0), name="R")

    def reference(x, w):
        p = np.pad(x, ((pad, pad), (pad, pad), (0, 0)))
        result = np.zeros((out, out, co), "float32")
        for i in range(out):
            for j in range(out):
                window = p[i * stride : i * stride + kernel, j * stride : j * stride + kernel]
                result[i, j] = np.einsum("hwc,hwco->o", window, w)
        return np.maximum(result, 0)

    return Program([X, W], [R], reference)


def stencil(rng: random.Random) -> Program:
    """Neighbours added twice, so regions of producers overlap."""
    n, m = rng.randint(5, 9), rng.randint(2, 6)
    A = te.placeholder((n, m), name="A")
    B = te.compute((n - 2, m), lambda i, j: A[i, j] + A[i + 1, j] * 2.0 + A[i + 2, j], name="B")
    C = te.compute((n - 4, m), lambda i, j: B[i, j] - B[i + 2, j], name="C")
    D = te.compute((m, n - 4), lambda i, j: C[j, i] * 3.0, name="D")

    def reference(a):
        b = a[:-2] + 2 * a[1:-1] + a[2:]
        return ((b[:-2] - b[2:]) * 3).T

    return Program([A], [D], reference)


def row_norms(rng: random.Random) -> Program:
    """Two reductions that feed a broadcast, as in softmax without the exponential."""
    n, m = rng.randint(1, 7), rng.randint(1, 9)
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    l = te.reduce_axis((0, m), name="l")
    M = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="M")
    B = te.compute((n, m), lambda i, j: A[i, j] - M[i], name="B")
    S = te.compute((n,), lambda i: te.sum(B[i, l], axis=l), name="S")
    C = te.compute((n, m), lambda i, j: B[i, j] * S[i], name="C")

    def reference(a):
        b = a - a.max(axis=1, keepdims=True)
        return b * b.sum(axis=1, keepdims=True)

    return Program([A], [C], reference)


def argmax(rng: random.Random) -> Program:
    """Index and value of the largest element of each row; the first one wins a tie."""
    n, m = rng.randint(1, 5), rng.randint(1, 9)
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")

    def better(x, y):
        return tir.any(x[1] > y[1], tir.all(x[1] == y[1], x[0] < y[0]))

    largest = te.comm_reducer(
        lambda x, y: (
            tir.Select(better(x, y), x[0], y[0]),
            tir.Select(better(x, y), x[1], y[1]),
        ),
        lambda index, value: (tir.const(2**30, index), tir.min_value(value)),
        name="largest",
    )
    I, V = te.compute((n,), lambda i: largest((k.var, A[i, k]), axis=k), name="L")
    return Program([A], [I, V], lambda a: (a.argmax(axis=1).astype("int32"), a.max(axis=1)))


PROGRAMS = {p.__name__: p for p in (matmul, conv2d, stencil, row_norms, argmax)}


def random_schedule(program: Program, rng: random.Random) -> te.Schedule:
    """Any mixture of the primitives that is legal for the program."""
    s = te.create_schedule([t.op for t in program.outputs[:1]])
    _random_caches(s, rng)
    inlined: set[int] = set()
    for index in reversed(range(len(s.stages))):
        stage = s.stages[index]
        if isinstance(stage.op, te.PlaceholderOp):
            continue
        readers = [
            other
            for other in list(s.stages)[index + 1 :]
            if any(t.op.same_as(stage.op) for t in other.op.input_tensors)
        ]
        if not stage.is_output and len(stage.op.reduce_axis) == 0 and rng.random() < 0.25:
            stage.compute_inline()
            inlined.add(index)
            continue
        _random_loops(stage, rng)
        is_plain = all(r.attach_type != 2 for r in readers)
        if not stage.is_output and len(readers) == 1 and is_plain and rng.random() < 0.6:
            stage.compute_at(readers[0], rng.choice(list(readers[0].leaf_iter_vars)))
    return s


def _random_caches(s: te.Schedule, rng: random.Random) -> None:
    for stage in list(s.stages):
        op = stage.op
        if isinstance(op, te.PlaceholderOp):
            readers = [
                other.op
                for other in s.stages
                if any(t.op.same_as(op) for t in other.op.input_tensors)
            ]
            if readers and rng.random() < 0.3:
                s.cache_read(op.output(0), "global", readers)
            continue
        choice = rng.random()
        outputs = [op.output(i) for i in range(op.num_outputs)]
        if choice < 0.3:
            if rng.random() < 0.3:
                order = [iv for iv in stage.leaf_iter_vars if iv.iter_type == IterVar.DataPar]
                rng.shuffle(order)
                stage.reorder(*order)
            s.cache_write(outputs, "local")
        elif choice < 0.6 and len(op.reduce_axis) > 0:
            loop = rng.choice(list(op.reduce_axis))
            if rng.random() < 0.7:
                loop = rng.choice(stage.split(loop, factor=rng.randint(1, 4)))
            s.rfactor(outputs[0], loop, rng.choice([0, -1]))


def _random_loops(stage: te.Stage, rng: random.Random) -> None:
    for loop in list(stage.leaf_iter_vars):
        if rng.random() < 0.6:
            how = {rng.choice(["factor", "nparts"]): rng.randint(1, 5)}
            _, inner = stage.split(loop, **how)
            if rng.random() < 0.3:
                stage.split(inner, factor=rng.randint(1, 3))
    if rng.random() < 0.7:
        order = list(stage.leaf_iter_vars)
        rng.shuffle(order)
        if order:
            stage.reorder(*order)
    loops = list(stage.leaf_iter_vars)
    for a, b in zip(loops, loops[1:]):
        if a.iter_type == b.iter_type and rng.random() < 0.3:
            fused = stage.fuse(a, b)
            if rng.random() < 0.4:
                stage.split(fused, factor=rng.randint(1, 4))
            break
    loops = list(stage.leaf_iter_vars)
    if not loops:
        return
    if loops[-1].iter_type == IterVar.DataPar and rng.random() < 0.5:
        stage.vectorize(loops[-1])
    if loops[0].iter_type == IterVar.DataPar and rng.random() < 0.3:
        stage.parallel(loops[0])
    if rng.random() < 0.3:
        stage.unroll(rng.choice(loops))
