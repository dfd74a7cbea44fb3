"""Borders around a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..utils import Extent, equal_const_int, get_const_tuple, is_constant, simplify

__all__ = ["mirror_pad", "pad"]


def _borders(
    where: str, rank: int, before: Sequence[Extent], after: Sequence[Extent] | None
) -> tuple[tuple[Extent, ...], tuple[Extent, ...]]:
    front = get_const_tuple(before)
    behind = front if after is None else get_const_tuple(after)
    negative = any(is_constant(size) and size < 0 for size in front + behind)
    if len(front) != rank or len(behind) != rank or negative:
        raise ValueError(
            f"topi.nn.{where}: needs {rank} sizes before and after, none negative; got {front} "
            f"and {behind}"
        )
    return front, behind


def pad(
    data: te.Tensor,
    pad_before: Sequence[Extent],
    pad_after: Sequence[Extent] | None = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
) -> te.Tensor:
    """data with a border, or data itself when every border is 0.

    Parameters
    ----------
    pad_before, pad_after : elements added in front of and behind each dimension, none negative;
        without pad_after both sides get pad_before.
    pad_value : what the border holds, a number or an expression.
    """
    shape = get_const_tuple(data.shape)
    before, after = _borders("pad", len(shape), pad_before, pad_after)
    if all(equal_const_int(size, 0) for size in before + after):
        return data
    is_expr = isinstance(pad_value, tir.PrimExpr)
    fill = pad_value.astype(data.dtype) if is_expr else tir.const(pad_value, data.dtype)

    def read(*indices: Any) -> Any:
        inside: list[Any] = []
        position: list[Any] = []
        for index, low, high, extent in zip(indices, before, after, shape):
            has_low = not equal_const_int(low, 0)
            if has_low:
                inside.append(index >= low)
            if not equal_const_int(high, 0):
                inside.append(index < low + extent)
            position.append(index - low if has_low else index)
        return tir.if_then_else(tir.all(*inside), data(*position), fill)

    out = [simplify(low + extent + high) for low, extent, high in zip(before, shape, after)]
    return te.compute(out, read, name=name, tag=tag.PAD)


def _reflect(i: Any, n: Extent) -> Any:
    """a b c d -> c b | a b c d | c b"""
    inside = tir.Max(tir.convert(i), tir.convert(-i))
    return tir.Min(inside, 2 * n - 2 - inside)


def _symmetric(i: Any, n: Extent) -> Any:
    """a b c d -> b a | a b c d | d c"""
    inside = tir.Max(tir.convert(i), tir.convert(-1 - i))
    return tir.Min(inside, 2 * n - 1 - inside)


def _edge(i: Any, n: Extent) -> Any:
    """a b c d -> a a | a b c d | d d"""
    return tir.Max(tir.Min(i, tir.convert(n - 1)), tir.const(0, i.dtype))


def _wrap(i: Any, n: Extent) -> Any:
    """a b c d -> c d | a b c d | a b"""
    return tir.floormod(i, tir.convert(n))


# Where in the data an index of the border is found, and how far a border may reach, as what is
# taken from the extent; None for any distance.
_MODES: dict[str, tuple[Callable[[Any, Extent], Any], int | None]] = {
    "REFLECT": (_reflect, 1),
    "SYMMETRIC": (_symmetric, 0),
    "EDGE": (_edge, None),
    "WRAP": (_wrap, None),
}


def mirror_pad(
    data: te.Tensor,
    pad_before: Sequence[Extent],
    pad_after: Sequence[Extent] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> te.Tensor:
    """data with a border made of its own elements.

    Parameters
    ----------
    pad_before, pad_after : as in :func:`pad`.
    mode : "SYMMETRIC" mirrors the border elements too, "REFLECT" mirrors at them, "EDGE" repeats
        them, "WRAP" continues at the other end.

    Raises
    ------
    ValueError : another mode, or a mirrored border longer than what there is to mirror.
    """
    if mode not in _MODES:
        raise ValueError(f"topi.nn.mirror_pad: mode is one of {sorted(_MODES)}, got {mode!r}")
    place, taken = _MODES[mode]
    shape = get_const_tuple(data.shape)
    before, after = _borders("mirror_pad", len(shape), pad_before, pad_after)
    for extent, size in zip(shape * 2, before + after):
        known = is_constant(extent) and is_constant(size)
        if known and taken is not None and size > extent - taken:
            raise ValueError(
                f"topi.nn.mirror_pad: a border of {size} is more than mode {mode} can mirror of "
                f"{extent} elements"
            )

    def read(*indices: Any) -> Any:
        position = []
        for index, low, high, extent in zip(indices, before, after, shape):
            bare = equal_const_int(low, 0) and equal_const_int(high, 0)
            position.append(index if bare else place(index - low, extent))
        *_, last = indices
        low, extent = before[-1], shape[-1]
        if equal_const_int(low, 0) and equal_const_int(after[-1], 0):
            return data(*position)
        # Between the borders neighbours are read as neighbours, which vectors need.
        inside = tir.all(last >= low, last < low + extent)
        return tir.if_then_else(inside, data(*position[:-1], last - low), data(*position))

    out = [simplify(low + extent + high) for low, extent, high in zip(before, shape, after)]
    return te.compute(out, read, name=name, tag=tag.PAD)
