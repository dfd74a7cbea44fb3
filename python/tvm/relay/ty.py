"""Types of relay's values."""

from __future__ import annotations

from typing import Any as AnyValue

from tvm import tir
from tvm._ffi import register_object
from tvm.ir import (
    FuncType,
    GlobalTypeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeRelation,
    TypeVar,
)
from tvm.tir import Any

from . import _ffi_api

__all__ = [
    "Any",
    "FuncType",
    "GlobalTypeVar",
    "IncompleteType",
    "RefType",
    "ShapeVar",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
    "is_dynamic",
    "scalar_type",
    "type_of_annotation",
]


@register_object("relay.IncompleteType")
class IncompleteType(Type):
    """A type that inference has to find."""

    def __init__(self, kind: TypeKind = TypeKind.Type) -> None:
        self.__init_handle_by_constructor__(_ffi_api.IncompleteType, int(kind))


@register_object("relay.RefType")
class RefType(Type):
    """A cell that holds a value and can be written."""

    def __init__(self, value: Type) -> None:
        self.__init_handle_by_constructor__(_ffi_api.RefType, value)


def ShapeVar(name: str) -> TypeVar:
    """A type parameter that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def scalar_type(dtype: str) -> TensorType:
    """The type of tensors without axes."""
    return TensorType([], dtype)


def type_of_annotation(annotation: Type | str | None) -> Type | None:
    """A type from what may be written for one: a Type, or the element type of a scalar."""
    return scalar_type(annotation) if isinstance(annotation, str) else annotation


def is_dynamic(type_: AnyValue) -> bool:
    """Whether a type has an extent that is known only when the program runs."""
    if isinstance(type_, TensorType):
        return any(not isinstance(extent, tir.IntImm) for extent in type_.shape)
    if isinstance(type_, TupleType):
        return any(is_dynamic(field) for field in type_.fields)
    return False
