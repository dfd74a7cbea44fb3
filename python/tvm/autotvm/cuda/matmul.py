"""Dense layers, data (M, K) times the transpose of weights (N, K), and batches of products."""

from __future__ import annotations

from typing import Any

from tvm import te, topi
from tvm.target import Target

from ..task import get_config, template
from .tiles import Tiling, by_threads, finished, scheduled, summed, tiled

__all__: list[str] = []

# Threads that add up one element where nothing was tuned.
_THREADS = 64

by_threads("dense_small_batch.gpu")
tiled(
    "dense_large_batch.gpu",
    Tiling((("tile_x", (1, 16, 4)), ("tile_y", (1, 16, 4))), (("tile_k", 8),)),
)
tiled(
    "batch_matmul.cuda",
    Tiling((None, ("tile_y", (1, 16, 4)), ("tile_x", (1, 16, 4))), (("tile_k", 8),)),
)


@template("dense_small_batch.gpu")
def dense_small_batch(data: te.Tensor, weight: te.Tensor, bias: Any, out_dtype: str) -> Any:
    """Each element is added up by the threads of one block."""
    cfg = get_config()
    depth = topi.utils.const_shape(data.shape)[1]
    target = Target.current() or Target("cuda")
    cfg.define_split(
        "tile_k",
        depth,
        num_outputs=2,
        filter=lambda sizes: sizes.size[-1] <= target.max_num_threads,
    )
    if cfg.is_fallback:
        cfg.fallback_split("tile_k", [-1, _THREADS])
    product, output = summed(lambda dtype: topi.nn.dense(data, weight, out_dtype=dtype), out_dtype)
    return finished(cfg, "dense_small_batch.gpu", product, output, [data, weight], bias)


@template("dense_large_batch.gpu")
def dense_large_batch(data: te.Tensor, weight: te.Tensor, bias: Any, out_dtype: str) -> Any:
    """Tiles of rows and columns, of operands in shared memory."""
    return scheduled(
        get_config(),
        "dense_large_batch.gpu",
        lambda dtype: topi.nn.dense(data, weight, out_dtype=dtype),
        [data, weight],
        out_dtype,
        bias,
    )


@template("batch_matmul.cuda")
def batch_matmul(
    a: te.Tensor,
    b: te.Tensor,
    out_shape: Any,
    out_dtype: str | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Any:
    """Products of a batch of matrices, each stored as it is or transposed."""
    return scheduled(
        get_config(),
        "batch_matmul.cuda",
        lambda dtype: topi.nn.batch_matmul(a, b, out_shape, dtype, transpose_a, transpose_b),
        [a, b],
        out_dtype or str(a.dtype),
    )
