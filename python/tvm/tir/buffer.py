"""Buffers: typed, shaped views of memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tvm._ffi
from tvm.ir import IntImm, PointerType, PrimExpr, PrimType, Range
from tvm.ir.script_text import Scriptable
from tvm.runtime import Object

from . import _ffi_api
from .expr import BufferLoad, Call, ExprOp, Ramp, Var, convert

__all__ = ["Buffer", "BufferRegion", "DataProducer", "decl_buffer"]


class Scope(str):
    """A memory scope, which calls may also ask for, as TVM's programs do."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


@tvm._ffi.register_object("tir.Buffer")
class Buffer(Object, Scriptable):
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
        axis_separators: Sequence[int] = (),
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
            convert(list(axis_separators)),
        )

    def get_flattened_buffer(self) -> Buffer:
        """The buffer of one axis over the same memory; of one more for every axis separator."""
        return _ffi_api.BufferGetFlattenedBuffer(self)

    @property
    def scope(self) -> Scope:
        """Memory scope of the data: "global", "local", "shared", ...; ``scope()`` as well."""
        return Scope(_ffi_api.BufferScope(self))

    def offset_of(self, indices: Sequence[Any]) -> list[PrimExpr]:
        """Where the element at `indices` lies: its indices in the flattened buffer.

        One index, the offset from the data pointer in elements; one more for every axis separator.
        """
        return list(_ffi_api.BufferOffsetOf(self, convert(list(indices))))

    # Access mask bits of access_ptr.
    READ = 1
    WRITE = 2

    def access_ptr(
        self,
        access_mask: int | str,
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: Any = 0,
        extent: Any = None,
    ) -> PrimExpr:
        """Pointer to the elements from the start of the buffer on, as an argument of a call.

        Parameters
        ----------
        access_mask : "r", "w" or "rw": what the callee does.
        content_lanes : lanes of the elements pointed to; ``offset`` and ``extent`` count them.
        offset : elements to skip.
        extent : number of elements accessed; all that follow when None.
        """
        if isinstance(access_mask, str):
            unknown = set(access_mask) - set("rw")
            if unknown or not access_mask:
                raise ValueError(f"access_ptr: the mask is made of r and w, got {access_mask!r}")
            access_mask = sum({"r": self.READ, "w": self.WRITE}[c] for c in set(access_mask))
        offset = convert(offset)
        if extent is None:
            if len(self.strides) != 0:
                size = self.strides[0] * self.shape[0]
            else:
                size = convert(1)
                for dim in self.shape:
                    size = size * dim
            extent = size // content_lanes - offset
        start = offset * content_lanes + self.elem_offset
        element = str(self.dtype) + (f"x{content_lanes}" if content_lanes > 1 else "")
        kind = Call(element, "tir.type_annotation", [])
        arguments = [kind, self.data, start, convert(extent) * content_lanes, access_mask]
        return Call(ptr_type, "tir.tvm_access_ptr", arguments)

    def vload(self, begin: Any, dtype: str | None = None) -> BufferLoad:
        """The elements from ``begin`` on along the last axis, as many as ``dtype`` has lanes.

        ``begin`` is a sequence of indices, or a single one.
        """
        load = BufferLoad(self, self._vector_indices(begin, dtype))
        if dtype is not None and str(load.dtype) != dtype:
            raise TypeError(f"{load} has type {load.dtype}, expected {dtype}")
        return load

    def vstore(self, begin: Any, value: PrimExpr) -> Any:
        """Statement that stores the lanes of ``value`` from ``begin`` on along the last axis."""
        return _ffi_api.BufferStore(
            self, convert(value), self._vector_indices(begin, str(convert(value).dtype))
        )

    def _vector_indices(self, begin: Any, dtype: str | None) -> list[Any]:
        single = not isinstance(begin, Iterable)
        indices = [convert(i) for i in ([begin] if single else begin)]
        lanes = int((dtype or "").partition("x")[2] or 1)
        if lanes > 1:
            if not indices:
                raise ValueError(f"buffer {self.name} has no axis to take {lanes} lanes from")
            indices[-1] = Ramp(indices[-1], 1, lanes)
        return indices

    def __getitem__(self, indices: Any) -> Any:
        """An element; with slices a region of the buffer.

        Slices of which one has a step are a vector of elements instead, as in ``A[i, 0:8:2]``.
        Ends that are left out are those of the buffer.
        """
        items = list(indices) if isinstance(indices, tuple | list) else [indices]
        slices = [item for item in items if isinstance(item, slice)]
        if not slices:
            return BufferLoad(self, items)
        ranges = [self._range(axis, item) for axis, item in enumerate(items)]
        if all(item.step is None for item in slices):
            return BufferRegion(self, ranges)
        return BufferLoad(
            self, [_vector_index(item, range_) for item, range_ in zip(items, ranges)]
        )

    # Indexing never runs out, so iteration by index would not end.
    __iter__ = None

    def _range(self, axis: int, item: Any) -> Range:
        if not isinstance(item, slice):
            return Range.from_min_extent(convert(item), 1)
        if axis >= len(self.shape):
            raise ValueError(f"buffer {self.name} has {len(self.shape)} axes, got more indices")
        begin = 0 if item.start is None else item.start
        made = Range(begin, self.shape[axis] if item.stop is None else item.stop)
        # The extent of i * 4:i * 4 + 4 is 4.
        analyzer = tvm._ffi.get_global_func("arith.CreateAnalyzer")()
        return Range.from_min_extent(made.min, analyzer("simplify")(made.extent, 1))


