"""Operators that pick, place, order and number elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm import error, relax, te, topi
from tvm.ir import RelayExpr, TensorType, TupleType, Type

from ..expr import Call, Constant, TupleWrapper, as_expr, const
from ..ty import Any as AnyExtent
from .registry import REQUIRED, OpPattern, define, make
from .reshaping import numbers_or_expr, unknown_shape
from .shapes import broadcast, extent_number, fields_of, normal_axis, number_of, simplified, tensor

__all__ = [
    "adv_index",
    "arange",
    "argsort",
    "argwhere",
    "gather",
    "gather_nd",
    "invert_permutation",
    "matrix_set_diag",
    "one_hot",
    "scatter_elements",
    "scatter_nd",
    "searchsorted",
    "segment_sum",
    "sequence_mask",
    "slice_like",
    "sort",
    "sparse_to_dense",
    "strided_set",
    "strided_slice",
    "take",
    "topk",
    "trilu",
    "unique",
    "unravel_index",
    "where",
]

_I, _B, _O = OpPattern.INJECTIVE, OpPattern.BROADCAST, OpPattern.OPAQUE


def _take_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = "relay.take"
    data, indices = tensor(where, types[0]), tensor(where, types[1], "indices")
    if s["axis"] is None:
        return TensorType(indices.shape, str(data.dtype))
    axis = normal_axis(where, s["axis"], len(data.shape))
    batch = s["batch_dims"] % (len(indices.shape) + 1) if s["batch_dims"] < 0 else s["batch_dims"]
    shape = [*data.shape[:axis], *indices.shape[batch:], *data.shape[axis + 1 :]]
    return TensorType(shape, str(data.dtype))


define(
    "take",
    lambda x, i, batch_dims, axis, mode: topi.take(x, i, axis, batch_dims, mode),
    _I,
    settings={"batch_dims": 0, "axis": None, "mode": "clip"},
    rule=_take_rule,
    num_inputs=2,
)
define(
    "gather",
    lambda x, i, axis: topi.gather(x, axis, i),
    _I,
    settings={"axis": 0},
    rule=lambda t, s, a: TensorType(t[1].shape, str(t[0].dtype)),
    num_inputs=2,
)


def _gather_nd_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data, indices = (tensor("relay.gather_nd", t) for t in types)
    count = extent_number(indices.shape[0])
    rank, batch = s.get("index_rank"), s["batch_dims"]
    count = count if rank is None else rank
    if count is None:
        raise error.TypeError("relay.gather_nd: the first extent of the indices must be known")
    return TensorType([*indices.shape[1:], *data.shape[count + batch :]], str(data.dtype))


define(
    "gather_nd",
    lambda x, i, batch_dims, index_rank: topi.gather_nd(x, i, batch_dims),
    _I,
    settings={"batch_dims": 0, "index_rank": None},
    rule=_gather_nd_rule,
    num_inputs=2,
)


def _where_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    cond, x, y = (tensor("relay.where", t) for t in types)
    shape = broadcast("relay.where", broadcast("relay.where", x.shape, y.shape), cond.shape)
    return TensorType(shape, str(x.dtype))


def _where_lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
    condition, dtype = args[0], str(args[0].struct_info.dtype)
    if dtype != "bool":
        condition = relax.op.not_equal(condition, relax.const(0, dtype))
    return relax.op.where(condition, *args[1:])


define("where", topi.where, _B, lower=_where_lower, rule=_where_rule, num_inputs=3)


def take(
    data: RelayExpr,
    indices: RelayExpr,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: str = "clip",
) -> Call:
    """Slices along an axis, or elements of the flattened tensor.

    Parameters
    ----------
    mode : for indices outside: "clip" to the nearest, "wrap" around, or "fast" for none.
    """
    return make("take", [data, indices], batch_dims=batch_dims, axis=axis, mode=mode)


def gather(data: RelayExpr, axis: int, indices: RelayExpr) -> Call:
    """Elements at the places that differ from those of the indices along one axis."""
    return make("gather", [data, indices], axis=axis)


def gather_nd(
    data: RelayExpr, indices: RelayExpr, batch_dims: int = 0, index_rank: int | None = None
) -> Call:
    """Slices at the places whose coordinates lie along the first axis of the indices."""
    return make("gather_nd", [data, indices], batch_dims=batch_dims, index_rank=index_rank)


def where(condition: RelayExpr, x: RelayExpr, y: RelayExpr) -> Call:
    """The elements of x where a condition holds, else those of y."""
    return make("where", [condition, x, y])


def _limits(data: TensorType, s: Mapping[str, Any]) -> tuple[list[int], list[Any], list[Any], Any]:
    begin, end, strides = list(s["begin"]), list(s["end"]), list(s["strides"] or ())
    if s["axes"] is not None:
        axes = [normal_axis("relay.strided_slice", a, len(data.shape)) for a in s["axes"]]
    else:
        axes = list(range(len(begin)))
    strides += (
        [1] * (len(axes) - len(strides)) if len(strides) != 1 else [strides[0]] * (len(axes) - 1)
    )
    return axes, begin, end, strides


def _slice_size(extent: Any, begin: Any, end: Any, stride: Any, by_size: bool) -> Any:
    size, low = extent_number(extent), extent_number(begin)
    step = 1 if by_size else int(stride)
    high = extent_number(end)
    if size is None or low is None or high is None:
        if isinstance(extent, AnyExtent) or isinstance(begin, AnyExtent):
            return AnyExtent()
        if low == 0 and high is not None and high >= 2**31 - 1 and step == 1:
            return extent
        if step == 1 and low is not None and low >= 0 and (high is None or high >= 0):
            return simplified(end - begin)
        return simplified(te.max(0, extent)) if low == 0 and high is None else AnyExtent()
    if by_size:
        low = low + size if low < 0 else low
        return size - low if high < 0 else high
    if step > 0:
        low = max(low + size, 0) if low < 0 else min(low, size)
        high = max(high + size, 0) if high < 0 else min(high, size)
    else:
        low = low + size if low < 0 else min(low, size - 1)
        high = high + size if high < 0 else min(high, size - 1)
        high = max(high, -1)
    return max(0, math.ceil((high - low) / step))


def _slice_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.strided_slice", types[0])
    if len(s["begin"]) > len(data.shape):
        raise error.ValueError(
            f"relay.strided_slice: {len(s['begin'])} limits for {len(data.shape)} axes"
        )
    axes, begin, end, strides = _limits(data, s)
    shape = list(data.shape)
    for k, axis in enumerate(axes):
        high = end[k] if k < len(end) else shape[axis]
        shape[axis] = _slice_size(
            shape[axis], begin[k], high, strides[k], s["slice_mode"] == "size"
        )
    return TensorType(shape, str(data.dtype))


def _slice_compute(x: Any, begin: Any, end: Any, strides: Any, slice_mode: str, axes: Any) -> Any:
    data = TensorType(x.shape, str(x.dtype))
    s = {"begin": begin, "end": end, "strides": strides, "axes": axes, "slice_mode": slice_mode}
    places, low, high, step = _limits(data, s)
    shape = _slice_rule([data], s, ()).shape
    starts, steps = [0] * len(shape), [1] * len(shape)
    for k, axis in enumerate(places):
        size = int(x.shape[axis])
        stride = 1 if slice_mode == "size" else step[k]
        at = low[k] + size if low[k] < 0 else low[k]
        starts[axis] = min(max(at, 0), size if stride > 0 else size - 1)
        steps[axis] = stride

    def element(*place: Any) -> Any:
        return x(*(a + i * b for a, i, b in zip(starts, place, steps)))

    return te.compute(list(shape), element, name="T_strided_slice", tag=topi.tag.INJECTIVE)


def _numpy_slice(arrays: Sequence[Any], s: Mapping[str, Any]) -> Any:
    data, begin, end, strides = arrays
    cuts = [slice(None)] * data.ndim
    axes = range(len(begin)) if s["axes"] is None else s["axes"]
    for k, axis in enumerate(axes):
        low, high, step = int(begin[k]), int(end[k]), int(strides[k])
        if s["slice_mode"] == "size":
            low = low + data.shape[axis] if low < 0 else low
            high, step = (data.shape[axis] if high < 0 else low + high), 1
        elif step < 0 and high < -data.shape[axis]:
            high = None  # type: ignore[assignment]
        cuts[axis] = slice(low, high, step)
    return np.ascontiguousarray(data[tuple(cuts)])


define(
    "strided_slice",
    _slice_compute,
    _I,
    rule=_slice_rule,
    num_inputs=1,
    settings={
        "begin": REQUIRED,
        "end": REQUIRED,
        "strides": REQUIRED,
        "slice_mode": "end",
        "axes": None,
    },
)
define(
    "dyn.strided_slice",
    None,
    _O,
    num_inputs=4,
    settings={"slice_mode": "end", "axes": None},
    rule=lambda t, s, a: unknown_shape(len(t[0].shape), t[0].dtype),
    host=_numpy_slice,
)


def strided_slice(
    data: RelayExpr,
    begin: Any,
    end: Any,
    strides: Any = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Call:
    """Every n-th element between two places of each axis.

    Parameters
    ----------
    begin, end, strides : numbers for each axis, or tensors of them; numbers below zero count from
        the end.
    axes : which axes they are of; the first ones by default.
    slice_mode : "end", or "size" where `end` has sizes, -1 for all that is left.
    """
    low, high = numbers_or_expr(begin), numbers_or_expr(end)
    step: Any = numbers_or_expr(strides if strides is not None else [1])
    axes = None if axes is None else list(axes)
    if any(isinstance(v, RelayExpr) for v in (low, high, step)):
        count = low if not isinstance(low, RelayExpr) else high
        if isinstance(step, list) and len(step) == 1 and not isinstance(count, RelayExpr):
            step = step * len(count)
        elif strides is None:
            step = const(np.ones(_length(low, high, data), "int64"))
        operands = [
            v if isinstance(v, RelayExpr) else const(np.array(v, "int64"))
            for v in (low, high, step)
        ]
        return make("dyn.strided_slice", [data, *operands], slice_mode=slice_mode, axes=axes)
    return make(
        "strided_slice", [data], begin=low, end=high, strides=step, slice_mode=slice_mode, axes=axes
    )


def _length(*candidates: Any) -> int:
    for value in candidates:
        annotation = getattr(value, "type_annotation", None) or getattr(
            value, "checked_type_", None
        )
        if isinstance(annotation, TensorType) and len(annotation.shape) == 1:
            return int(annotation.shape[0])
    raise error.ValueError("relay.strided_slice: give strides; how many is not known")


def _slice_like_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data, like = (tensor("relay.slice_like", t) for t in types)
    shape = list(data.shape)
    axes = s["axes"] or range(min(len(shape), len(like.shape)))
    for a in axes:
        axis = normal_axis("relay.slice_like", a, len(shape))
        have, want = extent_number(shape[axis]), extent_number(like.shape[axis])
        if have is not None and want is not None and want > have:
            raise error.ValueError(
                f"relay.slice_like: axis {axis} has {have} elements, {want} are wanted"
            )
        shape[axis] = like.shape[axis]
    return TensorType(shape, str(data.dtype))


def _slice_like_compute(x: Any, like: Any, axes: Any) -> Any:
    types = [TensorType(x.shape), TensorType(like.shape)]
    shape = _slice_like_rule(types, {"axes": axes}, ()).shape
    return te.compute(list(shape), lambda *i: x(*i), name="slice_like", tag=topi.tag.INJECTIVE)


define(
    "slice_like",
    _slice_like_compute,
    _I,
    settings={"axes": None},
    rule=_slice_like_rule,
    num_inputs=2,
)
define(
    "strided_set",
    None,
    _O,
    num_inputs=5,
    rule=lambda t, s, a: t[0],
    host=lambda arrays, s: _numpy_set(*arrays),
)


def _numpy_set(data: Any, values: Any, begin: Any, end: Any, strides: Any) -> Any:
    result = data.copy()
    result[tuple(slice(int(a), int(b), int(c)) for a, b, c in zip(begin, end, strides))] = values
    return result


def slice_like(data: RelayExpr, shape_like: RelayExpr, axes: Sequence[int] | None = None) -> Call:
    """The leading part that has another tensor's extents, of all or of some axes."""
    return make("slice_like", [data, shape_like], axes=None if axes is None else list(axes))


