"""Extents that nobody knows before the program runs."""

from __future__ import annotations

import tvm
from tvm._ffi import register_object
from tvm.ir import PrimExpr

from .expr import ExprOp

__all__ = ["Any"]


@register_object("tir.Any")
class Any(ExprOp, PrimExpr):
    """An extent that is known when the program runs; two of them need not be equal."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(tvm.get_global_func("tir.Any"))
