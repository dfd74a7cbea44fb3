"""Operators that pick elements: by slices, by index tensors and by conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from . import tag
from .broadcast import broadcast_shape, read_broadcast
from .transform import reshape
from .utils import (
    Extent,
    as_int,
    equal_const_int,
    get_const_tuple,
    is_constant,
    largest,
    normalize_axis,
    same_extent,
    simplify,
    smallest,
)

__all__ = [
    "adv_index",
    "dynamic_strided_slice",
    "gather",
    "gather_nd",
    "invert_permutation",
    "one_hot",
    "sequence_mask",
    "strided_set",
    "strided_slice",
    "take",
    "where",
]


def _bound(value: Any, extent: Extent, low: Extent, high: Extent) -> Extent:
    """A slice limit as a position: negative ones count from the end, all are clamped."""
    if is_constant(value):
        number = as_int(value)
        value = number + extent if number < 0 else number
    return largest(smallest(value, high), low)


def _ranges(
    where: str,
    shape: Sequence[Extent],
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[int] | None,
    axes: Sequence[int] | None,
    slice_mode: str,
) -> list[tuple[Extent, int, Extent]]:
    """Start, step and count for each dimension."""
    result: list[tuple[Extent, int, Extent]] = [(0, 1, n) for n in shape]
    steps = [as_int(s) for s in strides] if strides is not None else []
    steps += [1] * (len(begin) - len(steps))
    if slice_mode not in ("end", "size"):
        raise ValueError(f"topi.{where}: slice_mode is 'end' or 'size', got {slice_mode!r}")
    if 0 in steps or len(begin) > len(shape):
        raise ValueError(
            f"topi.{where}: needs at most {len(shape)} limits and strides other than 0, got "
            f"begin {tuple(begin)} and strides {tuple(steps)}"
        )
    at = range(len(begin)) if axes is None else [normalize_axis(a, len(shape)) for a in axes]
    ends = list(end) + [None] * (len(begin) - len(end))
    for k, b, e, step in zip(at, begin, ends, steps):
        n = shape[k]
        low, high = (0, n) if step > 0 else (-1, n - 1)
        start = (low if step > 0 else high) if b is None else _bound(b, n, low, high)
        if slice_mode == "size":
            # A size of -1 reaches to the end.
            to_end = e is None or (is_constant(e) and as_int(e) < 0)
            stop, step = (n, 1) if to_end else (smallest(start + e, n), 1)
        elif e is None:
            stop = high if step > 0 else low
        else:
            stop = _bound(e, n, low, high)
        room = stop - start if step > 0 else start - stop
        size = abs(step)
        result[k] = (simplify(start), step, largest(simplify((room + size - 1) // size), 0))
    return result


def strided_slice(
    a: te.Tensor,
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> te.Tensor:
    """a[begin:end:strides] for each leading dimension given, or for those of ``axes``.

    Parameters
    ----------
    begin, end : limits as in Python; None and missing ends reach as far as there is.
    strides : not 0; by default 1.
    slice_mode : with "size", end holds sizes instead, -1 for all that is left, and strides are 1.
    """
    shape = get_const_tuple(a.shape)
    ranges = _ranges("strided_slice", shape, begin, end, strides, axes, slice_mode)

    def read(*indices: Any) -> Any:
        return a(
            *(
                i if is_constant(start) and (as_int(start), step) == (0, 1) else i * step + start
                for i, (start, step, _) in zip(indices, ranges)
            )
        )

    return te.compute(
        [count for _, _, count in ranges], read, name="T_strided_slice", tag=tag.INJECTIVE
    )


def dynamic_strided_slice(
    a: te.Tensor,
    begin: te.Tensor,
    end: te.Tensor,
    strides: te.Tensor,
    output_shape: Sequence[Any],
) -> te.Tensor:
    """a[begin:end:strides] with limits that are known when the program runs.

    Parameters
    ----------
    begin, end, strides : (count,), integers for the first `count` axes, of which `begin` and
        `strides` are not negative.
    output_shape : of the result, which says how much `end` leaves; its sizes may be variables.

    Raises
    ------
    ValueError : the result has another number of axes than `a`.
    """
    if len(output_shape) != len(a.shape):
        raise ValueError(
            f"dynamic_strided_slice: the result has {len(a.shape)} axes, as the data has, got the "
            f"shape {list(output_shape)}"
        )
    count = as_int(begin.shape[0])

    def read(*indices: Any) -> Any:
        places = list(indices)
        for axis in range(count):
            # Past the end, where nothing is left to give, the last element stands for the first.
            last = a.shape[axis] - 1
            first = tir.min(begin[axis], last.astype(begin.dtype))
            places[axis] = indices[axis] * strides[axis] + first
        return a(*places)

    return te.compute(output_shape, read, name="T_strided_slice_dynamic", tag=tag.INJECTIVE)


def strided_set(
    a: te.Tensor,
    v: te.Tensor,
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[int] | None = None,
) -> te.Tensor:
    """a with a[begin:end:strides] replaced by v, which broadcasts to it."""
    shape = get_const_tuple(a.shape)
    ranges = _ranges("strided_set", shape, begin, end, strides, None, "end")
    region = [count for _, _, count in ranges]
    broadcast_shape(get_const_tuple(v.shape), region)

    def read(*indices: Any) -> Any:
        inside: list[Any] = []
        position: list[Any] = []
        for i, (start, step, count), n in zip(indices, ranges, shape):
            offset = i - start if step > 0 else start - i
            size = abs(step)
            whole = equal_const_int(start, 0) and step == 1 and same_extent(count, n)
            if not whole:
                inside += [offset >= 0, offset < count * size]
            if size != 1:
                inside.append((offset % size).equal(0))
            position.append(offset // size if size != 1 else offset)
        value = read_broadcast(v, position, region)
        return tir.if_then_else(tir.all(*inside), value, a(*indices)) if inside else value

    return te.compute(shape, read, name="T_strided_set", tag=tag.INJECTIVE)


def _clipped(index: Any, extent: Extent) -> Any:
    return tir.max(tir.min(index, tir.convert(extent - 1)), 0)


def _wrapped(index: Any, extent: Extent) -> Any:
    return tir.floormod(index, tir.convert(extent))


_TAKE_MODES = {"clip": _clipped, "wrap": _wrapped, "fast": lambda index, extent: index}


def take(
    a: te.Tensor,
    indices: te.Tensor | int,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: str = "clip",
) -> te.Tensor:
    """Elements of a along one dimension, those that an index tensor names.

    Parameters
    ----------
    indices : integers; their dimensions take the place of ``axis``. One number has none.
    axis : None takes from a as one long row.
    batch_dims : leading dimensions that a and indices share.
    mode : what an index out of range means: "clip" the nearest one, "wrap" modulo the extent;
        "fast" assumes there is none.
    """
    if mode not in _TAKE_MODES:
        raise ValueError(f"topi.take: mode is one of {sorted(_TAKE_MODES)}, got {mode!r}")
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    if isinstance(indices, int):
        number = tir.const(indices, "int32")
        places = te.compute((), lambda: number, name="index")
    else:
        places = indices
    shape, own = get_const_tuple(a.shape), get_const_tuple(places.shape)
    at = normalize_axis(axis, len(shape))
    batch = batch_dims + len(own) if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(at, len(own)):
        raise ValueError(f"topi.take: batch_dims {batch_dims} must be at most axis {at}")

    def read(*i: Any) -> Any:
        where = places(*i[:batch], *i[at : at + len(own) - batch]).astype("int32")
        index = _TAKE_MODES[mode](where, shape[at])
        return a(*i[:at], index, *i[at + len(own) - batch :])

    return te.compute(
        (*shape[:at], *own[batch:], *shape[at + 1 :]), read, name="T_take", tag=tag.INJECTIVE
    )


def _from_front(index: Any, extent: Extent) -> Any:
    """A position counted from the front; negative ones count from the end."""
    index = index.astype("int32")
    # An open extent may be of more bits than that.
    return tir.Select(index < 0, (index + extent).astype("int32"), index)


def gather(data: te.Tensor, axis: int, indices: te.Tensor) -> te.Tensor:
    """out[i][j][k] = data[i][indices[i][j][k]][k] for axis 1, and so on.

    Parameters
    ----------
    indices : integers, as many dimensions as data; negative ones count from the end.
    """
    shape = get_const_tuple(data.shape)
    at = normalize_axis(axis, len(shape))
    if len(indices.shape) != len(shape):
        raise ValueError(
            f"topi.gather: indices have {len(indices.shape)} dimensions, data {len(shape)}"
        )
    return te.compute(
        indices.shape,
        lambda *i: data(*i[:at], _from_front(indices(*i), shape[at]), *i[at + 1 :]),
        name="T_gather",
        tag=tag.INJECTIVE,
    )


def gather_nd(a: te.Tensor, indices: te.Tensor, batch_dims: int = 0) -> te.Tensor:
    """Slices of a at index tuples.

    Parameters
    ----------
    indices : integers (depth, ...): the first dimension holds the tuple, one number for each of
        the dimensions of a behind ``batch_dims``; negative ones count from the end.
    batch_dims : leading dimensions that a shares with those of indices behind the first.
    """
    shape, own = get_const_tuple(a.shape), get_const_tuple(indices.shape)
    depth = as_int(own[0])
    if batch_dims + depth > len(shape):
        raise ValueError(
            f"topi.gather_nd: tuples of {depth} numbers do not fit {len(shape)} dimensions"
        )
    rest = len(own) - 1

    def read(*i: Any) -> Any:
        position = [_from_front(indices(k, *i[:rest]), shape[batch_dims + k]) for k in range(depth)]
        return a(*i[:batch_dims], *position, *i[rest:])

    return te.compute(
        (*own[1:], *shape[batch_dims + depth :]), read, name="T_gather_nd", tag=tag.INJECTIVE
    )


def adv_index(data: te.Tensor, indices: Sequence[te.Tensor]) -> te.Tensor:
    """data[indices[0], indices[1], ...]: index tensors that broadcast, as NumPy's."""
    shape = get_const_tuple(data.shape)
    if not 0 < len(indices) <= len(shape):
        raise ValueError(f"topi.adv_index: needs 1 to {len(shape)} indices, got {len(indices)}")
    common: tuple[Extent, ...] = ()
    for tensor in indices:
        common = broadcast_shape(common, get_const_tuple(tensor.shape))

    def read(*i: Any) -> Any:
        lead = i[: len(common)]
        position = [
            _from_front(read_broadcast(tensor, lead, common), extent)
            for tensor, extent in zip(indices, shape)
        ]
        return data(*position, *i[len(common) :])

    return te.compute(
        (*common, *shape[len(indices) :]), read, name="T_adv_index", tag=tag.INJECTIVE
    )


