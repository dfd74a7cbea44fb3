"""What the schedules of all operators share: vectors, and stages computed where they are read."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.target import Target

__all__ = [
    "copy_panel",
    "inline_packing",
    "inline_producers",
    "is_costly",
    "sum_in_lanes",
    "vector_lanes",
]


def vector_lanes(target: Target, dtype: str = "float32") -> int:
    """Elements of `dtype` in one vector register."""
    return target.vector_width // tir.const(0, dtype).dtype.bits


def is_costly(operation: te.ComputeOp) -> bool:
    """Whether a stage computes functions, so that several readers had better share it."""
    found = False

    def visit(node: object) -> None:
        nonlocal found
        found |= isinstance(node, tir.Call)

    tir.stmt_functor.post_order_visit(operation.body[0], visit)
    return found


def copy_panel(
    s: te.Schedule,
    operand: te.Tensor,
    reader: te.Tensor,
    output: te.Tensor,
    loop: Any,
    lanes: int,
    turned: bool = False,
) -> None:
    """Copy what one trip of an output's loop reads of an operand to neighbouring addresses.

    Rows a power of two apart fall into the same few sets of the first-level cache and each into a
    page of its own; the copy costs one pass where the reader makes many.

    Parameters
    ----------
    turned : the last two dimensions change places, for an operand whose rows are columns.
    """
    if not turned:
        panel = s.cache_read(operand, "global", [reader])
        s[panel].compute_at(s[output], loop)
        _, lane = s[panel].split(panel.op.axis[-1], factor=lanes)
        s[panel].vectorize(lane)
        return
    *lead, row, column = range(len(operand.shape))
    panel = s.cache_read(operand, "global", [reader], order=(*lead, column, row))
    s[panel].compute_at(s[output], loop)
    *outer, depth, column = panel.op.axis
    column, lane = s[panel].split(column, factor=lanes)
    # Elements of a vector are from as many lines, which serve the next steps of the depth too.
    s[panel].reorder(*outer, column, depth, lane)
    s[panel].vectorize(lane)


def sum_in_lanes(s: te.Schedule, product: te.Tensor, lanes: int) -> te.Tensor:
    """Reduce in vectors of partial sums, of as many columns of a product as vectors have lanes.

    These are added up as vectors along the columns, which transposes them in registers
    (:func:`tvm.tir.transform.TransposeInRegisters`).

    Returns
    -------
    The stage of partial sums, which is yet to be placed: its last two axes are column and lane.
    """
    _, lane = s[product].split(product.op.reduce_axis[0], factor=lanes)
    partial = s.rfactor(product, lane, -1)
    *rest, column = s[product].op.axis
    s[product].reorder(*rest, *s[product].op.reduce_axis, column)
    s[product].vectorize(column)
    s[partial].vectorize(s[partial].op.axis[-1])
    return partial


def inline_producers(s: te.Schedule, output: te.Tensor, first: te.Tensor | None = None) -> None:
    """Compute every elementwise stage before `output` in the place that reads it.

    Parameters
    ----------
    first : the stage where this ends, computed in place as well; what it reads stays.
    """
    pending, seen = [output], {output.op}
    while pending:
        tensor = pending.pop()
        if first is not None and tensor.op.same_as(first.op):
            continue
        for operand in tensor.op.input_tensors:
            if not isinstance(operand.op, te.ComputeOp) or operand.op in seen:
                continue
            seen.add(operand.op)
            pending.append(operand)
            if not operand.op.reduce_axis and len(operand.shape):
                s[operand].compute_inline()


def inline_packing(s: te.Schedule, weight: te.Tensor) -> None:
    """Read weights from where `topi.Packing` stores them, if they are packed."""
    if isinstance(weight.op, te.ComputeOp):
        s[weight].compute_inline()


def prefetch_weight(
    s: te.Schedule, product: te.Tensor, weight: te.Tensor, loop: tir.IterVar, distance: int
) -> None:
    """Read weights ahead by trips of a loop of `product`, from where they are stored."""
    stored = weight.op.input_tensors[0] if isinstance(weight.op, te.ComputeOp) else weight
    s[product].prefetch(stored, loop, distance)
