"""Which hand-written schedule an operator gets on a processor, with tiles chosen by its shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import DataType, te, tir
from tvm.target import Target

from .. import tag
from ..schedule_registry import (
    is_elementwise_of,
    operations_of,
    register_schedule,
    wanted_of,
)
from ..utils import as_int, ceil_div, const_shape, has_size, is_constant, same_extent
from .attention import schedule_head_attention
from .column_function import is_column_function, schedule_column_function
from .conv2d import (
    RegisterTile,
    schedule_conv2d_nhwc_packed,
    schedule_depthwise_conv2d_nhwc_packed,
)
from .conv2d_blocked import (
    BlockedTile,
    schedule_conv2d_NCHWc,
    schedule_depthwise_conv2d_NCHWc,
)
from .conv2d_winograd import schedule_winograd_input_transform, schedule_winograd_output_transform
from .dense import schedule_matmul_dot, schedule_matmul_packed
from .dot_products import dot_instruction
from .grouped_matmul import schedule_grouped_matmul
from .injective import (
    find_transposed,
    joins_odd_rows,
    schedule_few_last,
    schedule_injective,
    schedule_odd_rows,
    schedule_rows,
    schedule_transposed,
)
from .open_sizes import schedule_open_product, schedule_open_rows
from .reduction import reduces_rows, schedule_reduce_columns, schedule_reduce_rows
from .row_normalization import is_row_function, schedule_row_function
from .strassen import schedule_strassen_product
from .tiles import (
    convolution_tile,
    fitting_lanes,
    fitting_tile,
    grouped_tile,
    product_tile,
    row_axis,
)
from .vectors import vector_lanes
from .whole_vectors import GROUPED_VECTORS, schedule_grouped_vectors

__all__: list[str] = []

# Channels of a convolution with one filter that are vectors of partial sums.
_LEAST_DEPTH = 8
# Shorter rows are no longer than what combines the lanes of their sums.
_LEAST_ROW = 16
# Steps of a reduction that take no longer than writing its result.
_FEW_STEPS = 64
_PAGE = 4096
# Of a product (M, K) times (N, K), in cycles: to copy an element to where vectors of columns are
# neighbours, to add up the lanes of a result, of vectors of results and of others, and what a step
# of inner products takes longer than one of columns.
_TURN, _LANE_SUMS, _DOT_STEP = 0.55, (4.5, 20.0), 1 / 60


def _is_static(outputs: Sequence[te.Tensor]) -> bool:
    """Whether tiles can be chosen by sizes: all are known, or typical ones stand for them.

    Those that are written out, of the last dimension and of reductions, must be known.
    """
    return all(
        has_size(axis.dom.extent)
        for operation in operations_of(outputs)
        for axis in operation.axis[:-1]
    ) and not _is_open_inside(outputs)


def _is_open_inside(outputs: Sequence[te.Tensor]) -> bool:
    """Whether the last dimension of a stage, or one that it reduces over, has an open size."""
    return not all(
        is_constant(axis.dom.extent)
        for operation in operations_of(outputs)
        for axis in [*operation.axis[-1:], *operation.reduce_axis]
    )


def _panels_pay(product: te.Tensor, rows: int, block: int) -> bool:
    """Whether the right side's rows are so far apart that a panel of it is worth a copy."""
    columns = const_shape(product.shape)[-1]
    row_bytes = columns * tir.const(0, product.dtype).dtype.bits // 8
    return columns > block and row_bytes >= 1024 and rows >= 16


def _rows_pay(product: te.Tensor, target: Target) -> bool:
    """Whether results had better be written row by row than panel by panel.

    Down a panel each row is in a page of its own, which shows where few steps make a result; the
    right side is read once more for each tile of rows, from the second-level cache.
    """
    columns = const_shape(product.shape)[-1]
    depth = as_int(product.op.reduce_axis[0].dom.extent)
    size = tir.const(0, product.dtype).dtype.bits // 8
    near = depth * columns * size <= target.cache_bytes[1] // 2
    return depth <= _FEW_STEPS and columns * size >= _PAGE and near


