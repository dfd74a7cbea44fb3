"""Attention in one kernel: a block of queries at a time, whose scores never leave the cache."""

from __future__ import annotations

import math

from tvm import te
from tvm.target import Target

from ..schedule_registry import operations_of
from ..utils import as_int, ceil_div, const_shape
from .conv2d import RegisterTile
from .row_normalization import reduce_row, vectorize_row
from .tiles import fitting_lanes, fitting_rows
from .vectors import sum_in_lanes, vector_lanes

__all__ = ["schedule_head_attention"]

# Scores that are kept at a time, in bytes: a part of the second-level cache. And rows of them, of
# which more gain nothing.
_SCORE_BYTES = 1 << 17
_QUERIES = 64
# Queries for which keys are read where they are: turning an element of them takes half a cycle.
_FEW_QUERIES = 8


def _stages(output: te.Tensor) -> dict[str, te.Tensor]:
    """The named stages that the result depends on."""
    found: dict[str, te.Tensor] = {}
    pending = [output]
    while pending:
        tensor = pending.pop()
        name = str(tensor.op.name)
        if isinstance(tensor.op, te.ComputeOp) and name not in found:
            found[name] = tensor
            pending.extend(tensor.op.input_tensors)
    return found


def schedule_head_attention(output: te.Tensor, target: Target | None = None) -> te.Schedule:
    """Heads in parallel; the keys of a head are turned once, so that vectors run along them.

    Parameters
    ----------
    output : result of :func:`tvm.topi.nn.head_attention`, of a type whose vectors fit its size.
    """
    target = target or Target.current() or Target("llvm")
    stages = _stages(output)
    keys, scores, seen, largest, power, total, mixed = (
        stages[f"attention_{name}"]
        for name in ("keys", "scores", "seen", "largest", "power", "total", "mixed")
    )
    s = te.create_schedule(output.op)
    for operation in operations_of([output]):
        if str(operation.tag).startswith("injective"):
            s[operation.output(0)].compute_inline()
    dtype = output.dtype
    _, _, length, out_size = const_shape(mixed.shape)
    lanes = fitting_lanes(target, dtype, out_size)
    tile = fitting_rows(target, length, out_size // lanes)
    fitting = max(tile.rows, min(_QUERIES, _SCORE_BYTES // (4 * const_shape(power.shape)[3])))
    even = ceil_div(length, ceil_div(length, fitting))
    rows = min(length, ceil_div(even, tile.rows) * tile.rows)

    batch, *middle, element = output.op.axis
    head, query = reversed(middle) if int(output.op.attrs["tokens_first"]) else middle
    block, query = s[output].split(query, factor=rows)
    step, query = s[output].split(query, factor=tile.rows)
    panel, element = s[output].split(element, factor=lanes * tile.vectors)
    vector, lane = s[output].split(element, factor=lanes)
    s[output].reorder(batch, head, block, step, panel, query, vector, lane)
    each = s[output].fuse(batch, head)
    s[output].parallel(each)
    for loop in (query, vector):
        s[output].unroll(loop)
    s[output].vectorize(lane)

    s[mixed].compute_at(s[output], panel)
    s[mixed].set_scope("local")
    _tile_product(s, mixed, lanes)
    few = length <= _FEW_QUERIES and const_shape(keys.shape)[2] % vector_lanes(target, dtype) == 0
    if few:
        s[keys].compute_inline()
    else:
        s[keys].compute_at(s[output], each)
        _turn_keys(s, keys, target)
    reduce_row(s, total, output, block, target)
    s[power].compute_at(s[output], block)
    loops = power.op.axis[3:]
    vectorize_row(s, power, loops, math.prod(as_int(k.dom.extent) for k in loops), target)
    reduce_row(s, largest, output, block, target)
    s[seen].compute_at(s[output], block)
    if few:
        _score_where_keys_are(s, seen, scores, target)
    else:
        _score(s, seen, scores, rows, target)
    return s


def _score_where_keys_are(
    s: te.Schedule, seen: te.Tensor, scores: te.Tensor, target: Target
) -> None:
    """Keys as they lie, as many at a time as a vector has lanes."""
    lanes = vector_lanes(target, scores.dtype)
    _, _, query, key = seen.op.axis
    block, key = s[seen].split(key, factor=lanes)
    s[seen].reorder(block, query, key)
    s[seen].vectorize(key)
    s[scores].compute_at(s[seen], query)
    s[scores].set_scope("local")
    partial = sum_in_lanes(s, scores, lanes)
    s[partial].compute_at(s[seen], query)
    *rest, key, lane = s[partial].op.axis
    s[partial].reorder(*rest, s[partial].op.reduce_axis[0], key, lane)
    s[partial].unroll(key)


def _score(s: te.Schedule, seen: te.Tensor, scores: te.Tensor, rows: int, target: Target) -> None:
    padded = const_shape(scores.shape)[3]
    lanes = vector_lanes(target, scores.dtype)
    lanes = fitting_lanes(target, scores.dtype, padded) if padded % lanes else lanes
    tile: RegisterTile = fitting_rows(target, rows, padded // lanes)
    _, _, query, key = seen.op.axis
    step, query = s[seen].split(query, factor=tile.rows)
    panel, key = s[seen].split(key, factor=lanes * tile.vectors)
    vector, lane = s[seen].split(key, factor=lanes)
    s[seen].reorder(step, panel, query, vector, lane)
    for loop in (query, vector):
        s[seen].unroll(loop)
    s[seen].vectorize(lane)
    s[scores].compute_at(s[seen], panel)
    s[scores].set_scope("local")
    _tile_product(s, scores, lanes)


def _turn_keys(s: te.Schedule, keys: te.Tensor, target: Target) -> None:
    """Vectors along the keys, which are read as rows of the size and transposed in registers."""
    _, _, size, key = keys.op.axis
    block, lane = s[keys].split(key, factor=vector_lanes(target, keys.dtype))
    s[keys].reorder(block, size, lane)
    s[keys].pragma(block, "loop_partition_hint", True)
    s[keys].vectorize(lane)


def _tile_product(s: te.Schedule, product: te.Tensor, lanes: int) -> None:
    """Results in registers while the reduction runs."""
    *_, row, column = product.op.axis
    (k,) = product.op.reduce_axis
    vector, lane = s[product].split(column, factor=lanes)
    s[product].reorder(k, row, vector, lane)
    for loop in (row, vector):
        s[product].unroll(loop)
    s[product].vectorize(lane)
