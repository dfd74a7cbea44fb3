"""Operators that make, move, join and cut tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..errors import OnnxError
from ..types import dtype_of, tensor_of
from .registry import Node, operator

__all__ = ["axes_of", "normalized", "pad_tensor"]

_MAX_ELEMENTS = 1 << 31


def _checked(shape: Sequence[int]) -> list[int]:
    """A shape that is to be allocated.

    Raises
    ------
    OnnxError : no machine has the memory.
    """
    # Of sizes that are open the virtual machine finds out.
    known = [extent for extent in shape if not isinstance(extent, torch.SymInt)]
    if any(extent < 0 for extent in known) or math.prod(known) > _MAX_ELEMENTS:
        raise OnnxError(f"a tensor of the impossible shape {list(shape)}")
    return list(shape)


def _is_open(*sizes: Any) -> bool:
    return any(isinstance(size, torch.SymInt) for size in sizes)


def axes_of(n: Node, x: torch.Tensor, index: int = 1) -> list[int] | None:
    """Axes given as an input, or as an attribute as older opsets have it; None where they are not.

    Raises
    ------
    OnnxError : the tensor has no such axis.
    """
    axes = n.ints(index)
    if axes is None:
        axes = n.attr("axes")
    return None if axes is None else [normalized(axis, x.dim()) for axis in axes]


def normalized(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise OnnxError(f"there is no axis {axis} in {rank} dimensions")
    return axis % rank if rank else 0


@operator("Constant")
def _constant(n: Node) -> torch.Tensor:
    for name, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        if n.attr(name) is not None:
            return torch.from_numpy(np.array(n.attr(name), dtype))
    for name, dtype in (("value_floats", np.float32), ("value_ints", np.int64)):
        if n.attr(name) is not None:
            return torch.from_numpy(np.array(n.attr(name), dtype))
    value = n.attr("value")
    if value is None:
        raise OnnxError("a constant of text or of sparse data is not supported")
    return value


@operator("ConstantOfShape")
def _constant_of_shape(n: Node, shape: torch.Tensor) -> torch.Tensor:
    value = n.attr("value")
    extents = _checked(n.ints(0) or [])
    if value is None:
        return torch.zeros(extents)
    return value.reshape(()).expand(extents).clone()


@operator("Shape")
def _shape(n: Node, x: torch.Tensor) -> torch.Tensor:
    shape = list(x.shape)[n.attr("start", 0) : n.attr("end")]
    return torch.from_numpy(np.array(shape, np.int64))


@operator("Size")
def _size(n: Node, x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.array(x.numel(), np.int64))


@operator("Reshape")
def _reshape(n: Node, x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    wanted = n.ints(1) or []
    if not n.attr("allowzero", 0):
        wanted = [x.shape[i] if extent == 0 else extent for i, extent in enumerate(wanted)]
    return x.reshape(wanted)


@operator("Flatten")
def _flatten(n: Node, x: torch.Tensor) -> torch.Tensor:
    axis = n.attr("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Transpose")
def _transpose(n: Node, x: torch.Tensor) -> torch.Tensor:
    return x.permute(n.attr("perm", list(range(x.dim()))[::-1]))


@operator("Squeeze")
def _squeeze(n: Node, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    chosen = axes_of(n, x)
    if chosen is None:
        chosen = [i for i, extent in enumerate(x.shape) if extent == 1]
    for axis in chosen:
        if x.shape[axis] != 1:
            raise OnnxError(f"axis {axis} of {tuple(x.shape)} is not of size 1")
    return x.reshape([extent for i, extent in enumerate(x.shape) if i not in chosen])


@operator("Unsqueeze")
def _unsqueeze(n: Node, x: torch.Tensor, axes: torch.Tensor | None = None) -> torch.Tensor:
    given = (n.ints(1) if axes is not None else n.attr("axes")) or []
    rank = x.dim() + len(given)
    chosen = {normalized(axis, rank) for axis in given}
    extents = iter(x.shape)
    return x.reshape([1 if i in chosen else next(extents) for i in range(rank)])


@operator("Concat")
def _concat(n: Node, *tensors: torch.Tensor) -> torch.Tensor:
    return torch.cat(tensors, n.attr("axis"))


@operator("Split")
def _split(n: Node, x: torch.Tensor, split: torch.Tensor | None = None) -> list[torch.Tensor]:
    axis = normalized(n.attr("axis", 0), x.dim())
    sizes = n.ints(1) if split is not None else n.attr("split")
    if sizes is None:
        count = n.attr("num_outputs", n.n_outputs)
        if count != n.n_outputs:
            raise OnnxError(f"num_outputs is {count}, but the node has {n.n_outputs} outputs")
        size = -(-x.shape[axis] // count)
        sizes = [size] * (count - 1) + [x.shape[axis] - size * (count - 1)]
    return list(torch.split(x, list(sizes), axis))


@operator("Slice")
def _slice(n: Node, x: torch.Tensor, *_: torch.Tensor | None) -> torch.Tensor:
    starts, ends = n.ints(1) or n.attr("starts") or [], n.ints(2) or n.attr("ends") or []
    axes = n.ints(3) or n.attr("axes") or list(range(len(starts)))
    steps = n.ints(4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        axis = normalized(axis, x.dim())
        if step == 0:
            raise OnnxError("a slice of step 0")
        if _is_open(start, end, x.shape[axis]):
            x = _slice_of_open(x, axis, start, end, step)
        elif step > 0:
            x = x[(slice(None),) * axis + (slice(*slice(start, end, step).indices(x.shape[axis])),)]
        else:
            positions = range(
                *slice(start, _open_end(end, x.shape[axis]), step).indices(x.shape[axis])
            )
            x = _select(x, axis, list(positions))
    return x


def _slice_of_open(x: torch.Tensor, axis: int, start: Any, end: Any, step: int) -> torch.Tensor:
    """A slice along an axis whose extent, or whose limits, are open."""
    lead: tuple[Any, ...] = (slice(None),) * axis
    if step > 0:
        return x[lead + (slice(start, end, step),)]
    if start not in (-1,) and not (not _is_open(start) and start >= _BEYOND):
        raise OnnxError("a slice that goes backwards along an open axis, and not from its end")
    if not _is_open(end) and end > -_BEYOND:
        raise OnnxError("a slice that goes backwards along an open axis, and not to its begin")
    return torch.flip(x, [axis])[lead + (slice(None, None, -step),)]


# Limits that stand for an end of any axis.
_BEYOND = 2**31 - 1


def _open_end(end: int, extent: int) -> int | None:
    """The end of a slice that goes backwards; what is before the first element is none."""
    return None if end < -extent else end


def _select(x: torch.Tensor, axis: int, positions: Sequence[int]) -> torch.Tensor:
    extent = x.shape[axis]
    if list(positions) == list(range(extent))[::-1]:
        return torch.flip(x, [axis])
    return torch.index_select(x, axis, torch.tensor(list(positions), dtype=torch.int64))


@operator("Expand")
def _expand(n: Node, x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    return x.expand(_checked(_broadcast(list(x.shape), n.ints(1) or [])))


def _broadcast(a: list[Any], b: list[Any]) -> list[Any]:
    """The shape to which two shapes, with sizes that may be open, broadcast."""
    if not _is_open(*a, *b):
        return list(np.broadcast_shapes(tuple(a), tuple(b)))
    rank = max(len(a), len(b))
    pairs = zip([1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b)
    return [y if x == 1 else x for x, y in pairs]


@operator("Tile")
def _tile(n: Node, x: torch.Tensor, repeats: torch.Tensor) -> torch.Tensor:
    times = n.ints(1) or []
    _checked([a * b for a, b in zip(x.shape, times)])
    return x.repeat(times)


@operator("Range")
def _range(n: Node, *_: torch.Tensor) -> torch.Tensor:
    start, limit, delta = (n.array(i) for i in range(3))
    if start is None or limit is None or delta is None or delta == 0:
        raise OnnxError("a range without start, limit and a step that is not 0")
    if any(part.dtype == object for part in (start, limit, delta)):
        return torch.arange(*(part.item() for part in (start, limit, delta)))
    # Computed in Python's numbers, which do not run over.
    count = math.ceil((limit.item() - start.item()) / delta.item())
    _checked([max(count, 0)])
    return tensor_of(np.arange(max(count, 0)).astype(start.dtype) * delta + start)


@operator("Pad")
def _pad(n: Node, x: torch.Tensor, *_: torch.Tensor | None) -> torch.Tensor:
    pads = n.ints(1) or n.attr("pads") or [0] * 2 * x.dim()
    given = n.array(2)
    value = n.attr("value", 0.0) if given is None else given.item()
    axes = n.ints(3)
    axes = list(range(x.dim())) if axes is None else [normalized(axis, x.dim()) for axis in axes]
    before: list[Any] = [0] * x.dim()
    after: list[Any] = [0] * x.dim()
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    _checked([e + b + a for e, b, a in zip(x.shape, before, after)])
    return pad_tensor(x, before, after, n.attr("mode", "constant"), value)


def pad_tensor(
    x: torch.Tensor, before: Sequence[int], after: Sequence[int], mode: str, value: Any
) -> torch.Tensor:
    """A border of a constant, or of the tensor's own elements; negative sizes cut off."""
    if mode == "constant":
        sizes = [size for axis in reversed(range(x.dim())) for size in (before[axis], after[axis])]
        return F.pad(x, sizes, value=value) if any(sizes) else x
    for axis, (low, high) in enumerate(zip(before, after)):
        if low or high:
            positions = _border_positions(x.shape[axis], low, high, mode)
            x = torch.index_select(x, axis, torch.from_numpy(positions))
    return x


