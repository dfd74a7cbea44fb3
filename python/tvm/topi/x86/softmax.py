"""Softmax along the last dimension, a row at a time."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te
from tvm.target import Target

from ..utils import const_shape, single_output
from .vectors import vector_lanes

__all__ = ["schedule_softmax"]


def schedule_softmax(
    output: te.Tensor | Sequence[te.Tensor], vectors: int = 4, target: Target | None = None
) -> te.Schedule:
    """Rows in parallel; a row's maximum, powers and sum stay in the first-level cache.

    Parameters
    ----------
    output : result of :func:`tvm.topi.nn.softmax` over the last of two or more axes, or
        a list of that tensor alone.
    vectors : vectors of partial maxima and sums; a single chain would wait for its latency.
    """
    target = target or Target.current() or Target("llvm")
    output = single_output(output, "schedule_softmax")
    lanes = vector_lanes(target, output.dtype)
    if len(output.shape) < 2:
        raise ValueError(
            "schedule_softmax: rows run in parallel, so the tensor needs two or more axes; "
            "reshape a single row to (1, n)"
        )
    width = const_shape(output.shape)[-1]
    chunk = lanes * vectors
    if width % chunk:
        raise ValueError(
            f"schedule_softmax: rows of {width} are no multiple of {chunk} elements "
            f"({vectors} vectors); pass fewer vectors"
        )
    s = te.create_schedule(output.op)
    power, total = output.op.input_tensors
    largest = next(t for t in power.op.input_tensors if isinstance(t.op, te.ComputeOp))
    rows = output.op.axis[:-1]
    row = s[output].fuse(*rows) if len(rows) > 1 else rows[0]
    s[output].parallel(row)
    _, lane = s[output].split(output.op.axis[-1], factor=chunk)
    s[output].vectorize(lane)
    s[power].compute_at(s[output], row)
    _, lane = s[power].split(power.op.axis[-1], factor=chunk)
    s[power].vectorize(lane)
    for reduced in (largest, total):
        _, partial = s[reduced].split(reduced.op.reduce_axis[0], factor=chunk)
        lane_results = s.rfactor(reduced, partial)
        s[lane_results].compute_at(s[output], row)
        lane = lane_results.op.axis[0]
        s[lane_results].reorder(*lane_results.op.axis[1:], lane_results.op.reduce_axis[0], lane)
        s[lane_results].vectorize(lane)
        s[reduced].compute_at(s[output], row)
    return s
