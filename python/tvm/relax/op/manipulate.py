"""Operators that move elements or give them another shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import PrimExpr, RelayExpr

from ..expr import Call, PrimValue, ShapeExpr, Tuple
from ..struct_info import TensorStructInfo, TupleStructInfo
from .base import make_call
from .binary import broadcast_shape
from .registry import register_rule
from .rules import (
    axes_of,
    axis_of,
    common_dtype,
    common_vdevice,
    differ,
    equal,
    extents,
    known_shape,
    number,
    opaque_tensor,
    product,
    same_as_operand,
    setting,
    shape_argument,
    simplified,
    tensor,
    tensors,
    with_shape,
)

__all__ = [
    "broadcast_to",
    "collapse_sum_like",
    "collapse_sum_to",
    "concat",
    "expand_dims",
    "flatten",
    "flip",
    "gather_elements",
    "layout_transform",
    "permute_dims",
    "repeat",
    "reshape",
    "scatter_elements",
    "split",
    "squeeze",
    "tile",
]

Shape = Sequence[Any] | RelayExpr
Axis = int | Sequence[int] | None


def _shape(shape: Shape) -> RelayExpr:
    return shape if isinstance(shape, RelayExpr) else ShapeExpr(extents(_values(shape)))


def _values(shape: Sequence[Any]) -> list[Any]:
    return [v.value if isinstance(v, PrimValue) else v for v in shape]


def _axes(axis: Axis) -> list[int] | None:
    if axis is None:
        return None
    return [int(a) for a in axis] if isinstance(axis, Sequence) else [int(axis)]


def broadcast_to(x: RelayExpr, shape: Shape) -> Call:
    """x repeated along new dimensions and along those of size 1."""
    return make_call("broadcast_to", x, _shape(shape))


def _broadcast_to(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    target = shape_argument(call, 1)
    if -1 not in (info.ndim, target.ndim) and info.ndim > target.ndim:
        raise error.ValueError(
            f"relax.broadcast_to: {info.ndim} dimensions do not fit into {target.ndim}"
        )
    source = known_shape(info)
    if source is not None and target.values is not None:
        goal = list(target.values)
        result = broadcast_shape(call, source, goal)
        if result is not None and any(differ(a, b) for a, b in zip(result, goal)):
            raise error.ValueError(f"relax.broadcast_to: {source} does not broadcast to {goal}")
    return with_shape(call.args[1], info.dtype, info.vdevice)


def reshape(x: RelayExpr, shape: Shape) -> Call:
    """The elements of x in row-major order under another shape.

    Parameters
    ----------
    shape : extents; 0 keeps that of x at the same place, and one may be -1, which stands for what
        the others leave.

    Raises
    ------
    ValueError : there is more than one -1, or no way to tell what one stands for.
    """
    if not isinstance(shape, RelayExpr):
        shape = ShapeExpr(_resolved(x, _values(shape)))
    elif isinstance(shape, ShapeExpr) and any(number(v) in (0, -1) for v in shape.values):
        shape = ShapeExpr(_resolved(x, list(shape.values)))
    return make_call("reshape", x, shape)


def _resolved(x: RelayExpr, shape: Sequence[Any]) -> list[PrimExpr]:
    info = x.struct_info
    own = known_shape(info) if isinstance(info, TensorStructInfo) else None
    result, open_place = [], None
    for place, extent in enumerate(shape):
        value = number(extent) if isinstance(extent, PrimExpr) else int(extent)
        if value == -1:
            if open_place is not None:
                raise error.ValueError(f"relax.reshape: more than one -1 in {list(shape)}")
            open_place = place
        elif value is not None and value < -1:
            raise error.ValueError(f"relax.reshape: an extent of {value} in {list(shape)}")
        elif value == 0 and own is not None and not any(number(e) == 0 for e in own):
            if place >= len(own):
                raise error.ValueError(
                    f"relax.reshape: 0 at place {place} keeps an extent that x does not have"
                )
            extent = own[place]
        result.append(extent)
    result = extents(result)
    if open_place is not None:
        if own is None:
            raise error.ValueError("relax.reshape: -1 needs the shape of x, which is unknown")
        rest = product([e for place, e in enumerate(result) if place != open_place])
        total = product(own)
        a, b = number(total), number(rest)
        if a is not None and b:
            if a % b != 0:
                raise error.ValueError(f"relax.reshape: {own} does not divide into {list(shape)}")
            result[open_place] = tir.const(a // b, "int64")
        else:
            result[open_place] = simplified(tir.floordiv(total, rest))
    return result


def _reshape(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    target = shape_argument(call, 1)
    source = known_shape(info)
    goal = None if target.values is None else list(target.values)
    if source is not None and goal is not None and differ(product(source), product(goal)):
        raise error.ValueError(
            f"relax.reshape: {source} and {goal} have different numbers of elements"
        )
    return with_shape(call.args[1], info.dtype, info.vdevice)


def flatten(x: RelayExpr, start_dim: int = 0, end_dim: int = -1) -> Call:
    """Dimensions start_dim to end_dim (both included) merged into one.

    With the defaults this is an operator; otherwise a reshape, for which the shape must be known.

    Raises
    ------
    ValueError : start_dim comes after end_dim.
    """
    if (start_dim, end_dim) == (0, -1):
        return make_call("flatten", x)
    shape = known_shape(x.struct_info)
    if shape is None:
        raise error.ValueError("relax.flatten: merging some dimensions needs the shape of x")
    first, last = start_dim % len(shape), end_dim % len(shape)
    if first > last:
        raise error.ValueError(f"relax.flatten: dimension {start_dim} comes after {end_dim}")
    return reshape(x, [*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :]])


def _flatten(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    if info.ndim == 1:
        return info
    if info.ndim == 0:
        return with_shape([1], info.dtype, info.vdevice)
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, 1, info.vdevice)
    return with_shape([product(shape)], info.dtype, info.vdevice)


def expand_dims(x: RelayExpr, axis: int | Sequence[int]) -> Call:
    """New dimensions of size 1 at the given positions of the result."""
    return make_call("expand_dims", x, axis=_axes(axis))


def _expand_dims(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    axes = setting(call, "axis")
    axes = axes if isinstance(axes, tuple) else (axes,)
    if not axes:
        return info
    if info.ndim == -1:
        return opaque_tensor(info.dtype, -1, info.vdevice)
    rank = info.ndim + len(axes)
    places = axes_of(call, axes, rank)
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, rank, info.vdevice)
    rest = iter(shape)
    return with_shape(
        [1 if k in places else next(rest) for k in range(rank)], info.dtype, info.vdevice
    )


def squeeze(x: RelayExpr, axis: Axis = None) -> Call:
    """x without the given dimensions of size 1, or without all of them."""
    return make_call("squeeze", x, axis=_axes(axis))


def _squeeze(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    axes = setting(call, "axis")
    shape = known_shape(info)
    if info.ndim == -1:
        return opaque_tensor(info.dtype, -1, info.vdevice)
    if axes is None:
        if shape is None or any(number(e) is None for e in shape):
            return opaque_tensor(info.dtype, -1, info.vdevice)
        rest = [e for e in shape if number(e) != 1]
        if len(rest) == len(shape):
            return info
        return with_shape(rest, info.dtype, info.vdevice)
    places = axes_of(call, axes if isinstance(axes, tuple) else (axes,), info.ndim)
    if not places:
        return info
    if shape is None:
        return opaque_tensor(info.dtype, info.ndim - len(places), info.vdevice)
    for place in places:
        if number(shape[place]) not in (None, 1):
            raise error.ValueError(
                f"relax.squeeze: dimension {place} of {shape} has an extent other than 1"
            )
    return with_shape([e for k, e in enumerate(shape) if k not in places], info.dtype, info.vdevice)


def permute_dims(x: RelayExpr, axes: Sequence[int] | None = None) -> Call:
    """Dimension k of the result is dimension axes[k] of x; None reverses the order."""
    return make_call("permute_dims", x, axes=None if axes is None else [int(a) for a in axes])


def _permute_dims(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    axes = setting(call, "axes")
    if axes is not None and info.ndim not in (-1, len(axes)):
        raise error.ValueError(
            f"relax.permute_dims: {len(axes)} axes for a tensor of {info.ndim} dimensions"
        )
    rank = info.ndim if axes is None else len(axes)
    if rank == -1:
        return opaque_tensor(info.dtype, -1, info.vdevice)
    places = list(reversed(range(rank))) if axes is None else axes_of(call, axes, rank)
    if places == list(range(rank)):
        return info
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, rank, info.vdevice)
    return with_shape([shape[k] for k in places], info.dtype, info.vdevice)


def layout_transform(
    x: RelayExpr,
    index_map: Callable[..., Any] | tir.IndexMap,
    pad_value: int | float | PrimValue | None = None,
    axis_separators: Sequence[Any] | None = None,
    input_axis_separators: Sequence[Any] | None = None,
) -> Call:
    """x with its elements where a map of indices puts them.

    Parameters
    ----------
    index_map : from indices of x to indices of the result.
    pad_value : what elements of the result that nothing is mapped to hold.
    axis_separators, input_axis_separators : where the dimensions of the result, and of x, are
        divided into groups, each of which is one dimension of memory.
    """
    if not isinstance(index_map, tir.IndexMap):
        index_map = tir.IndexMap.from_func(index_map, index_dtype="int64")
    if pad_value is not None and not isinstance(pad_value, PrimValue):
        pad_value = PrimValue(tir.const(pad_value, str(x.struct_info.dtype)))
    return make_call(
        "layout_transform",
        x,
        index_map=index_map,
        pad_value=pad_value,
        axis_separators=list(axis_separators or []),
        input_axis_separators=list(input_axis_separators or []),
    )


def _layout_transform(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    index_map = call.attrs["index_map"]
    pad = call.attrs.get("pad_value", None)
    if pad is not None and str(pad.value.dtype) != str(info.dtype):
        raise error.TypeError(
            f"relax.layout_transform: pad_value is {pad.value.dtype}, the tensor {info.dtype}"
        )
    rank = len(index_map.initial_indices)
    if info.ndim not in (-1, rank):
        raise error.ValueError(
            f"relax.layout_transform: a map of {rank} indices for {info.ndim} dimensions"
        )
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, len(index_map.final_indices), info.vdevice)
    return with_shape(list(index_map.map_shape(shape)), info.dtype, info.vdevice)


def concat(tensors: Sequence[RelayExpr] | RelayExpr, axis: int | None = 0) -> Call:
    """Tensors joined along one dimension, which need not be said of vectors."""
    fields = tensors if isinstance(tensors, RelayExpr) else Tuple(tensors)
    if axis is None and isinstance(fields, Tuple) and len(fields.fields):
        infos = [part.struct_info for part in fields.fields]
        axis = 0 if all(getattr(info, "ndim", None) == 1 for info in infos) else None
    return make_call("concat", fields, axis=axis)


def _concat(call: Call) -> TensorStructInfo:
    infos = tensors(call)
    axis = setting(call, "axis")
    if not infos:
        raise error.ValueError("relax.concat: there is nothing to join")
    dtype = common_dtype(call, infos)
    vdevice = common_vdevice(call, infos)
    ranks = {info.ndim for info in infos} - {-1}
    if len(ranks) > 1:
        raise error.ValueError(f"relax.concat: tensors of {sorted(ranks)} dimensions")
    rank = ranks.pop() if ranks else -1
    if axis is None:
        if rank not in (-1, 1):
            raise error.ValueError(f"relax.concat: tensors of {rank} dimensions need an axis")
        axis, rank = 0, 1
    if rank == -1:
        return opaque_tensor(dtype, -1, vdevice)
    place = axis_of(call, axis, rank)
    shapes = [known_shape(info) for info in infos]
    known = [shape for shape in shapes if shape is not None]
    result = list(known[0]) if known else []
    for shape in known[1:]:
        for k, (a, b) in enumerate(zip(result, shape)):
            if k == place:
                continue
            if differ(a, b):
                raise error.ValueError(
                    f"relax.concat: {known[0]} and {shape} differ beside axis {place}"
                )
            if number(a) is None and number(b) is not None:
                result[k] = b
    beside = all(
        k == place or all(equal(result[k], shape[k]) for shape in known) for k in range(len(result))
    )
    if len(known) < len(shapes) or not beside:
        return opaque_tensor(dtype, rank, vdevice)
    total: Any = known[0][place]
    for shape in known[1:]:
        total = total + shape[place]
    result[place] = simplified(total)
    return with_shape(result, dtype, vdevice)


def split(x: RelayExpr, indices_or_sections: int | Sequence[Any], axis: int = 0) -> Call:
    """A tuple of pieces along one dimension.

    Parameters
    ----------
    indices_or_sections : how many pieces, or the places at which to cut.
    """
    if not isinstance(indices_or_sections, int):
        indices_or_sections = [int(v) for v in indices_or_sections]
    return make_call("split", x, indices_or_sections=indices_or_sections, axis=axis)


def _split(call: Call) -> Any:
    info = tensor(call, 0)
    cuts = setting(call, "indices_or_sections", ())
    axis = setting(call, "axis", 0)
    place = axis_of(call, axis, info.ndim) if info.ndim != -1 else None
    shape = known_shape(info)
    if isinstance(cuts, tuple):
        count = len(cuts) + 1
        if shape is None or place is None:
            return TupleStructInfo([opaque_tensor(info.dtype, info.ndim, info.vdevice)] * count)
        extent = shape[place]
        zero = tir.const(0, "int64")
        bounds = [zero, *extents(cuts), extent]
        pieces = []
        for low, high in zip(bounds, bounds[1:]):
            start = simplified(tir.max(zero, tir.min(low, extent)))
            stop = simplified(tir.max(zero, tir.min(high, extent)))
            size = simplified(tir.max(zero, stop - start))
            pieces.append([*shape[:place], size, *shape[place + 1 :]])
        return TupleStructInfo([with_shape(p, info.dtype, info.vdevice) for p in pieces])
    if cuts <= 0:
        raise error.ValueError(f"relax.split: {cuts} pieces")
    if cuts == 1:
        return TupleStructInfo([info])
    if shape is None or place is None:
        return TupleStructInfo([opaque_tensor(info.dtype, info.ndim, info.vdevice)] * cuts)
    extent = shape[place]
    size = simplified(tir.floordiv(extent + (cuts - 1), tir.const(cuts, "int64")))
    last = simplified(extent - size * (cuts - 1))
    pieces = [[*shape[:place], e, *shape[place + 1 :]] for e in [size] * (cuts - 1) + [last]]
    return TupleStructInfo([with_shape(p, info.dtype, info.vdevice) for p in pieces])


def collapse_sum_like(data: RelayExpr, collapse_target: RelayExpr) -> Call:
    """data summed over the dimensions along which the target would broadcast to it."""
    return make_call("collapse_sum_like", data, collapse_target)


def collapse_sum_to(data: RelayExpr, shape: Shape) -> Call:
    """data summed over the dimensions along which a shape would broadcast to its own."""
    return make_call("collapse_sum_to", data, _shape(shape))


def _collapses(call: Call, info: TensorStructInfo, target: Sequence[Any]) -> None:
    shape = known_shape(info)
    if shape is None:
        if info.ndim != -1 and len(target) > info.ndim:
            raise error.ValueError(
                f"{call.op.name}: {info.ndim} dimensions do not sum to {len(target)}"
            )
        return
    if len(target) > len(shape):
        raise error.ValueError(f"{call.op.name}: {shape} does not sum to {list(target)}")
    for a, b in zip(shape[len(shape) - len(target) :], target):
        if number(b) != 1 and differ(a, b):
            raise error.ValueError(f"{call.op.name}: {shape} does not sum to {list(target)}")


def _collapse_sum_like(call: Call) -> TensorStructInfo:
    info, target = tensor(call, 0), tensor(call, 1)
    common_vdevice(call, [info, target])
    shape = known_shape(target)
    if shape is not None:
        _collapses(call, info, shape)
    return same_as_operand(target, str(info.dtype))


def _collapse_sum_to(call: Call) -> TensorStructInfo:
    info, target = tensor(call, 0), shape_argument(call, 1)
    if target.values is not None:
        _collapses(call, info, list(target.values))
    return with_shape(call.args[1], info.dtype, info.vdevice)


def repeat(data: RelayExpr, repeats: int, axis: int | None = None) -> Call:
    """Each element several times along one dimension; None flattens first."""
    return make_call("repeat", data, repeats=int(repeats), axis=axis)


def _repeat(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    times, axis = setting(call, "repeats"), setting(call, "axis")
    place = None if axis is None or info.ndim == -1 else axis_of(call, axis, info.ndim)
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, 1 if axis is None else info.ndim, info.vdevice)
    if axis is None:
        return with_shape([simplified(product(shape) * times)], info.dtype, info.vdevice)
    assert place is not None
    longer = simplified(shape[place] * times)
    return with_shape([*shape[:place], longer, *shape[place + 1 :]], info.dtype, info.vdevice)


def tile(data: RelayExpr, repeats: int | Sequence[int]) -> Call:
    """data laid side by side, so often along each dimension."""
    return make_call("tile", data, repeats=_axes(repeats))


def _tile(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    times = setting(call, "repeats")
    if info.ndim == -1:
        return opaque_tensor(info.dtype, -1, info.vdevice)
    rank = max(info.ndim, len(times))
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, rank, info.vdevice)
    wide = [*extents([1] * (rank - len(shape))), *shape]
    counts = [*[1] * (rank - len(times)), *times]
    return with_shape([simplified(e * n) for e, n in zip(wide, counts)], info.dtype, info.vdevice)


def flip(data: RelayExpr, axis: int) -> Call:
    """data in the opposite order along one dimension."""
    return make_call("flip", data, axis=axis)


def _flip(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    axis = setting(call, "axis")
    if info.ndim != -1:
        axes_of(call, axis if isinstance(axis, tuple) else (axis,), info.ndim)
    return info


def gather_elements(data: RelayExpr, indices: RelayExpr, axis: int = 0) -> Call:
    """For each place of indices, the element of data whose index along one dimension it holds."""
    return make_call("gather_elements", data, indices, axis=axis)


def _gather_elements(call: Call) -> TensorStructInfo:
    info, indices = tensor(call, 0), tensor(call, 1, "indices")
    if info.ndim != -1:
        axis_of(call, setting(call, "axis", 0), info.ndim)
        if indices.ndim not in (-1, info.ndim):
            raise error.ValueError(
                f"relax.gather_elements: indices have {indices.ndim} dimensions, data {info.ndim}"
            )
    return same_as_operand(indices, str(info.dtype), info.vdevice)


def scatter_elements(
    data: RelayExpr,
    indices: RelayExpr,
    updates: RelayExpr,
    axis: int = 0,
    reduction: str = "update",
) -> Call:
    """data with elements replaced, or combined, at the indices along one dimension.

    Parameters
    ----------
    reduction : "update", "add", "mul", "mean", "max" or "min".
    """
    return make_call("scatter_elements", data, indices, updates, axis=axis, reduction=reduction)


def _scatter_elements(call: Call) -> TensorStructInfo:
    data, indices, updates = (tensor(call, k) for k in range(3))
    known = [data.ndim, indices.ndim, updates.ndim]
    if data.ndim != -1 and any(rank not in (-1, data.ndim) for rank in known):
        raise error.ValueError(f"relax.scatter_elements: operands of {known} dimensions")
    common_dtype(call, [data, updates])
    if not str(indices.dtype).startswith(("int", "uint", "void")):
        raise error.TypeError(f"relax.scatter_elements: indices of {indices.dtype}")
    if data.ndim != -1:
        axis_of(call, setting(call, "axis", 0), data.ndim)
    a, b = known_shape(indices), known_shape(updates)
    if a is not None and b is not None and any(differ(x, y) for x, y in zip(a, b)):
        raise error.ValueError(f"relax.scatter_elements: indices are {a}, updates {b}")
    return same_as_operand(data)


register_rule("broadcast_to", _broadcast_to)
register_rule("reshape", _reshape)
register_rule("flatten", _flatten)
register_rule("expand_dims", _expand_dims)
register_rule("squeeze", _squeeze)
register_rule("permute_dims", _permute_dims)
register_rule("layout_transform", _layout_transform)
register_rule("concat", _concat)
register_rule("split", _split)
register_rule("collapse_sum_like", _collapse_sum_like)
register_rule("collapse_sum_to", _collapse_sum_to)
register_rule("repeat", _repeat)
register_rule("tile", _tile)
register_rule("flip", _flip)
register_rule("gather_elements", _gather_elements)
register_rule("scatter_elements", _scatter_elements)
