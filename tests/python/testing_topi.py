"""Runs te computations that nobody scheduled, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

import tvm
from tvm import te, tir


def evaluate(fn: Callable[..., Any], *arrays: np.ndarray, symbolic: Collection[int] = ()) -> Any:
    """Value of ``fn``, from te tensors to a tensor or several, for the arrays.

    Compiled for the current target, LLVM when there is none.

    Parameters
    ----------
    symbolic : extents that the tensors have a variable for, one for each number; the array's
        extent is then known only when the program runs.
    """
    extents = {n: te.size_var(f"n{n}") for n in symbolic}
    inputs = [
        te.placeholder([extents.get(n, n) for n in a.shape], str(a.dtype), f"x{i}")
        for i, a in enumerate(arrays)
    ]
    result = fn(*inputs)
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    schedule = te.create_schedule([t.op for t in outputs])
    func = tvm.build(schedule, [*inputs, *outputs], target=tvm.target.Target.current() or "llvm")
    values = [_empty(t, extents) for t in outputs]
    func(*(tvm.nd.array(a) for a in arrays), *values)
    numbers = [value.numpy() for value in values]
    return numbers if isinstance(result, (list, tuple)) else numbers[0]


def _empty(tensor: te.Tensor, extents: dict[int, tir.Var]) -> Any:
    numbers = {var: tir.const(n, "int32") for n, var in extents.items()}
    analyzer = tvm.arith.Analyzer()
    shape = [
        int(analyzer.simplify(tir.stmt_functor.substitute(extent, numbers)))
        for extent in tensor.shape
    ]
    # Filled, so that an element nobody writes shows.
    dtype = str(tensor.dtype)
    return tvm.nd.array(np.full(shape, 77 if dtype != "bool" else True, dtype=dtype))


def random_array(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> np.ndarray:
    """Standard normal numbers, or whole ones from -9 to 9 in an integer type."""
    if dtype.startswith(("int", "uint")):
        return rng.integers(0 if dtype[0] == "u" else -9, 10, shape).astype(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return rng.standard_normal(shape).astype(dtype)
