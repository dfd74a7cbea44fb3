"""Types of values."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api
from .attrs import Attrs
from .env_func import EnvFunc
from .script_text import Scriptable

__all__ = [
    "FuncType",
    "GlobalTypeVar",
    "PointerType",
    "PrimType",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
]


@tvm._ffi.register_object("Type")
class Type(Object, Scriptable):
    """Base of all types; ``==`` compares structure."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and tvm.ir.structural_equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tvm.ir.structural_hash(self)


@tvm._ffi.register_object("PrimType")
class PrimType(Type):
    """A scalar or short vector of the given element type."""

    def __init__(self, dtype: str) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PrimType, dtype)


@tvm._ffi.register_object("PointerType")
class PointerType(Type):
    """Address of elements of a type in a memory scope ("" is global)."""

    def __init__(self, element_type: Type, storage_scope: str = "") -> None:
        self.__init_handle_by_constructor__(_ffi_api.PointerType, element_type, storage_scope)


@tvm._ffi.register_object("TupleType")
class TupleType(Type):
    """A tuple; without fields, the type of "no value"."""

    def __init__(self, fields: Sequence[Type]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TupleType, list(fields))


class TypeKind(IntEnum):
    """What a type parameter stands for."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


@tvm._ffi.register_object("TypeVar")
class TypeVar(Type):
    """A type parameter of a FuncType."""

    def __init__(self, name_hint: str, kind: TypeKind = TypeKind.Type) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TypeVar, name_hint, int(kind))

    def __call__(self, *args: Type) -> TypeCall:
        """The generic type applied to arguments."""
        return TypeCall(self, args)


@tvm._ffi.register_object("GlobalTypeVar")
class GlobalTypeVar(Type):
    """The name of a type that a module defines; equal names are one type."""

    def __init__(self, name_hint: str, kind: TypeKind = TypeKind.AdtHandle) -> None:
        self.__init_handle_by_constructor__(_ffi_api.GlobalTypeVar, name_hint, int(kind))

    def __call__(self, *args: Type) -> TypeCall:
        """The type applied to arguments, such as a list of integers."""
        return TypeCall(self, args)


@tvm._ffi.register_object("TypeCall")
class TypeCall(Type):
    """A generic type applied to arguments."""

    def __init__(self, func: Type, args: Sequence[Type]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TypeCall, func, list(args))


@tvm._ffi.register_object("relay.TensorType")
class TensorType(Type):
    """A tensor of a shape (extents may be expressions) and an element type."""

    def __init__(self, shape: Sequence[Any], dtype: str = "float32") -> None:
        self.__init_handle_by_constructor__(_ffi_api.TensorType, list(shape), dtype)

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as numbers.

        Raises
        ------
        TypeError : an extent is not a constant.
        """
        return tuple(int(extent) for extent in self.shape)


@tvm._ffi.register_object("FuncType")
class FuncType(Type):
    """A function from argument types to a result type, for every choice of `type_params`.

    Parameters
    ----------
    type_constraints : what the type parameters have to fulfil, as :class:`TypeRelation`.
    """

    def __init__(
        self,
        arg_types: Sequence[Type],
        ret_type: Type,
        type_params: Sequence[TypeVar] | None = (),
        type_constraints: Sequence[TypeConstraint] | None = (),
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.FuncType,
            list(arg_types),
            ret_type,
            list(type_params or ()),
            list(type_constraints or ()),
        )


@tvm._ffi.register_object("TypeConstraint")
class TypeConstraint(Type):
    """What the type parameters of a function have to fulfil."""


@tvm._ffi.register_object("TypeRelation")
class TypeRelation(TypeConstraint):
    """Types of which the last follows from the first ones.

    Parameters
    ----------
    func : gets a list of `num_inputs` types and the attributes, and returns the type of the result,
        such as ``EnvFunc.get("tvm.relay.type_relation.Broadcast")``.
    args : the types, of which the last is that of the result.
    num_inputs : how many of them, from the first, are operands.
    attrs : what else the function is told; None for nothing.

    Raises
    ------
    ValueError : there are not `num_inputs` types and one more.
    """

    def __init__(
        self, func: EnvFunc, args: Sequence[Type], num_inputs: int, attrs: Attrs | None = None
    ) -> None:
        if num_inputs + 1 != len(args):
            raise ValueError(
                f"TypeRelation: {num_inputs} operands and a result are {num_inputs + 1} types, got "
                f"{len(args)}"
            )
        self.__init_handle_by_constructor__(
            _ffi_api.TypeRelation, func, list(args), num_inputs, attrs
        )
