"""Small te programs with their NumPy meaning, and random schedules for them."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm import te, tir
from tvm.error import ScheduleError
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


def chain(rng: random.Random) -> Program:
    """Elementwise steps, one with two results, over a transposed input."""
    n, m = rng.randint(1, 9), rng.randint(1, 9)
    A = te.placeholder((n, m), name="A")
    B = te.placeholder((m, n), name="B")
    S, D = te.compute((n, m), lambda i, j: (A[i, j] + B[j, i], A[i, j] - B[j, i]), name="SD")
    C = te.compute((n, m), lambda i, j: S[i, j] * D[n - 1 - i, j], name="C")
    E = te.compute((m * n,), lambda x: C[x % n, x // n] + 1.0, name="E")

    def reference(a, b):
        return (((a + b.T) * (a - b.T)[::-1]).T + 1).ravel()

    return Program([A, B], [E], reference)


def pool(rng: random.Random) -> Program:
    """Maximum over windows that overlap or leave gaps, less the mean of the channel's maxima."""
    size, channels = rng.randint(4, 8), rng.randint(1, 5)
    window, stride = rng.randint(1, 3), rng.randint(1, 3)
    out = (size - window) // stride + 1
    X = te.placeholder((channels, size, size), name="X")
    kh, kw = (te.reduce_axis((0, window), name=name) for name in ("kh", "kw"))
    M = te.compute(
        (channels, out, out),
        lambda c, h, w: te.max(X[c, h * stride + kh, w * stride + kw], axis=[kh, kw]),
        name="M",
    )
    h, w = (te.reduce_axis((0, out), name=name) for name in ("h", "w"))
    S = te.compute((channels,), lambda c: te.sum(M[c, h, w], axis=[h, w]), name="S")
    R = te.compute((channels, out, out), lambda c, i, j: M[c, i, j] * 2.0 - S[c], name="R")

    def reference(x):
        m = np.zeros((channels, out, out), "float32")
        for i in range(out):
            for j in range(out):
                part = x[:, i * stride : i * stride + window, j * stride : j * stride + window]
                m[:, i, j] = part.max(axis=(1, 2))
        return m * 2 - m.sum(axis=(1, 2))[:, None, None]

    return Program([X], [R], reference)


def scan(rng: random.Random) -> Program:
    """Two states that read each other, with a reduction in each step."""
    steps, n = rng.randint(2, 5), rng.randint(1, 6)
    X = te.placeholder((steps, n), name="X")
    A = te.placeholder((steps, n), name="A")
    B = te.placeholder((steps, n), name="B")
    a0 = te.compute((1, n), lambda _, i: X[0, i], name="a0")
    b0 = te.compute((1, n), lambda _, i: X[0, n - 1 - i] + 1.0, name="b0")
    k = te.reduce_axis((0, n), name="k")
    total = te.compute((steps,), lambda t: te.sum(A[t - 1, k], axis=k), name="total")
    twice = te.compute((steps, n), lambda t, i: B[t - 1, i] * 2.0, name="twice")
    a1 = te.compute((steps, n), lambda t, i: twice[t, n - 1 - i] - X[t, i], name="a1")
    b1 = te.compute((steps, n), lambda t, i: total[t] + B[t - 1, i], name="b1")
    R, T = te.scan([a0, b0], [a1, b1], [A, B], inputs=[X], name="S")
    D = te.compute((steps, n), lambda t, i: R[t, i] + T[t, i], name="D")

    def reference(x):
        a, b = [x[0]], [x[0][::-1] + 1]
        for t in range(1, steps):
            last_a, last_b = a[-1], b[-1]
            a.append(2 * last_b[::-1] - x[t])
            b.append(last_a.sum() + last_b)
        return np.stack(a) + np.stack(b)

    return Program([X], [D], reference)


PROGRAMS = {p.__name__: p for p in (matmul, conv2d, stencil, row_norms, argmax, chain, pool, scan)}


def _reductions(op: te.Operation) -> list[IterVar]:
    return list(op.reduce_axis) if isinstance(op, te.ComputeOp) else []


