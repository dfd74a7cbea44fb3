"""Named arrays as bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np

from .ndarray import NDArray, array, empty

__all__ = ["load_param_dict", "save_param_dict"]


def save_param_dict(params: Mapping[str, NDArray]) -> bytes:
    """Arrays by name as bytes in NumPy's npz format; the type is part of each entry's name."""
    entries = {f"{value.dtype}/{name}": value.numpy() for name, value in params.items()}
    out = io.BytesIO()
    np.savez(out, **entries)  # type: ignore[arg-type]
    return out.getvalue()


def load_param_dict(data: bytes) -> dict[str, NDArray]:
    """Inverse of `save_param_dict`. Reads plain arrays only, never pickled objects."""
    params = {}
    with np.load(io.BytesIO(data), allow_pickle=False) as entries:
        for entry in entries.files:
            dtype, name = entry.split("/", 1)
            values = entries[entry]
            same = values.dtype.name == dtype
            params[name] = array(values) if same else empty(values.shape, dtype).copyfrom(values)
    return params
