"""Which boxes of a detector to keep."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..sort import argsort
from ..utils import as_int, get_const_tuple

__all__ = ["get_valid_counts", "non_max_suppression"]


def get_valid_counts(
    data: te.Tensor, score_threshold: Any, id_index: int = 0, score_index: int = 1
) -> tuple[te.Tensor, ...]:
    """Boxes whose score is above a threshold, moved to the front.

    Parameters
    ----------
    data : (batch, boxes, numbers of a box).
    score_threshold : a number, or a tensor of one.
    id_index : where a box has its class, which must not be negative; negative if it has none.
    score_index : where it has its score.

    Returns
    -------
    Their numbers, (batch,) of int32; the boxes, the rows behind them -1; and their indices in
    `data`, (batch, boxes) of int32, again with -1 behind.
    """
    batch, boxes, length = (as_int(e) for e in get_const_tuple(data.shape))
    dtype = str(data.dtype)
    inputs = [data]
    if isinstance(score_threshold, te.Tensor):
        inputs.append(score_threshold)

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, count, kept, places = (ib.buffer_ptr(b) for b in (ins[0], *outs))
        if len(ins) > 1:
            limit = ib.buffer_ptr(ins[1])[tuple(0 for _ in ins[1].shape)].astype(dtype)
        else:
            limit = tir.const(float(score_threshold), dtype)
        with ib.for_range(0, batch, name="image", kind="parallel") as n:
            count[n] = tir.const(0, "int32")
            with ib.for_range(0, boxes, name="box") as i:
                valid = source[n, i, score_index] > limit
                if id_index >= 0:
                    valid = tir.all(valid, source[n, i, id_index] >= tir.const(0.0, dtype))
                with ib.if_scope(valid):
                    with ib.for_range(0, length, name="k") as k:
                        kept[n, count[n], k] = source[n, i, k]
                    places[n, count[n]] = i
                    count[n] = count[n] + 1
            with ib.for_range(0, boxes - count[n], name="rest") as r:
                with ib.for_range(0, length, name="k") as k:
                    kept[n, count[n] + r, k] = tir.const(-1.0, dtype)
                places[n, count[n] + r] = tir.const(-1, "int32")
        return ib.get()

    return te.extern(
        [(batch,), (batch, boxes, length), (batch, boxes)],
        inputs,
        body,
        name="get_valid_counts",
        dtype=["int32", dtype, "int32"],
    )


def overlap_of(box: Any, other: Any, dtype: str) -> Any:
    """Common area of two boxes by that of both together; corners in any order."""
    zero = tir.const(0.0, dtype)
    common, areas = tir.const(1.0, dtype), [tir.const(1.0, dtype)] * 2
    for axis in (0, 1):
        ends = [
            (tir.min(b[axis], b[axis + 2]), tir.max(b[axis], b[axis + 2])) for b in (box, other)
        ]
        (low_a, high_a), (low_b, high_b) = ends
        common = common * tir.max(tir.min(high_a, high_b) - tir.max(low_a, low_b), zero)
        areas = [area * (high - low) for area, (low, high) in zip(areas, ends)]
    union = areas[0] + areas[1] - common
    return tir.if_then_else(union <= zero, zero, common / union)


def non_max_suppression(
    data: te.Tensor,
    valid_count: te.Tensor,
    indices: te.Tensor,
    max_output_size: Any = -1,
    iou_threshold: Any = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Any:
    """Boxes by falling score, without those that overlap one before them.

    Parameters
    ----------
    data : (batch, boxes, numbers of a box).
    valid_count : (batch,) of int32; the boxes in front that count.
    indices : (batch, boxes) of int32; what the boxes are called in the results.
    max_output_size : how many are kept at most, a number or a tensor of one; negative for all.
    iou_threshold : common area by that of both from which on boxes overlap; likewise.
    force_suppress : whether boxes of other classes count too.
    top_k : how many with the highest scores are looked at; not positive for all.
    coord_start, score_index, id_index : where a box has its four borders, score and class; the
        class is absent where negative.
    invalid_to_bottom : whether kept boxes come before the others.

    Returns
    -------
    With `return_indices`, the kept boxes' indices, (batch, boxes) of int32 with -1 behind them,
    and their numbers, (batch, 1). Otherwise the boxes sorted, those not kept being -1.
    """
    batch, boxes, length = (as_int(e) for e in get_const_tuple(data.shape))
    dtype = str(data.dtype)
    lowest = tir.min_value(dtype)
    scores = te.compute(
        (batch, boxes),
        lambda n, i: tir.if_then_else(i < valid_count[n], data[n, i, score_index], lowest),
        name="valid_scores",
    )
    inputs = [data, valid_count, indices, argsort(scores, 1, False, "int32")]
    given = [v for v in (max_output_size, iou_threshold) if isinstance(v, te.Tensor)]

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, counts, names, order = (ib.buffer_ptr(b) for b in ins[:4])
        rest = iter(ins[4:])

        def limit(value: Any, as_type: str) -> Any:
            if not isinstance(value, te.Tensor):
                return tir.const(value, as_type)
            buffer = next(rest)
            return ib.buffer_ptr(buffer)[tuple(0 for _ in buffer.shape)].astype(as_type)

        most, overlap = limit(max_output_size, "int32"), limit(iou_threshold, dtype)
        results = [ib.buffer_ptr(b) for b in outs]
        with ib.for_range(0, batch, name="image", kind="parallel") as n:
            chosen = ib.allocate("int32", (boxes,), name="chosen", scope="global")
            kept = ib.allocate("int32", (1,), name="kept", scope="local")
            free = ib.allocate("bool", (1,), name="free", scope="local")
            kept[0] = tir.const(0, "int32")
            if return_indices:
                with ib.for_range(0, boxes, name="i") as i:
                    results[0][n, i] = tir.const(-1, "int32")
            else:
                with ib.for_range(0, boxes, name="i") as i, ib.for_range(0, length, name="k") as k:
                    results[0][n, i, k] = tir.const(-1.0, dtype)
            looked = tir.min(counts[n], boxes)
            if top_k > 0:
                looked = tir.min(looked, top_k)
            with ib.for_range(0, looked, name="rank") as rank:
                box = order[n, rank]
                free[0] = tir.any(most < 0, kept[0] < most)
                if id_index >= 0:
                    free[0] = tir.all(free[0], source[n, box, id_index] >= tir.const(0.0, dtype))
                with ib.for_range(0, kept[0], name="j") as j:
                    other = chosen[j]
                    mine, theirs = (
                        [source[n, b, coord_start + k] for k in range(4)] for b in (box, other)
                    )
                    close = overlap_of(mine, theirs, dtype) >= overlap
                    if id_index >= 0 and not force_suppress:
                        close = tir.all(
                            close, source[n, box, id_index] == source[n, other, id_index]
                        )
                    free[0] = tir.all(free[0], tir.Not(close))
                with ib.if_scope(free[0]):
                    chosen[kept[0]] = box
                    if return_indices:
                        results[0][n, kept[0]] = names[n, box]
                    else:
                        row = kept[0] if invalid_to_bottom else rank
                        with ib.for_range(0, length, name="k") as k:
                            results[0][n, row, k] = source[n, box, k]
                    kept[0] = kept[0] + 1
            if return_indices:
                results[1][n, 0] = kept[0]
        return ib.get()

    shapes: list[tuple[int, ...]]
    if return_indices:
        shapes, types = [(batch, boxes), (batch, 1)], ["int32", "int32"]
    else:
        shapes, types = [(batch, boxes, length)], [dtype]
    return te.extern(shapes, [*inputs, *given], body, name="non_max_suppression", dtype=types)
