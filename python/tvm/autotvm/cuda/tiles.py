"""Knobs of tiles, and what a point of them means for `topi.cuda`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, topi
from tvm.target import Target
from tvm.topi.cuda.tiled_sums import AxisTile

__all__ = [
    "Tiling",
    "by_threads",
    "finished",
    "schedule_template",
    "scheduled",
    "summed",
    "tiled",
]

_UNROLL_STEPS = (0, 512, 1500)


@dataclass(frozen=True)
class Tiling:
    """Which knobs divide the axes of a template's result and of its sums.

    Attributes
    ----------
    axes : knob of each axis of the result, and the sizes of a point for what was not tuned; None
        for an axis of which a block has one element.
    sums : the same of each reduction. Without any, operands are in shared memory all at once.
    """

    axes: Sequence[tuple[str, tuple[int, int, int]] | None]
    sums: Sequence[tuple[str, int]] = ()


# Tilings by the name of the template; None for those whose threads add up one element together.
_TILINGS: dict[str, Tiling | None] = {}


def tiled(name: str, tiling: Tiling) -> None:
    """Enter the tiling of a template."""
    _TILINGS[name] = tiling


def by_threads(name: str) -> None:
    """Enter a template whose threads add up one element together."""
    _TILINGS[name] = None


Compute = Callable[[str], te.Tensor]


def summed(compute: Compute, out_dtype: str) -> tuple[te.Tensor, te.Tensor]:
    """A sum of products and the result of a template: halves are added up in float32, as networks
    do it.

    Parameters
    ----------
    compute : the sum in a type.
    """
    product = compute("float32" if out_dtype == "float16" else out_dtype)
    return product, product if product.dtype == out_dtype else topi.cast(product, out_dtype)


def scheduled(
    cfg: Any,
    name: str,
    compute: Compute,
    args: Sequence[te.Tensor],
    out_dtype: str,
    bias: te.Tensor | None = None,
) -> tuple[te.Schedule, list[te.Tensor]]:
    """The schedule and the arguments of a template.

    Parameters
    ----------
    compute : a result of the operator library in a type that is given.
    args : the operands.
    bias : what is added to the result; None for nothing.
    """
    product, output = summed(compute, out_dtype)
    tiling = _TILINGS[name]
    assert tiling is not None
    for axis, knob in zip(product.op.axis, tiling.axes):
        if knob is not None:
            cfg.define_split(knob[0], cfg.axis(axis), num_outputs=4)
    for axis, (knob_name, _) in zip(product.op.reduce_axis, tiling.sums):
        cfg.define_split(knob_name, cfg.axis(axis), num_outputs=2)
    cfg.define_knob("auto_unroll_max_step", list(_UNROLL_STEPS))
    cfg.define_knob("unroll_explicit", [0, 1])
    if cfg.is_fallback:
        for knob in tiling.axes:
            if knob is not None:
                cfg.fallback_split(knob[0], [-1, *knob[1]])
        for knob_name, step in tiling.sums:
            cfg.fallback_split(knob_name, [-1, step])
    target = Target.current() or Target("cuda")
    threads = 1
    for knob in tiling.axes:
        threads *= 1 if knob is None else int(cfg[knob[0]].size[2])
    if threads > target.max_num_threads:
        cfg.raise_error(f"{name}: {threads} threads, a block has {target.max_num_threads} at most")
    return finished(cfg, name, product, output, args, bias)


def finished(
    cfg: Any,
    name: str,
    product: te.Tensor,
    output: te.Tensor,
    args: Sequence[te.Tensor],
    bias: te.Tensor | None,
) -> tuple[te.Schedule, list[te.Tensor]]:
    """The schedule and the arguments of a template whose knobs are defined; see `summed`."""
    output = output if bias is None else topi.add(output, bias)
    more = [] if bias is None else [bias]
    return schedule_template(cfg, name, product, [output]), [*args, *more, output]


def _sizes(cfg: Any, knob: str) -> list[int]:
    return [int(size) for size in cfg[knob].size]


def schedule_template(
    cfg: Any | Mapping[str, Any], name: str, product: te.Tensor, outputs: Sequence[te.Tensor]
) -> te.Schedule:
    """The schedule of a computation by a point of a template.

    Parameters
    ----------
    name : of the template.
    product : what the template computes.
    outputs : of the whole computation: one, which is `product` or an elementwise function of it.
    """
    [output] = outputs
    epilogue = None if output.op.same_as(product.op) else output
    tiling = _TILINGS[name]
    if tiling is None:
        threads = _sizes(cfg, "tile_k")[-1]
        return topi.cuda.schedule_sum_by_threads(product, threads, epilogue)
    tiles = [None if knob is None else AxisTile(*_sizes(cfg, knob[0])[1:]) for knob in tiling.axes]
    steps = [_sizes(cfg, knob)[1] for knob, _ in tiling.sums]
    return topi.cuda.schedule_tiled_sums(
        product,
        tiles,
        steps,
        epilogue,
        int(cfg["auto_unroll_max_step"].val),
        bool(cfg["unroll_explicit"].val),
    )
