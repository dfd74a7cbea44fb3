"""Operators that look at the memory of a tensor in another way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import error
from tvm.ir import RelayExpr

from ..expr import Call, DataTypeImm, PrimValue, ShapeExpr, Tuple
from ..struct_info import PrimStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo
from .base import make_call
from .registry import register_rule
from .rules import UNKNOWN, known_shape, number, product, shape_argument, simplified, tensor

__all__ = ["ensure_zero_offset", "view"]


def view(
    data: RelayExpr,
    shape: Sequence[Any] | RelayExpr | None = None,
    dtype: str | RelayExpr | None = None,
    relative_byte_offset: int | RelayExpr | None = None,
) -> Call:
    """The memory of a compact tensor, or a part of it, as a tensor of another shape and type.

    Nothing is copied, so the bytes are read as the machine stores them.

    Parameters
    ----------
    shape : by default that of `data`, with as many elements of `dtype` in the last dimension as
        fill it.
    dtype : by default that of `data`.
    relative_byte_offset : where the result begins, in bytes from the beginning of `data`; 0 by
        default.

    Raises
    ------
    TypeError : `data` is no tensor, or another operand is of another kind.
    ValueError : the result would end behind `data`, or its shape is left out and not the whole of
        `data` is seen.
    """
    return make_call(
        "memory.view",
        data,
        Tuple([]) if shape is None else shape if isinstance(shape, RelayExpr)
        else ShapeExpr(list(shape)),
        Tuple([]) if dtype is None else dtype if isinstance(dtype, RelayExpr)
        else DataTypeImm(dtype),
        Tuple([]) if relative_byte_offset is None
        else relative_byte_offset if isinstance(relative_byte_offset, RelayExpr)
        else PrimValue(relative_byte_offset),
    )  # fmt: skip


def ensure_zero_offset(data: RelayExpr) -> Call:
    """The tensor, whose address is then that of its first element.

    It is copied only on devices whose memory has no addresses.
    """
    return make_call("memory.ensure_zero_offset", data)


def _left_out(operand: RelayExpr) -> bool:
    return isinstance(operand, Tuple) and not len(operand.fields)


def _bytes_of(dtype: str) -> int | None:
    """Bytes of an element, None where that is not known."""
    return None if dtype == UNKNOWN else (tvm.DataType(dtype).itemsize)


def _view_rule(call: Call) -> StructInfo:
    data = tensor(call, 0, "data")
    _, shape, dtype, offset = call.args
    if _left_out(dtype):
        element = str(data.dtype)
    elif isinstance(dtype, DataTypeImm):
        element = str(dtype.value)
    else:
        element = UNKNOWN
    if not _left_out(offset) and not isinstance(offset.struct_info, PrimStructInfo):
        raise error.TypeError(f"{call.op.name}: the offset is a number, got {offset.struct_info}")
    begin = 0 if _left_out(offset) else number(getattr(offset, "value", None))
    if _left_out(shape):
        if begin != 0:
            raise error.ValueError(f"{call.op.name}: a view with an offset needs a shape")
        return _whole(call, data, element)
    wanted = shape_argument(call, 1)
    _check_end(call, data, wanted, element, begin)
    if isinstance(shape, ShapeExpr):
        return TensorStructInfo(shape, element, data.vdevice)
    if wanted.values is not None:
        return TensorStructInfo(list(wanted.values), element, data.vdevice)
    return TensorStructInfo(None, element, data.vdevice, wanted.ndim)


def _whole(call: Call, data: TensorStructInfo, element: str) -> StructInfo:
    """All of a tensor in elements of another type."""
    size, own = _bytes_of(element), _bytes_of(str(data.dtype))
    extents = known_shape(data)
    if size is not None and size == own and data.shape is not None:
        return TensorStructInfo(data.shape, element, data.vdevice)
    if size is None or own is None or extents is None:
        return TensorStructInfo(None, element, data.vdevice, data.ndim)
    last = number(extents[-1]) if extents else None
    if not extents or (last is not None and last * own % size):
        raise error.ValueError(
            f"{call.op.name}: the last dimension of {data} does not hold whole elements of "
            f"{element}; give a shape"
        )
    if last is None and own % size:
        return TensorStructInfo(None, element, data.vdevice, data.ndim)
    ends = last * own // size if last is not None else simplified(extents[-1] * (own // size))
    return TensorStructInfo([*extents[:-1], ends], element, data.vdevice)


def _check_end(
    call: Call,
    data: TensorStructInfo,
    wanted: ShapeStructInfo,
    element: str,
    begin: int | None,
) -> None:
    size, own = _bytes_of(element), _bytes_of(str(data.dtype))
    extents = known_shape(data)
    if size is None or own is None or extents is None or wanted.values is None or begin is None:
        return
    if begin < 0:
        raise error.ValueError(f"{call.op.name}: a view begins at byte 0 or later, got {begin}")
    there, needed = number(product(extents)), number(product(list(wanted.values)))
    if there is not None and needed is not None and begin + needed * size > there * own:
        raise error.ValueError(
            f"{call.op.name}: {needed} elements of {element} from byte {begin} on end behind the "
            f"{there * own} bytes of {data}"
        )


def _same(call: Call) -> StructInfo:
    return tensor(call, 0, "data")


register_rule("memory.view", _view_rule)
register_rule("memory.ensure_zero_offset", _same)
