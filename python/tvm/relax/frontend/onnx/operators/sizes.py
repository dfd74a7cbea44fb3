"""Operators on sizes that are open: arrays that hold symbols beside numbers.

What a model computes of the shapes of its inputs (`Shape`, then `Gather`, `Mul`, `Concat`, ...) is
known while it is traced, up to the symbols that PyTorch's export has for open sizes. Arrays of
numpy with elements of type object hold those, and stay on the side of what is known.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..types import dtype_of
from .registry import Node

__all__ = ["TAKES_SIZES", "compute_sizes", "computes_sizes", "has_open_sizes", "size_array",
           "size_tensor"]  # fmt: skip

Array = np.ndarray[Any, Any]
_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)

# Operators that ask for sizes among their inputs as numbers, which may be open.
TAKES_SIZES = frozenset(
    {"ConstantOfShape", "Expand", "Pad", "Range", "Reshape", "Resize", "Slice", "Split", "Tile"}
)


def size_array(sizes: Sequence[Any]) -> Array:
    """Sizes as a vector: of int64, or of objects where some are open."""
    if not any(isinstance(size, _SYMBOLS) for size in sizes):
        return np.array([int(size) for size in sizes], np.int64)
    return _filled((len(sizes),), sizes)


def has_open_sizes(value: Any) -> bool:
    """Whether a value holds symbols."""
    return isinstance(value, np.ndarray) and value.dtype == object


def size_tensor(array: Any) -> torch.Tensor:
    """An array with open sizes as a tensor of the program."""
    whole = not any(isinstance(size, (float, torch.SymFloat)) for size in array.reshape(-1))
    dtype = torch.int64 if whole else torch.float32
    parts = [torch.scalar_tensor(size, dtype=dtype) for size in array.reshape(-1)]
    return torch.stack(parts).reshape(array.shape)


def computes_sizes(op_type: str) -> bool:
    """Whether there is such an operator on sizes."""
    return op_type in _TABLE


def compute_sizes(n: Node, inputs: Sequence[Any]) -> list[Any]:
    """The results of an operator on arrays of which some hold symbols."""
    result = _TABLE[n.op_type](n, *inputs)
    results = result if isinstance(result, list) else [result]
    return [_settled(value) for value in results]


def _filled(shape: Sequence[int], values: Sequence[Any]) -> Array:
    array = np.empty(shape, object)
    for place, value in zip(np.ndindex(*shape), values):
        array[place] = value.item() if isinstance(value, np.generic) else value
    return array


def _settled(value: Any) -> Array:
    """A result without symbols as an array of numbers."""
    array = np.asarray(value, object) if not isinstance(value, np.ndarray) else value
    if array.dtype != object or any(isinstance(v, _SYMBOLS) for v in array.reshape(-1)):
        return array
    kinds = {type(v) for v in array.reshape(-1)}
    if kinds <= {bool}:
        return array.astype(np.bool_)
    return array.astype(np.float32 if float in kinds else np.int64)


def _each(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of numbers, for each place of arrays that broadcast."""

    def compute(n: Node, *arrays: Array) -> Array:
        spread = np.broadcast_arrays(*(np.asarray(a, object) for a in arrays))
        columns = (a.reshape(-1) for a in spread)
        return _filled(spread[0].shape, [function(*map(_plain, row)) for row in zip(*columns)])

    return compute


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _quotient(a: Any, b: Any) -> Any:
    if any(isinstance(v, (float, torch.SymFloat)) for v in (a, b)):
        return a / b
    if isinstance(a, int) and isinstance(b, int):
        return math.trunc(a / b) if abs(a) < 2**52 else int(a / b)
    # Sizes are not negative, and are divided by numbers that are not either.
    return a // b


