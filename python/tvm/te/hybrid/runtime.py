"""What the names of the loop language mean when a program runs as plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from tvm.target import Target

__all__ = ["DTYPES", "HYBRID_GLOBALS", "LOOP_KINDS", "MATH", "emulated", "max_num_threads"]

# Loops of the language and what they become in tir.
LOOP_KINDS = {
    "range": "serial",
    "serial": "serial",
    "parallel": "parallel",
    "vectorize": "vectorize",
    "unroll": "unroll",
    "const_range": "unroll",
}

# Types by which values are converted, as in ``float32(x)``.
DTYPES = (
    *("float16", "float32", "float64"),
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)

# Functions on numbers: what numpy computes, and the name of the function in tir.
MATH: dict[str, tuple[Callable[..., Any], str]] = {
    "exp": (np.exp, "exp"),
    "log": (np.log, "log"),
    "log2": (np.log2, "log2"),
    "sqrt": (np.sqrt, "sqrt"),
    "rsqrt": (lambda x: 1 / np.sqrt(x), "rsqrt"),
    "tanh": (np.tanh, "tanh"),
    "sin": (np.sin, "sin"),
    "cos": (np.cos, "cos"),
    "tan": (np.tan, "tan"),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), "sigmoid"),
    "erf": (lambda x: type(x)(math.erf(x)), "erf"),
    "floor": (np.floor, "floor"),
    "ceil": (np.ceil, "ceil"),
    "trunc": (np.trunc, "trunc"),
    "round": (np.round, "nearbyint"),
    "abs": (np.abs, "abs"),
    "power": (np.power, "power"),
    "popcount": (lambda x: bin(int(x)).count("1"), "popcount"),
    "likely": (lambda x: x, "likely"),
    "if_then_else": (lambda cond, x, y: x if cond else y, "if_then_else"),
    "ceil_div": (lambda x, y: -(-x // y), "ceildiv"),
    "floordiv": (lambda x, y: x // y, "floordiv"),
    "floormod": (lambda x, y: x % y, "floormod"),
}


def _memory(shape: Any, dtype: str = "float32", scope: str = "global") -> np.ndarray:
    return np.zeros(shape, dtype)


def max_num_threads(allow_none: bool = True) -> int:
    """The most threads that a block has on the current target.

    Raises
    ------
    ValueError : there is no current target.
    """
    target = Target.current(allow_none)
    if target is None:
        raise ValueError(
            "max_num_threads: no target is current; use the program inside of "
            "`with tvm.target.Target(...)`"
        )
    return int(target.max_num_threads)


def _names() -> dict[str, Any]:
    names: dict[str, Any] = {name: func for name, (func, _) in MATH.items()}
    names.update(dict.fromkeys(LOOP_KINDS, range))
    names.update(
        allocate=_memory,
        output_tensor=_memory,
        bind=lambda tag, extent: range(extent),
        max_num_threads=max_num_threads,
    )
    for dtype in DTYPES:
        names[dtype] = getattr(np, dtype)
    return names


#: All names of the language by what they are in plain Python.
HYBRID_GLOBALS = _names()


def emulated(func: FunctionType) -> FunctionType:
    """The function with the language's names defined; names of its own module come first."""
    twin = FunctionType(
        func.__code__,
        {**HYBRID_GLOBALS, **func.__globals__},
        func.__name__,
        func.__defaults__,
        func.__closure__,
    )
    twin.__kwdefaults__ = func.__kwdefaults__
    return twin
