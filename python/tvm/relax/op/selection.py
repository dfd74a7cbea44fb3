"""Operators that choose elements: by condition, index or place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import PrimExpr, RelayExpr

from ..expr import Call, PrimValue
from ..struct_info import PrimStructInfo, TensorStructInfo, TupleStructInfo
from . import rules
from .base import make_call
from .binary import broadcast_shape
from .create import full_like
from .registry import register_rule
from .rules import (
    axes_of,
    axis_of,
    common_dtype,
    common_vdevice,
    extents,
    known_shape,
    number,
    opaque_tensor,
    same_as_operand,
    setting,
    simplified,
    tensor,
    with_shape,
)

__all__ = [
    "argsort",
    "dynamic_strided_slice",
    "ewise_fma",
    "sort",
    "strided_slice",
    "take",
    "topk",
    "tril",
    "triu",
    "masked_fill",
    "nonzero",
    "unique",
    "where",
]


def where(condition: RelayExpr, x1: RelayExpr, x2: RelayExpr) -> Call:
    """x1 where the condition, a tensor of bool, holds, x2 elsewhere; all three broadcast."""
    return make_call("where", condition, x1, x2)


def _where(call: Call) -> TensorStructInfo:
    infos = [tensor(call, k) for k in range(3)]
    if str(infos[0].dtype) not in ("bool", rules.UNKNOWN):
        raise error.TypeError(f"relax.where: the condition must be bool, got {infos[0].dtype}")
    dtype = common_dtype(call, infos[1:])
    vdevice = common_vdevice(call, infos)
    rank = -1 if any(info.ndim == -1 for info in infos) else max(info.ndim for info in infos)
    if infos[0].shape is not None and all(
        info.shape is not None and info.shape.same_as(infos[0].shape) for info in infos
    ):
        return with_shape(infos[0].shape, dtype, vdevice)
    shapes = [known_shape(info) for info in infos]
    shape: Any = shapes[0]
    for other in shapes[1:]:
        if shape is None or other is None:
            return opaque_tensor(dtype, rank, vdevice)
        shape = broadcast_shape(call, shape, other)
    return (
        opaque_tensor(dtype, rank, vdevice) if shape is None else with_shape(shape, dtype, vdevice)
    )


def ewise_fma(x1: RelayExpr, x2: RelayExpr, x3: RelayExpr) -> Call:
    """x1 * x2 + x3 for tensors of one shape."""
    return make_call("ewise_fma", x1, x2, x3)


def _ewise_fma(call: Call) -> TensorStructInfo:
    infos = [tensor(call, k) for k in range(3)]
    ranks = {info.ndim for info in infos} - {-1}
    if len(ranks) > 1:
        raise error.ValueError(f"relax.ewise_fma: operands of {sorted(ranks)} dimensions")
    dtype, vdevice = common_dtype(call, infos), common_vdevice(call, infos)
    if infos[0].shape is not None and all(
        info.shape is not None and info.shape.same_as(infos[0].shape) for info in infos
    ):
        return with_shape(infos[0].shape, dtype, vdevice)
    shapes = [known_shape(info) for info in infos]
    known = [shape for shape in shapes if shape is not None]
    for shape in known[1:]:
        if any(rules.differ(a, b) for a, b in zip(known[0], shape)):
            raise error.ValueError(f"relax.ewise_fma: operands of shapes {known[0]} and {shape}")
    if len(known) == len(shapes) and all(
        rules.equal(a, b) for shape in known[1:] for a, b in zip(known[0], shape)
    ):
        return with_shape(known[0], dtype, vdevice)
    return opaque_tensor(dtype, ranks.pop() if ranks else -1, vdevice)


def take(x: RelayExpr, indices: RelayExpr, axis: int | None = None) -> Call:
    """Elements of x along a dimension, in the order and shape of indices.

    Parameters
    ----------
    axis : may be left out for a tensor of one dimension.
    """
    return make_call("take", x, indices, axis=axis)


def _take(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    index = call.args[1].struct_info
    if isinstance(index, PrimStructInfo):
        index = with_shape([], index.dtype)
    elif not isinstance(index, TensorStructInfo):
        raise error.TypeError(f"relax.take: indices must be a tensor, got {index}")
    if not rules.is_integer(index.dtype):
        raise error.TypeError(f"relax.take: indices of {index.dtype}")
    axis = setting(call, "axis")
    vdevice = common_vdevice(call, [info, index])
    if axis is None:
        if info.ndim not in (-1, 1):
            raise error.ValueError(f"relax.take: an axis is needed for {info.ndim} dimensions")
        axis = 0
    if -1 in (info.ndim, index.ndim):
        return opaque_tensor(info.dtype, -1, vdevice)
    place = axis_of(call, axis, info.ndim)
    rank = info.ndim + index.ndim - 1
    own, chosen = known_shape(info), known_shape(index)
    if own is None or chosen is None:
        return opaque_tensor(info.dtype, rank, vdevice)
    return with_shape([*own[:place], *chosen, *own[place + 1 :]], info.dtype, vdevice)


def _plain(values: Sequence[Any]) -> list[Any]:
    numbers = [v.value if isinstance(v, PrimValue) else v for v in values]
    return [
        v if isinstance(v, PrimExpr) and not isinstance(v, tir.IntImm) else int(v) for v in numbers
    ]


def strided_slice(
    x: RelayExpr,
    axes: Sequence[int],
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[Any] | None = None,
    assume_inbound: bool = False,
) -> Call:
    """x[begin:end:strides] along the given dimensions, limits as in Python.

    Parameters
    ----------
    assume_inbound : whether symbolic limits are taken to lie in the tensor.
    """
    return make_call(
        "strided_slice",
        x,
        axes=[int(a) for a in axes],
        begin=_plain(begin),
        end=_plain(end),
        strides=None if strides is None else _plain(strides),
        assume_inbound=assume_inbound or None,
    )


def _strided_slice(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    axes = setting(call, "axes", ())
    begin, end = setting(call, "begin", ()), setting(call, "end", ())
    strides = setting(call, "strides") or (1,) * len(begin)
    if not len(axes) == len(begin) == len(end) == len(strides):
        raise error.ValueError(
            f"relax.strided_slice: {len(axes)} axes, but {len(begin)} begins, {len(end)} ends and "
            f"{len(strides)} strides"
        )
    if info.ndim == -1:
        return opaque_tensor(info.dtype, -1, info.vdevice)
    places = axes_of(call, axes, info.ndim)
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, info.ndim, info.vdevice)
    if not places:
        return info
    inbound = bool(setting(call, "assume_inbound", False))
    result = list(shape)
    for place, first, last, stride in zip(places, begin, end, strides):
        result[place] = _slice_length(shape[place], first, last, stride, inbound)
    return with_shape(result, info.dtype, info.vdevice)


def _slice_length(extent: Any, begin: Any, end: Any, stride: Any, inbound: bool) -> Any:
    size, first, last, step = (number(v) for v in (extent, begin, end, stride))
    if size is not None and first is not None and last is not None and step is not None:
        return tir.const(len(range(*slice(first, last, step).indices(size))), "int64")
    if step is None:
        raise error.ValueError(f"relax.strided_slice: the stride {stride} is not a literal")
    begin, end, extent = extents([begin, end, extent])
    lowest, highest = (tir.const(0, "int64"), extent) if step > 0 else (
        tir.const(-1, "int64"), extent - 1)  # fmt: skip

    def limited(value: Any) -> Any:
        literal = number(value)
        if literal is not None and literal < 0:
            value = value + extent
        elif literal is None and not inbound:
            value = tir.Select(value < 0, value + extent, value)
        elif literal is not None and literal >= np_max:
            return highest
        if inbound:
            return value
        return tir.max(lowest, tir.min(value, highest))

    np_max = 2**31 - 1
    first_at, last_at = limited(begin), limited(end)
    distance = last_at - first_at if step > 0 else first_at - last_at
    count = tir.floordiv(distance + (abs(step) - 1), tir.const(abs(step), "int64"))
    count = simplified(count)
    return count if inbound else simplified(tir.max(count, tir.const(0, "int64")))


def dynamic_strided_slice(
    x: RelayExpr, begin: RelayExpr, end: RelayExpr, strides: RelayExpr
) -> Call:
    """x[begin:end:strides] with limits that are tensors of int64, one for each dimension."""
    return make_call("dynamic_strided_slice", x, begin, end, strides)


def _dynamic_strided_slice(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    for k in range(1, 4):
        limit = tensor(call, k)
        if str(limit.dtype) not in ("int64", rules.UNKNOWN) or limit.ndim not in (-1, 1):
            raise error.TypeError(
                f"relax.dynamic_strided_slice: operand {k} must be int64 of one dimension, got "
                f"{limit}"
            )
        shape = known_shape(limit)
        if shape is not None and info.ndim not in (-1, number(shape[0])):
            raise error.ValueError(
                f"relax.dynamic_strided_slice: {shape[0]} limits for {info.ndim} dimensions"
            )
    return opaque_tensor(info.dtype, info.ndim, info.vdevice)


def tril(x: RelayExpr, k: int | PrimValue = 0) -> Call:
    """x with zeros above the diagonal k of its last two dimensions."""
    return make_call("tril", x, k=_diagonal(k))


def triu(x: RelayExpr, k: int | PrimValue = 0) -> Call:
    """x with zeros below the diagonal k of its last two dimensions."""
    return make_call("triu", x, k=_diagonal(k))


def _diagonal(k: int | PrimValue | PrimExpr) -> int | PrimExpr:
    value = k.value if isinstance(k, PrimValue) else k
    literal = number(value)
    return value if literal is None else literal


def _triangle(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    if info.ndim not in (-1,) and info.ndim < 2:
        raise error.ValueError(f"{call.op.name}: {info.ndim} dimensions have no diagonal")
    return info


def sort(x: RelayExpr, axis: int = -1, descending: bool = False) -> Call:
    """x in order along a dimension."""
    return make_call("sort", x, axis=axis, descending=descending)


def argsort(
    data: RelayExpr, axis: int = -1, descending: bool = False, dtype: str = "int32"
) -> Call:
    """The places of the elements in order along a dimension."""
    return make_call("argsort", data, axis=axis, descending=descending, dtype=dtype)


def topk(
    data: RelayExpr,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
) -> Call:
    """The k largest (or smallest) elements along a dimension, in order, and where they are.

    Parameters
    ----------
    ret_type : "values", "indices" or "both".
    """
    return make_call("topk", data, k=k, axis=axis, ret_type=ret_type, largest=largest, dtype=dtype)


def _ordered(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    if info.ndim != -1:
        axis_of(call, setting(call, "axis", -1), info.ndim)
    if str(call.op.name) == "relax.argsort":
        return same_as_operand(info, setting(call, "dtype", "int32"))
    return info


def _topk(call: Call) -> Any:
    info = tensor(call, 0)
    count, axis = setting(call, "k", 1), setting(call, "axis", -1)
    dtype, wanted = setting(call, "dtype", "int32"), setting(call, "ret_type", "both")
    shape = known_shape(info)
    if shape is None:
        values = opaque_tensor(info.dtype, info.ndim, info.vdevice)
        places = opaque_tensor(dtype, info.ndim, info.vdevice)
    else:
        place = axis_of(call, axis, info.ndim)
        limit = extents([count])[0]
        if (number(limit) or 1) > 0:
            shape[place] = simplified(tir.min(limit, shape[place]))
        values = with_shape(shape, info.dtype, info.vdevice)
        places = with_shape(shape, dtype, info.vdevice)
    if wanted == "both":
        return TupleStructInfo([values, places])
    return values if wanted == "values" else places


def unique(
    x: RelayExpr,
    sorted: bool | RelayExpr = True,
    return_index: bool | RelayExpr = False,
    return_inverse: bool | RelayExpr = False,
    return_counts: bool | RelayExpr = False,
    axis: int | RelayExpr | None = None,
) -> Call:
    """The different elements of x, and on request where they are first, where each went, how many.

    Parameters
    ----------
    axis : dimension whose slices are compared; None compares elements of the flat tensor.
    """
    flags = (sorted, return_index, return_inverse, return_counts)
    values = [f if isinstance(f, RelayExpr) else PrimValue(bool(f)) for f in flags]
    if axis is not None:
        values.append(axis if isinstance(axis, RelayExpr) else PrimValue(axis))
    return make_call("unique", x, *values)


def _unique(call: Call) -> Any:
    info = tensor(call, 0)
    flags = []
    for arg in call.args[2:5]:
        if not isinstance(arg, PrimValue):
            raise error.TypeError("relax.unique: what comes back must be said by literals")
        flags.append(bool(arg.value.value))
    axis = call.args[5].value.value if len(call.args) > 5 else None
    if axis is None:
        values = opaque_tensor(info.dtype, 1, info.vdevice)
    else:
        if info.ndim != -1:
            axis_of(call, axis, info.ndim)
        values = opaque_tensor(info.dtype, info.ndim, info.vdevice)
    places = [opaque_tensor("int64", 1, info.vdevice) for flag in flags if flag]
    return TupleStructInfo([values, *places]) if places else values


def nonzero(x: RelayExpr) -> Call:
    """Where the elements are that are not zero: int64 of (dimensions, how many), in order."""
    return make_call("nonzero", x)


def _nonzero(call: Call) -> TensorStructInfo:
    info = tensor(call, 0)
    return opaque_tensor("int64", 2, info.vdevice)


def masked_fill(x: RelayExpr, mask: RelayExpr, value: float | int) -> Call:
    """x with one value where a mask of booleans is true."""
    return where(mask, full_like(x, value), x)


register_rule("nonzero", _nonzero)
register_rule("where", _where)
register_rule("ewise_fma", _ewise_fma)
register_rule("take", _take)
register_rule("strided_slice", _strided_slice)
register_rule("dynamic_strided_slice", _dynamic_strided_slice)
register_rule("tril", _triangle)
register_rule("triu", _triangle)
register_rule("sort", _ordered)
register_rule("argsort", _ordered)
register_rule("topk", _topk)
register_rule("unique", _unique)
