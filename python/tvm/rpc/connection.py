"""Connections to trackers, on which messages without bytes go back and forth."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

from tvm import error
from tvm.runtime.workers.wire import HEADER, pack_frame

from . import _ffi_api

__all__ = ["open_connection", "receive_message", "send_message"]

# A summary of many servers is long.
_TEXT_BYTES = 16 << 20


def open_connection(
    host: str,
    port: int,
    request: dict[str, Any],
    seconds: float,
    secret: str,
    secure: Callable[[int, bool], int] | None = None,
) -> tuple[socket.socket, dict[str, Any]]:
    """Connect to a tracker or a proxy and say what one wants; the connection and the reply.

    Raises
    ------
    RPCError : nobody is there, or one is refused; the message says why and what to do.
    """
    descriptor, reply = _ffi_api.OpenConnection(
        host, port, json.dumps(request), seconds, secret, secure
    )
    return socket.socket(fileno=int(descriptor)), json.loads(str(reply))


def send_message(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one message; OSError if the other side is gone."""
    connection.sendall(pack_frame(message))


def receive_message(connection: socket.socket) -> dict[str, Any]:
    """The next message.

    Raises
    ------
    EOFError : the other side is gone. RPCError : it sent what is no message.
    """
    text_bytes, blob_bytes = HEADER.unpack(_receive(connection, HEADER.size))
    if text_bytes > _TEXT_BYTES or blob_bytes:
        raise error.RPCError("rpc: the other side sent a message that is too long")
    try:
        message = json.loads(_receive(connection, text_bytes))
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise error.RPCError("rpc: the other side sent a message that cannot be read")
    return message


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