def _border_positions(extent: int, low: int, high: int, mode: str) -> np.ndarray[Any, Any]:
    positions = np.arange(-low, extent + high, dtype=np.int64)
    if mode == "edge":
        return positions.clip(0, extent - 1)
    if mode == "wrap":
        return positions % extent
    if mode != "reflect":
        raise OnnxError(f"unknown padding mode '{mode}'")
    period = max(2 * (extent - 1), 1)
    positions = positions % period
    return np.where(positions >= extent, period - positions, positions)


@operator("CenterCropPad")
def _center_crop_pad(n: Node, x: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    axes = n.attr("axes", list(range(x.dim())))
    for axis, wanted in zip(axes, n.ints(1) or []):
        axis = normalized(axis, x.dim())
        extent = x.shape[axis]
        if wanted <= extent:
            x = x.narrow(axis, (extent - wanted) // 2, wanted)
        else:
            _checked([wanted])
            before, after = [0] * x.dim(), [0] * x.dim()
            before[axis] = (wanted - extent) // 2
            after[axis] = wanted - extent - before[axis]
            x = pad_tensor(x, before, after, "constant", 0)
    return x


@operator("Trilu")
def _trilu(n: Node, x: torch.Tensor, k: torch.Tensor | None = None) -> torch.Tensor:
    diagonal = 0 if k is None else int((n.ints(1) or [0])[0])
    rows = torch.arange(x.shape[-2])[:, None]
    columns = torch.arange(x.shape[-1])[None, :]
    kept = columns - rows >= diagonal if n.attr("upper", 1) else columns - rows <= diagonal
    return torch.where(kept, x, torch.zeros((), dtype=x.dtype))


@operator("EyeLike")
def _eye_like(n: Node, x: torch.Tensor) -> torch.Tensor:
    dtype = x.dtype if n.attr("dtype") is None else dtype_of(n.attr("dtype"))
    rows, columns = torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])[None, :]
    return (columns - rows == n.attr("k", 0)).to(dtype)


