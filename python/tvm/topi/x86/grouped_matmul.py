"""Products of rows with a matrix of their group, panel by panel."""

from __future__ import annotations

from tvm import te
from tvm.target import Target

from .tiles import fitting_lanes

__all__ = ["schedule_grouped_matmul"]

# Vectors of a row that are summed up together.
_VECTORS = 8


def schedule_grouped_matmul(output: te.Tensor, target: Target) -> te.Schedule | None:
    """Panels of columns outside of rows: a panel stays in cache for all rows of its group.

    Parameters
    ----------
    output : of `topi.nn.grouped_matmul`; None if its columns fill no vectors.
    """
    group, product = sorted(output.op.input_tensors, key=lambda t: len(t.shape))
    columns = int(output.shape[1])
    lanes = fitting_lanes(target, product.dtype, columns)
    if lanes < 4:
        return None
    s = te.create_schedule(output.op)
    row, column = output.op.axis
    vectors = next(n for n in (_VECTORS, 4, 2, 1) if columns // lanes % n == 0)
    panel, column = s[output].split(column, factor=lanes * vectors)
    vector, lane = s[output].split(column, factor=lanes)
    s[output].reorder(panel, row, vector, lane)
    s[output].parallel(panel)
    s[output].unroll(vector)
    s[output].vectorize(lane)
    s[product].compute_at(s[output], row)
    s[product].set_scope("local")
    (k,) = product.op.reduce_axis
    row, column = product.op.axis
    vector, lane = s[product].split(column, factor=lanes)
    s[product].reorder(row, k, vector, lane)
    s[product].unroll(vector)
    s[product].vectorize(lane)
    s[group].parallel(group.op.axis[0])
    return s
