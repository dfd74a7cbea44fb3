"""Random numbers of keys. See :mod:`tvm.topi.threefry`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import error, topi
from tvm.ir import RelayExpr

from ..expr import Constant, TupleWrapper, const, exact_const
from .registry import REQUIRED, define, make

__all__ = [
    "multinomial",
    "normal",
    "threefry_generate",
    "threefry_key",
    "threefry_split",
    "uniform",
]


def _pair(compute: Any) -> Any:
    return lambda *args, **settings: list(compute(*args, **settings))


define(
    "random.threefry_generate",
    _pair(topi.random.threefry_generate),
    settings={"out_shape": REQUIRED},
    num_inputs=1,
)
define("random.threefry_split", _pair(topi.random.threefry_split), num_inputs=1)
for _name in ("uniform", "normal"):
    define(
        f"random.{_name}",
        _pair(getattr(topi.random, _name)),
        settings={"out_shape": REQUIRED, "out_dtype": REQUIRED},
        num_inputs=3,
    )
define(
    "random.multinomial",
    _pair(topi.random.multinomial),
    settings={"num_samples": REQUIRED},
    num_inputs=2,
)


def threefry_key(seed: int) -> Constant:
    """The key of a seed of up to 256 bits.

    Raises
    ------
    ValueError : the seed is negative or has more bits.
    """
    if not 0 <= seed < 1 << 256:
        raise error.ValueError(f"relay.random.threefry_key: a seed has 0 to 256 bits, got {seed}")
    words = np.frombuffer(int(seed).to_bytes(32, "little"), "uint64")
    return exact_const(np.concatenate([words, np.array([0, 0, 0, 0, 1 << 63, 0], "uint64")]))


def threefry_generate(key: RelayExpr, shape: Sequence[int]) -> TupleWrapper:
    """The key to go on with, and random words of uint64. Use a key once."""
    return TupleWrapper(make("random.threefry_generate", [key], out_shape=tuple(shape)), 2)


def threefry_split(key: RelayExpr) -> TupleWrapper:
    """Two keys whose numbers have nothing in common, in the place of one."""
    return TupleWrapper(make("random.threefry_split", [key]), 2)


def _drawn(
    name: str, key: RelayExpr, shape: Sequence[int], dtype: str, first: Any, second: Any
) -> TupleWrapper:
    operands = [x if isinstance(x, RelayExpr) else const(float(x), dtype) for x in (first, second)]
    call = make(name, [key, *operands], out_shape=tuple(shape), out_dtype=dtype)
    return TupleWrapper(call, 2)


def uniform(
    key: RelayExpr, shape: Sequence[int], dtype: str = "float32", low: Any = 0.0, high: Any = 1.0
) -> TupleWrapper:
    """The key to go on with, and numbers of [low, high), which may be expressions."""
    return _drawn("random.uniform", key, shape, dtype, low, high)


def normal(
    key: RelayExpr, shape: Sequence[int], dtype: str = "float32", mean: Any = 0.0, scale: Any = 1.0
) -> TupleWrapper:
    """The key to go on with, and numbers of a normal distribution."""
    return _drawn("random.normal", key, shape, dtype, mean, scale)


def multinomial(key: RelayExpr, probs: RelayExpr, num_samples: int = 1) -> TupleWrapper:
    """The key to go on with, and categories drawn with the probabilities of each row."""
    call = make("random.multinomial", [key, probs], num_samples=int(num_samples))
    return TupleWrapper(call, 2)
