"""Products and functions of rows whose innermost sizes are open.

Nothing but vectors is cut: each loop that may end inside of one is there twice, with its end and
without.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir
from tvm.target import Target

from ..schedule_registry import is_elementwise_of, operations_of
from ..utils import as_int, has_size, is_constant
from .row_normalization import is_row_function
from .vectors import inline_producers, is_costly, vector_lanes

__all__ = ["schedule_open_product", "schedule_open_rows"]

# Vectors of partial results, which hide the latency of additions.
_PARTIAL_VECTORS = 2


def schedule_open_product(
    product: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    """A vector of columns of a row at a time, for products of open columns or depth.

    More rows would be asked for inside of the innermost loop whether they are there.

    Returns
    -------
    None where the right side's columns are not neighbours, or the outputs are not elementwise
    functions of the product.
    """
    has_sizes = all(has_size(extent) for extent in product.shape)
    if not has_sizes or len(product.shape) < 2 or not is_elementwise_of(product, outputs):
        return None
    if not str(product.op.name).endswith("_NN"):
        return None
    output = outputs[0]
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=product)
    local = s.cache_write(product, "local") if output.op.same_as(product.op) else product
    columns, lanes = product.shape[-1], vector_lanes(target, product.dtype)
    if not is_constant(columns):
        # What is left of a row is computed element by element.
        lanes = max(1, lanes // 2)
    while is_constant(columns) and lanes > 1 and as_int(columns) % lanes:
        lanes //= 2
    *rows, j = output.op.axis
    j, lane = s[output].split(j, factor=lanes)
    s[output].parallel(s[output].fuse(*rows) if len(rows) > 1 else rows[0])
    s[output].vectorize(lane)
    s[local].compute_at(s[output], j)
    if not output.op.same_as(product.op):
        s[local].set_scope("local")
    lane = s[local].op.axis[-1]
    (k,) = s[local].op.reduce_axis
    s[local].reorder(k, lane)
    s[local].vectorize(lane)
    return s


def schedule_open_rows(outputs: Sequence[te.Tensor], target: Target) -> te.Schedule | None:
    """Rows in parallel; functions and reductions of a row in vectors, with an end of their own.

    Returns
    -------
    None where the outputs are no functions of rows.
    """
    if not all(has_size(e) for o in operations_of(outputs) for e in o.output(0).shape):
        return None
    if not is_row_function(outputs):
        return None
    operations = operations_of(outputs)
    counts = {len(o.reduce_axis) for o in operations if o.reduce_axis}
    if counts != {1}:
        return None
    output = outputs[0]
    s = te.create_schedule(output.op)
    *lead, along = output.op.axis
    row = s[output].fuse(*lead) if len(lead) > 1 else lead[0]
    s[output].parallel(row)
    for operation in operations:
        tensor = operation.output(0)
        readers = [r for r in operations if any(t.op.same_as(operation) for t in r.input_tensors)]
        if operation.reduce_axis:
            _reduce(s, tensor, output, row, target)
        elif operation.same_as(output.op):
            _vectorize(s, output, along, target)
        elif len(readers) > 1 and is_costly(operation) and len(tensor.shape):
            s[tensor].compute_at(s[output], row)
            _vectorize(s, tensor, operation.axis[-1], target)
        else:
            s[tensor].compute_inline()
    return s


def _vectorize(s: te.Schedule, tensor: te.Tensor, loop: tir.IterVar, target: Target) -> None:
    _, lane = s[tensor].split(loop, factor=vector_lanes(target, tensor.dtype))
    s[tensor].vectorize(lane)


def _reduce(
    s: te.Schedule, reduced: te.Tensor, output: te.Tensor, row: tir.IterVar, target: Target
) -> None:
    """Partial results in vectors, then these one after the other."""
    lanes = _PARTIAL_VECTORS * vector_lanes(target, reduced.dtype)
    _, lane = s[reduced].split(reduced.op.reduce_axis[0], factor=lanes)
    partial = s.rfactor(reduced, lane, -1)
    *_, lane = s[partial].op.axis
    (outer,) = s[partial].op.reduce_axis
    s[partial].reorder(outer, lane)
    s[partial].vectorize(lane)
    for tensor in (partial, reduced):
        s[tensor].compute_at(s[output], row)
    (last,) = s[reduced].op.reduce_axis
    s[reduced].unroll(last)