def strided_set(data: RelayExpr, v: RelayExpr, begin: Any, end: Any, strides: Any = None) -> Call:
    """The tensor with other values at the places that a strided slice reads.

    Parameters
    ----------
    begin, end, strides : numbers of each axis, or constants of them; strides are one by default.

    Raises
    ------
    TypeError : `begin` is computed, and there are no strides.
    """
    places = [
        place if isinstance(place, RelayExpr) else const(np.array(list(place), "int64"))
        for place in (begin, end)
    ]
    if strides is None:
        if not isinstance(places[0], Constant):
            raise error.TypeError("relay.strided_set: give strides where begin is computed")
        strides = np.ones(places[0].data.shape, "int64")
    places.append(strides if isinstance(strides, RelayExpr) else const(np.array(strides), "int64"))
    return make("strided_set", [data, v, *places])


def _arange_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    limits = [number_of(arg) for arg in args]
    if any(limit is None for limit in limits):
        return TensorType([AnyExtent()], s["dtype"])
    start, stop, step = limits
    return TensorType([max(0, math.ceil((stop - start) / step))], s["dtype"])


def _arange_lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
    values = np.arange(*(number_of(arg) for arg in args)).astype(s["dtype"])
    return relax.const(values, str(values.dtype))


define(
    "arange",
    None,
    _O,
    settings={"dtype": REQUIRED},
    rule=_arange_rule,
    num_inputs=3,
    lower=_arange_lower,
    host=lambda arrays, s: np.arange(*(a.item() for a in arrays)).astype(s["dtype"]),
)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Call:
    """Numbers from `start` up to `stop`; with one limit, from 0."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    limits = [
        as_expr(v) if isinstance(v, RelayExpr) else const(v, dtype) for v in (start, stop, step)
    ]
    return make("arange", limits, dtype=dtype)


define(
    "one_hot",
    None,
    _O,
    num_inputs=3,
    settings={"depth": REQUIRED, "axis": -1, "dtype": REQUIRED},
    rule=lambda t, s, a: _one_hot_type(t[0], s["depth"], s),
    lower=lambda args, s: relax.op.make_call(
        "relay.one_hot", args[0], on_value=number_of(args[1]), off_value=number_of(args[2]), **s
    ),
    host=lambda arrays, s: _numpy_one_hot(arrays, s),
)
relax.op.register("relay.one_hot", topi.one_hot, _O, tunable=False)


def _one_hot_type(indices: TensorType, depth: Any, s: Mapping[str, Any]) -> TensorType:
    rank = len(indices.shape)
    axis = rank if s["axis"] == -1 else s["axis"]
    shape = [*indices.shape[:axis], depth, *indices.shape[axis:]]
    return TensorType(shape, s["dtype"])


def _numpy_one_hot(arrays: Sequence[Any], s: Mapping[str, Any]) -> Any:
    indices, on, off = arrays[:3]
    depth = s["depth"] if len(arrays) == 3 else int(arrays[3])
    hot = np.where(np.arange(depth) == indices[..., None], on, off).astype(s["dtype"])
    return hot if s["axis"] == -1 else np.ascontiguousarray(np.moveaxis(hot, -1, s["axis"]))


define(
    "dyn.one_hot",
    None,
    _O,
    num_inputs=4,
    settings={"axis": -1, "dtype": REQUIRED},
    rule=lambda t, s, a: _one_hot_type(t[0], AnyExtent(), s),
    host=_numpy_one_hot,
)


def one_hot(
    indices: RelayExpr, on_value: RelayExpr, off_value: RelayExpr, depth: Any, axis: int, dtype: str
) -> Call:
    """A vector for each index that has `on_value` at its place and `off_value` elsewhere."""
    depth = numbers_or_expr(depth)
    if isinstance(depth, RelayExpr):
        return make("dyn.one_hot", [indices, on_value, off_value, depth], axis=axis, dtype=dtype)
    return make("one_hot", [indices, on_value, off_value], depth=depth[0], axis=axis, dtype=dtype)


def _placed(name: str) -> Any:
    return lambda types, s, args: tensor(f"relay.{name}", types[0])


define(
    "scatter_elements",
    lambda x, i, u, axis, reduction: topi.scatter_elements(x, i, u, axis, reduction),
    _O,
    settings={"axis": 0, "reduction": "update"},
    rule=_placed("scatter_elements"),
    num_inputs=3,
)
define(
    "scatter_nd",
    lambda x, i, u, mode: topi.scatter_nd(x, i, u, mode),
    _O,
    settings={"mode": "update"},
    rule=_placed("scatter_nd"),
    num_inputs=3,
)


def scatter_elements(
    data: RelayExpr,
    indices: RelayExpr,
    updates: RelayExpr,
    axis: int = 0,
    reduction: str = "update",
) -> Call:
    """The tensor with updates put, added, multiplied... at indices along an axis."""
    return make("scatter_elements", [data, indices, updates], axis=axis, reduction=reduction)


def scatter_nd(
    data: RelayExpr, indices: RelayExpr, updates: RelayExpr, mode: str = "update"
) -> Call:
    """As `gather_nd`, the other way round: slices put at places."""
    return make("scatter_nd", [data, indices, updates], mode=mode)


def segment_sum(
    data: RelayExpr, segment_ids: RelayExpr, num_segments: int | RelayExpr | None = None
) -> Call:
    """Sums of the slices of one segment each, as many as `num_segments`."""
    return make(
        "segment_sum",
        [data, segment_ids, *([num_segments] if isinstance(num_segments, RelayExpr) else [])],
        num_segments=None if isinstance(num_segments, RelayExpr) else num_segments,
    )


def _numpy_segment_sum(arrays: Sequence[Any], s: Mapping[str, Any]) -> Any:
    data, ids = arrays[:2]
    count = int(arrays[2]) if len(arrays) > 2 else s["num_segments"] or int(ids.max()) + 1
    result = np.zeros((count, *data.shape[1:]), data.dtype)
    # Slices behind those that have a segment are in none.
    np.add.at(result, ids, data[: len(ids)])
    return result


define(
    "segment_sum",
    None,
    _O,
    settings={"num_segments": None},
    host=_numpy_segment_sum,
    rule=lambda t, s, a: TensorType(
        [s["num_segments"] or AnyExtent(), *t[0].shape[1:]], str(t[0].dtype)
    ),
)
define(
    "sort",
    topi.sort,
    _O,
    settings={"axis": -1, "is_ascend": True},
    rule=_placed("sort"),
    num_inputs=1,
)
define(
    "argsort",
    topi.argsort,
    _O,
    settings={"axis": -1, "is_ascend": True, "dtype": REQUIRED},
    rule=lambda t, s, a: TensorType(t[0].shape, s["dtype"]),
    num_inputs=1,
)


def sort(data: RelayExpr, axis: int = -1, is_ascend: bool = True) -> Call:
    """Elements in order along an axis."""
    return make("sort", [data], axis=axis, is_ascend=bool(is_ascend))


def argsort(data: RelayExpr, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> Call:
    """Places of the elements in order along an axis."""
    return make("argsort", [data], axis=axis, is_ascend=bool(is_ascend), dtype=dtype)


def _topk_type(data: TensorType, k: Any, s: Mapping[str, Any]) -> Type:
    axis = normal_axis("relay.topk", s["axis"], len(data.shape))
    shape = list(data.shape)
    if not (isinstance(k, int) and k < 1):
        shape[axis] = k
    values, places = TensorType(shape, str(data.dtype)), TensorType(shape, s["dtype"])
    kinds = {"both": TupleType([values, places]), "values": values, "indices": places}
    return kinds[s["ret_type"]]


_TOPK = {"axis": -1, "ret_type": "both", "is_ascend": False, "dtype": REQUIRED}
define(
    "topk",
    topi.topk,
    _O,
    settings={"k": 1, **_TOPK},
    num_inputs=1,
    rule=lambda t, s, a: _topk_type(tensor("relay.topk", t[0]), s["k"], s),
)
define(
    "dyn.topk",
    None,
    _O,
    settings=_TOPK,
    num_inputs=2,
    host=lambda arrays, s: _numpy_topk(arrays, s),
    rule=lambda t, s, a: _topk_type(tensor("relay.topk", t[0]), AnyExtent(), s),
)


def _numpy_topk(arrays: Sequence[Any], s: Mapping[str, Any]) -> Any:
    data, k = arrays
    count = int(np.asarray(k).reshape(-1)[0])
    keys = data if s["is_ascend"] else -data
    order = np.argsort(keys, axis=s["axis"], kind="stable")
    if count >= 1:
        order = np.take(order, np.arange(count), axis=s["axis"])
    values = np.take_along_axis(data, order, s["axis"])
    both = (values, order.astype(s["dtype"]))
    return {"both": both, "values": both[0], "indices": both[1]}[s["ret_type"]]


def topk(
    data: RelayExpr,
    k: Any = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int32",
) -> Any:
    """The k largest elements along an axis, or smallest, with their places."""
    settings = {"axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype}
    k = numbers_or_expr(k)
    if isinstance(k, RelayExpr):
        call = make("dyn.topk", [data, k], **settings)
    else:
        call = make("topk", [data], k=k[0], **settings)
    return TupleWrapper(call, 2) if ret_type == "both" else call


define(
    "searchsorted",
    lambda a, v, right, dtype: topi.searchsorted(a, v, right, dtype),
    _O,
    settings={"right": False, "dtype": REQUIRED},
    num_inputs=2,
    rule=lambda t, s, a: TensorType(t[1].shape, s["dtype"]),
)


def searchsorted(
    sorted_sequence: RelayExpr, values: RelayExpr, right: bool = False, dtype: str = "int32"
) -> Call:
    """Where values would stand in a sorted sequence."""
    return make("searchsorted", [sorted_sequence, values], right=right, dtype=dtype)


define(
    "sequence_mask",
    topi.sequence_mask,
    _I,
    settings={"mask_value": 0.0, "axis": 0},
    rule=_placed("sequence_mask"),
    num_inputs=2,
)
define(
    "matrix_set_diag",
    lambda x, d, k1, k2, super_diag_right_align, sub_diag_right_align: topi.matrix_set_diag(
        x, d, (k1, k2), _alignment(super_diag_right_align, sub_diag_right_align)
    ),
    _I,
    settings={
        "k1": 0,
        "k2": 0,
        "super_diag_right_align": REQUIRED,
        "sub_diag_right_align": REQUIRED,
    },
    rule=_placed("matrix_set_diag"),
    num_inputs=2,
)
define(
    "trilu",
    None,
    _I,
    settings={"upper": True},
    rule=_placed("trilu"),
    num_inputs=2,
    lower=lambda args, s: _trilu_lower(args, s),
    host=lambda arrays, s: (np.triu if s["upper"] else np.tril)(arrays[0], int(arrays[1])),
)


def _alignment(upper_right: bool, lower_right: bool) -> str:
    return f"{'RIGHT' if upper_right else 'LEFT'}_{'RIGHT' if lower_right else 'LEFT'}"


def _trilu_lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
    return (relax.op.triu if s["upper"] else relax.op.tril)(args[0], number_of(args[1]))


def sequence_mask(
    data: RelayExpr, valid_length: RelayExpr, mask_value: float = 0, axis: int = 0
) -> Call:
    """The elements behind each sequence's length replaced by a value."""
    return make("sequence_mask", [data, valid_length], mask_value=float(mask_value), axis=axis)


