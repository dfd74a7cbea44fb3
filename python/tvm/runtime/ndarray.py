"""Arrays on devices, exchanged with NumPy by copy and with DLPack producers without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm._ffi
from tvm._ffi.base import core

from . import _ffi_api
from .data_type import DataType
from .device import Device, cpu, cuda, device, ext_dev, metal, opencl, rocm, vulkan
from .object import Object

__all__ = [
    "NDArray",
    "array",
    "cl",
    "cpu",
    "cuda",
    "device",
    "empty",
    "ext_dev",
    "from_dlpack",
    "metal",
    "mtl",
    "numpyasarray",
    "opencl",
    "rocm",
    "to_dlpack",
    "vulkan",
]

# The short names.
cl = opencl
mtl = metal


@tvm._ffi.register_object("runtime.NDArray")
class NDArray(Object):
    """An n-dimensional array. Its memory is its own, a view of another's, or a DLPack producer's.

    ``numpy()`` and ``numpy.asarray(array)`` copy. ``torch.from_dlpack(array)`` and
    ``numpy.from_dlpack(array)`` share memory.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(core.array_to_list(_ffi_api.NDArrayShape(self)))

    @property
    def dtype(self) -> DataType:
        return _ffi_api.NDArrayDType(self)

    @property
    def device(self) -> Device:
        return _ffi_api.NDArrayDevice(self)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of the elements when stored without gaps."""
        return self.size * self.dtype.itemsize

    @property
    def data_address(self) -> int:
        """Address of the first element, on the array's device."""
        return _ffi_api.NDArrayData(self)

    def is_contiguous(self) -> bool:
        """Whether elements lie in row-major order without gaps."""
        return _ffi_api.NDArrayIsContiguous(self)

    def numpy(self) -> np.ndarray:
        """A copy in a NumPy array; bfloat16 comes as its 16-bit patterns."""
        out = np.empty(self.shape, self.dtype.to_numpy())
        core.ndarray_copy_to(self, out.ctypes.data, out.nbytes)
        return out

    asnumpy = numpy

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A copy for ``numpy.asarray`` and functions of NumPy."""
        if copy is False:
            raise ValueError("NDArray: NumPy gets a copy; numpy.from_dlpack shares the memory")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def copyfrom(self, source_array: Any) -> NDArray:
        """Overwrite the elements with those of an array of the same shape.

        Of an array of bfloat16, numbers of the source are rounded to it; unsigned integers of 16
        bits are its patterns.

        Raises
        ------
        ValueError : the shapes differ.
        """
        if isinstance(source_array, NDArray):
            _ffi_api.NDArrayCopyFrom(self, source_array)
            return self
        values = np.asarray(source_array)
        if values.shape != self.shape:
            raise ValueError(
                f"NDArray.copyfrom: the array has shape {self.shape}, the source {values.shape}"
            )
        if self.dtype == "bfloat16" and values.dtype != np.uint16:
            values = _bfloat16_patterns(values)
        # The copy below reads raw bytes, so type and layout are settled first.
        values = np.ascontiguousarray(values, dtype=self.dtype.to_numpy())
        core.ndarray_copy_from(self, values.ctypes.data, values.nbytes)
        return self

    def _create_view(
        self, shape: Sequence[int], dtype: Any = None, relative_byte_offset: int = 0
    ) -> NDArray:
        """The memory under another shape, and perhaps another type, of no more bytes.

        Parameters
        ----------
        relative_byte_offset : where the view begins, in bytes from the beginning of this array.

        Raises
        ------
        ValueError : elements do not lie without gaps, or the view needs bytes outside of the array.
        """
        extents = [int(extent) for extent in shape]
        return _ffi_api.NDArrayCreateView(
            self, extents, dtype or self.dtype, int(relative_byte_offset)
        )

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copy into another array, or into a new one on a device; returns it.

        Parameters
        ----------
        mem_scope : kind of the device's memory for a new array, see `empty`.
        """
        if isinstance(target, NDArray):
            return target.copyfrom(self)
        if mem_scope is None:
            return _ffi_api.NDArrayCopyTo(self, target)
        return empty(self.shape, self.dtype, target, mem_scope).copyfrom(self)

    def view(self, shape: Sequence[int], dtype: str | None = None) -> NDArray:
        """The same memory under another shape or type that needs no more bytes."""
        return self._create_view(shape, dtype)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is not Ellipsis and key != slice(None):
            raise ValueError("NDArray: only the whole array can be assigned, as in a[:] = b")
        source = value if isinstance(value, NDArray) else np.broadcast_to(value, self.shape)
        self.copyfrom(source)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("NDArray: an array without axes has no length")
        return self.shape[0]

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule that shares the memory and keeps this array alive."""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"NDArray: the array is on {self.device}; copy it with copyto first")
        return core.to_dlpack(_ffi_api.NDArrayCopyTo(self, self.device) if copy else self)

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the memory, for one call of a framework's `from_dlpack`."""
        return core.to_dlpack(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.device_type, self.device.device_id

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_parts, (self.numpy(), str(self.dtype))

    def __str__(self) -> str:
        return str(self.numpy())

    def __repr__(self) -> str:
        return f"NDArray({self.dtype}, shape={self.shape}, {self.device})\n{self.numpy()!r}"


def _from_parts(values: np.ndarray, dtype: str) -> NDArray:
    return empty(values.shape, dtype).copyfrom(values)


def empty(
    shape: Sequence[int] | int,
    dtype: Any = "float32",
    device: Device | None = None,
    mem_scope: str | None = None,
) -> NDArray:
    """An array with unspecified contents, 64-byte aligned.

    Raises
    ------
    RuntimeError : this build has no such device.
    MemoryError : not enough memory.
    TypeError : `device` is a name; `tvm.device` makes a device of it.
    """
    if device is not None and not isinstance(device, Device):
        raise TypeError(
            f"empty: device must be a Device, got {type(device).__name__}; "
            'write tvm.device("cpu", 0) or tvm.cpu()'
        )
    extents = [shape] if isinstance(shape, int) else [int(extent) for extent in shape]
    return _ffi_api.NDArrayEmpty(extents, dtype, device or cpu(), mem_scope)


def _bfloat16_patterns(values: np.ndarray) -> np.ndarray:
    """Numbers rounded to bfloat16, ties to even, as the 16 bits that it has in memory."""
    if values.dtype.name == "bfloat16":
        return values.view(np.uint16)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    # What is not a number stays so: rounding would carry out of its mantissa.
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    patterns = np.where(is_nan, bits | np.uint32(0x400000), rounded) >> np.uint32(16)
    return patterns.astype(np.uint16)


def array(
    arr: Any, device: Device | None = None, mem_scope: str | None = None, dtype: Any = None
) -> NDArray:
    """A copy of array-like values on a device (the cpu if left out).

    Parameters
    ----------
    mem_scope : kind of the device's memory, see `empty`.
    dtype : of the result, by default that of the values.
    """
    if isinstance(arr, NDArray) and dtype in (None, arr.dtype):
        return arr.copyto(device or cpu(), mem_scope)
    values = np.asarray(arr, dtype=dtype)
    return empty(values.shape, values.dtype.name, device, mem_scope).copyfrom(values)


def from_dlpack(dltensor: Any) -> NDArray:
    """Share the memory of a tensor that speaks DLPack (torch, numpy, ...), or of a capsule.

    Raises
    ------
    ValueError : a capsule that was consumed before.
    """
    return core.from_dlpack(dltensor.__dlpack__() if hasattr(dltensor, "__dlpack__") else dltensor)


def numpyasarray(np_data: np.ndarray) -> tuple[NDArray, tuple[int, ...]]:
    """NumPy's array as an argument of functions, without a copy, and its shape.

    Raises
    ------
    ValueError : its elements do not lie one after the other.
    """
    if not np_data.flags.c_contiguous:
        raise ValueError("numpyasarray: the array must be contiguous; copy it")
    return from_dlpack(np_data), tuple(np_data.shape)


def to_dlpack(array: NDArray) -> Any:
    """A DLPack capsule, to be consumed once, that shares the memory of the array."""
    return core.to_dlpack(array)
