"""Random numbers of keys that are split and counted on, so that parts of a program draw apart.

The generator is Threefry with four words of 64 bits and twenty rounds (Salmon et al., "Parallel
random numbers: as easy as 1, 2, 3", SC 2011, section 4.2); keys are split as Claessen and Palka do
("Splittable pseudorandom number generators using cryptographic hashing", Haskell 2013): the words
that a key gives for a marked count are the key of a half.

A key is ten words of uint64: four that go into the generator, four of a count, of which the last
one counts blocks of four numbers, a mark, and one that is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.tir import ir_builder

from .launch import each, one_thread
from .tag import INJECTIVE
from .utils import as_int

__all__ = [
    "KEY_WORDS",
    "multinomial",
    "normal",
    "threefry_generate",
    "threefry_split",
    "uniform",
]

KEY_WORDS = 10
"""Words of a key."""

_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_PARITY = 0x1BD11BDAA9FC1A22
_LEFT, _RIGHT = 1 << 61, 1 << 62


def _word(value: int) -> Any:
    return tir.const(value, "uint64")


def _rotated(value: Any, bits: int) -> Any:
    return (value << _word(bits)) | (value >> _word(64 - bits))


def _encrypt(ib: ir_builder.IRBuilder, key: Sequence[Any], count: Sequence[Any]) -> Any:
    """Four words, as a local buffer, of a key of four words and a count of four."""
    scheduled = ib.allocate("uint64", (5,), name="scheduled", scope="local")
    words = ib.allocate("uint64", (4,), name="words", scope="local")
    scheduled[4] = _word(_PARITY)
    for i in range(4):
        scheduled[i] = key[i]
        scheduled[4] = scheduled[4] ^ key[i]
        words[i] = count[i] + key[i]
    for step in range(20):
        pairs = ((0, 1), (2, 3)) if step % 2 == 0 else ((0, 3), (2, 1))
        for (a, b), bits in zip(pairs, _ROTATIONS[step % 8]):
            words[a] = words[a] + words[b]
            words[b] = _rotated(words[b], bits) ^ words[a]
        if step % 4 == 3:
            turn = step // 4 + 1
            for i in range(4):
                words[i] = words[i] + scheduled[(turn + i) % 5]
            words[3] = words[3] + _word(turn)
    return words


def _checked(where: str, key: te.Tensor) -> None:
    if [as_int(e) for e in key.shape] != [KEY_WORDS] or str(key.dtype) != "uint64":
        raise ValueError(
            f"topi.{where}: a key is uint64 of shape ({KEY_WORDS},), got {key.dtype} of "
            f"{list(key.shape)}"
        )


def threefry_generate(key: te.Tensor, out_shape: Sequence[Any]) -> tuple[te.Tensor, te.Tensor]:
    """Random words of a key.

    Parameters
    ----------
    key : uint64 of shape (10,); use a key once.
    out_shape : of the words.

    Returns
    -------
    The key to go on with, and words of uint64 whose bits are equally likely.

    Raises
    ------
    ValueError : the key has another shape or type.
    """
    _checked("threefry_generate", key)
    shape = [as_int(e) for e in out_shape]
    size = math.prod(shape)
    blocks = -(-size // 4)

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        given, following, words = (ib.buffer_ptr(b) for b in (*ins, *outs))
        zero, one = _word(0), _word(1)

        def counted(steps: Any) -> list[Any]:
            low = given[7] + steps
            carry = tir.Select(low < steps, one, zero)
            return [given[4], given[5], given[6] + carry, low]

        with one_thread(ib):
            for i in range(KEY_WORDS):
                following[i] = given[i]
            for i, word in enumerate(counted(_word(blocks))):
                following[4 + i] = word
        with each(ib, blocks, "block") as block:
            count = counted(block.astype("uint64"))
            made = _encrypt(ib, [given[i] for i in range(4)], count)
            for i in range(4):
                with ib.if_scope(block * 4 + i < size):
                    words[block * 4 + i] = made[i]
        return ib.get()

    following, words = te.extern(
        [(KEY_WORDS,), (size,)],
        [key],
        body,
        name="threefry_generate",
        dtype=["uint64", "uint64"],
    )

    def at(*place: Any) -> Any:
        index: Any = 0
        for extent, i in zip(shape, place):
            index = index * extent + i
        return words[index]

    return following, te.compute(shape, at, name="threefry_words", tag=INJECTIVE)


def threefry_split(key: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    """Two keys whose words have nothing in common, in the place of one.

    Raises
    ------
    ValueError : the key has another shape or type.
    """
    _checked("threefry_split", key)

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        given = ib.buffer_ptr(ins[0])
        for out, mark in zip(outs, (_LEFT, _RIGHT)):
            half = ib.buffer_ptr(out)
            count = [given[4] ^ _word(mark), given[5], given[6], given[7]]
            with one_thread(ib):
                made = _encrypt(ib, [given[i] for i in range(4)], count)
                for i in range(4):
                    half[i] = made[i]
                    half[4 + i] = _word(0)
                half[8] = given[8]
                half[9] = given[9]
        return ib.get()

    left, right = te.extern(
        [(KEY_WORDS,), (KEY_WORDS,)],
        [key],
        body,
        name="threefry_split",
        dtype=["uint64", "uint64"],
    )
    return left, right


def _fractions(words: te.Tensor, at: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    """Numbers in [0, 1) with as many bits as the type's mantissa has."""
    bits = {"float64": 53, "float32": 24}.get(dtype, 11)

    def fraction(*place: Any) -> Any:
        whole = (at(words, *place) >> _word(64 - bits)).astype("int64")
        wide = "float64" if dtype == "float64" else "float32"
        value = whole.astype(wide) * tir.const(2.0**-bits, wide)
        return value if wide == dtype else value.astype(dtype)

    return fraction