@tvm._ffi.register_object("tir.BufferRegion")
class BufferRegion(ExprOp, Object, Scriptable):
    """The box `region` of `buffer`, one range per axis; without `region` all of the buffer.

    Python's operators take the elements of a region as a vector: ``A[0:8] + 1.0``.

    Raises
    ------
    ValueError : the region has another number of axes than the buffer.
    """

    def __init__(self, buffer: Buffer, region: Sequence[Range] | None = None) -> None:
        if region is None:
            self.__init_handle_by_constructor__(_ffi_api.BufferRegionFull, buffer)
        else:
            self.__init_handle_by_constructor__(_ffi_api.BufferRegion, buffer, list(region))

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """Type of the region read as a vector."""
        return self.asobject().dtype

    def asobject(self) -> BufferLoad:
        """The elements as a vector.

        Raises
        ------
        ValueError : an extent is not known.
        """
        places = [strided_index(axis.min, axis.extent, 1) for axis in self.region]
        return BufferLoad(self.buffer, places)

    # A region is known by identity; == builds an expression.
    __hash__ = Object.__hash__


def strided_index(first: PrimExpr, extent: PrimExpr, step: int) -> PrimExpr:
    """Every `step`-th of `extent` indices from the first on: a vector, or the index if it is one.

    Raises
    ------
    ValueError : the step is not positive, or the number of indices is neither known nor that of a
        scalable vector.
    """
    if step == 1 and _ffi_api.IsScalableLaneCount(extent):
        return Ramp(first, 1, extent)
    if not isinstance(extent, IntImm) or step < 1:
        raise ValueError(
            f"a vector needs a known length and a positive step, got {first}:{first + extent}:"
            f"{step}"
        )
    lanes = -(-int(extent) // step)
    return Ramp(first, step, lanes) if lanes > 1 else first


def _vector_index(item: Any, covered: Range) -> Any:
    """One index, or as many as the slice `item` over the range has steps."""
    if not isinstance(item, slice):
        return item
    step = 1 if item.step is None else item.step
    return strided_index(covered.min, covered.extent, step if isinstance(step, int) else 0)


@tvm._ffi.register_object("tir.DataProducer")
class DataProducer(Object):
    """Base of things that define values at indices and become buffers later."""


def _broadcast_stride(extent: PrimExpr) -> PrimExpr:
    """A stride that calls bind, and that does not move along an axis of one element."""
    stride = Var("stride", extent.dtype)
    if isinstance(extent, IntImm):
        return stride if extent.value != 1 else IntImm(extent.dtype, 0)
    return _ffi_api._OpIfThenElse(extent.equal(1), IntImm(extent.dtype, 0), stride)


def decl_buffer(
    shape: Any,
    dtype: str | None = None,
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
    span: Any = None,
) -> Buffer:
    """A fresh buffer.

    Parameters
    ----------
    shape : extents; a single one may be given without a tuple.
    dtype : type of the elements, "float32" if left out.
    data : pointer variable; a new one of the buffer's name when None.
    strides : elements between neighbours on each axis; None is row-major without gaps.
    scope : memory scope of a new pointer variable.
    data_alignment : bytes the address is a multiple of; 0 and -1 are 64, as of what this runtime
        allocates.
        Of arrays from elsewhere 64 is not asked for, anything else is.
    elem_offset : elements before the first one; with ``offset_factor`` it defaults to a variable,
        otherwise to 0.
    offset_factor : number that the offset is a multiple of; 0 for nothing promised.
    buffer_type : "auto_broadcast", or "auto", for a buffer whose axes of one element repeat it:
        its strides are new variables that take those of the array, and 0 where the extent is 1.
        Otherwise "" or "default".
    axis_separators : axes before which memory of several dimensions is cut.

    Raises
    ------
    ValueError : another `buffer_type`.
    """
    dtype = dtype or "float32"
    if (
        isinstance(shape, PrimExpr)
        or not isinstance(shape, list | tuple)
        and hasattr(shape, "__index__")
    ):
        shape = (shape,)
    if buffer_type not in ("", "default", "auto", "auto_broadcast"):
        raise ValueError(
            f'decl_buffer: there is no buffer_type {buffer_type!r}, only "auto_broadcast"'
        )
    if buffer_type.startswith("auto") and not strides:
        strides = [_broadcast_stride(convert(extent)) for extent in shape]
    if data is None:
        # A boolean occupies a byte in memory.
        element = "int8" if dtype == "bool" else dtype
        data = Var(name, PointerType(PrimType(element), scope))
    if offset_factor != 0 and elem_offset is None:
        extents = [convert(extent) for extent in shape]
        elem_offset = Var(f"{name}_elem_offset", extents[0].dtype if extents else "int32")
    return Buffer(
        data,
        dtype,
        shape,
        strides or (),
        elem_offset,
        name,
        max(data_alignment, 0),
        offset_factor,
        axis_separators or (),
    )
