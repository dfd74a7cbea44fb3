"""Which boxes of a detector to keep, for each class by itself."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..sort import argsort
from ..utils import as_int, get_const_tuple
from .boxes import overlap_of

__all__ = ["all_class_non_max_suppression"]

_FORMATS = ("onnx", "tensorflow")


def all_class_non_max_suppression(
    boxes: te.Tensor,
    scores: te.Tensor,
    max_output_boxes_per_class: Any = -1,
    iou_threshold: Any = -1.0,
    score_threshold: Any = -1.0,
    output_format: str = "onnx",
) -> list[te.Tensor]:
    """Boxes by falling score, for each class, without those that overlap one before them.

    Parameters
    ----------
    boxes : (batch, boxes, 4), two opposite corners of each, in any order.
    scores : (batch, classes, boxes).
    max_output_boxes_per_class : how many are kept at most, a number or a tensor of one; negative
        for all.
    iou_threshold : common area by that of both above which boxes overlap; likewise.
    score_threshold : scores above it count; likewise.

    Returns
    -------
    For "onnx" two tensors: rows of batch, class and box, (batch * classes * boxes, 3) of int64 by
    rising batch, then class, then falling score; and (1,) of int64, how many rows there are.
    For "tensorflow" three: rows of class and box, (batch, classes * boxes, 2) of int64; their
    scores, (batch, classes * boxes); and (batch,) of int64, how many each image has. What is behind
    is 0.

    Raises
    ------
    ValueError : another format, or shapes that do not fit.
    """
    if output_format not in _FORMATS:
        raise ValueError(
            "topi.vision.all_class_non_max_suppression: output_format is one of "
            f"{list(_FORMATS)}, got {output_format!r}"
        )
    batch, classes, count = (as_int(e) for e in get_const_tuple(scores.shape))
    found = tuple(as_int(e) for e in get_const_tuple(boxes.shape))
    if found != (batch, count, 4):
        raise ValueError(
            f"topi.vision.all_class_non_max_suppression: boxes of shape {found} for scores of "
            f"{(batch, classes, count)}; expected {(batch, count, 4)}"
        )
    limits = (max_output_boxes_per_class, iou_threshold, score_threshold)
    kept, numbers = _kept_of_each_class(boxes, scores, limits)
    if output_format == "onnx":
        return _rows_of_all(kept, numbers, (batch, classes, count))
    return _rows_of_each(kept, numbers, scores, (batch, classes, count))


def _kept_of_each_class(
    boxes: te.Tensor, scores: te.Tensor, limits: tuple[Any, ...]
) -> list[te.Tensor]:
    """For each image and class the boxes that are kept, and how many they are."""
    batch, classes, count = (as_int(e) for e in get_const_tuple(scores.shape))
    dtype = str(boxes.dtype)
    order = argsort(scores, 2, False, "int32")
    given = [limit for limit in limits if isinstance(limit, te.Tensor)]

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        corners, values, ranks = (ib.buffer_ptr(b) for b in ins[:3])
        rest = iter(ins[3:])

        def number(value: Any, as_type: str) -> Any:
            if not isinstance(value, te.Tensor):
                return tir.const(value, as_type)
            buffer = next(rest)
            return ib.buffer_ptr(buffer)[tuple(0 for _ in buffer.shape)].astype(as_type)

        most, close, least = (
            number(value, kind) for value, kind in zip(limits, ("int32", dtype, str(scores.dtype)))
        )
        kept, numbers = (ib.buffer_ptr(b) for b in outs)
        with ib.for_range(0, batch * classes, name="image_class", kind="parallel") as each:
            image, label = each // classes, each % classes
            free = ib.allocate("bool", (1,), name="free", scope="local")
            numbers[image, label] = tir.const(0, "int32")
            with ib.for_range(0, count, name="rank") as rank:
                kept[image, label, rank] = tir.const(0, "int32")
            with ib.for_range(0, count, name="rank") as rank:
                box = ranks[image, label, rank]
                free[0] = tir.all(
                    tir.any(most < 0, numbers[image, label] < most),
                    values[image, label, box] > least,
                )
                with ib.if_scope(free[0]):
                    with ib.for_range(0, numbers[image, label], name="j") as j:
                        other = kept[image, label, j]
                        mine, theirs = (
                            [corners[image, b, k] for k in range(4)] for b in (box, other)
                        )
                        apart = overlap_of(mine, theirs, dtype) <= close
                        free[0] = tir.all(free[0], apart)
                    with ib.if_scope(free[0]):
                        kept[image, label, numbers[image, label]] = box
                        numbers[image, label] = numbers[image, label] + 1
        return ib.get()

    return list(
        te.extern(
            [(batch, classes, count), (batch, classes)],
            [boxes, scores, order, *given],
            body,
            name="kept_of_each_class",
            dtype=["int32", "int32"],
        )
    )


def _rows_of_all(
    kept: te.Tensor, numbers: te.Tensor, extents: tuple[int, int, int]
) -> list[te.Tensor]:
    batch, classes, count = extents

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        chosen, each, rows, total = (ib.buffer_ptr(b) for b in (*ins, *outs))
        total[0] = tir.const(0, "int64")
        with (
            ib.for_range(0, batch, name="image") as image,
            ib.for_range(0, classes, name="label") as label,
        ):
            with ib.for_range(0, each[image, label], name="i") as i:
                row = total[0] + i.astype("int64")
                for column, value in enumerate((image, label, chosen[image, label, i])):
                    rows[row, column] = value.astype("int64")
            total[0] = total[0] + each[image, label].astype("int64")
        length = batch * classes * count
        with (
            ib.for_range(0, length - total[0].astype("int32"), name="i") as i,
            ib.for_range(0, 3, name="column") as column,
        ):
            rows[total[0] + i.astype("int64"), column] = tir.const(0, "int64")
        return ib.get()

    return list(
        te.extern(
            [(batch * classes * count, 3), (1,)],
            [kept, numbers],
            body,
            name="all_class_non_max_suppression",
            dtype=["int64", "int64"],
        )
    )


def _rows_of_each(
    kept: te.Tensor, numbers: te.Tensor, scores: te.Tensor, extents: tuple[int, int, int]
) -> list[te.Tensor]:
    batch, classes, count = extents
    kind = str(scores.dtype)

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        chosen, each, values, rows, best, total = (ib.buffer_ptr(b) for b in (*ins, *outs))
        with ib.for_range(0, batch, name="image", kind="parallel") as image:
            total[image] = tir.const(0, "int64")
            with ib.for_range(0, classes, name="label") as label:
                with ib.for_range(0, each[image, label], name="i") as i:
                    row, box = total[image] + i.astype("int64"), chosen[image, label, i]
                    rows[image, row, 0] = label.astype("int64")
                    rows[image, row, 1] = box.astype("int64")
                    best[image, row] = values[image, label, box]
                total[image] = total[image] + each[image, label].astype("int64")
            with ib.for_range(0, classes * count - total[image].astype("int32"), name="i") as i:
                row = total[image] + i.astype("int64")
                rows[image, row, 0] = tir.const(0, "int64")
                rows[image, row, 1] = tir.const(0, "int64")
                best[image, row] = tir.const(0, kind)
        return ib.get()

    return list(
        te.extern(
            [(batch, classes * count, 2), (batch, classes * count), (batch,)],
            [kept, numbers, scores],
            body,
            name="all_class_non_max_suppression",
            dtype=["int64", kind, "int64"],
        )
    )
