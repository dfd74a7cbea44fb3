"""Types of graph values: what remains of struct info when shapes and values are left out."""

from __future__ import annotations

from tvm._ffi import register_object
from tvm.ir import FuncType, TupleType, Type

from . import _ffi_api

__all__ = ["DynTensorType", "FuncType", "ObjectType", "PackedFuncType", "ShapeType", "TupleType"]


@register_object("relax.ShapeType")
class ShapeType(Type):
    """A shape of ``ndim`` extents, -1 if their number is unknown."""

    def __init__(self, ndim: int = -1) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ShapeType, ndim)


@register_object("relax.ObjectType")
class ObjectType(Type):
    """Any value at all."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ObjectType)


@register_object("relax.DynTensorType")
class DynTensorType(Type):
    """A tensor of ``ndim`` dimensions, -1 if unknown; the element type "" is unknown too."""

    def __init__(self, ndim: int = -1, dtype: str | None = "float32") -> None:
        self.__init_handle_by_constructor__(_ffi_api.DynTensorType, ndim, dtype or "void")


@register_object("relax.PackedFuncType")
class PackedFuncType(Type):
    """A function of the runtime."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PackedFuncType)
