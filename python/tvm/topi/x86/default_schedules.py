"""Which hand-written schedule an operator gets on a processor, with tiles chosen by its shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from tvm import te, tir
from tvm.target import Target

from .. import tag
from ..schedule_registry import operations_of, register_schedule
from ..utils import const_shape, is_constant
from .conv2d import (
    RegisterTile,
    schedule_conv2d_nhwc_packed,
    schedule_depthwise_conv2d_nhwc_packed,
    vector_lanes,
)
from .conv2d_winograd import schedule_winograd_input_transform, schedule_winograd_output_transform
from .dense import schedule_matmul_dot, schedule_matmul_packed
from .injective import schedule_injective
from .reduction import schedule_reduce_columns, schedule_reduce_rows
from .softmax import schedule_softmax

__all__: list[str] = []


def _fitting_lanes(target: Target, dtype: str, extent: int) -> int:
    """The widest power of two of lanes that leaves no remainder, at most a vector register."""
    lanes = vector_lanes(target, dtype)
    while extent % lanes:
        lanes //= 2
    return lanes


def _is_static(outputs: Sequence[te.Tensor]) -> bool:
    return all(
        is_constant(axis.dom.extent)
        for operation in operations_of(outputs)
        for axis in [*operation.axis, *operation.reduce_axis]
    )


def _is_elementwise_of(anchor: te.Tensor, outputs: Sequence[te.Tensor]) -> bool:
    """Whether there is one output, which reads each element of the anchor at its own place."""
    if len(outputs) != 1 or const_shape(outputs[0].shape) != const_shape(anchor.shape):
        return False
    operation = outputs[0].op
    while not operation.same_as(anchor.op):
        if not tag.is_broadcast(str(operation.tag)):
            return False
        reading = [
            tensor.op
            for tensor in operation.input_tensors
            if any(o.same_as(anchor.op) for o in operations_of([tensor]))
        ]
        if len(reading) != 1:
            return False
        (operation,) = reading
    return True


def _best_tile(
    target: Target, rows: int, columns: int, vectors: int, max_pixels: int | None = None
) -> RegisterTile:
    """The tile without remainders that does most multiply-adds for each vector it loads."""

    def divisors(extent: int) -> list[int]:
        return [d for d in range(1, min(extent, 32) + 1) if extent % d == 0]

    def products_a_load(tile: RegisterTile) -> float:
        pixels = tile.rows * tile.columns
        return pixels * tile.vectors / (pixels + tile.vectors)

    tiles = [
        RegisterTile(*sizes)
        for sizes in itertools.product(divisors(rows), divisors(columns), divisors(vectors))
        if sizes[0] * sizes[1] <= (max_pixels or rows * columns)
    ]
    fitting = [tile for tile in tiles if tile.registers() <= target.num_vector_registers]
    return max(fitting, key=lambda tile: (products_a_load(tile), tile.columns))


def _panels_pay(product: te.Tensor, rows: int, block: int) -> bool:
    """Whether the right side's rows are so far apart that a panel of it is worth a copy."""
    columns = const_shape(product.shape)[-1]
    row_bytes = columns * tir.const(0, product.dtype).dtype.bits // 8
    return columns > block and row_bytes >= 1024 and rows >= 16


_Convolution = Callable[..., te.Schedule]


