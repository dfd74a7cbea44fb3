"""Views, movement of elements and joining: every result element is one of the operands'."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from tvm import DataType, arith, te, tir, topi
from tvm.ir import PrimExpr, RelayExpr
from tvm.relax import op
from tvm.relax.expr import ShapeExpr, TupleGetItem, const
from tvm.relax.op.rules import equal
from tvm.relax.struct_info import open_shape

from ..arguments import Arguments, converter

__all__: list[str] = []


@converter(
    "flatten.using_ints",
    "reshape.default",
    "reshape_as.default",
    "squeeze.default",
    "squeeze.dim",
    "squeeze.dims",
    "unflatten.int",
    "unsqueeze.default",
    "view.default",
    "view_as.default",
    "_unsafe_view.default",
)
def _view(a: Arguments) -> RelayExpr:
    return op.reshape(a["self"], a.result_shape)


@converter("view.dtype")
def _view_dtype(a: Arguments) -> RelayExpr:
    own, wanted = a.dtype("self"), a.result_dtype
    if own == wanted:
        return a["self"]
    sizes = [DataType(dtype).itemsize for dtype in (own, wanted)]
    a.refuse_unless(
        sizes[0] == sizes[1] and "bool" not in (own, wanted),
        f"of {own} as {wanted}, an element type of another size",
    )

    def bits_as(x: te.Tensor) -> te.Tensor:
        return te.compute(
            x.shape, lambda *i: tir.reinterpret(wanted, x(*i)), "T_bitcast", topi.tag.ELEMWISE
        )

    return a.builder.call_te(bits_as, a["self"])


@converter("permute.default")
def _permute(a: Arguments) -> RelayExpr:
    return op.permute_dims(a["self"], a.axes("dims") or [])


@converter("transpose.int", "swapaxes.default")
def _transpose(a: Arguments) -> RelayExpr:
    axes = list(range(a.rank("self")))
    if not axes:
        return a["self"]
    first = "dim0" if a.get("dim0") is not None else "axis0"
    one, two = a.axis(first), a.axis(first.replace("0", "1"))
    axes[one], axes[two] = axes[two], axes[one]
    return op.permute_dims(a["self"], axes)


@converter("movedim.intlist", "movedim.int")
def _movedim(a: Arguments) -> RelayExpr:
    source, target = a.axes("source") or [], a.axes("destination") or []
    rest = iter(k for k in range(a.rank("self")) if k not in source)
    placed = dict(zip(target, source))
    return op.permute_dims(
        a["self"], [placed[k] if k in placed else next(rest) for k in range(a.rank("self"))]
    )


@converter("t.default", "numpy_T.default", "mT.default")
def _t(a: Arguments) -> RelayExpr:
    rank = a.rank("self")
    if rank < 2:
        return a["self"]
    if a.name == "mT":
        return op.permute_dims(a["self"], [*range(rank - 2), rank - 1, rank - 2])
    return op.permute_dims(a["self"])


@converter("expand.default", "expand_as.default", "broadcast_to.default")
def _expand(a: Arguments) -> RelayExpr:
    return a.tensor(a["self"], a.result_shape, a.result_dtype)


@converter("repeat.default", "tile.default")
def _repeat(a: Arguments) -> RelayExpr:
    sizes = list(a["repeats"] if a.get("repeats") is not None else a["dims"])
    rank = a.rank("self")
    # The shorter of the two is taken to have ones in front.
    sizes = [1] * (rank - len(sizes)) + sizes
    data = a["self"]
    if rank < len(sizes):
        data = a.emit(op.reshape(data, [1] * (len(sizes) - rank) + list(a.shape("self"))))
    if all(isinstance(n, int) for n in sizes):
        return op.tile(data, sizes)
    # Each dimension behind one of as many copies.
    shape = open_shape(data.struct_info)
    apart = a.emit(op.reshape(data, [n for extent in shape for n in (1, extent)]))
    copies = [n for pair in zip(sizes, shape) for n in pair]
    return op.reshape(a.emit(op.broadcast_to(apart, copies)), a.result_shape)


@converter("repeat_interleave.self_int")
def _repeat_interleave(a: Arguments) -> RelayExpr:
    count = a["repeats"]
    data, shape = a["self"], a.shape("self")
    axis = a.axis() if a["dim"] is not None else 0
    if a["dim"] is None:
        shape = (math.prod(shape),)
        data = a.emit(op.reshape(data, shape))
    # A view of repeated neighbours.
    apart = a.emit(op.reshape(data, [*shape[: axis + 1], 1, *shape[axis + 1 :]]))
    wide = a.emit(op.broadcast_to(apart, [*shape[: axis + 1], count, *shape[axis + 1 :]]))
    return op.reshape(wide, a.result_shape)


@converter("cat.default", "concat.default")
def _cat(a: Arguments) -> RelayExpr:
    # An empty vector joins with anything.
    shapes = [open_shape(tensor.struct_info) for tensor in a["tensors"]]
    pieces = [
        a.cast(tensor, a.result_dtype)
        for tensor, shape in zip(a["tensors"], shapes)
        if shape != (0,) or len(a.result_shape) == 1
    ]
    pieces = [p for p in pieces if 0 not in open_shape(p.struct_info)] or pieces
    if len(pieces) == 1:
        return pieces[0]
    return op.concat(pieces, int(a["dim"]) % len(a.result_shape))


@converter("stack.default")
def _stack(a: Arguments) -> RelayExpr:
    shape = a.result_shape
    axis = int(a["dim"]) % len(shape)
    apart = [*shape[:axis], 1, *shape[axis + 1 :]]
    pieces = [a.emit(op.reshape(a.cast(t, a.result_dtype), apart)) for t in a["tensors"]]
    return op.concat(pieces, axis)


def _sliced(data: RelayExpr, axis: int, begin: Any, end: Any, step: int) -> RelayExpr:
    """Elements between two places that lie in the tensor."""
    extent = open_shape(data.struct_info)[axis]
    if step == 1 and equal(begin, 0) and equal(end, extent):
        return data
    # Of numbers the size is known anyway.
    is_open = not all(isinstance(n, int) for n in (begin, end, extent))
    return op.strided_slice(data, [axis], [begin], [end], [step], assume_inbound=is_open)


def _from_front(place: Any, extent: Any) -> Any:
    """A place that may count from the end, at least 0 and at most the extent."""
    if isinstance(place, int) and isinstance(extent, int):
        return min(max(place + extent if place < 0 else place, 0), extent)
    if isinstance(place, PrimExpr):
        is_negative = arith.Analyzer().can_prove(place < 0)
    else:
        is_negative = place < 0
    counted = extent + place if is_negative else tir.convert(place)
    return arith.Analyzer().simplify(tir.max(tir.min(counted.astype("int64"), extent), 0))


def _range(a: Arguments, extent: Any, length: Any) -> tuple[Any, Any, int]:
    """Begin, end and step of a slice, of which the export knows how many elements it takes."""
    step = int(a["step"])
    if all(isinstance(n, int | None) for n in (a["start"], a["end"], extent)):
        first, last, step = slice(a["start"], a["end"], step).indices(extent)
        return first, max(first, last), step
    first = _from_front(0 if a["start"] is None else a["start"], extent)
    if step == 1:
        return first, first + length, 1
    return first, first + (length - 1) * step + 1, step


@converter("slice.Tensor")
def _slice(a: Arguments) -> RelayExpr:
    axis = a.axis()
    return _sliced(a["self"], axis, *_range(a, a.shape("self")[axis], a.result_shape[axis]))


@converter("narrow.default")
def _narrow(a: Arguments) -> RelayExpr:
    axis = a.axis()
    start = _from_front(a["start"], a.shape("self")[axis])
    return _sliced(a["self"], axis, start, start + a["length"], 1)


@converter("select.int")
def _select(a: Arguments) -> RelayExpr:
    axis = a.axis()
    index = _from_front(a["index"], a.shape("self")[axis])
    piece = a.emit(_sliced(a["self"], axis, index, index + 1, 1))
    return op.reshape(piece, a.result_shape)


@converter("slice_scatter.default")
def _slice_scatter(a: Arguments) -> RelayExpr:
    shape, axis = a.shape("self"), a.axis()
    begin, end, strides = [0] * len(shape), list(shape), [1] * len(shape)
    source = a.shape("src")[axis]
    begin[axis], end[axis], strides[axis] = _range(a, shape[axis], source)
    return op.make_call(
        "strided_set", a["self"], a.operand("src"), begin=begin, end=end, strides=strides
    )


@converter("select_scatter.default")
def _select_scatter(a: Arguments) -> RelayExpr:
    shape, axis = a.shape("self"), a.axis()
    index = _from_front(a["index"], shape[axis])
    begin, end = [0] * len(shape), list(shape)
    begin[axis], end[axis] = index, index + 1
    thin = [*shape[:axis], 1, *shape[axis + 1 :]]
    source = a.emit(op.reshape(a.operand("src"), thin))
    return op.make_call("strided_set", a["self"], source, begin=begin, end=end)


@converter("copy.default", "copy_.default")
def _copy(a: Arguments) -> RelayExpr:
    return a.tensor(a["src"], a.result_shape, a.result_dtype)


@converter(
    "split.Tensor",
    "split.sizes",
    "split_with_sizes.default",
    "chunk.default",
    "tensor_split.sections",
    "tensor_split.indices",
    "unsafe_chunk.default",
    "unsafe_split.Tensor",
)
def _split(a: Arguments) -> list[RelayExpr]:
    axis = a.axis()
    sizes = [shape[axis] for shape in a.result_shapes]
    ends = list(accumulate(sizes))
    if all(isinstance(end, int) for end in ends):
        pieces = a.emit(op.split(a["self"], ends[:-1], axis))
        return [TupleGetItem(pieces, i) for i in range(len(sizes))]
    return [_sliced(a["self"], axis, begin, end, 1) for begin, end in zip([0, *ends[:-1]], ends)]


@converter("unbind.int")
def _unbind(a: Arguments) -> list[RelayExpr]:
    axis = a.axis()
    count = a.extent("self", axis)
    pieces = a.emit(op.split(a["self"], count, axis))
    shape = a.result_shape
    return [op.reshape(a.emit(TupleGetItem(pieces, i)), shape) for i in range(count)]


@converter("flip.default")
def _flip(a: Arguments) -> RelayExpr:
    axes = a.axes("dims")
    return op.make_call("flip", a["self"], axis=axes) if axes else a["self"]


@converter("roll.default")
def _roll(a: Arguments) -> RelayExpr:
    data, shape = a["self"], a.shape("self")
    shifts = [int(s) for s in _sequence(a["shifts"])]
    axes = a.axes("dims")
    if axes is None:
        data, shape, axes = a.emit(op.reshape(data, (math.prod(shape),))), (math.prod(shape),), [0]
    for axis, shift in zip(axes, shifts):
        cut = -shift % shape[axis] if isinstance(shape[axis], int) else (
            tir.floormod(tir.const(-shift, "int64"), shape[axis])
        )  # fmt: skip
        if isinstance(cut, PrimExpr) or cut:
            ahead = a.emit(_sliced(data, axis, cut, shape[axis], 1))
            behind = a.emit(_sliced(data, axis, 0, cut, 1))
            data = a.emit(op.concat([ahead, behind], axis))
    return op.reshape(data, a.result_shape)


def _sequence(value: int | Sequence[int]) -> Sequence[int]:
    return [value] if isinstance(value, int) else value


@converter("diagonal.default")
def _diagonal(a: Arguments) -> RelayExpr:
    return op.make_call(
        "diagonal", a["self"], offset=int(a["offset"]), axis1=a.axis("dim1"), axis2=a.axis("dim2")
    )


@converter("diagonal_scatter.default")
def _diagonal_scatter(a: Arguments) -> RelayExpr:
    offset, rank = int(a["offset"]), a.rank("self")
    first, second = int(a["dim1"]) % rank, int(a["dim2"]) % rank
    rows, columns = a.extent("self", first), a.extent("self", second)
    count = a.extent("src", -1)
    if not count:
        return a["self"]
    # The diagonals' element of each row, or that of another row, which is not taken.
    place = np.clip(np.arange(rows) + min(offset, 0), 0, count - 1)
    is_on = np.arange(columns) - np.arange(rows)[:, None] == offset
    rest = [k for k in range(rank) if k not in (first, second)]
    order = [*rest, first, second]
    data = a.emit(op.permute_dims(a["self"], order))
    values = a.emit(op.take(a.operand("src"), const(place.astype("int64")), axis=rank - 2))
    chosen = a.call("where", const(is_on), a.emit(op.expand_dims(values, -1)), data)
    return op.permute_dims(chosen, [order.index(k) for k in range(rank)])


@converter("as_strided_scatter.default")
def _as_strided_scatter(a: Arguments) -> RelayExpr:
    shape, meta = a.shape("self"), a.example("self")
    own_order = _memory_order(shape, meta.stride())
    a.refuse_unless(own_order == list(range(len(shape))), "of a tensor whose order is another")
    size, strides = ([int(n) for n in a[name]] for name in ("size", "stride"))
    start = 0 if a["storage_offset"] is None else int(a["storage_offset"])
    places = np.full(size, start - int(meta.storage_offset()), "int64")
    for axis, (extent, stride) in enumerate(zip(size, strides)):
        along = [1] * len(size)
        along[axis] = extent
        places += (np.arange(extent) * stride).reshape(along)
    if not places.size:
        return a["self"]
    count = math.prod(shape)
    is_inside = places.min() >= 0 and places.max() < count
    a.refuse_unless(is_inside, "that writes what is around the tensor")
    flat = a.emit(op.reshape(a["self"], (count,)))
    source = a.emit(op.reshape(a.operand("src"), (places.size,)))
    index = const(places.reshape(-1))
    return op.reshape(
        a.call("scatter_elements", flat, index, source, axis=0, reduction="update"),
        a.result_shape,
    )


@converter("as_strided.default")
def _as_strided(a: Arguments) -> RelayExpr:
    meta = a.example("self")
    data, order = a["self"], _memory_order(a.shape("self"), meta.stride())
    a.refuse_unless(order is not None, "of a tensor with gaps or elements that are there twice")
    assert order is not None
    size, strides = ([int(n) for n in a[name]] for name in ("size", "stride"))
    given = a["storage_offset"]
    offset = 0 if given is None else int(given) - int(meta.storage_offset())
    last = offset + sum((n - 1) * stride for n, stride in zip(size, strides))
    a.refuse_unless(
        offset >= 0 and last < math.prod(a.shape("self")), "that reads what is around the tensor"
    )
    if order != list(range(len(order))):
        data = a.emit(op.permute_dims(data, order))
    return op.make_call("as_strided", data, ShapeExpr(size), strides=strides, offset=offset)


def _memory_order(shape: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """The dimensions from the slowest to the fastest, if elements lie one behind the other."""
    order = sorted(range(len(shape)), key=lambda k: (-strides[k], k))
    behind = 1
    for k in reversed(order):
        if shape[k] != 1 and strides[k] != behind:
            return None
        behind *= shape[k]
    return order


@converter("unfold.default")
def _unfold(a: Arguments) -> RelayExpr:
    if not a.rank("self"):
        return op.reshape(a["self"], a.result_shape)
    axis, size, step = a.axis("dimension"), int(a["size"]), int(a["step"])
    shape = a.shape("self")
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    # Windows overlap: the same elements under two dimensions, the step and the place in it.
    result = a.result_shape
    out_strides = [s * step if k == axis else s for k, s in enumerate(strides)] + [strides[axis]]
    assert result[-1] == size
    return op.make_call("as_strided", a["self"], ShapeExpr(result), strides=out_strides, offset=0)


@converter("pixel_shuffle.default")
def _pixel_shuffle(a: Arguments) -> RelayExpr:
    factor = int(a["upscale_factor"])
    *lead, channels, height, width = a.shape("self")
    rank = len(lead)
    apart = a.emit(
        op.reshape(a["self"], [*lead, channels // factor**2, factor, factor, height, width])
    )
    order = [*range(rank), *(rank + k for k in (0, 3, 1, 4, 2))]
    return op.reshape(a.emit(op.permute_dims(apart, order)), a.result_shape)


@converter("pixel_unshuffle.default")
def _pixel_unshuffle(a: Arguments) -> RelayExpr:
    factor = int(a["downscale_factor"])
    *lead, channels, height, width = a.shape("self")
    rank = len(lead)
    apart = a.emit(
        op.reshape(a["self"], [*lead, channels, height // factor, factor, width // factor, factor])
    )
    order = [*range(rank), *(rank + k for k in (0, 2, 4, 1, 3))]
    return op.reshape(a.emit(op.permute_dims(apart, order)), a.result_shape)


@converter("tril.default", "triu.default")
def _triangle(a: Arguments) -> RelayExpr:
    name = "tril" if "tril" in a.name else "triu"
    dtype = a.result_dtype
    if dtype == "bool":
        whole = a.call(name, a.operand("self", "int8"), k=int(a["diagonal"]))
        return op.astype(whole, "bool")
    return op.make_call(name, a["self"], k=int(a["diagonal"]))


@converter("pad.default")
def _pad(a: Arguments) -> RelayExpr:
    return _padded(a, a["mode"], a["pad"], a["value"])


@converter("constant_pad_nd.default")
def _constant_pad(a: Arguments) -> RelayExpr:
    return _padded(a, "constant", a["pad"], a["value"])


@converter("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def _reflection_pad(a: Arguments) -> RelayExpr:
    return _padded(a, "reflect", a["padding"], None)


@converter("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def _replication_pad(a: Arguments) -> RelayExpr:
    return _padded(a, "replicate", a["padding"], None)


def _padded(a: Arguments, mode: str, sizes: Sequence[int], value: float | None) -> RelayExpr:
    rank = a.rank("self")
    before, after = [0] * rank, [0] * rank
    # Sizes come in pairs, from the last dimension to the first.
    for i, (low, high) in enumerate(zip(sizes[::2], sizes[1::2])):
        before[rank - 1 - i], after[rank - 1 - i] = int(low), int(high)
    if mode != "constant":
        return op.make_call("nn.extend", a["self"], before=before, after=after, mode=mode)
    data = a["self"]
    if min([*before, *after]) < 0:
        shape = a.shape("self")
        begin = [max(0, -n) for n in before]
        end = [extent - max(0, -n) for extent, n in zip(shape, after)]
        data = a.emit(op.strided_slice(data, list(range(rank)), begin, end))
        before, after = [max(0, n) for n in before], [max(0, n) for n in after]
    if a.result_dtype == "bool":
        data = a.emit(op.astype(data, "int8"))
    padded = op.nn.pad(data, list(zip(before, after)), pad_value=float(value or 0))
    return op.astype(a.emit(padded), "bool") if a.result_dtype == "bool" else padded
