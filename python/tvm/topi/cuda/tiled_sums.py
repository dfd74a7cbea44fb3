"""Sums of products on a GPU: tiles of the result in registers, operands in shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te, tir

from ._common import inline_injective, reduce_across_threads

__all__ = ["AxisTile", "schedule_sum_by_threads", "schedule_tiled_sums"]

_BLOCKS = ("blockIdx.z", "blockIdx.y", "blockIdx.x")
_THREADS = ("threadIdx.z", "threadIdx.y", "threadIdx.x")


@dataclass(frozen=True)
class AxisTile:
    """What a block computes of one axis of the result.

    Attributes
    ----------
    virtual : pieces that are `threads * elements` apart, of which each thread has a part.
    threads : threads beside each other.
    elements : neighbours that one thread computes of each piece.
    """

    virtual: int = 1
    threads: int = 1
    elements: int = 1


def schedule_tiled_sums(
    product: te.Tensor,
    tiles: Sequence[AxisTile | None],
    steps: Sequence[int],
    output: te.Tensor | None = None,
    unroll_step: int = 0,
    unroll_explicit: bool = False,
) -> te.Schedule:
    """Schedule a sum of products of two operands, such as a convolution or a product of matrices.

    What is computed of an operand before, such as padding, is computed when it goes to shared
    memory.

    Parameters
    ----------
    product : the sum.
    tiles : of each axis of the result; None for axes of which a block has one element.
    steps : how much of each reduction is in shared memory at a time. Without any, the operands of
        a block are there all at once.
    output : elementwise function of `product` that is computed while results are in registers.
    unroll_step, unroll_explicit : loops with up to that many statements are unrolled, by our
        compiler or, if not explicit, by CUDA's.

    Raises
    ------
    ValueError : there are not as many tiles or steps as axes.
    """
    output = product if output is None else output
    if len(tiles) != len(product.shape) or len(steps) not in (0, len(product.op.reduce_axis)):
        raise ValueError(
            f"topi.cuda: a sum of {len(product.shape)} axes over {len(product.op.reduce_axis)} has "
            f"as many tiles and steps, got {len(tiles)} and {len(steps)}"
        )
    s = te.create_schedule(output.op)
    operands = list(product.op.input_tensors)
    inline_injective(s, [output], keep=[product, *operands])
    shared = []
    for operand in operands:
        if isinstance(operand.op, te.ComputeOp):
            s[operand].set_scope("shared")
            shared.append(operand)
        else:
            shared.append(s.cache_read(operand, "shared", [product]))
    if output.op.same_as(product.op):
        sums = s.cache_write(output, "local")
    else:
        s[product].set_scope("local")
        sums = product
    innermost = _bind(s, output, tiles)
    s[sums].compute_at(s[output], innermost[1])
    axes = list(s[sums].op.axis)
    if steps:
        split = [s[sums].split(loop, factor=k) for loop, k in zip(s[sums].op.reduce_axis, steps)]
        outer, inner = [pair[0] for pair in split], [pair[1] for pair in split]
        s[sums].reorder(*outer, *inner, *axes)
        place = (sums, outer[-1])
    else:
        s[sums].reorder(*s[sums].op.reduce_axis, *axes)
        place = (output, innermost[0])
    counts = _thread_counts(tiles)
    for tensor in shared:
        s[tensor].compute_at(s[place[0]], place[1])
        fused = s[tensor].fuse(*s[tensor].op.axis)
        for name, count in reversed(list(zip(_THREADS, counts))):
            fused, lane = s[tensor].split(fused, factor=count)
            s[tensor].bind(lane, te.thread_axis((0, count), name))
    s[output].pragma(innermost[0], "auto_unroll_max_step", unroll_step)
    s[output].pragma(innermost[0], "unroll_explicit", unroll_explicit)
    return s


def _thread_counts(tiles: Sequence[AxisTile | None]) -> list[int]:
    """Threads of a block along z, y and x; axes beyond three share z."""
    counts = [tile.threads for tile in tiles if tile is not None]
    counts = [1] * (3 - len(counts)) + counts
    return [math.prod(counts[:-2]), *counts[-2:]]


def _bind(s: te.Schedule, output: te.Tensor, tiles: Sequence[AxisTile | None]) -> list[tir.IterVar]:
    """Divide the result among blocks and threads; the innermost loops of both."""
    blocks: list[tir.IterVar] = []
    virtual: list[tir.IterVar] = []
    threads: list[tir.IterVar] = []
    elements: list[tir.IterVar] = []
    for axis, tile in zip(s[output].op.axis, tiles):
        if tile is None:
            blocks.append(axis)
            continue
        axis, inner = s[output].split(axis, factor=tile.elements)
        axis, thread = s[output].split(axis, factor=tile.threads)
        block, piece = s[output].split(axis, factor=tile.virtual)
        blocks.append(block)
        virtual.append(piece)
        threads.append(thread)
        elements.append(inner)
    s[output].reorder(*blocks, *virtual, *threads, *elements)
    found = []
    for loops, names in ((blocks, _BLOCKS), (threads, _THREADS)):
        if len(loops) > len(names):
            extra = len(loops) - len(names) + 1
            loops = [s[output].fuse(*loops[:extra]), *loops[extra:]]
        for loop, name in zip(loops, names[len(names) - len(loops) :]):
            s[output].bind(loop, te.thread_axis(name))
        found.append(loops[-1])
    for piece in virtual:
        s[output].bind(piece, te.thread_axis("vthread"))
    return found


def schedule_sum_by_threads(
    product: te.Tensor, threads: int, output: te.Tensor | None = None
) -> te.Schedule:
    """Schedule a sum over one axis so that a block's threads add up one element together.

    Parameters
    ----------
    threads : of a block.
    output : elementwise function of `product`.
    """
    output = product if output is None else output
    s = te.create_schedule(output.op)
    inline_injective(s, [output], keep=[product])
    (loop,) = s[product].op.reduce_axis
    first = reduce_across_threads(s, product, loop, threads)
    block = s[output].fuse(*s[output].op.axis)
    s[output].bind(block, te.thread_axis("blockIdx.x"))
    if not output.op.same_as(product.op):
        s[product].compute_at(s[output], block)
    s[output].set_store_predicate(first)
    return s