def matrix_set_diag(
    data: RelayExpr, diagonal: RelayExpr, k: Any = 0, align: str = "RIGHT_LEFT"
) -> Call:
    """Matrices with other diagonals."""
    low, high = (k, k) if isinstance(k, int) else k
    upper, lower = align.split("_")
    return make(
        "matrix_set_diag",
        [data, diagonal],
        k1=low,
        k2=high,
        super_diag_right_align=upper == "RIGHT",
        sub_diag_right_align=lower == "RIGHT",
    )


def trilu(data: RelayExpr, k: Any, upper: bool = True) -> Call:
    """The part of matrices on one side of a diagonal, zeros elsewhere."""
    place = as_expr(k) if isinstance(k, RelayExpr) else const(k, "int64")
    return make("trilu", [data, place], upper=upper)


def _unravel_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    indices, shape = (tensor("relay.unravel_index", t) for t in types)
    return TensorType([shape.shape[0], *indices.shape], str(indices.dtype))


define("unravel_index", topi.unravel_index, _I, rule=_unravel_rule, num_inputs=2)
define("invert_permutation", topi.invert_permutation, _I, num_inputs=1)
define(
    "sparse_to_dense",
    lambda i, v, default, output_shape: topi.sparse_to_dense(i, list(output_shape), v, default),
    _O,
    settings={"output_shape": REQUIRED},
    num_inputs=3,
    rule=lambda t, s, a: TensorType(list(s["output_shape"]), str(t[1].dtype)),
)
define(
    "dyn.sparse_to_dense",
    num_inputs=4,
    rule=lambda t, s, a: unknown_shape(_rank_of("relay.sparse_to_dense", t[3]), t[1].dtype),
    host=lambda arrays, s: _numpy_dense(*arrays),
)


