"""Parameters in a folder: shards of bytes beside ``ndarray-cache.json``, which lists them.

The functions ``vm.builtin.ndarray_cache.*`` keep what was loaded by name for the process, so that
machines share one copy of it; ``vm.builtin.param_array_from_cache`` hands it to a network.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvm import error
from tvm._ffi import register_func

from .bfloat16 import patterns_to_float32, to_patterns
from .device import Device
from .files import read_json, write_atomically
from .ndarray import NDArray, array, empty

__all__ = ["INDEX_NAME", "read_arrays", "read_index", "write_arrays"]

INDEX_NAME = "ndarray-cache.json"
_AS_BFLOAT16 = "f32-to-bf16"
_FORMATS = (_AS_BFLOAT16, "raw")

Params = Mapping[str, Any] | Iterable[tuple[str, Any]]


def _encoded(value: Any, encode_format: str) -> tuple[bytes, dict[str, Any]]:
    """The bytes of an array, and its entry in the index without name and place."""
    if isinstance(value, tuple):
        value = np.array(value, "int64")
    dtype = str(value.dtype)
    values = np.ascontiguousarray(value.numpy() if isinstance(value, NDArray) else value)
    fits = encode_format == _AS_BFLOAT16 and dtype == "float32"
    data = (to_patterns(values) if fits else values).tobytes()
    entry = {"shape": list(value.shape), "dtype": dtype, "format": _AS_BFLOAT16 if fits else "raw"}
    return data, entry


class _Shards:
    """Writes arrays into files of about the same size; a large one gets a file of its own."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._data = bytearray()
        self._entries: list[dict[str, Any]] = []
        self.records: list[dict[str, Any]] = []

    def add(self, name: str, data: bytes, entry: dict[str, Any]) -> None:
        if self._entries and len(self._data) + len(data) > self._limit:
            self.finish()
        place = {"nbytes": len(data), "byteOffset": len(self._data)}
        self._entries.append({"name": name, **entry, **place})
        self._data += data

    def finish(self) -> None:
        if not self._entries:
            return
        path = f"params_shard_{len(self.records)}.bin"
        data = bytes(self._data)
        write_atomically(self._folder / path, data)
        shard = {"dataPath": path, "format": "raw-shard", "nbytes": len(data)}
        checksum = hashlib.md5(data, usedforsecurity=False).hexdigest()
        self.records.append({**shard, "records": self._entries, "md5sum": checksum})
        self._data, self._entries = bytearray(), []


