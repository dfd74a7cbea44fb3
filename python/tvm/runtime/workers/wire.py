"""Messages between a process and its workers: lengths, JSON, raw bytes. Nothing is unpickled.

A message is whatever JSON can say. `encode` brings richer values into that form: bytes, arrays,
tuples, mappings of any keys, devices, data types, and records of classes that both sides name.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from tvm.runtime.data_type import DataType
from tvm.runtime.device import Device, device
from tvm.runtime.ndarray import NDArray, empty

__all__ = ["HEADER", "decode", "encode", "pack_frame", "read_frame", "take_frame"]

# Bytes of the JSON part and of the blob.
HEADER = struct.Struct("<IQ")
# Key of an object that stands for a value which JSON does not have.
_KIND = "$"


def pack_frame(message: Any, blob: bytes = b"") -> bytes:
    """One frame as bytes."""
    text = json.dumps(message).encode()
    return HEADER.pack(len(text), len(blob)) + text + blob


def read_frame(stream: BinaryIO) -> tuple[Any, bytes] | None:
    """The next frame, waiting for it; None at the end of the stream."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    text_bytes, blob_bytes = HEADER.unpack(header)
    text, blob = stream.read(text_bytes), stream.read(blob_bytes)
    if len(text) < text_bytes or len(blob) < blob_bytes:
        return None
    return json.loads(text), blob


def take_frame(buffer: bytearray) -> tuple[Any, bytes] | None:
    """Remove the first frame from bytes received so far; None while it is not whole."""
    if len(buffer) < HEADER.size:
        return None
    text_bytes, blob_bytes = HEADER.unpack_from(buffer)
    text_end = HEADER.size + text_bytes
    end = text_end + blob_bytes
    if len(buffer) < end:
        return None
    message = json.loads(bytes(buffer[HEADER.size : text_end]))
    blob = bytes(buffer[text_end:end])
    del buffer[:end]
    return message, blob


def encode(value: Any, records: Mapping[str, type] | None = None) -> tuple[Any, bytes]:
    """A value as something that JSON can say, and the bytes that belong to it.

    Parameters
    ----------
    value : None, a number, a text, bytes, an NDArray on the cpu, a NumPy array, a device, a data
        type, an object of `records`, or a sequence or mapping of these.
    records : names to dataclasses whose objects may occur.

    Raises
    ------
    TypeError : a value of another kind.
    """
    blobs: list[bytes] = []
    names = {cls: name for name, cls in (records or {}).items()}

    def blob(data: bytes) -> int:
        blobs.append(data)
        return len(data)

    def tree(item: Any) -> Any:
        if isinstance(item, DataType):
            return {_KIND: "dtype", "name": str(item)}
        if item is None or isinstance(item, (bool, int, float, str)):
            return item
        if isinstance(item, list):
            return [tree(element) for element in item]
        if isinstance(item, tuple):
            return {_KIND: "tuple", "items": [tree(element) for element in item]}
        if isinstance(item, dict):
            return {_KIND: "dict", "items": [[tree(k), tree(v)] for k, v in item.items()]}
        if isinstance(item, bytes):
            return {_KIND: "bytes", "size": blob(item)}
        if isinstance(item, (NDArray, np.ndarray)):
            elements = item.numpy() if isinstance(item, NDArray) else item
            return {
                _KIND: "array" if isinstance(item, NDArray) else "numpy",
                "dtype": str(DataType(item.dtype)),
                "shape": [*elements.shape],
                "size": blob(elements.tobytes()),
            }
        if isinstance(item, Device):
            return {_KIND: "device", "type": item.device_type, "id": item.device_id}
        if type(item) in names:
            fields = [tree(getattr(item, f.name)) for f in dataclasses.fields(item)]
            return {_KIND: "record", "name": names[type(item)], "fields": fields}
        raise TypeError(f"a {type(item).__name__} cannot travel to another process")

    return tree(value), b"".join(blobs)


def decode(tree: Any, blob: bytes, records: Mapping[str, type] | None = None) -> Any:
    """Inverse of `encode`.

    Raises
    ------
    ValueError : it is not what `encode` makes, or a record has a name that is not in `records`.
    """
    position = 0

    def take(size: int) -> bytes:
        nonlocal position
        if not 0 <= size <= len(blob) - position:
            raise ValueError(f"message: {size} bytes are missing behind {position}")
        position += size
        return blob[position - size : position]

    def value(item: Any) -> Any:
        if isinstance(item, list):
            return [value(element) for element in item]
        if not isinstance(item, dict):
            return item
        kind = item.get(_KIND)
        if kind == "tuple":
            return tuple(value(element) for element in item["items"])
        if kind == "dict":
            return {value(key): value(element) for key, element in item["items"]}
        if kind == "bytes":
            return take(item["size"])
        if kind in ("array", "numpy"):
            dtype, shape = DataType(item["dtype"]), item["shape"]
            elements = np.ndarray(shape, dtype.to_numpy(), take(item["size"]))
            return elements.copy() if kind == "numpy" else empty(shape, dtype).copyfrom(elements)
        if kind == "device":
            return device(item["type"], item["id"])
        if kind == "dtype":
            return DataType(item["name"])
        if kind == "record" and item["name"] in (records or {}):
            return (records or {})[item["name"]](*(value(field) for field in item["fields"]))
        raise ValueError(f"message: a value of unknown kind {kind!r} {item.get('name', '')}")

    try:
        return value(tree)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"message: {type(error).__name__}: {error}") from error
