"""Reductions of rows, and of whatever stands around the last dimension."""

from __future__ import annotations

from tvm import te

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


def schedule_reduce_rows(reduced: te.Tensor, output: te.Tensor, lanes: int) -> te.Schedule:
    """Vectors along the innermost reduction hold partial results, combined at the end.

    Parameters
    ----------
    reduced : reduces over the last dimension of what it reads.
    output : `reduced`, or an elementwise function of it.
    lanes : partial results, which divide the innermost reduction.
    """
    s = te.create_schedule(output.op)
    inline_producers(s, output)
    _, lane = s[reduced].split(reduced.op.reduce_axis[-1], factor=lanes)
    partial = s.rfactor(reduced, lane)
    row = s[output].fuse(*output.op.axis)
    s[output].parallel(row)
    if not output.op.same_as(reduced.op):
        s[reduced].compute_at(s[output], row)
    s[partial].compute_at(s[output], row)
    lane, *rest = s[partial].op.axis
    s[partial].reorder(*rest, *s[partial].op.reduce_axis, lane)
    s[partial].vectorize(lane)
    return s