def _real(where: str, out_dtype: str) -> None:
    if out_dtype not in ("float16", "float32", "float64"):
        raise ValueError(
            f"topi.{where}: out_dtype must be float16, float32 or float64, got {out_dtype}"
        )


def _number(value: Any, dtype: str) -> Any:
    """A number, or the only element of a tensor, in a type."""
    if isinstance(value, te.Tensor):
        return value(*[0] * len(value.shape)).astype(dtype)
    return tir.const(value, dtype)


def uniform(
    gen: te.Tensor, low: Any, high: Any, out_shape: Sequence[Any], out_dtype: str
) -> tuple[te.Tensor, te.Tensor]:
    """Numbers of [low, high) that are equally likely.

    Parameters
    ----------
    gen : a key; see :func:`threefry_generate`.
    low, high : numbers, or tensors of one element.
    out_dtype : "float16", "float32" or "float64".

    Returns
    -------
    The key to go on with, and the numbers.

    Raises
    ------
    ValueError : the key or the type is another one.
    """
    _real("uniform", out_dtype)
    following, words = threefry_generate(gen, out_shape)
    fraction = _fractions(words, lambda w, *place: w(*place), out_dtype)
    first, last = _number(low, out_dtype), _number(high, out_dtype)
    values = te.compute(
        words.shape,
        lambda *place: fraction(*place) * (last - first) + first,
        name="uniform",
        tag=INJECTIVE,
    )
    return following, values


def normal(
    gen: te.Tensor, mean: Any, scale: Any, out_shape: Sequence[Any], out_dtype: str
) -> tuple[te.Tensor, te.Tensor]:
    """Numbers of a normal distribution (Box and Muller, 1958).

    Parameters
    ----------
    gen, out_dtype : as of :func:`uniform`.
    mean, scale : the expectation and the standard deviation, numbers or tensors of one element.

    Returns
    -------
    The key to go on with, and the numbers.

    Raises
    ------
    ValueError : the key or the type is another one.
    """
    _real("normal", out_dtype)
    shape = [as_int(e) for e in out_shape]
    following, words = threefry_generate(gen, [2, *shape])
    exact = "float64" if out_dtype == "float64" else "float32"
    radius = _fractions(words, lambda w, *place: w(0, *place), exact)
    turn = _fractions(words, lambda w, *place: w(1, *place), exact)

    def value(*place: Any) -> Any:
        # 1 - u is above 0, where the logarithm is finite.
        far = tir.sqrt(tir.const(-2.0, exact) * tir.log(tir.const(1.0, exact) - radius(*place)))
        drawn = far * tir.cos(tir.const(2 * math.pi, exact) * turn(*place))
        return drawn.astype(out_dtype) * _number(scale, out_dtype) + _number(mean, out_dtype)

    return following, te.compute(shape, value, name="normal", tag=INJECTIVE)


def multinomial(gen: te.Tensor, probs: te.Tensor, num_samples: int) -> tuple[te.Tensor, te.Tensor]:
    """Categories drawn with given probabilities, one independent of the other.

    Parameters
    ----------
    gen : a key; see :func:`threefry_generate`.
    probs : (..., categories), which need not sum to one; a sum must be above zero.
    num_samples : how many are drawn of each row.

    Returns
    -------
    The key to go on with, and the categories, int32 of shape (..., num_samples).

    Raises
    ------
    ValueError : the key has another shape or type.
    """
    rows = [as_int(e) for e in probs.shape[:-1]]
    count = as_int(probs.shape[-1])
    following, drawn = uniform(gen, 0.0, 1.0, [*rows, num_samples], "float32")
    total = te.reduce_axis((0, count), "category")
    sums = te.compute(
        rows, lambda *row: te.sum(probs(*row, total).astype("float32"), axis=total), name="sums"
    )

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        weights, whole, points = (ib.buffer_ptr(b) for b in ins)
        found = ib.buffer_ptr(outs[0])
        with each(ib, math.prod(rows) * num_samples, "sample") as sample:
            row = sample // num_samples
            so_far = ib.allocate("float32", (1,), name="so_far", scope="local")
            so_far[0] = tir.const(0.0, "float32")
            # The last category of a positive weight, if rounding leaves the point beyond all sums.
            found[sample] = tir.const(0, "int32")
            open_ = ib.allocate("int32", (1,), name="open", scope="local")
            open_[0] = tir.const(1, "int32")
            with ib.for_range(0, count, "category") as category:
                weight = weights[row * count + category].astype("float32")
                taken = tir.all(open_[0] == 1, weight > tir.const(0.0, "float32"))
                with ib.if_scope(taken):
                    found[sample] = category.astype("int32")
                    so_far[0] = so_far[0] + weight
                    with ib.if_scope(points[sample] * whole[row] < so_far[0]):
                        open_[0] = tir.const(0, "int32")
        return ib.get()

    flat = te.extern(
        [(math.prod(rows) * num_samples,)],
        [probs, sums, drawn],
        body,
        name="multinomial",
        dtype=["int32"],
    )

    def at(*place: Any) -> Any:
        index: Any = 0
        for extent, i in zip([*rows, num_samples], place):
            index = index * extent + i
        return flat[index]

    return following, te.compute([*rows, num_samples], at, name="categories", tag=INJECTIVE)
