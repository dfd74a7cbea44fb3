"""Named arrays as bytes."""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

from .ndarray import NDArray, array, empty

# What zip and npy readers raise on bytes that are not theirs.
_DAMAGED = (
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    SyntaxError,
    EOFError,
    OSError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)

__all__ = ["load_param_dict", "save_param_dict"]


def save_param_dict(params: Mapping[str, NDArray]) -> bytes:
    """Arrays by name as bytes in NumPy's npz format; the type is part of each entry's name."""
    entries = {f"{value.dtype}/{name}": value.numpy() for name, value in params.items()}
    out = io.BytesIO()
    np.savez(out, **entries)  # type: ignore[arg-type]
    return out.getvalue()


def load_param_dict(data: bytes) -> dict[str, NDArray]:
    """Inverse of `save_param_dict`. Reads plain arrays only, never pickled objects.

    Raises
    ------
    ValueError : the bytes are no such archive, or a damaged one.
    """
    params = {}
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as entries:
            for entry in entries.files:
                dtype, name = entry.split("/", 1)
                values = entries[entry]
                same = values.dtype.name == dtype
                params[name] = (
                    array(values) if same else empty(values.shape, dtype).copyfrom(values)
                )
    except _DAMAGED as error:
        raise ValueError(
            f"parameters: the data is no archive of arrays ({type(error).__name__}: {error})"
        ) from error
    return params