@operator("OneHot")
def _one_hot(
    n: Node, indices: torch.Tensor, depth: torch.Tensor, values: torch.Tensor
) -> torch.Tensor:
    size = int((n.ints(1) or [0])[0])
    _checked([*indices.shape, size])
    axis = n.attr("axis", -1)
    axis = axis + indices.dim() + 1 if axis < 0 else axis
    whole = indices.to(torch.int64)
    whole = torch.where(whole < 0, whole + size, whole).unsqueeze(axis)
    shape = [1] * (indices.dim() + 1)
    shape[axis] = size
    hot = whole == torch.arange(size).reshape(shape)
    return torch.where(hot, values[1], values[0])


@operator("Cast", "CastLike")
def _cast(n: Node, x: torch.Tensor, like: torch.Tensor | None = None) -> torch.Tensor:
    dtype = dtype_of(n.attr("to")) if like is None else like.dtype
    if _is_float8(dtype) and n.attr("saturate", 1):
        limit = torch.finfo(dtype).max
        finite = torch.clamp(x.to(torch.float32), -limit, limit)
        return finite.to(dtype)
    if x.dtype.is_floating_point and dtype in (torch.uint16, torch.uint32, torch.uint64):
        return x.to(torch.int64).to(dtype)
    return x.to(dtype)