def _decided(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    """A comparison, which the export remembers as what must hold of the sizes."""
    return lambda a, b: bool(function(a, b))


def _cast(n: Node, x: Array, like: Array | None = None) -> Array:
    to = dtype_of(n.attr("to")) if like is None else None
    if to is None or not (to.is_floating_point or to in (torch.int32, torch.int64, torch.bool)):
        return x
    if to == torch.bool:
        return _each(bool)(n, x)
    return _each(torch.sym_float if to.is_floating_point else torch.sym_int)(n, x)


def _axes(n: Node, index: int) -> tuple[int, ...] | None:
    given = n.ints(index)
    axes = n.attr("axes") if given is None else given
    return None if axes is None else tuple(int(axis) for axis in axes)


def _slice(n: Node, x: Array, *_: Any) -> Array:
    starts, ends = n.ints(1) or n.attr("starts") or [], n.ints(2) or n.attr("ends") or []
    axes = n.ints(3) or n.attr("axes") or list(range(len(starts)))
    steps = n.ints(4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        last = None if step < 0 and end < -x.shape[axis] else end
        where = (slice(None),) * (axis % x.ndim) + (slice(start, last, step),)
        x = x[where]
    return x


def _unsqueeze(n: Node, x: Array, *_: Any) -> Array:
    axes = _axes(n, 1) or ()
    return np.expand_dims(x, axes)


def _squeeze(n: Node, x: Array, *_: Any) -> Array:
    return np.squeeze(x, _axes(n, 1))


def _reshape(n: Node, x: Array, *_: Any) -> Array:
    wanted = [x.shape[i] if e == 0 else e for i, e in enumerate(n.ints(1) or [])]
    return x.reshape(wanted)


def _expand(n: Node, x: Array, *_: Any) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(n.ints(1) or [])))


def _concat(n: Node, *arrays: Array) -> Array:
    return np.concatenate([np.asarray(a, object) for a in arrays], n.attr("axis"))


def _split(n: Node, x: Array, *_: Any) -> list[Array]:
    axis = n.attr("axis", 0)
    sizes = n.ints(1) or n.attr("split")
    if sizes is None:
        return list(np.array_split(x, n.n_outputs, axis))
    return list(np.split(x, np.cumsum(sizes)[:-1], axis))


def _behind(place: tuple[int, ...]) -> tuple[Any, ...]:
    """All of the first dimension, at one place of the others."""
    return (slice(None), *place)


def _reduced(function: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def compute(n: Node, x: Array, *_: Any) -> Array:
        axes = _axes(n, 1)
        keep = bool(n.attr("keepdims", 1))
        for axis in sorted((a % x.ndim for a in axes or range(x.ndim)), reverse=True):
            rows = np.moveaxis(x, axis, 0)
            x = _filled(rows.shape[1:], [
                functools.reduce(function, map(_plain, rows[_behind(place)]))
                for place in np.ndindex(*rows.shape[1:])
            ])  # fmt: skip
            if keep:
                x = np.expand_dims(x, axis)
        return x

    return compute


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _times(a: Any, b: Any) -> Any:
    return a * b


_TABLE: dict[str, Callable[..., Any]] = {
    "Abs": _each(abs),
    "Add": _each(_sum),
    "And": _each(lambda a, b: bool(a) and bool(b)),
    "Cast": _cast,
    "CastLike": _cast,
    "Ceil": _each(lambda a: torch.sym_float(-math.floor(-a)) if not isinstance(a, int) else a),
    "Concat": _concat,
    "Div": _each(_quotient),
    "Equal": _each(_decided(lambda a, b: a == b)),
    "Expand": _expand,
    "Floor": _each(lambda a: torch.sym_float(math.floor(a))),
    "Gather": lambda n, x, indices: np.take(x, indices.astype(np.int64), n.attr("axis", 0)),
    "Greater": _each(_decided(lambda a, b: a > b)),
    "GreaterOrEqual": _each(_decided(lambda a, b: a >= b)),
    "Identity": lambda n, x: x,
    "Less": _each(_decided(lambda a, b: a < b)),
    "LessOrEqual": _each(_decided(lambda a, b: a <= b)),
    "Max": _each(lambda *v: functools.reduce(torch.sym_max, v)),
    "Min": _each(lambda *v: functools.reduce(torch.sym_min, v)),
    "Mod": _each(lambda a, b: a % b),
    "Mul": _each(_times),
    "Neg": _each(lambda a: -a),
    "Not": _each(lambda a: not a),
    "Or": _each(lambda a, b: bool(a) or bool(b)),
    "ReduceMax": _reduced(torch.sym_max),
    "ReduceMin": _reduced(torch.sym_min),
    "ReduceProd": _reduced(_times),
    "ReduceSum": _reduced(_sum),
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _each(lambda a, b: a - b),
    "Transpose": lambda n, x: np.transpose(x, n.attr("perm")),
    "Unsqueeze": _unsqueeze,
    "Where": _each(lambda condition, a, b: a if condition else b),
}
