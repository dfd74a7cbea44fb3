"""Types that a module defines by the ways of making their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm._ffi

from . import _ffi_api
from .expr import RelayExpr
from .type import GlobalTypeVar, Type, TypeVar

__all__ = ["Constructor", "TypeData"]


@tvm._ffi.register_object("relay.Constructor")
class Constructor(RelayExpr):
    """One way of making values of a defined type.

    Parameters
    ----------
    inputs : types of what a value keeps. belong_to : the type.

    Attributes
    ----------
    tag : number that marks its values when programs run; -1 before a module takes the type.
    """

    def __init__(self, name_hint: str, inputs: Sequence[Type], belong_to: GlobalTypeVar) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Constructor, name_hint, list(inputs), belong_to
        )

    def __call__(self, *args: Any) -> RelayExpr:
        """The value made of others, as an expression of relay."""
        return tvm.get_global_func("relay.Call")(self, list(args), None, [])


@tvm._ffi.register_object("relay.TypeData")
class TypeData(Type):
    """The definition of a type.

    Parameters
    ----------
    header : its name. type_vars : its parameters. constructors : how its values are made.
    """

    def __init__(
        self,
        header: GlobalTypeVar,
        type_vars: Sequence[TypeVar],
        constructors: Sequence[Constructor],
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.TypeData, header, list(type_vars), list(constructors)
        )
