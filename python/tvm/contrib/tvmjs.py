"""Parameters of networks in a folder, as programs in a browser and language models read them."""

from __future__ import annotations

import os
from typing import Any

from tvm import error
from tvm.runtime import Device, NDArray
from tvm.runtime.ndarray_cache import INDEX_NAME, Params, read_arrays, read_index, write_arrays

__all__ = ["dump_ndarray_cache", "load_ndarray_cache"]


def dump_ndarray_cache(
    params: Params,
    cache_dir: str,
    encode_format: str = "f32-to-bf16",
    meta_data: dict[str, Any] | None = None,
    shard_cap_mb: int = 32,
    show_progress: bool = True,
    update_if_exists: bool = False,
) -> None:
    """Write parameters into a folder: shards, and an index that says what is where.

    Parameters
    ----------
    params : arrays by name, or pairs of name and array, which are written as they come.
    cache_dir : the folder, which is made if need be.
    encode_format : "f32-to-bf16" keeps half of the bits of float32, "raw" all.
    meta_data : a dictionary of what JSON takes.
    shard_cap_mb : about how many MiB a shard may have.
    show_progress : say how much was written.
    update_if_exists : keep arrays of other names, and what else the folder's index says.

    Raises
    ------
    ValueError : there is no such format, or a name comes twice.
    """
    given: Any = params
    if update_if_exists and os.path.exists(os.path.join(cache_dir, INDEX_NAME)):
        given = dict(read_arrays(cache_dir, Device("cpu"))) | dict(params)
        old = read_index(cache_dir).get("metadata") or {}
        meta_data = old | (meta_data or {})
    written = write_arrays(given, cache_dir, encode_format, meta_data, shard_cap_mb << 20)
    if show_progress:
        print(f"{written} bytes of parameters are in {os.path.join(cache_dir, INDEX_NAME)}")


def load_ndarray_cache(cachepath: str, device: Device) -> tuple[dict[str, NDArray], Any]:
    """Arrays by name on a device, and the metadata of the index.

    Parameters
    ----------
    cachepath : the folder, or its index.

    Raises
    ------
    ValueError : index or shards are damaged.
    """
    if not os.path.exists(cachepath):
        raise error.ValueError(f"load_ndarray_cache: there is no {cachepath}")
    return dict(read_arrays(cachepath, device)), read_index(cachepath).get("metadata")