def _turning_pays(product: te.Tensor, rows: int, target: Target) -> bool:
    """Whether a right side (N, K) is worth a copy in which vectors of its columns are neighbours.

    The copy is shared by all rows; inner products of rows where they are have lanes to add up.
    """
    weight = product.op.input_tensors[-1]
    if weight.dtype != product.dtype or product_tile(product, target) is None:
        return False
    depth = as_int(product.op.reduce_axis[0].dom.extent)
    odd = const_shape(product.shape)[-1] % fitting_lanes(target, product.dtype, depth) != 0
    return depth * _TURN / rows < _LANE_SUMS[odd] + depth * _DOT_STEP


def _is_packed(weight: te.Tensor) -> bool:
    """Whether weights are read from where a packing stores them."""
    return isinstance(weight.op, te.ComputeOp)


@register_schedule(["conv2d_nhwc", "group_conv2d_nhwc"], "cpu")
def _conv2d_nhwc(
    conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if not _is_static(outputs) or not is_elementwise_of(wanted_of(conv, outputs), outputs):
        return None
    _, height, width, filters = const_shape(conv.shape)
    weight = conv.op.input_tensors[1]
    depth = as_int(conv.op.reduce_axis[-1].dom.extent)
    if filters == 1 and not _is_packed(weight) and depth % _LEAST_DEPTH == 0:
        # The one filter lies as the data that it is multiplied with.
        return schedule_reduce_rows(
            conv, outputs[0], target, lanes=next(n for n in (64, 32, 16, 8) if depth % n == 0)
        )
    packed = _is_packed(weight)
    fitted = convolution_tile(conv, target, uneven=packed and weight.dtype == conv.dtype)
    if fitted is None:
        return None
    dot = dot_instruction(conv, fitted.lanes, target) if packed else None
    tile = fitted.tile
    if packed and dot is None:
        tiles = ceil_div(height, tile.rows) * ceil_div(width, tile.columns)
        tile = fitted.reading_ahead(tiles, weight.dtype)
    return schedule_conv2d_nhwc_packed(
        conv,
        tile,
        _other_than(conv, outputs),
        target,
        rows_outside=str(conv.op.tag) == "group_conv2d_nhwc" and _rows_outside(conv, tile, target),
        lanes=fitted.lanes,
        copy_panels=not packed and _panels_pay(conv, height * width, fitted.block),
        dot=dot,
    )


@register_schedule(GROUPED_VECTORS, "cpu")
def _grouped_vectors(
    conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    _, height, width, _, vectors, _ = const_shape(conv.shape)
    window = [as_int(axis.dom.extent) for axis in conv.op.reduce_axis]
    extents = (height, width, vectors)
    tile = grouped_tile(target, extents, math.prod(window), window[0], whole=True)
    rows_outside = _rows_outside(conv, tile, target)
    return schedule_grouped_vectors(conv, tile, outputs[0], target, rows_outside)


def _rows_outside(conv: te.Tensor, tile: RegisterTile, target: Target) -> bool:
    """Whether the rows of a window had better stay near than the weights of a panel.

    The panels of a grouped convolution are small, and each reads other channels: all of them stay
    in the second cache while a few rows, copied with their border just before, are in the first.
    """
    data, weight = conv.op.input_tensors
    if not isinstance(data.op, te.ComputeOp):
        return False
    size = math.prod(const_shape(weight.shape)) * DataType(weight.dtype).itemsize
    batch, height, *_ = const_shape(conv.shape)
    chunks = batch * ceil_div(height, tile.rows)
    return size <= target.cache_bytes[1] // 2 and chunks >= target.num_cores


def _other_than(anchor: te.Tensor, outputs: Sequence[te.Tensor]) -> te.Tensor | None:
    """The one output, unless it is the anchor itself."""
    return None if outputs[0].op.same_as(anchor.op) else outputs[0]


@register_schedule(["conv2d_NCHWc", "conv3d_NCDHWc", "depthwise_conv2d_NCHWc"], "cpu")
def _conv2d_blocked(
    conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if not _is_static(outputs) or not is_elementwise_of(conv, outputs):
        return None
    *_, height, width, channels = const_shape(conv.shape)
    lanes = fitting_lanes(target, conv.dtype, channels)
    if lanes < 4:
        return None
    output = _other_than(conv, outputs)
    if str(conv.op.tag) == "depthwise_conv2d_NCHWc":
        tile = BlockedTile(min(width, 4), min(height, 2), unroll_window=True)
        return schedule_depthwise_conv2d_NCHWc(conv, tile, output, target)
    fitted = fitting_tile(target, height, width, channels // lanes)
    if fitted.vectors * lanes < channels:  # A block wider than the registers hold is a loop.
        fitted = fitting_tile(target, 1, width, 1)
    return schedule_conv2d_NCHWc(conv, BlockedTile(fitted.columns, fitted.rows), output, target)


@register_schedule("depthwise_conv2d_nhwc", "cpu")
def _depthwise_conv2d_nhwc(
    conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if not _is_static(outputs) or not is_elementwise_of(conv, outputs):
        return None
    _, height, width, channels = const_shape(conv.shape)
    lanes = fitting_lanes(target, conv.dtype, channels)
    window = [as_int(axis.dom.extent) for axis in conv.op.reduce_axis]
    if lanes < 4:
        return None
    # Eight pixels hide the latency of multiply-adds, share what neighbours read, and leave
    # registers for the window, which is written out; of a large one, only a row is.
    tile = RegisterTile(min(height, 2), min(width, 4), 1)
    return schedule_depthwise_conv2d_nhwc_packed(
        conv,
        tile,
        _other_than(conv, outputs),
        target,
        lanes=lanes,
        roll_rows=window[0] * window[1] > 25,
    )


@register_schedule([tag.DENSE, tag.MATMUL, tag.BATCH_MATMUL, "winograd_product"], "cpu")
def _matmul(product: te.Tensor, outputs: Sequence[te.Tensor], target: Target) -> te.Schedule | None:
    if _is_open_inside(outputs):
        return schedule_open_product(product, outputs, target)
    if not _is_static(outputs) or not is_elementwise_of(wanted_of(product, outputs), outputs):
        return None
    shape = const_shape(product.shape)
    (k,) = product.op.reduce_axis
    output = _other_than(product, outputs)
    rows = shape[row_axis(product)] if len(shape) > 1 else 1
    name = str(product.op.name)
    by_points = str(product.op.tag) == "winograd_product"
    packed = _is_packed(product.op.input_tensors[-1]) and (name.endswith("_NT") or by_points)
    if shape[-1] == 1 and not packed and not name.endswith(("_TN", "_TT")):
        # One column lies as the rows that it is multiplied with.
        if as_int(k.dom.extent) >= _LEAST_ROW:
            return schedule_reduce_rows(product, outputs[0], target)
        return None
    turned = name.endswith("_NT") and not packed
    if turned and not _turning_pays(product, rows, target):
        lanes = fitting_lanes(target, product.dtype, as_int(k.dom.extent))
        if lanes < 4:
            return None
        # Both operands come in vectors along the reduction: one row of each a result.
        tile = fitting_tile(target, rows, 1, shape[-1], max_pixels=4)
        return schedule_matmul_dot(product, tile, output, target, lanes=lanes)
    uneven = packed and not by_points and product.op.input_tensors[-1].dtype == product.dtype
    ends_inside = not packed and not turned and not by_points
    fitted = product_tile(product, target, uneven, ends_inside=ends_inside)
    if fitted is None or name.endswith(("_TN", "_TT")):
        return None
    dot = dot_instruction(product, fitted.lanes, target) if packed else None
    tile = fitted.tile
    if packed and dot is None:
        tile = fitted.reading_ahead(ceil_div(rows, tile.rows), product.dtype)
    row_block = tile.rows * tile.columns if ends_inside and _rows_pay(product, target) else None
    return schedule_matmul_packed(
        product,
        tile,
        row_block=row_block,
        output=output,
        target=target,
        lanes=fitted.lanes,
        copy_panels=turned
        or (not packed and row_block is None and _panels_pay(product, rows, fitted.block)),
        panels_outside=packed and not by_points,
        dot=dot,
        turned=turned,
    )


@register_schedule("winograd_input_transform", "cpu")
def _winograd_input(
    image: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    return schedule_winograd_input_transform(image, target)


@register_schedule("winograd_output_transform", "cpu")
def _winograd_output(
    image: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    (output,) = outputs
    return schedule_winograd_output_transform(image, output, target)


@register_schedule("strassen_product", "cpu")
def _strassen(
    product: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if not _is_static(outputs) or not is_elementwise_of(product, outputs):
        return None
    return schedule_strassen_product(product, outputs[0], target)


@register_schedule("grouped_matmul", "cpu")
def _grouped_matmul(
    product: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if not _is_static(outputs) or not product.op.same_as(outputs[0].op):
        return None
    return schedule_grouped_matmul(product, target)


@register_schedule(tag.ATTENTION, "cpu")
def _attention(
    attention: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if not attention.op.same_as(outputs[0].op) or attention.dtype != "float32":
        return None
    return schedule_head_attention(attention, target)


@register_schedule([tag.SOFTMAX, ""], "cpu")
def _row_function(
    anchor: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if _is_open_inside(outputs):
        return schedule_open_rows(outputs, target)
    if not _is_static(outputs):
        return None
    if is_row_function(outputs):
        return schedule_row_function(outputs[0], target)
    if is_column_function(outputs):
        return schedule_column_function(outputs[0], target)
    return None


@register_schedule([tag.COMM_REDUCE, tag.POOL_MAX, tag.POOL_SUM, tag.ADAPTIVE_POOL], "cpu")
def _reduction(
    reduced: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if not _is_static(outputs) or not is_elementwise_of(reduced, outputs):
        return None
    extents = [as_int(loop.dom.extent) for loop in reduced.op.reduce_axis]
    if math.prod(extents) >= _LEAST_ROW and reduces_rows(reduced):
        return schedule_reduce_rows(reduced, outputs[0], target)
    if not reduced.shape:
        return None
    lanes = fitting_lanes(target, reduced.dtype, const_shape(reduced.shape)[-1])
    return schedule_reduce_columns(reduced, outputs[0], lanes) if lanes >= 4 else None


def _is_elementwise(op: te.Operation) -> bool:
    """Whether each element reads its own place in all operands, which have the result's shape."""
    if str(op.tag) == tag.ELEMWISE:
        return True
    shape = op.output(0).shape
    return str(op.tag) == tag.BROADCAST and all(
        len(x.shape) == len(shape) and all(map(same_extent, x.shape, shape))
        for x in op.input_tensors
    )


@register_schedule("injective", "cpu")
def _injective(
    output: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    shape = const_shape(output.shape) if _is_static(outputs) else ()
    if len(operations_of(outputs)) == 1 and len(shape) > 2 and shape[-1] < 4 <= shape[-2]:
        return schedule_few_last(output)
    if len(outputs) != 1 or not isinstance(output.op, te.ComputeOp) or not shape:
        return None
    # Flattened, only plain elementwise reads stay vectors.
    if all(map(_is_elementwise, operations_of(outputs))):
        size = math.prod(shape)
        vectors = next(
            (v for v in (4, 2, 1) if size % (v * vector_lanes(target, output.dtype)) == 0), 0
        )
        if vectors:
            return schedule_injective(output, vectors, target)
    moved = find_transposed(output)
    if moved is not None:
        return schedule_transposed(output, moved)
    if len(shape) < 2 or shape[-1] < 4:
        return None
    if math.prod(shape[:-1]) > 1 and joins_odd_rows(output, vector_lanes(target, output.dtype)):
        return schedule_odd_rows(output)
    return schedule_rows(output, target)
