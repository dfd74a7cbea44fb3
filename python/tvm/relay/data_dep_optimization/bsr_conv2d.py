"""Convolutions with weights that are mostly zero."""

from __future__ import annotations

from ..analysis.sparse_conv2d import process_params
from ..binding import bind_params_by_name
from ..expr import Function
from ..transform import Conv2dToSparse, Conv2dToSparse2
from .values import Values, through

__all__ = ["convert", "convert2"]


def convert(
    func: Function,
    params: Values,
    blocksize: tuple[int, int],
    sparsity_threshold: float,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> tuple[Function, Values]:
    """The function with ``nn.sparse_conv2d`` where weights are sparse, and the parameters for it.

    See :func:`tvm.relay.data_dep_optimization.bsr_dense.convert`.
    """
    found = process_params(func, params, blocksize, sparsity_threshold, layout, kernel_size)
    run = Conv2dToSparse(found.weight_name, found.weight_shape, layout, kernel_size)
    return through(func, run), params


def convert2(
    func: Function,
    params: Values,
    layout: str,
    kernel_size: int,
    blocksize: tuple[int, int],
    sparsity_threshold: float,
) -> tuple[Function, Values]:
    """:func:`convert` with all parameters as constants of the function."""
    bound = bind_params_by_name(func, params)
    run = Conv2dToSparse2(layout, kernel_size, blocksize, sparsity_threshold)
    return through(bound, run), params