def _rank_of(where: str, shape: Type) -> int:
    rank = extent_number(tensor(where, shape, "the shape").shape[0])
    if rank is None:
        raise error.TypeError(f"{where}: the length of the shape must be known")
    return rank


def _numpy_dense(indices: Any, values: Any, default: Any, shape: Any) -> Any:
    dense = np.full(shape.tolist(), default, values.dtype)
    # A scalar and a vector of places are those of a vector.
    places = indices.reshape(-1, dense.ndim)
    dense[tuple(places.T)] = values
    return dense


define(
    "adv_index",
    lambda tensors: topi.adv_index(tensors[0], tensors[1:]),
    _I,
    rule=lambda t, s, a: _adv_index_type(t[0]),
    num_inputs=1,
)


def _adv_index_type(types: Type) -> Type:
    data, *indices = fields_of("relay.adv_index", types)
    shape: list[Any] = []
    for index in indices:
        shape = broadcast("relay.adv_index", shape, index.shape)
    return TensorType([*shape, *data.shape[len(indices) :]], str(data.dtype))


def unravel_index(indices: RelayExpr, shape: RelayExpr) -> Call:
    """Coordinates of flat indices."""
    return make("unravel_index", [indices, shape])


def invert_permutation(data: RelayExpr) -> Call:
    """The permutation that undoes one."""
    return make("invert_permutation", [data])


