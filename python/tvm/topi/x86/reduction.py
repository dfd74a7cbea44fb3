"""Reductions of rows, and of whatever stands around the last dimension."""

from __future__ import annotations

from tvm import te
from tvm.target import Target

from .row_normalization import split_row
from .vectors import inline_producers

__all__ = ["schedule_reduce_columns", "schedule_reduce_rows"]


def schedule_reduce_columns(reduced: te.Tensor, output: te.Tensor, lanes: int) -> te.Schedule:
    """Neighbours along the last dimension, each with a reduction of its own, share a vector.

    Parameters
    ----------
    reduced : reduces, but not over the last dimension; windows of NHWC data, for instance.
    output : `reduced`, or an elementwise function of it.
    lanes : elements of a vector, which divide the last dimension.
    """
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    *outer, last = output.op.axis
    vector, lane = s[output].split(last, factor=lanes)
    row = s[output].fuse(*outer, vector)
    s[output].parallel(row)
    s[output].vectorize(lane)
    if output.op.same_as(reduced.op):
        s[output].reorder(*s[output].op.reduce_axis, lane)
    else:
        s[reduced].compute_at(s[output], row)
        *_, last = s[reduced].op.axis
        s[reduced].reorder(*s[reduced].op.reduce_axis, last)
        s[reduced].vectorize(last)
    return s


def schedule_reduce_rows(
    reduced: te.Tensor,
    output: te.Tensor,
    target: Target | None = None,
    lanes: int | None = None,
) -> te.Schedule:
    """Vectors along the reduction hold partial results, combined at the end.

    Parameters
    ----------
    reduced : reduces over the last dimensions of what it reads, all of them whole or the last.
    output : `reduced`, or an elementwise function of it.
    lanes : partial results at first; by default those that take least.
    """
    target = target or Target.current() or Target("llvm")
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    partials = split_row(s, reduced, target, lanes)
    row = s[output].fuse(*output.op.axis)
    s[output].parallel(row)
    if not output.op.same_as(reduced.op):
        s[reduced].compute_at(s[output], row)
    for partial in partials:
        s[partial].compute_at(s[output], row)
    return s