def _number(value: float, dtype: str) -> te.Tensor:
    number = tir.const(value, dtype)
    return te.compute((), lambda: number, name="number")


def where(condition: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """x where the condition holds, y elsewhere; all three broadcast. One of x and y may be a
    number."""
    if not isinstance(x, te.Tensor):
        x = _number(x, y.dtype)
    elif not isinstance(y, te.Tensor):
        y = _number(y, x.dtype)
    if x.dtype != y.dtype:
        raise TypeError(f"topi.where: x is {x.dtype}, y {y.dtype}; cast one of them first")
    shape = broadcast_shape(
        get_const_tuple(condition.shape),
        broadcast_shape(get_const_tuple(x.shape), get_const_tuple(y.shape)),
    )

    def read(*i: Any) -> Any:
        holds = read_broadcast(condition, i, shape)
        if condition.dtype != "bool":
            holds = holds != tir.const(0, condition.dtype)
        return tir.Select(holds, read_broadcast(x, i, shape), read_broadcast(y, i, shape))

    return te.compute(shape, read, name="T_where", tag=tag.BROADCAST)


def one_hot(
    indices: te.Tensor,
    on_value: float,
    off_value: float,
    depth: int,
    axis: int = -1,
    dtype: str = "float32",
) -> te.Tensor:
    """A new dimension of ``depth`` that holds on_value at the index and off_value elsewhere."""
    own = get_const_tuple(indices.shape)
    at = normalize_axis(axis, len(own) + 1)
    on, off = tir.const(on_value, dtype), tir.const(off_value, dtype)
    return te.compute(
        (*own[:at], depth, *own[at:]),
        lambda *i: tir.Select(indices(*i[:at], *i[at + 1 :]).astype("int32").equal(i[at]), on, off),
        name="T_one_hot",
        tag=tag.INJECTIVE,
    )


def sequence_mask(
    data: te.Tensor, valid_length: te.Tensor, mask_value: float = 0.0, axis: int = 0
) -> te.Tensor:
    """data with what lies behind a sequence's valid length replaced by a value.

    Parameters
    ----------
    data : (length, batch, ...) for axis 0, (batch, length, ...) for axis 1.
    valid_length : integers, (batch,).
    """
    if axis not in (0, 1):
        raise ValueError(f"topi.sequence_mask: axis is 0 or 1, got {axis}")
    fill = tir.const(mask_value, data.dtype)
    return te.compute(
        data.shape,
        lambda *i: tir.Select(i[axis] < valid_length(i[1 - axis]).astype("int32"), data(*i), fill),
        name="T_sequence_mask",
        tag=tag.BROADCAST,
    )


def invert_permutation(x: te.Tensor) -> te.Tensor:
    """out[x[i]] = i for a permutation x of 0 .. n - 1."""
    (extent,) = get_const_tuple(x.shape)
    k = te.reduce_axis((0, extent), name="k")
    # Each place is named once, so the sum has one term.
    return te.compute(
        (extent,),
        lambda i: te.sum(
            tir.Select(x(k).astype("int32").equal(i), k.var, tir.const(0, "int32")).astype(x.dtype),
            axis=[k],
        ),
        name="T_invert_permutation",
        tag=tag.COMM_REDUCE,
    )
