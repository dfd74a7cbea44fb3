"""Boxes of single-shot detectors: those at each pixel, and how a network moves them.

After Liu et al., "SSD: Single Shot MultiBox Detector", ECCV 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ..utils import as_int, get_const_tuple

__all__ = ["multibox_prior", "multibox_transform_loc"]


def multibox_prior(
    data: te.Tensor,
    sizes: Sequence[float] = (1.0,),
    ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] = (-1.0, -1.0),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> te.Tensor:
    """Boxes around each pixel of NCHW data: one of each size, and the first size in other ratios.

    Parameters
    ----------
    sizes : heights, as parts of the image's.
    ratios : widths by heights; the first one is that of `sizes`.
    steps : distance of neighbours down and across, as parts of the image; not positive for those
        of the data's pixels.
    offsets : of the boxes' centres in their pixels.
    clip : whether boxes end at the image's borders.

    Returns
    -------
    (1, height * width * (len(sizes) + len(ratios) - 1), 4): left, top, right, bottom from 0 to 1.
    """
    height, width = (as_int(e) for e in get_const_tuple(data.shape)[2:])
    down = steps[0] if steps[0] > 0 else 1.0 / height
    across = steps[1] if steps[1] > 0 else 1.0 / width
    forms = [(float(size), 1.0) for size in sizes]
    forms += [(float(sizes[0]), math.sqrt(ratio)) for ratio in list(ratios)[1:]]
    dtype = str(data.dtype)

    def number(value: float) -> Any:
        return tir.const(value, dtype)

    def box(_: Any, index: Any, side: Any) -> Any:
        form, pixel = tir.floormod(index, len(forms)), tir.floordiv(index, len(forms))
        row, column = tir.floordiv(pixel, width), tir.floormod(pixel, width)
        half_width, half_height = number(0.0), number(0.0)
        for k, (size, root) in enumerate(forms):
            half_width = tir.Select(form == k, number(size * height / width * root / 2), half_width)
            half_height = tir.Select(form == k, number(size / root / 2), half_height)
        y = (row.astype(dtype) + number(offsets[0])) * number(down)
        x = (column.astype(dtype) + number(offsets[1])) * number(across)
        across_side = tir.floormod(side, 2) == 0
        centre = tir.Select(across_side, x, y)
        half = tir.Select(across_side, half_width, half_height)
        value = tir.Select(side < 2, centre - half, centre + half)
        return tir.max(tir.min(value, number(1.0)), number(0.0)) if clip else value

    return te.compute((1, height * width * len(forms), 4), box, name="multibox_prior")


def multibox_transform_loc(
    cls_prob: te.Tensor,
    loc_pred: te.Tensor,
    anchor: te.Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> tuple[te.Tensor, ...]:
    """Boxes that a network finds: anchors moved as it says, with their likeliest class.

    Parameters
    ----------
    cls_prob : (batch, classes, anchors); class 0 is the background.
    loc_pred : (batch, anchors * 4): moves of the centre and logarithms of sizes, by anchor.
    anchor : (1, anchors, 4): left, top, right, bottom.
    clip : whether boxes end at the image's borders.
    threshold : boxes whose likeliest class has a smaller probability are left out.
    variances : what the four numbers of `loc_pred` are multiplied with.

    Returns
    -------
    (batch, anchors, 6): class less 1, probability and the box, those that are left out behind the
    others and -1; and their numbers, (batch,) of int32.
    """
    batch, classes, anchors = (as_int(e) for e in get_const_tuple(cls_prob.shape))
    dtype = str(cls_prob.dtype)

    def number(value: float) -> Any:
        return tir.const(value, dtype)

    def body(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        scores, moves, boxes, out, count = (ib.buffer_ptr(b) for b in (*ins, *outs))
        with ib.for_range(0, batch, name="image", kind="parallel") as n:
            best = ib.allocate(dtype, (1,), name="best", scope="local")
            label = ib.allocate("int32", (1,), name="label", scope="local")
            count[n] = tir.const(0, "int32")
            with ib.for_range(0, anchors, name="anchor") as i:
                best[0] = number(-1.0)
                label[0] = tir.const(0, "int32")
                with ib.for_range(0, classes - 1, name="class") as c:
                    better = ib.let("better", scores[n, c + 1, i] > best[0])
                    with ib.if_scope(better):
                        best[0] = scores[n, c + 1, i]
                        label[0] = c + 1
                with ib.if_scope(tir.all(label[0] > 0, best[0] >= number(threshold))):
                    row = count[n]
                    out[n, row, 0] = label[0].astype(dtype) - number(1.0)
                    out[n, row, 1] = best[0]
                    for axis in (0, 1):
                        low, high = boxes[0, i, axis], boxes[0, i, axis + 2]
                        size = high - low
                        shift = moves[n, i * 4 + axis] * number(variances[axis])
                        centre = shift * size + (low + high) / number(2.0)
                        grown = tir.exp(moves[n, i * 4 + 2 + axis] * number(variances[axis + 2]))
                        half = grown * size / number(2.0)
                        for side, value in ((axis, centre - half), (axis + 2, centre + half)):
                            if clip:
                                value = tir.max(number(0.0), tir.min(number(1.0), value))
                            out[n, row, 2 + side] = value
                    count[n] = row + 1
            with ib.for_range(0, anchors - count[n], name="rest") as r:
                for column in range(6):
                    out[n, count[n] + r, column] = number(-1.0)
        return ib.get()

    return te.extern(
        [(batch, anchors, 6), (batch,)],
        [cls_prob, loc_pred, anchor],
        body,
        name="multibox_transform_loc",
        dtype=[dtype, "int32"],
    )
