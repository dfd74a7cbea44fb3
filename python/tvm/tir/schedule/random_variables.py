"""Names for blocks, loops and sampled numbers of a schedule."""

from __future__ import annotations

from typing import TypeAlias

import tvm._ffi
from tvm.runtime import Object

from ..expr import Var
from . import _ffi_api

__all__ = ["RV", "BlockRV", "ExprRV", "LoopRV"]

# A sampled number is an expression variable, so that other sizes can be computed from it.
ExprRV: TypeAlias = Var


@tvm._ffi.register_object("tir.BlockRV")
class BlockRV(Object):
    """A block of a schedule, whatever happens to the function around it.

    A new one stands for nothing yet; instructions of a trace can return it.
    """

    __slots__ = ()

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.BlockRV)


@tvm._ffi.register_object("tir.LoopRV")
class LoopRV(Object):
    """A loop of a schedule, until a primitive takes it apart.

    Two of them, which `sample_compute_location` returns, are no loops but places: `compute_at`
    leaves a block where it is for one whose `place` is ``stay``, and inlines it for ``inlined``.
    A new one stands for nothing yet; instructions of a trace can return it.
    """

    __slots__ = ()

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.LoopRV)


RV: TypeAlias = BlockRV | LoopRV | Var