def sparse_to_dense(
    sparse_indices: RelayExpr, output_shape: Any, sparse_values: RelayExpr, default_value: Any = 0
) -> Call:
    """A tensor of a default value with other values at some places."""
    if isinstance(default_value, RelayExpr):
        default = default_value
    else:
        default = const(default_value)
    shape = numbers_or_expr(output_shape)
    if isinstance(shape, RelayExpr):
        return make("dyn.sparse_to_dense", [sparse_indices, sparse_values, default, shape])
    return make("sparse_to_dense", [sparse_indices, sparse_values, default], output_shape=shape)


def adv_index(inputs: Any) -> Call:
    """NumPy's indexing of the first tensor by the others."""
    return make("adv_index", [as_expr(inputs)])


define(
    "argwhere",
    None,
    _O,
    num_inputs=1,
    rule=lambda t, s, a: TensorType([AnyExtent(), len(t[0].shape)], "int32"),
    host=lambda arrays, s: np.argwhere(arrays[0]).astype("int32"),
)


def _unique_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.unique", types[0])
    whole, some = data.shape, [AnyExtent()]
    fields = [
        TensorType(some, str(data.dtype)),
        TensorType(some, "int32"),
        TensorType(whole, "int32"),
        TensorType([1], "int32"),
    ]
    if s["return_counts"]:
        fields.append(TensorType(some, "int32"))
    return TupleType(fields)


def _numpy_unique(arrays: Sequence[Any], s: Mapping[str, Any]) -> Any:
    values, first, inverse, counts = np.unique(
        arrays[0], return_index=True, return_inverse=True, return_counts=True
    )
    inverse = inverse.reshape(-1)
    if not s["sorted"]:
        order = np.argsort(first)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        values, first, counts, inverse = values[order], first[order], counts[order], places[inverse]
    results = [values, first, inverse, np.array([len(values)]), counts]
    kept = results if s["return_counts"] else results[:4]
    return (kept[0], *(r.astype("int32") for r in kept[1:]))


define(
    "unique",
    None,
    _O,
    settings={"sorted": True, "return_counts": False},
    rule=_unique_rule,
    host=_numpy_unique,
    num_inputs=1,
)


def argwhere(condition: RelayExpr) -> Call:
    """Places of the elements that are not zero; how many is known when it runs."""
    return make("argwhere", [condition])


def unique(data: RelayExpr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """The different elements of a vector, where each comes first, which of them every element is,
    how many there are, and on request how often each."""
    call = make("unique", [data], sorted=bool(is_sorted), return_counts=bool(return_counts))
    return TupleWrapper(call, 5 if return_counts else 4)
