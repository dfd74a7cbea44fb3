"""What is known about a graph value before it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm._ffi import register_object
from tvm.runtime import Object

from . import _ffi_api

__all__ = [
    "ObjectStructInfo",
    "PrimStructInfo",
    "ShapeStructInfo",
    "StructInfo",
    "TensorStructInfo",
    "TupleStructInfo",
    "static_shape",
    "tensor_fields",
]


@register_object("relax.StructInfo")
class StructInfo(Object):
    """Base of the kinds of struct info."""


@register_object("relax.ObjectStructInfo")
class ObjectStructInfo(StructInfo):
    """Any value at all."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ObjectStructInfo)


@register_object("relax.PrimStructInfo")
class PrimStructInfo(StructInfo):
    """A scalar that is not a tensor."""

    def __init__(self, dtype: str) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PrimStructInfo, dtype)


@register_object("relax.ShapeStructInfo")
class ShapeStructInfo(StructInfo):
    """A shape as a value; ``ndim`` alone when the extents are unknown."""

    def __init__(self, values: Sequence[Any] | None = None, ndim: int = -1) -> None:
        extents = None if values is None else [_extent(v) for v in values]
        self.__init_handle_by_constructor__(_ffi_api.ShapeStructInfo, extents, ndim)


@register_object("relax.TensorStructInfo")
class TensorStructInfo(StructInfo):
    """A tensor of a shape and element type.

    Parameters
    ----------
    shape : extents (any sequence of ints or expressions, ``torch.Size`` included), a ShapeExpr, or
        None when only the rank is known.
    dtype : element type, for instance "float32".
    ndim : rank; only needed without a shape, -1 for unknown.

    Raises
    ------
    ValueError : ``ndim`` contradicts the shape.
    """

    def __init__(
        self, shape: Sequence[Any] | Object | None = None, dtype: str = "float32", ndim: int = -1
    ) -> None:
        if shape is not None and not isinstance(shape, Object):
            shape = _ffi_api.ShapeExpr([_extent(v) for v in shape])
        self.__init_handle_by_constructor__(_ffi_api.TensorStructInfo, shape, dtype, ndim)


@register_object("relax.TupleStructInfo")
class TupleStructInfo(StructInfo):
    """A tuple, with the struct info of each field."""

    def __init__(self, fields: Sequence[StructInfo]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TupleStructInfo, list(fields))


def _extent(value: Any) -> Any:
    """Extents arrive as NumPy or torch integers too; those are plain ints here."""
    return value if isinstance(value, Object) else int(value)


def static_shape(info: StructInfo) -> tuple[int, ...]:
    """The shape of a tensor whose extents are all known.

    Raises
    ------
    TypeError : not the struct info of a tensor.
    ValueError : the shape is unknown or symbolic.
    """
    if not isinstance(info, TensorStructInfo):
        raise TypeError(f"relax: expected a tensor, got {info}")
    if info.shape is None:
        raise ValueError("relax: the tensor's shape is unknown; give it a fixed shape")
    extents = []
    for extent in info.shape.values:
        literal = extent if isinstance(extent, int) else getattr(extent, "value", None)
        if not isinstance(literal, int):
            raise ValueError(f"relax: extent {extent} is symbolic; give the tensor a fixed shape")
        extents.append(literal)
    return tuple(extents)


def tensor_fields(info: StructInfo) -> list[TensorStructInfo]:
    """The tensors of a value: itself, or the fields of a tuple, nested ones in order."""
    if isinstance(info, TupleStructInfo):
        return [tensor for field in info.fields for tensor in tensor_fields(field)]
    if not isinstance(info, TensorStructInfo):
        raise TypeError(f"relax: expected tensors, got {info}")
    return [info]
