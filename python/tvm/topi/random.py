"""Random numbers as functions of a seed: element by element, in any order, on any machine.

Each element counts on its own in a generator of Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", SC 2011 (Philox of two 32-bit words and ten rounds), so that kernels need no state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from . import tag
from .threefry import multinomial, normal, threefry_generate, threefry_split, uniform
from .utils import as_int

__all__ = [
    "multinomial",
    "normal",
    "random_bits",
    "random_integers",
    "random_normal",
    "random_uniform",
    "threefry_generate",
    "threefry_split",
    "uniform",
]

_MULTIPLIER, _KEY_STEP, _ROUNDS = 0xD256D193, 0x9E3779B9, 10
# Spreads the numbers of streams over all words, so that those of neighbours have nothing in common.
_STREAM_STEP = 0x85EBCA6B


def _words(seed: te.Tensor, stream: int, index: Any) -> tuple[Any, Any]:
    """Two words of 32 random bits, as integers of 64 bits, for an element of a stream."""

    def number(value: int) -> Any:
        return tir.const(value, "uint64")

    low = number(0xFFFFFFFF)
    whole = seed(0).astype("uint64")
    position = index.astype("uint64")
    first = position & low
    offset = number(stream * _STREAM_STEP & 0xFFFFFFFF)
    second = ((whole >> number(32)) + (position >> number(32)) + offset) & low
    for step in range(_ROUNDS):
        key = (whole + number(step * _KEY_STEP & 0xFFFFFFFF)) & low
        product = first * number(_MULTIPLIER)
        first, second = (product >> number(32)) ^ key ^ second, product & low
    return first, second


def _index(shape: Sequence[int], place: Sequence[Any]) -> Any:
    index: Any = tir.const(0, "int64")
    for extent, at in zip(shape, place):
        index = index * tir.const(extent, "int64") + at.astype("int64")
    return index


def _drawn(seed: te.Tensor, stream: int, shape: Sequence[Any], name: str, value: Any) -> te.Tensor:
    """The tensor whose elements are `value` of their two random words."""
    if len(seed.shape) != 1 or as_int(seed.shape[0]) != 1 or str(seed.dtype) != "int64":
        raise ValueError(
            f"topi.{name}: the seed must be int64 of shape (1,), got {seed.dtype} of "
            f"{list(seed.shape)}"
        )
    extents = [as_int(e) for e in shape]

    def element(*place: Any) -> Any:
        return value(*_words(seed, stream, _index(extents, place)))

    return te.compute(extents, element, name=name, tag=tag.INJECTIVE)


def random_bits(seed: te.Tensor, stream: int, shape: Sequence[Any]) -> te.Tensor:
    """Integers of 64 random bits.

    Parameters
    ----------
    seed : (1,) of int64.
    stream : numbers of different streams have nothing in common.
    shape : fixed extents.

    Returns
    -------
    uint64.

    Raises
    ------
    ValueError : the seed is no single int64.
    """
    return _drawn(
        seed, stream, shape, "random_bits", lambda a, b: (a << tir.const(32, "uint64")) | b
    )


def _unit(first: Any, second: Any, dtype: str) -> Any:
    """A number from 0 on, below 1: a multiple of the distance of numbers just below 1."""
    if dtype == "float64":
        bits = (first << tir.const(21, "uint64")) | (second >> tir.const(11, "uint64"))
        return bits.astype("int64").astype(dtype) * tir.const(2.0**-53, dtype)
    return (first >> tir.const(8, "uint64")).astype("int32").astype(dtype) * tir.const(
        2.0**-24, dtype
    )


def _computing(dtype: str) -> str:
    return "float64" if dtype == "float64" else "float32"


def random_uniform(
    seed: te.Tensor, stream: int, shape: Sequence[Any], dtype: str = "float32"
) -> te.Tensor:
    """Floats that are spread evenly from 0 on, below 1. Arguments as those of `random_bits`."""
    # Rounded to 16 bits, numbers next to 1 would become 1.
    keep = {"float16": 11, "bfloat16": 8}.get(dtype)

    def value(first: Any, second: Any) -> Any:
        if keep is None:
            return _unit(first, second, dtype)
        bits = (first >> tir.const(32 - keep, "uint64")).astype("int32")
        return (bits.astype("float32") * tir.const(2.0**-keep, "float32")).astype(dtype)

    return _drawn(seed, stream, shape, "random_uniform", value)


def random_normal(
    seed: te.Tensor, stream: int, shape: Sequence[Any], dtype: str = "float32"
) -> te.Tensor:
    """Floats of the normal distribution of mean 0 and variance 1, by Box and Muller's transform.

    Arguments as those of `random_bits`.
    """
    kind = _computing(dtype)

    def value(first: Any, second: Any) -> Any:
        # Above 0, because of the logarithm; of one word, as the other one gives the angle.
        scale = tir.const(2.0**-32, kind)
        radius = (first.astype("int64").astype(kind) + tir.const(0.5, kind)) * scale
        angle = second.astype("int64").astype(kind) * (scale * tir.const(2 * math.pi, kind))
        # Rounding to 24 bits must not make it more than 1.
        most = tir.const(1.0 - 2.0**-24, kind)
        length = tir.sqrt(tir.const(-2.0, kind) * tir.log(tir.min(radius, most)))
        return (length * tir.cos(angle)).astype(dtype)

    return _drawn(seed, stream, shape, "random_normal", value)


def random_integers(
    seed: te.Tensor, stream: int, shape: Sequence[Any], low: int, high: int, dtype: str = "int64"
) -> te.Tensor:
    """Integers that are spread evenly from `low` on, below `high`.

    Arguments as those of `random_bits`; a range of up to 2**32 takes one word, of more 64 bits.

    Raises
    ------
    ValueError : the range is empty.
    """
    count = high - low
    if count <= 0 or count > 2**64:
        raise ValueError(f"topi.random_integers: no integers from {low} on below {high}")

    def value(first: Any, second: Any) -> Any:
        if count <= 2**32:
            offset = (first * tir.const(count, "uint64")) >> tir.const(32, "uint64")
        else:
            offset = (first << tir.const(32, "uint64")) | second
            if count < 2**64:
                offset = tir.truncmod(offset, tir.const(count, "uint64"))
        return (offset.astype("int64") + tir.const(low, "int64")).astype(dtype)

    return _drawn(seed, stream, shape, "random_integers", value)
