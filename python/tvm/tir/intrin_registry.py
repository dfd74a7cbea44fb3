"""Tensor intrinsics: what they compute and how they are called, by name."""

from __future__ import annotations

from typing import overload

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api
from .function import PrimFunc

__all__ = ["TensorIntrin"]


@tvm._ffi.register_object("tir.TensorIntrin")
class TensorIntrin(Object):
    """A computation that a machine has an instruction for.

    Parameters
    ----------
    desc : takes buffers; one block that holds loops around computations of single elements.
    impl : takes the same buffers; one block that does it as the machine does.

    Raises
    ------
    ValueError : the two take different buffers, or are not one block each.
    """

    def __init__(self, desc: PrimFunc, impl: PrimFunc) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TensorIntrin, desc, impl)

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> None:
        """Make an intrinsic known to :meth:`tvm.tir.Schedule.tensorize`.

        Raises
        ------
        ValueError : the name is taken and `override` is False.
        """
        _ffi_api.TensorIntrinRegister(name, TensorIntrin(desc, impl), override)

    @overload
    @staticmethod
    def get(name: str) -> TensorIntrin: ...
    @overload
    @staticmethod
    def get(name: str, allow_missing: bool) -> TensorIntrin | None: ...
    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic of that name.

        Raises
        ------
        ValueError : there is none and `allow_missing` is False; the message lists those there are.
        """
        return _ffi_api.TensorIntrinGet(name, allow_missing)
