"""The schedule variables of a symbolic program."""

from __future__ import annotations

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api

__all__ = ["SplitGroup", "VarContext", "VarDef"]


@tvm._ffi.register_object("arith.VarDef")
class VarDef(Object):
    """A definition ``var = value``."""


@tvm._ffi.register_object("arith.SplitGroup")
class SplitGroup(Object):
    """A loop extent cut into tiles: ``extent == quotient * product(vars)``."""


@tvm._ffi.register_object("arith.VarContext")
class VarContext(Object):
    """Owner of the schedule variables of one symbolic program; starts empty."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.VarContext)

    def define_split_group(self, extent, num_parts: int) -> SplitGroup:
        """Cut `extent` into `num_parts` tile sizes whose product divides it.

        Raises
        ------
        ValueError : `extent` depends on something else than shape variables.
        """
        return _ffi_api.VarContextDefineSplitGroup(self, extent, num_parts)

    def split_sizes(self, extent, factor, no_tighten: bool = False) -> tuple:
        """Extents of the outer and the inner loop of a split by `factor`."""
        return tuple(_ffi_api.VarContextSplitSizes(self, extent, factor, no_tighten))

    def define_shorthand(self, expr):
        """A variable for a large expression without loop variables, else `expr` itself."""
        return _ffi_api.VarContextDefineShorthand(self, expr)

    def simplify(self, expr):
        """Simplify with the knowledge that tiles multiply to their extents."""
        return _ffi_api.VarContextSimplify(self, expr)

    def copy(self) -> VarContext:
        """An independent context with the same definitions."""
        return _ffi_api.VarContextCopy(self)
