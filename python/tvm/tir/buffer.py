"""Buffers: typed, shaped views of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm._ffi
from tvm.ir import PointerType, PrimExpr, PrimType
from tvm.runtime import Object

from . import _ffi_api
from .expr import BufferLoad, Var, convert

__all__ = ["Buffer", "DataProducer", "decl_buffer"]


@tvm._ffi.register_object("tir.Buffer")
class Buffer(Object):
    """A strided view of memory; make one with :func:`decl_buffer`."""

    def __init__(
        self,
        data: Var,
        dtype: str,
        shape: Sequence[Any],
        strides: Sequence[Any] = (),
        elem_offset: Any = None,
        name: str = "buffer",
        data_alignment: int = 0,
        offset_factor: int = 0,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Buffer,
            data,
            dtype,
            convert(list(shape)),
            convert(list(strides)),
            None if elem_offset is None else convert(elem_offset),
            name,
            data_alignment,
            offset_factor,
        )

    @property
    def scope(self) -> str:
        """Memory scope of the data: "global", "local", "shared", ..."""
        return _ffi_api.BufferScope(self)

    def offset_of(self, indices: Sequence[Any]) -> PrimExpr:
        """Element offset from the data pointer of the element at `indices`."""
        return _ffi_api.BufferElemOffset(self, convert(list(indices)))

    def vload(self, begin: Sequence[Any], dtype: str | None = None) -> BufferLoad:
        """The element at `begin`, checked to have type `dtype`."""
        load = BufferLoad(self, begin)
        if dtype is not None and str(load.dtype) != dtype:
            raise TypeError(f"{self.name}{list(begin)} has type {load.dtype}, expected {dtype}")
        return load

    def __getitem__(self, indices: Any) -> BufferLoad:
        return BufferLoad(self, indices if isinstance(indices, tuple | list) else (indices,))


@tvm._ffi.register_object("tir.DataProducer")
class DataProducer(Object):
    """Base of things that define values at indices and become buffers later."""


def decl_buffer(
    shape: Any,
    dtype: str = "float32",
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "",
    data_alignment: int = 0,
    offset_factor: int = 0,
) -> Buffer:
    """A fresh buffer.

    Parameters
    ----------
    shape : extents; a single one may be given without a tuple.
    data : pointer variable; a new one of the buffer's name when None.
    strides : elements between neighbours on each axis; None is row-major without gaps.
    scope : memory scope of a new pointer variable.
    data_alignment : bytes the address is promised to be a multiple of; 0 is the element size.
    """
    if (
        isinstance(shape, PrimExpr)
        or not isinstance(shape, list | tuple)
        and hasattr(shape, "__index__")
    ):
        shape = (shape,)
    if data is None:
        # A boolean occupies a byte in memory.
        element = "int8" if dtype == "bool" else dtype
        data = Var(name, PointerType(PrimType(element), scope))
    return Buffer(
        data, dtype, shape, strides or (), elem_offset, name, data_alignment, offset_factor
    )
