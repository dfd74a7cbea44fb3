"""Named arrays as bytes, which `load_param_dict` and a C++ host read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _ffi_api
from .ndarray import NDArray, array

__all__ = [
    "load_param_dict",
    "load_param_dict_from_file",
    "named_arrays",
    "save_param_dict",
    "save_param_dict_to_file",
]


def named_arrays(params: Mapping[str, Any] | None) -> dict[str, NDArray]:
    """Values by name as arrays of the runtime; NumPy's arrays and numbers are copied.

    Raises
    ------
    ValueError : a value is None.
    """
    for name, value in (params or {}).items():
        if value is None:
            raise ValueError(f'parameters: "{name}" is None')
    return {
        name: value if isinstance(value, NDArray) else array(value)
        for name, value in (params or {}).items()
    }


def save_param_dict(params: Mapping[str, NDArray | np.ndarray]) -> bytes:
    """Arrays by name, NumPy's among them, as bytes."""
    return _ffi_api.SaveParams(named_arrays(params))


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """Inverse of `save_param_dict`; the arrays are on the cpu.

    Raises
    ------
    ValueError : the data is cut short or something else.
    """
    return dict(_ffi_api.LoadParams(param_bytes).items())


def save_param_dict_to_file(params: Mapping[str, NDArray | np.ndarray], path: str | Path) -> None:
    """Write `save_param_dict` to a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict_from_file(path: str | Path) -> dict[str, NDArray]:
    """Read what `save_param_dict_to_file` wrote."""
    return load_param_dict(Path(path).read_bytes())
