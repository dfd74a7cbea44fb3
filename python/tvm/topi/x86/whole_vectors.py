"""Products whose columns end inside of a vector, computed in whole ones from weights with zeros.

Units of the widest registers take as long for half of one as for a whole one.
"""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.target import Target

from .. import tag
from ..utils import ceil_div, const_shape
from .conv2d import RegisterTile, tile_pixels
from .vectors import inline_producers, prefetch_weight, vector_lanes

__all__ = [
    "GROUPED_VECTORS",
    "convolve_columns",
    "convolve_groups",
    "first_columns",
    "schedule_grouped_vectors",
    "whole_columns",
]

# Tag of a grouped convolution whose filters lie in whole vectors of each group.
GROUPED_VECTORS = "group_conv2d_nhwc_vectors"


def whole_columns(target: Target, dtype: str, columns: int) -> int:
    """Columns up to the next whole vector where that takes less, else as many as there are.

    Parameters
    ----------
    columns : of a product, or the filters of a group.
    """
    lanes = vector_lanes(target, dtype)
    half_empty = columns % lanes and columns % (lanes // 2) == 0
    if not target.has_wide_units or not half_empty or columns < lanes:
        return columns
    return ceil_div(columns, lanes) * lanes


def first_columns(product: te.Tensor, columns: int) -> te.Tensor:
    """A product without those of its last columns that are only there to fill vectors."""
    return te.compute(
        (*product.shape[:-1], columns),
        lambda *i: product(*i),
        name="first_columns",
        tag=tag.INJECTIVE,
    )


def _window(conv: te.Tensor, at: tuple[Any, ...], loops: list[tir.IterVar]) -> list[Any]:
    """Where a convolution of NHWC data reads for a pixel: batch, row and column of the data."""
    data = conv.op.input_tensors[0]
    where = {axis.var: index for axis, index in zip(conv.op.axis, at)}
    where |= {old.var: new.var for old, new in zip(conv.op.reduce_axis, loops)}
    loads: list[tir.ProducerLoad] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.ProducerLoad) and node.producer.same_as(data):
            loads.append(node)

    tir.stmt_functor.post_order_visit(conv.op.body[0], visit)
    return [tir.stmt_functor.substitute(index, where) for index in loads[0].indices[:3]]


def _loops(conv: te.Tensor) -> list[tir.IterVar]:
    return [
        te.reduce_axis((0, int(axis.dom.extent)), name=str(axis.var.name))
        for axis in conv.op.reduce_axis
    ]


def convolve_columns(conv: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """The convolution of NHWC data that another one is, with more filters.

    Parameters
    ----------
    conv : result of ``topi.nn.conv2d_nhwc``.
    weight : (height, width, channels, filters).
    """
    data, loops = conv.op.input_tensors[0], _loops(conv)
    dy, dx, ci = loops
    return te.compute(
        (*conv.shape[:3], weight.shape[3]),
        lambda n, y, x, f: te.sum(
            data(*_window(conv, (n, y, x), loops), ci) * weight(dy, dx, ci, f), axis=loops
        ),
        name=str(conv.op.name),
        tag=str(conv.op.tag),
    )


def convolve_groups(conv: te.Tensor, weight: te.Tensor, lanes: int) -> te.Tensor:
    """A grouped convolution of NHWC data from weights whose groups fill whole vectors.

    Parameters
    ----------
    conv : result of ``topi.nn.group_conv2d_nhwc``.
    weight : (groups, height, width, channels of a group, filters of a group and zeros).

    Returns
    -------
    What `conv` is, of (groups, vectors, lanes) that were computed for each pixel.
    """
    data, loops = conv.op.input_tensors[0], _loops(conv)
    dy, dx, ci = loops
    groups, _, _, depth, wide = const_shape(weight.shape)
    filters = const_shape(conv.shape)[3] // groups
    vectors = te.compute(
        (*conv.shape[:3], groups, wide // lanes, lanes),
        lambda n, y, x, g, v, lane: te.sum(
            data(*_window(conv, (n, y, x), loops), g * depth + ci)
            * weight(g, dy, dx, ci, v * lanes + lane),
            axis=loops,
        ),
        name="group_conv2d",
        tag=GROUPED_VECTORS,
    )

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        f = c % filters
        return vectors(n, y, x, c // filters, f // lanes, f % lanes)

    return te.compute(conv.shape, element, name="first_columns", tag=tag.INJECTIVE)


def schedule_grouped_vectors(
    conv: te.Tensor, tile: RegisterTile, output: te.Tensor, target: Target, rows_outside: bool
) -> te.Schedule:
    """A group at a time for each tile of pixels, as `schedule_conv2d_nhwc_packed` does panels.

    Parameters
    ----------
    conv : the stage of :func:`convolve_groups` with the sums; `tile` has all vectors of a group.
    output : NHWC, computed of it element by element.
    rows_outside : as for `schedule_conv2d_nhwc_packed`.
    """
    tile.check(target)
    lanes = const_shape(conv.shape)[5]
    groups = const_shape(conv.shape)[3]
    filters = const_shape(output.shape)[3] // groups
    s = te.create_schedule(output.op)
    inline_producers(s, output, first=conv)
    padded, weight = conv.op.input_tensors
    x, _ = tile_pixels(s, output, padded, tile, filters, lanes, target, rows_outside)
    s[conv].compute_at(s[output], x)
    s[conv].set_scope("local")
    n, y, x, group, vector, lane = s[conv].op.axis
    dy, dx, ci = s[conv].op.reduce_axis
    s[conv].reorder(n, group, dy, dx, ci, y, x, vector, lane)
    for loop in (y, x, vector):
        s[conv].unroll(loop)
    s[conv].vectorize(lane)
    if tile.prefetch:
        prefetch_weight(s, conv, weight, ci, tile.prefetch)
    return s
