"""Named arrays as bytes, which `load_param_dict` and a C++ host read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from . import _ffi_api
from .ndarray import NDArray, array

__all__ = [
    "load_param_dict",
    "load_param_dict_from_file",
    "save_param_dict",
    "save_param_dict_to_file",
]


def save_param_dict(params: Mapping[str, NDArray | np.ndarray]) -> bytes:
    """Arrays by name, NumPy's among them, as bytes."""
    arrays = {
        name: array(value) if isinstance(value, np.ndarray) else value
        for name, value in params.items()
    }
    return _ffi_api.SaveParams(arrays)


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