def _convolution(
    conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target, make: _Convolution
) -> te.Schedule | None:
    if not _is_static(outputs) or not _is_elementwise_of(conv, outputs):
        return None
    _, height, width, channels = const_shape(conv.shape)
    lanes = _fitting_lanes(target, conv.dtype, channels)
    if lanes < 4:
        return None
    window = [int(axis.dom.extent) for axis in conv.op.reduce_axis]
    # A depthwise window is written out whole, so its tiles are small.
    written_out = make is schedule_depthwise_conv2d_nhwc_packed
    if written_out and window[0] * window[1] > 25:
        return None
    tile = _best_tile(target, height, width, channels // lanes, 4 if written_out else None)
    output = None if outputs[0].op.same_as(conv.op) else outputs[0]
    if written_out:
        return make(conv, tile, output, target, lanes=lanes)
    copies = _panels_pay(conv, height * width, tile.vectors * lanes)
    return make(conv, tile, output, target, lanes=lanes, copy_panels=copies)


@register_schedule("conv2d_nhwc", "cpu")
def _conv2d_nhwc(
    conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    return _convolution(conv, outputs, target, schedule_conv2d_nhwc_packed)


@register_schedule("depthwise_conv2d_nhwc", "cpu")
def _depthwise_conv2d_nhwc(
    conv: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    return _convolution(conv, outputs, target, schedule_depthwise_conv2d_nhwc_packed)


@register_schedule([tag.DENSE, tag.MATMUL, tag.BATCH_MATMUL, "winograd_product"], "cpu")
def _matmul(product: te.Tensor, outputs: Sequence[te.Tensor], target: Target) -> te.Schedule | None:
    if not _is_static(outputs) or not _is_elementwise_of(product, outputs):
        return None
    shape = const_shape(product.shape)
    (k,) = product.op.reduce_axis
    output = None if outputs[0].op.same_as(product.op) else outputs[0]
    rows = shape[-2] if len(shape) > 1 else 1
    if str(product.op.name).endswith("_NT"):
        lanes = _fitting_lanes(target, product.dtype, int(k.dom.extent))
        if lanes < 4:
            return None
        # Both operands come in vectors along the reduction: one row of each a result.
        tile = _best_tile(target, rows, 1, shape[-1], max_pixels=4)
        return schedule_matmul_dot(product, tile, output, target, lanes=lanes)
    lanes = _fitting_lanes(target, product.dtype, shape[-1])
    if lanes < 4 or str(product.op.name).endswith(("_TN", "_TT")):
        return None
    tile = _best_tile(target, rows, 1, shape[-1] // lanes)
    copies = _panels_pay(product, rows, tile.vectors * lanes)
    return schedule_matmul_packed(
        product, tile, output=output, target=target, lanes=lanes, copy_panels=copies
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


@register_schedule(tag.SOFTMAX, "cpu")
def _softmax(norm: te.Tensor, outputs: Sequence[te.Tensor], target: Target) -> te.Schedule | None:
    rank = len(norm.shape)
    if (
        not _is_static(outputs)
        or not norm.op.same_as(outputs[0].op)
        or str(norm.op.name) != "T_softmax_norm"
        or rank < 2
        or int(norm.op.attrs["axis"]) != rank - 1
    ):
        return None
    width = const_shape(norm.shape)[-1]
    lanes = vector_lanes(target, norm.dtype)
    vectors = next((v for v in (4, 2, 1) if width % (v * lanes) == 0), None)
    return schedule_softmax(norm, vectors, target) if vectors else None


@register_schedule([tag.COMM_REDUCE, tag.POOL_MAX, tag.POOL_SUM, tag.ADAPTIVE_POOL], "cpu")
def _reduction(
    reduced: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    if not _is_static(outputs) or not _is_elementwise_of(reduced, outputs) or not reduced.shape:
        return None
    columns = const_shape(reduced.shape)[-1]
    lanes = _fitting_lanes(target, reduced.dtype, columns)
    if lanes >= 4:
        return schedule_reduce_columns(reduced, outputs[0], lanes)
    loops = reduced.op.reduce_axis
    lanes = _fitting_lanes(target, reduced.dtype, int(loops[-1].dom.extent))
    if lanes < 4:
        return None
    return schedule_reduce_rows(reduced, outputs[0], lanes)


@register_schedule("injective", "cpu")
def _injective(
    output: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule | None:
    # Flattened, only plain elementwise reads stay vectors.
    elementwise = all(str(o.tag) == tag.ELEMWISE for o in operations_of(outputs))
    computed = isinstance(output.op, te.ComputeOp)
    if len(outputs) != 1 or not computed or not elementwise or not _is_static(outputs):
        return None
    size = math.prod(const_shape(output.shape))
    vectors = next(
        (v for v in (4, 2, 1) if size % (v * vector_lanes(target, output.dtype)) == 0), 0
    )
    return schedule_injective(output, vectors, target) if vectors else None
