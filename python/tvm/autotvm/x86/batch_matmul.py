"""Batched products of rows: (B, M, K) times the transposes of (B, N, K)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, topi
from tvm.target import Target
from tvm.topi.x86.vectors import vector_lanes

from ..task import get_config, template
from .dense import dot_tile, dots_fit

__all__ = ["schedule_batch_matmul"]


def schedule_batch_matmul(
    cfg: Any, product: te.Tensor, outputs: Sequence[te.Tensor], target: Target
) -> te.Schedule:
    """A result of ``topi.nn.batch_matmul`` by a point of the template.

    Parameters
    ----------
    outputs : of the whole computation: one, which is `product` or an elementwise function of it.
    """
    [output] = outputs
    epilogue = None if output.op.same_as(product.op) else output
    lanes = int(cfg["tile_k"].size[-1])
    return topi.x86.schedule_matmul_dot(product, dot_tile(cfg), epilogue, target, lanes)


@template("batch_matmul.x86")
def batch_matmul(
    a: te.Tensor,
    b: te.Tensor,
    out_shape: Any,
    out_dtype: str | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Any:
    """Products of a batch, whose operands both have the summed dimension last."""
    cfg = get_config()
    if transpose_a or not transpose_b:
        raise ValueError(
            "batch_matmul.x86: operands have the summed dimension last; transpose_a is False and "
            f"transpose_b True, got {transpose_a} and {transpose_b}"
        )
    _, rows, depth = topi.utils.const_shape(a.shape)
    columns = topi.utils.const_shape(b.shape)[1]
    target = Target.current() or Target("llvm")
    cfg.define_split("tile_y", rows, num_outputs=2)
    cfg.define_split("tile_x", columns, num_outputs=2)
    cfg.define_split("tile_k", depth, num_outputs=2)
    dtype = out_dtype or str(a.dtype)
    cfg.multi_filter(lambda point: dots_fit(point, target, dtype))
    if cfg.is_fallback:
        cfg.fallback_split("tile_y", [-1, 4])
        cfg.fallback_split("tile_x", [-1, 4])
        cfg.fallback_split("tile_k", [-1, vector_lanes(target, dtype)])
    product = topi.nn.batch_matmul(a, b, out_shape, out_dtype)
    return schedule_batch_matmul(cfg, product, [product], target), [a, b, product]
