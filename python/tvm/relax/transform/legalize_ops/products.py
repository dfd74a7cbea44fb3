"""Products and convolutions as kernels of TVM's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import error, te, topi
from tvm.topi.broadcast import broadcast_shape, read_broadcast
from tvm.topi.nn.conv import default_kernel_layout, spatial_letters
from tvm.topi.utils import Extent, as_pads, as_sizes, extents_of, get_const_tuple, simplify

from ...op.computations import relaid
from ...op.precision import accumulated_in_float32

__all__ = ["convolution", "matmul"]


@accumulated_in_float32
def matmul(a: te.Tensor, b: te.Tensor, out_dtype: str | None = None) -> te.Tensor:
    """NumPy's matmul in one block, whose leading axes broadcast.

    Operands of one axis are a row on the left and a column on the right.
    """
    left, right = get_const_tuple(a.shape), get_const_tuple(b.shape)
    if not min(len(left), len(right)):
        raise error.ValueError("relax.matmul: operands need dimensions, got a scalar")
    outer = broadcast_shape(left[:-2], right[:-2])
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    k = te.reduce_axis((0, left[-1]), name="k")

    def read(tensor: te.Tensor, own: tuple[Extent, ...], batch: Any, last: list[Any]) -> Any:
        value = read_broadcast(tensor, [*batch, *last], [*outer, *own[-2:]])
        return value if out_dtype in (None, value.dtype) else value.astype(out_dtype)

    def multiplied(*indices: Any) -> Any:
        batch, row = indices[: len(outer)], indices[len(outer) : len(outer) + len(rows)]
        column = indices[len(outer) + len(rows) :]
        product = read(a, left, batch, [*row, k]) * read(b, right, batch, [k, *column])
        return te.sum(product, axis=k)

    return te.compute([*outer, *rows, *columns], multiplied, name="matmul", tag="matmul")


def convolution(kernel: Callable[..., te.Tensor], layout: str) -> Callable[..., te.Tensor]:
    """A convolution of topi that reads a copy of the data with its border, if of no width.

    The copy is a block of its own, as schedules of TVM's kernels expect; they inline it.
    """

    def compute(
        data: te.Tensor,
        weight: te.Tensor,
        data_layout: str = layout,
        kernel_layout: str = "",
        out_layout: str | None = None,
        padding: Any = 0,
        dilation: Any = 1,
        **settings: Any,
    ) -> te.Tensor:
        letters = spatial_letters(data_layout)
        window = extents_of(weight, kernel_layout or default_kernel_layout(data_layout), "conv")
        gaps = as_sizes(dilation, len(letters))
        reach = [simplify((window[d] - 1) * gap + 1) for d, gap in zip(letters, gaps)]
        pads = as_pads(padding, len(letters), reach)
        front = dict(zip(letters, pads))
        behind = dict(zip(letters, pads[len(letters) :]))
        before = [front.get(d, 0) for d in data_layout]
        padded = topi.nn.pad(data, before, [behind.get(d, 0) for d in data_layout], name="pad_temp")
        if padded.same_as(data):
            padded = te.compute(data.shape, lambda *i: data(*i), name="pad_temp", tag="injective")
        out = kernel(
            padded,
            weight,
            padding=0,
            dilation=dilation,
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            **settings,
        )
        return relaid(out, data_layout, out_layout)

    return accumulated_in_float32(compute)
