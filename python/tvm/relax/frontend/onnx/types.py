"""Element types of ONNX as those of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch

from .errors import OnnxError

__all__ = ["DTYPES", "dtype_of", "tensor_of", "type_text"]

_T = onnx.TensorProto
DTYPES: dict[int, torch.dtype] = {
    _T.FLOAT: torch.float32,
    _T.DOUBLE: torch.float64,
    _T.FLOAT16: torch.float16,
    _T.BFLOAT16: torch.bfloat16,
    _T.INT8: torch.int8,
    _T.INT16: torch.int16,
    _T.INT32: torch.int32,
    _T.INT64: torch.int64,
    _T.UINT8: torch.uint8,
    _T.UINT16: torch.uint16,
    _T.UINT32: torch.uint32,
    _T.UINT64: torch.uint64,
    _T.BOOL: torch.bool,
    _T.COMPLEX64: torch.complex64,
    _T.COMPLEX128: torch.complex128,
    _T.FLOAT8E4M3FN: torch.float8_e4m3fn,
    _T.FLOAT8E4M3FNUZ: torch.float8_e4m3fnuz,
    _T.FLOAT8E5M2: torch.float8_e5m2,
    _T.FLOAT8E5M2FNUZ: torch.float8_e5m2fnuz,
}

# Types that numpy has only by an extension, by its names.
_EXTENSIONS = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.float8_e4m3fnuz,
        torch.float8_e5m2,
        torch.float8_e5m2fnuz,
    )
}


def dtype_of(element_type: int) -> torch.dtype:
    """PyTorch's type of an ONNX element type.

    Raises
    ------
    OnnxError : PyTorch has none.
    """
    if element_type not in DTYPES:
        name = _T.DataType.Name(element_type) if element_type in _T.DataType.values() else "?"
        raise OnnxError(f"elements of type {name} ({element_type}) are not supported")
    return DTYPES[element_type]


def type_text(dtype: torch.dtype) -> str:
    """An element type as texts of ONNX have it: ``tensor(float)``."""
    (code,) = (code for code, known in DTYPES.items() if known == dtype)
    return f"tensor({_T.DataType.Name(code).lower()})"


def tensor_of(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """An array as a tensor of its own memory.

    Raises
    ------
    OnnxError : PyTorch has no such element type.
    """
    array = np.array(array, order="C")
    # The name of a type takes longer than the rest; types of extensions are not built in.
    dtype = _EXTENSIONS.get(array.dtype.name) if array.dtype.isbuiltin != 1 else None
    if dtype is not None:
        integers = array.view(np.int16 if array.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(integers).view(dtype)
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise OnnxError(f"elements of type {array.dtype} are not supported") from error
