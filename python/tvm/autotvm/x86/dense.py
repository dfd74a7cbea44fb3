"""Dense layers: data (M, K) times the transpose of weights (N, K)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, topi
from tvm.target import Target
from tvm.topi.x86 import RegisterTile
from tvm.topi.x86.vectors import vector_lanes

from ..task import get_config, template

__all__ = ["dots_fit", "dot_tile", "schedule_dense"]


def dot_tile(cfg: Any) -> RegisterTile:
    """Rows and columns of which a point keeps a vector of partial sums each."""
    return RegisterTile(int(cfg["tile_y"].size[-1]), 1, int(cfg["tile_x"].size[-1]))


def dots_fit(cfg: Any, target: Target, dtype: str) -> bool:
    """Whether the partial sums of a point stay in registers."""
    vectors = -(-int(cfg["tile_k"].size[-1]) // vector_lanes(target, dtype))
    return dot_tile(cfg).registers() * vectors <= target.num_vector_registers


def schedule_dense(
    cfg: Any,
    name: str,
    product: te.Tensor,
    outputs: Sequence[te.Tensor],
    target: Target,
) -> te.Schedule:
    """A result of ``topi.nn.dense`` by a point of the template `name`.

    Parameters
    ----------
    outputs : of the whole computation: one, which is `product` or an elementwise function of it.
    """
    [output] = outputs
    epilogue = None if output.op.same_as(product.op) else output
    if name == "dense_nopack.x86":
        lanes = int(cfg["tile_k"].size[-1])
        return topi.x86.schedule_matmul_dot(product, dot_tile(cfg), epilogue, target, lanes)
    tiles = [cfg[knob].size for knob in ("tile_y", "tile_x")]
    rows, columns = ((int(size[-2]), int(size[-1])) for size in tiles)
    depth = int(cfg["tile_k"].size[-1])
    return topi.x86.schedule_dense_panels(product, rows, columns, depth, epilogue, target)


def _shape(data: te.Tensor, weight: te.Tensor) -> tuple[int, int, int]:
    rows, depth = topi.utils.const_shape(data.shape)
    return rows, topi.utils.const_shape(weight.shape)[0], depth


def _finished(cfg: Any, name: str, product: te.Tensor, bias: Any, args: list[te.Tensor]) -> Any:
    output = product if bias is None else topi.add(product, bias)
    target = Target.current() or Target("llvm")
    schedule = schedule_dense(cfg, name, product, [output], target)
    return schedule, [*args, *([] if bias is None else [bias]), output]


@template("dense_nopack.x86")
def dense_nopack(data: te.Tensor, weight: te.Tensor, bias: Any, out_dtype: str) -> Any:
    """Inner products of rows of both operands, read where they are."""
    cfg = get_config()
    rows, columns, depth = _shape(data, weight)
    target = Target.current() or Target("llvm")
    lanes = vector_lanes(target, out_dtype)
    cfg.define_split("tile_y", rows, num_outputs=2)
    cfg.define_split("tile_x", columns, num_outputs=2)
    cfg.define_split("tile_k", depth, num_outputs=2)
    cfg.multi_filter(lambda point: dots_fit(point, target, out_dtype))
    if cfg.is_fallback:
        cfg.fallback_split("tile_y", [-1, 1])
        cfg.fallback_split("tile_x", [-1, 4])
        cfg.fallback_split("tile_k", [-1, lanes])
    product = topi.nn.dense(data, weight, out_dtype=out_dtype)
    return _finished(cfg, "dense_nopack.x86", product, bias, [data, weight])


@template("dense_pack.x86")
def dense_pack(data: te.Tensor, weight: te.Tensor, bias: Any, out_dtype: str) -> Any:
    """Tiles of rows and columns, of weights stored as panels (N / n, K, n)."""
    cfg = get_config()
    rows, columns, depth = _shape(data, weight)
    target = Target.current() or Target("llvm")
    lanes = vector_lanes(target, out_dtype)
    cfg.define_split("tile_y", rows, num_outputs=3)
    cfg.define_split("tile_x", columns, num_outputs=3)
    cfg.define_split("tile_k", depth, num_outputs=2, filter=lambda sizes: sizes.size[-1] <= 16)

    def fits(point: Any) -> bool:
        vectors = -(-int(point["tile_x"].size[-1]) // lanes)
        tile = RegisterTile(int(point["tile_y"].size[-1]), 1, vectors)
        return tile.registers() <= target.num_vector_registers

    cfg.multi_filter(fits)
    if cfg.is_fallback:
        cfg.fallback_split("tile_y", [-1, 1, 4])
        cfg.fallback_split("tile_x", [-1, 1, lanes])
        cfg.fallback_split("tile_k", [-1, 1])
    packing = topi.x86.pack_dense_weight(weight, int(cfg["tile_x"].size[-1]))
    product = topi.nn.dense(data, packing.weight, out_dtype=out_dtype)
    return _finished(cfg, "dense_pack.x86", product, bias, [data, packing.packed])