def _is_float8(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point and dtype.itemsize == 1


@operator("BitCast")
def _bit_cast(n: Node, x: torch.Tensor) -> torch.Tensor:
    return x.view(dtype_of(n.attr("to")))


@operator("DepthToSpace")
def _depth_to_space(n: Node, x: torch.Tensor) -> torch.Tensor:
    batch, channels, height, width = x.shape
    size = n.attr("blocksize")
    if n.attr("mode", "DCR") == "DCR":
        parts = x.reshape(batch, size, size, channels // size**2, height, width)
        parts = parts.permute(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(batch, channels // size**2, size, size, height, width)
        parts = parts.permute(0, 1, 4, 2, 5, 3)
    return parts.reshape(batch, channels // size**2, height * size, width * size)


@operator("SpaceToDepth")
def _space_to_depth(n: Node, x: torch.Tensor) -> torch.Tensor:
    batch, channels, height, width = x.shape
    size = n.attr("blocksize")
    parts = x.reshape(batch, channels, height // size, size, width // size, size)
    # The attribute came with opset 27; before it, blocks are the outermost part of the depth.
    order = (0, 3, 5, 1, 2, 4) if n.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.permute(order).reshape(batch, channels * size**2, height // size, width // size)


@operator("Col2Im")
def _col2im(n: Node, x: torch.Tensor, image: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    size, kernel = n.ints(1) or [], n.ints(2) or []
    rank = len(size)
    strides, dilations = n.attr("strides", [1] * rank), n.attr("dilations", [1] * rank)
    pads = n.attr("pads", [0] * 2 * rank)
    padded = [_checked([extent + pads[i] + pads[i + rank]])[0] for i, extent in enumerate(size)]
    blocks = [
        (padded[i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in range(rank)
    ]
    batch, channels = x.shape[0], x.shape[1] // math.prod(kernel)
    values = x.reshape(batch, channels, *kernel, *blocks)
    # Where each element of each block lies in the padded image, as one number.
    flat = torch.zeros([1] * 2 * rank, dtype=torch.int64)
    for i in range(rank):
        inner = torch.arange(kernel[i]) * dilations[i]
        outer = torch.arange(blocks[i]) * strides[i]
        shape = [1] * 2 * rank
        shape[i], shape[rank + i] = kernel[i], blocks[i]
        flat = flat * padded[i] + (inner[:, None] + outer[None, :]).reshape(shape)
    where = flat.reshape(-1).expand(batch, channels, -1)
    result = torch.zeros(batch, channels, math.prod(padded), dtype=x.dtype)
    result = result.scatter_add(2, where, values.reshape(batch, channels, -1))
    result = result.reshape(batch, channels, *padded)
    for i in range(rank):
        result = result.narrow(2 + i, pads[i], size[i])
    return result
