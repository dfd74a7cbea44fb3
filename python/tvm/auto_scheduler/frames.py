"""Messages between a process and its workers: lengths, JSON, raw bytes. Nothing is unpickled."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

__all__ = ["pack_frame", "read_frame", "take_frame"]

# Bytes of the JSON part and of the blob.
_HEADER = struct.Struct("<IQ")


def pack_frame(message: dict[str, Any], blob: bytes = b"") -> bytes:
    """One frame as bytes."""
    text = json.dumps(message).encode()
    return _HEADER.pack(len(text), len(blob)) + text + blob


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next frame, waiting for it; None at the end of the stream."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    text_bytes, blob_bytes = _HEADER.unpack(header)
    text, blob = stream.read(text_bytes), stream.read(blob_bytes)
    if len(text) < text_bytes or len(blob) < blob_bytes:
        return None
    return json.loads(text), blob


def take_frame(buffer: bytearray) -> tuple[dict[str, Any], bytes] | None:
    """Remove the first frame from bytes received so far; None while it is not whole."""
    if len(buffer) < _HEADER.size:
        return None
    text_bytes, blob_bytes = _HEADER.unpack_from(buffer)
    text_end = _HEADER.size + text_bytes
    end = text_end + blob_bytes
    if len(buffer) < end:
        return None
    message = json.loads(bytes(buffer[_HEADER.size : text_end]))
    blob = bytes(buffer[text_end:end])
    del buffer[:end]
    return message, blob