def random_schedule(program: Program, rng: random.Random) -> te.Schedule:
    """Any mixture of the primitives that is legal for the program."""
    s = te.create_schedule([t.op for t in program.outputs[:1]])
    _random_caches(s, rng)
    starts = {t.op for stage in s.stages if isinstance(stage.op, te.ScanOp) for t in stage.op.init}
    inlined: set[int] = set()
    for index in reversed(range(len(s.stages))):
        stage = s.stages[index]
        if isinstance(stage.op, te.PlaceholderOp):
            continue
        readers = _readers(s, stage)
        is_part = any(isinstance(r.op, te.ScanOp) for r in readers)
        is_plain_compute = isinstance(stage.op, te.ComputeOp) and not _reductions(stage.op)
        if not stage.is_output and is_plain_compute and not is_part and rng.random() < 0.25:
            stage.compute_inline()
            inlined.add(index)
            continue
        _random_loops(stage, rng)
        is_plain = all(r.attach_type != 2 for r in readers)
        may_attach = not stage.is_output and len(readers) == 1 and is_plain
        if may_attach and stage.op not in starts and rng.random() < 0.6:
            loop = rng.choice(list(readers[0].leaf_iter_vars))
            # Refused across the border of a group; the schedule is as it was.
            with contextlib.suppress(ScheduleError):
                stage.compute_at(readers[0], loop)
        if not stage.is_output and is_plain_compute and rng.random() < 0.2:
            stage.storage_align(
                rng.choice(list(stage.op.axis)), rng.randint(1, 8), rng.randint(0, 3)
            )
    return s


def _readers(s: te.Schedule, stage: te.Stage) -> list[te.Stage]:
    return [
        other for other in s.stages if any(t.op.same_as(stage.op) for t in other.op.input_tensors)
    ]


def _random_caches(s: te.Schedule, rng: random.Random) -> None:
    for stage in list(s.stages):
        op = stage.op
        if isinstance(op, te.ScanOp):
            continue
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
        elif choice < 0.6 and _reductions(op):
            loop = rng.choice(_reductions(op))
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
        # Steps of a scan stay in order.
        with contextlib.suppress(ScheduleError):
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


def random_gpu_schedule(program: Program, rng: random.Random) -> te.Schedule:
    """Random blocks and threads, with producers in shared or local memory of them."""
    s = te.create_schedule([t.op for t in program.outputs[:1]])
    outputs = program.outputs
    threads = rng.choice([1, 3, 4, 8])
    tx = te.thread_axis((0, threads), "threadIdx.x")
    out = s[outputs[0]]
    if rng.random() < 0.4 and _reductions(out.op):
        loop = rng.choice(_reductions(out.op))
        _, loop = out.split(loop, factor=rng.randint(1, 4))
        s.rfactor(outputs[0], loop)
    attached: dict[Any, tuple[te.Stage, IterVar, str]] = {}
    for index in reversed(range(len(s.stages))):
        stage = s.stages[index]
        op = stage.op
        if isinstance(op, te.PlaceholderOp):
            continue
        readers = _readers(s, stage)
        if not stage.is_output and not _reductions(op) and rng.random() < 0.4:
            stage.compute_inline()
            continue
        place = attached.get(readers[0].op) if len(readers) == 1 else None
        if place is not None and rng.random() < 0.8:
            reader, block, inner = place
            shared = rng.random() < 0.6
            stage.compute_at(reader, block if shared else inner)
            stage.set_scope("shared" if shared else "local")
            if shared:
                fused = stage.fuse(*op.axis) if len(op.axis) > 0 else stage.fuse()
                _, thread = stage.split(fused, factor=threads)
                stage.bind(thread, tx)
            continue
        fused = stage.fuse(*op.axis) if len(op.axis) > 0 else stage.fuse()
        rest, thread = stage.split(fused, factor=threads)
        if rng.random() < 0.4:
            rest, serial = stage.split(rest, factor=rng.randint(1, 3))
            stage.reorder(rest, thread, serial)
        stage.bind(rest, te.thread_axis("blockIdx.x"))
        stage.bind(thread, tx)
        attached[op] = (stage, rest, rng.choice([thread, *_reductions(op)]))
        if rng.random() < 0.5:
            sources = [t for t in op.input_tensors if isinstance(t.op, te.PlaceholderOp)]
            if sources:
                cache = s.cache_read(rng.choice(sources), "shared", [op])
                copy = s[cache]
                copy.compute_at(stage, rest)
                _, lane = copy.split(copy.fuse(*cache.op.axis), factor=threads)
                copy.bind(lane, tx)
                return s
    return s
