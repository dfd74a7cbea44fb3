"""Modules to search schedules for, and builders and runners that do neither."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm
from tvm import meta_schedule as ms
from tvm import te
from tvm.ir import IRModule

TARGET = "llvm -num-cores=2"


def matmul_module(n: int = 32, m: int = 32, k: int = 32) -> IRModule:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return IRModule({"main": te.create_prim_func([a, b, c])})


def shifted_matmul_module(n: int = 32) -> IRModule:
    """A product of a shifted input, doubled."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    shifted = te.compute((n, n), lambda i, j: a[i, j] + 1.0, name="shifted")
    r = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(shifted[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((n, n), lambda i, j: c[i, j] * 2.0, name="D")
    return IRModule({"main": te.create_prim_func([a, b, d])})


def sum_module(n: int = 4096) -> IRModule:
    a = te.placeholder((n,), name="A")
    r = te.reduce_axis((0, n), name="k")
    return IRModule(
        {
            "main": te.create_prim_func(
                [a, te.compute((1,), lambda i: te.sum(a[r], axis=r), name="B")]
            )
        }
    )


def outputs_of(mod: IRModule, seed: int = 0) -> np.ndarray:
    """What a module gives for small whole numbers, of which sums are exact."""
    function = mod["main"]
    rng = np.random.default_rng(seed)
    buffers = [function.buffer_map[param] for param in function.params]
    arrays = [rng.integers(-4, 5, [int(n) for n in b.shape]).astype(str(b.dtype)) for b in buffers]
    values = [tvm.nd.array(array) for array in arrays]
    tvm.build(mod, target="llvm")(*values)
    return values[-1].numpy()


class NoBuilder(ms.builder.PyBuilder):
    def build(self, build_inputs: Sequence[Any]) -> list[Any]:
        return [ms.builder.BuilderResult("nowhere", None) for _ in build_inputs]


class CountingRunner(ms.runner.PyRunner):
    """Every candidate takes as many milliseconds as were run before it, plus one."""

    def __init__(self) -> None:
        self.count = 0

    def run(self, runner_inputs: Sequence[Any]) -> list[Any]:
        futures = []
        for _ in runner_inputs:
            self.count += 1
            futures.append(ms.runner.LocalRunnerFuture([self.count * 1e-3]))
        return futures
