"""What a tensor says of itself when the program runs: element type, dimensions, where it lies.

A variable has these as attributes, in Python and in scripts: ``x.dtype.bits``, ``x.ndim``,
``x.shape[1]``, ``x.strides[0]``, ``x.byte_offset``. Each makes a call whose value is a scalar;
where struct info tells the value, the scalar's struct info has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import error, tir
from tvm.ir import PrimExpr, RelayExpr
from tvm.runtime import DataType, ObjectGeneric

from ..expr import Call, PrimValue, Var
from ..struct_info import PrimStructInfo, StructInfo, TensorStructInfo
from .base import make_call
from .registry import register_rule
from .rules import known_shape, number, tensor

__all__ = [
    "tensor_byte_offset",
    "tensor_dtype_bits",
    "tensor_dtype_code",
    "tensor_dtype_lanes",
    "tensor_elem_offset",
    "tensor_ndim",
    "tensor_shape_i",
    "tensor_stride_i",
]


def tensor_dtype_code(x: RelayExpr) -> Call:
    """The code of a tensor's element type: 0 of integers, 1 of unsigned ones, 2 of floats."""
    return make_call("inspect.tensor_dtype_code", x)


def tensor_dtype_bits(x: RelayExpr) -> Call:
    """The bits of a lane of a tensor's element type."""
    return make_call("inspect.tensor_dtype_bits", x)


def tensor_dtype_lanes(x: RelayExpr) -> Call:
    """The lanes of a tensor's element type."""
    return make_call("inspect.tensor_dtype_lanes", x)


def tensor_ndim(x: RelayExpr) -> Call:
    """The number of dimensions of a tensor."""
    return make_call("inspect.tensor_ndim", x)


def tensor_shape_i(x: RelayExpr, axis: RelayExpr | PrimExpr | int) -> Call:
    """The extent of a tensor along a dimension, 0 being the first one.

    When it runs, an axis that the tensor has not raises an IndexError.
    """
    return make_call("inspect.tensor_shape_i", x, _axis(axis))


def tensor_stride_i(x: RelayExpr, axis: RelayExpr | PrimExpr | int) -> Call:
    """How many elements lie between neighbours along a dimension."""
    return make_call("inspect.tensor_stride_i", x, _axis(axis))


def tensor_byte_offset(x: RelayExpr) -> Call:
    """How many bytes behind the start of its memory a tensor begins."""
    return make_call("inspect.tensor_byte_offset", x)


def tensor_elem_offset(x: RelayExpr) -> Call:
    """The same in elements."""
    return make_call("inspect.tensor_elem_offset", x)


def _axis(axis: RelayExpr | PrimExpr | int) -> RelayExpr:
    if isinstance(axis, RelayExpr):
        return axis
    return PrimValue(axis if isinstance(axis, PrimExpr) else tir.const(int(axis), "int64"))


@dataclass(frozen=True)
class _DType(ObjectGeneric):
    """The element type of a tensor, of which only the parts are values."""

    tensor: Var

    def asobject(self) -> Any:
        """Raises: a whole element type is no value of a program."""
        raise error.TypeError(
            f"relax: {self.tensor.name_hint}.dtype is no value; its type_code, bits and lanes are"
        )

    @property
    def type_code(self) -> Call:
        return tensor_dtype_code(self.tensor)

    @property
    def bits(self) -> Call:
        return tensor_dtype_bits(self.tensor)

    @property
    def lanes(self) -> Call:
        return tensor_dtype_lanes(self.tensor)


@dataclass(frozen=True)
class _ByAxis(ObjectGeneric):
    """Extents or strides of a tensor, of which only the items are values."""

    tensor: Var
    name: str
    item: Callable[[RelayExpr, Any], Call]

    def asobject(self) -> Any:
        """Raises: `relax.op.shape_of` gives a shape as a value."""
        raise error.TypeError(
            f"relax: {self.tensor.name_hint}.{self.name} is no value, its items are; take "
            "relax.op.shape_of for the shape as a whole"
        )

    def __getitem__(self, axis: Any) -> Call:
        return self.item(self.tensor, axis)

    def __iter__(self) -> Any:
        raise error.TypeError(
            f"relax: {self.tensor.name_hint}.{self.name} has as many items as the tensor that "
            "comes has dimensions; name one by its axis"
        )


_ATTRIBUTES: dict[str, Callable[[Var], Any]] = {
    "dtype": _DType,
    "ndim": tensor_ndim,
    "shape": lambda x: _ByAxis(x, "shape", tensor_shape_i),
    "strides": lambda x: _ByAxis(x, "strides", tensor_stride_i),
    "byte_offset": tensor_byte_offset,
    "elem_offset": tensor_elem_offset,
}

for _name, _get in _ATTRIBUTES.items():
    setattr(Var, _name, property(_get))


def _scalar(dtype: str, value: int | PrimExpr | None) -> StructInfo:
    if value is None:
        return PrimStructInfo(dtype)
    return PrimStructInfo(value if isinstance(value, PrimExpr) else tir.IntImm(dtype, value))


def _of_dtype(dtype: str, part: Callable[[DataType], int]) -> Callable[[Call], StructInfo]:
    def rule(call: Call) -> StructInfo:
        info = tensor(call, 0)
        known = str(info.dtype) not in ("", "void")
        return _scalar(dtype, part(DataType(str(info.dtype))) if known else None)

    return rule


def _ndim(call: Call) -> StructInfo:
    info = tensor(call, 0)
    return _scalar("int32", None if info.ndim == -1 else int(info.ndim))


def _known_axis(call: Call, info: TensorStructInfo) -> int | None:
    where = str(call.op.name)
    axis = call.args[1].struct_info
    if not isinstance(axis, PrimStructInfo) or str(axis.dtype) != "int64":
        raise error.TypeError(f"{where}: the axis is a scalar of int64, got {axis}")
    place = None if axis.value is None else number(axis.value)
    if place is not None and (place < 0 or info.ndim not in (-1, *range(place + 1, 1 << 16))):
        raise error.ValueError(
            f"{where}: axis {place} of a tensor of {info.ndim if info.ndim != -1 else 'some'} "
            "dimensions"
        )
    return place


def _extent(call: Call) -> StructInfo:
    info = tensor(call, 0)
    axis, shape = _known_axis(call, info), known_shape(info)
    return _scalar("int64", None if axis is None or shape is None else shape[axis])


def _stride(call: Call) -> StructInfo:
    _known_axis(call, tensor(call, 0))
    return PrimStructInfo("int64")


def _offset(dtype: str) -> Callable[[Call], StructInfo]:
    def rule(call: Call) -> StructInfo:
        tensor(call, 0)
        return PrimStructInfo(dtype)

    return rule


register_rule("inspect.tensor_dtype_code", _of_dtype("uint8", lambda dtype: dtype.type_code))
register_rule("inspect.tensor_dtype_bits", _of_dtype("uint8", lambda dtype: dtype.bits))
register_rule("inspect.tensor_dtype_lanes", _of_dtype("uint16", lambda dtype: dtype.lanes))
register_rule("inspect.tensor_ndim", _ndim)
register_rule("inspect.tensor_shape_i", _extent)
register_rule("inspect.tensor_stride_i", _stride)
register_rule("inspect.tensor_byte_offset", _offset("uint64"))
register_rule("inspect.tensor_elem_offset", _offset("int64"))
