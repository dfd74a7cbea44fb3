"""Kernels over keys and values in pages, for processors.

Pages of a layer are a tensor (page, key or value, head, token of the page, element of a head). A
step takes tokens of several sequences. Of each token the runtime says its position in its sequence,
its slot (page times size of a page plus place in it), and where the pages of its sequence are
listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.tir.ir_builder import BufferVar, IRBuilder

from .position_embedding import rope_freq, rotated

__all__ = ["append_kernel", "attention_kernel"]

# Scores that are compared with the greatest so far at once.
_BLOCK = 16
_LOWEST = -3.0e38

# From position and element of a head to cosine and sine.
Angle = Callable[[tir.PrimExpr, tir.PrimExpr], tuple[tir.PrimExpr, tir.PrimExpr]]


def angles(head_dim: int, theta: float, scale: float) -> Angle:
    """The angles of rotary embeddings."""

    def angle(position: tir.PrimExpr, i: tir.PrimExpr) -> tuple[tir.PrimExpr, tir.PrimExpr]:
        scaled = position.astype("float32") * tir.const(scale, "float32")
        return rope_freq(scaled, i, head_dim, theta, "float32")

    return angle


class _Kernel:
    """Buffers of a kernel as arguments in the order in which they are declared."""

    def __init__(self) -> None:
        self.ib: IRBuilder = tir.ir_builder.create()
        self._params: list[tir.Var] = []
        self._buffers: dict[tir.Var, tir.Buffer] = {}

    def buffer(self, name: str, shape: Sequence[Any], dtype: str) -> BufferVar:
        handle = tir.Var(f"var_{name}", "handle")
        self._params.append(handle)
        self._buffers[handle] = tir.decl_buffer(tuple(shape), dtype, name)
        return self.ib.buffer_ptr(self._buffers[handle])

    def number(self, name: str, dtype: str) -> tir.Var:
        self._params.append(tir.Var(name, dtype))
        return self._params[-1]

    def done(self) -> tir.PrimFunc:
        func = tir.PrimFunc(self._params, self.ib.get(), buffer_map=self._buffers)
        return func.with_attr({"op_pattern": 8, "tir.noalias": True})


def _size(name: str) -> tir.Var:
    return tir.Var(name, "int64")


def append_kernel(
    num_query_heads: int,
    num_heads: int,
    head_dim: int,
    dtype: str,
    angle: Angle | None,
    turn_keys: bool,
) -> tir.PrimFunc:
    """``f(qkv, positions, slots, pages, queries)``: put keys and values into their slots, and take
    the queries out.

    Parameters
    ----------
    angle : by which queries are turned; None leaves them.
    turn_keys : whether keys are turned as well.
    """
    kernel = _Kernel()
    ib = kernel.ib
    tokens, num_pages, page_size = _size("tokens"), _size("num_pages"), _size("page_size")
    fused = num_query_heads + 2 * num_heads
    qkv = kernel.buffer("qkv", (tokens, fused, head_dim), dtype)
    positions = kernel.buffer("positions", (tokens,), "int32")
    slots = kernel.buffer("slots", (tokens,), "int32")
    pages = kernel.buffer("pages", (num_pages, 2, num_heads, page_size, head_dim), dtype)
    queries = kernel.buffer("queries", (tokens, num_query_heads, head_dim), dtype)

    def range_of(extent: int, name: str) -> Any:
        return ib.for_range(0, extent, name=name, dtype="int64")

    with ib.for_range(0, tokens, name="token", kind="parallel") as token:
        slot = ib.let("slot", slots[token].astype("int64"))
        page, place = ib.let("page", slot // page_size), ib.let("place", slot % page_size)
        if angle is not None:
            cosines = ib.allocate("float32", (head_dim,), "cosines")
            sines = ib.allocate("float32", (head_dim,), "sines")
            with range_of(head_dim, "i") as i:
                cosines[i], sines[i] = angle(positions[token], i)

        def element(head: Any, i: Any, turn: bool) -> tir.PrimExpr:
            if not turn:
                return qkv[token, head, i]

            def load(at: Any) -> tir.PrimExpr:
                return qkv[token, head, at].astype("float32")

            return rotated(load, i, head_dim, cosines[i], sines[i]).astype(dtype)

        with range_of(num_query_heads, "head") as head, range_of(head_dim, "i") as i:
            queries[token, head, i] = element(head, i, angle is not None)
        for which in range(2):
            first = num_query_heads + which * num_heads
            turn = which == 0 and turn_keys and angle is not None
            with range_of(num_heads, "head") as head, range_of(head_dim, "i") as i:
                pages[page, which, head, place, i] = element(first + head, i, turn)
    return kernel.done()


def attention_kernel(
    num_query_heads: int, num_heads: int, head_dim: int, dtype: str, key_angle: Angle | None
) -> tir.PrimFunc:
    """``f(queries, positions, first, rows, table, pages, factor, output)``: each query looks at the
    tokens of its sequence from `first` to itself.

    Softmax over a row of unknown length in one pass (Milakov and Gimelshein, 2018): sums so far are
    scaled when a greater score comes, block by block.

    Parameters
    ----------
    key_angle : by which keys are turned when they are read; None where they are stored turned.
    """
    kernel = _Kernel()
    ib = kernel.ib
    tokens, listed = _size("tokens"), _size("listed")
    num_pages, page_size = _size("num_pages"), _size("page_size")
    queries = kernel.buffer("queries", (tokens, num_query_heads, head_dim), dtype)
    positions = kernel.buffer("positions", (tokens,), "int32")
    first = kernel.buffer("first", (tokens,), "int32")
    rows = kernel.buffer("rows", (tokens,), "int32")
    table = kernel.buffer("table", (listed,), "int32")
    pages = kernel.buffer("pages", (num_pages, 2, num_heads, page_size, head_dim), dtype)
    factor = kernel.number("factor", "float32")
    output = kernel.buffer("output", (tokens, num_query_heads, head_dim), dtype)

    group = num_query_heads // num_heads
    lanes = math.gcd(head_dim, _BLOCK)
    lowest = tir.const(_LOWEST, "float32")

    def vector(name: str) -> Any:
        return ib.for_range(0, head_dim, name=name, dtype="int64", kind="vectorize")

    with ib.for_range(0, tokens * num_query_heads, name="query", kind="parallel") as query:
        token, head = query // num_query_heads, query % num_query_heads
        row = ib.let("row", rows[token].astype("int64"))
        last = ib.let("last", positions[token].astype("int64"))
        begin = ib.let("begin", first[token].astype("int64"))
        scores = ib.allocate("float32", (_BLOCK,), "scores")
        parts = ib.allocate("float32", (lanes,), "parts")
        sums = ib.allocate("float32", (head_dim,), "sums")
        # The greatest score so far, and the sum of the weights.
        state = ib.allocate("float32", (3,), "state")
        state[0] = lowest
        state[1] = tir.const(0, "float32")
        with vector("i") as i:
            sums[i] = tir.const(0, "float32")

        def seen(position: Any) -> tir.PrimExpr:
            return tir.all(position >= begin, position <= last)

        def stored(which: int, position: Any) -> Callable[[Any], tir.PrimExpr]:
            page = table[row + position // page_size].astype("int64")
            return lambda i: pages[page, which, head // group, position % page_size, i].astype(
                "float32"
            )

        blocks = last // _BLOCK + 1
        with ib.for_range(begin // _BLOCK, blocks, name="block", dtype="int64") as block:
            state[2] = state[0]
            with ib.for_range(0, _BLOCK, name="j", dtype="int64") as j:
                position = block * _BLOCK + j
                scores[j] = lowest
                with ib.if_scope(seen(position)):
                    key = stored(0, position)
                    with ib.for_range(0, lanes, name="lane", dtype="int64", kind="vectorize") as l:
                        parts[l] = tir.const(0, "float32")
                    with (
                        ib.for_range(0, head_dim // lanes, name="c", dtype="int64") as c,
                        ib.for_range(0, lanes, name="lane", dtype="int64", kind="vectorize") as l,
                    ):
                        i = c * lanes + l
                        value = key(i)
                        if key_angle is not None:
                            value = rotated(key, i, head_dim, *key_angle(position, i))
                        parts[l] += queries[token, head, i].astype("float32") * value
                    scores[j] = tir.const(0, "float32")
                    with ib.for_range(0, lanes, name="lane", dtype="int64") as l:
                        scores[j] += parts[l]
                    scores[j] *= factor
                    state[0] = tir.max(state[0], scores[j])
            shrink = ib.let("shrink", tir.exp(state[2] - state[0]))
            state[1] *= shrink
            with vector("i") as i:
                sums[i] *= shrink
            with ib.for_range(0, _BLOCK, name="j", dtype="int64") as j:
                position = block * _BLOCK + j
                with ib.if_scope(seen(position)):
                    weight = ib.let("weight", tir.exp(scores[j] - state[0]))
                    row_of_values = stored(1, position)
                    state[1] += weight
                    with vector("i") as i:
                        sums[i] += weight * row_of_values(i)
        with vector("i") as i:
            output[token, head, i] = (sums[i] / state[1]).astype(dtype)
    return kernel.done()