def write_arrays(
    params: Params,
    folder: str | os.PathLike[str],
    encode_format: str = _AS_BFLOAT16,
    metadata: Any = None,
    shard_limit: int = 32 << 20,
) -> int:
    """Write parameters into a folder, the index last.

    Parameters
    ----------
    params : arrays by name, or pairs of name and array, which are written as they come; a tuple of
        integers is an array of int64.
    encode_format : "f32-to-bf16" keeps the upper half of float32 (rounded to nearest); "raw" all.
    metadata : whatever JSON takes; stored in the index.
    shard_limit : bytes of a file.

    Returns
    -------
    How many bytes were written.

    Raises
    ------
    ValueError : there is no such format, or a name comes twice.
    """
    if encode_format not in _FORMATS:
        raise error.ValueError(
            f"ndarray cache: encode_format is one of {', '.join(_FORMATS)}, got {encode_format!r}"
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shards = _Shards(folder, shard_limit)
    names: set[str] = set()
    for name, value in params.items() if isinstance(params, Mapping) else params:
        if name in names:
            raise error.ValueError(f"ndarray cache: two parameters are called {name!r}")
        names.add(name)
        shards.add(name, *_encoded(value, encode_format))
    shards.finish()
    index = {"metadata": {} if metadata is None else metadata, "records": shards.records}
    write_atomically(folder / INDEX_NAME, json.dumps(index, indent=2))
    return sum(shard["nbytes"] for shard in shards.records)


def read_index(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What the index of a folder says.

    Parameters
    ----------
    folder : the folder, or its index.

    Raises
    ------
    ValueError : it is no index.
    """
    path = Path(folder)
    index = read_json(path / INDEX_NAME if path.is_dir() else path)
    if not isinstance(index, dict) or not isinstance(index.get("records"), list):
        raise error.ValueError(f"ndarray cache: {path} is no index of arrays")
    return index


def _decoded(path: Path, data: bytes, entry: Mapping[str, Any], device: Device) -> NDArray:
    try:
        name, kind, dtype = str(entry["name"]), entry["format"], str(entry["dtype"])
        shape = tuple(int(extent) for extent in entry["shape"])
        start, count = int(entry["byteOffset"]), int(entry["nbytes"])
        as_bfloat16 = kind == _AS_BFLOAT16 and dtype == "float32"
        stored = np.dtype("uint16" if as_bfloat16 or dtype == "bfloat16" else dtype)
        if stored.kind not in "biuf":
            raise TypeError(f"elements of type {dtype}")
    except (KeyError, TypeError, ValueError) as problem:
        raise error.ValueError(
            f"ndarray cache: an entry of {path} is damaged: {problem!r}"
        ) from None
    wanted = math.prod(shape) * stored.itemsize
    if kind not in _FORMATS or min((*shape, start, 0)) < 0 or count != wanted:
        raise error.ValueError(
            f"ndarray cache: {name} of {path} is {kind} {dtype} of shape {shape} in {count} bytes"
        )
    if start + count > len(data):
        raise error.ValueError(f"ndarray cache: {path} ends before {name} does")
    values = np.frombuffer(data, stored, count // stored.itemsize, start).reshape(shape)
    if as_bfloat16:
        return array(patterns_to_float32(values), device)
    result = empty(shape, dtype, device)
    result.copyfrom(values)
    return result


def read_arrays(folder: str | os.PathLike[str], device: Device) -> Iterator[tuple[str, NDArray]]:
    """The arrays of a folder with their names, on a device.

    Raises
    ------
    ValueError : index or shards are damaged, or a shard is not in the folder.
    OSError : a file cannot be read.
    """
    root = Path(folder)
    root = root if root.is_dir() else root.parent
    for shard in read_index(folder)["records"]:
        name = str(shard.get("dataPath")) if isinstance(shard, dict) else ""
        if not name or Path(name).name != name:
            raise error.ValueError(f"ndarray cache: {name!r} is no file in {root}")
        data = (root / name).read_bytes()
        checksum = shard.get("md5sum")
        if checksum and hashlib.md5(data, usedforsecurity=False).hexdigest() != checksum:
            raise error.ValueError(f"ndarray cache: the checksum of {root / name} is another one")
        entries = shard.get("records")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise error.ValueError(f"ndarray cache: the index does not list the arrays of {name}")
        for entry in entries:
            yield str(entry.get("name")), _decoded(root / name, data, entry, device)


_loaded: dict[str, NDArray] = {}


@register_func("vm.builtin.ndarray_cache.load")
def _load(folder: str, device_type: int, device_id: int) -> None:
    _loaded.update(read_arrays(folder, Device(device_type, device_id)))


@register_func("vm.builtin.ndarray_cache.get")
def _get(name: str) -> NDArray | None:
    return _loaded.get(name)


@register_func("vm.builtin.ndarray_cache.update")
def _update(name: str, value: NDArray, override: bool) -> None:
    if name in _loaded and not override:
        raise error.ValueError(f"ndarray cache: {name!r} is there already; say is_override=True")
    _loaded[name] = value


@register_func("vm.builtin.ndarray_cache.remove")
def _remove(name: str) -> None:
    _loaded.pop(name, None)


@register_func("vm.builtin.ndarray_cache.clear")
def _clear() -> None:
    _loaded.clear()


@register_func("vm.builtin.param_array_from_cache")
def _param_array_from_cache(prefix: str, count: int) -> list[NDArray]:
    """Parameters ``{prefix}_0`` and so on: `count` of them, or all there are if that is -1."""
    found: list[NDArray] = []
    while len(found) != count and f"{prefix}_{len(found)}" in _loaded:
        found.append(_loaded[f"{prefix}_{len(found)}"])
    if count not in (-1, len(found)):
        raise error.ValueError(f"ndarray cache: {prefix}_{len(found)} of {count} is not loaded")
    return found


@register_func("vm.builtin.param_array_from_cache_by_name")
def _param_array_from_cache_by_name(names: list[str]) -> list[NDArray]:
    missing = [str(name) for name in names if str(name) not in _loaded]
    if missing:
        raise error.ValueError(f"ndarray cache: not loaded: {', '.join(missing)}")
    return [_loaded[str(name)] for name in names]
