"""Receiving whoever connects to a tracker or a proxy; servers do the same in C++."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import secrets
import socket
from typing import Any

from tvm.runtime.workers.wire import HEADER, pack_frame

__all__ = ["PROTOCOL", "Refused", "Visitor", "keep_alive"]

PROTOCOL = 1
# Of a stranger who connects and says nothing.
_SECONDS = 10.0
_TEXT_BYTES = 1 << 16
_NESTING = 8


class Refused(Exception):
    """Why a visitor is not let in; it has been told."""


def keep_alive(connection: socket.socket) -> None:
    """Send at once, and notice within a minute when the other machine is gone."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


def _nesting(text: str) -> int:
    """No less than how deep lists and objects are nested in JSON."""
    depth = most = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        most = max(most, depth)
    return most


class Visitor:
    """A connection that was accepted.

    Parameters
    ----------
    role : what the visitor has connected to: "tracker" or "proxy".
    secret : that both ends know; empty for none.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        role: str,
        secret: str,
    ) -> None:
        self.reader, self.writer = reader, writer
        self._role, self._secret = role, secret
        self._nonce, self._other_nonce = secrets.token_hex(16), ""
        keep_alive(writer.get_extra_info("socket"))

    async def read(self) -> dict[str, Any]:
        """The next message.

        Raises
        ------
        Refused : it is none. EOFError : the visitor is gone.
        """
        try:
            header = await self.reader.readexactly(HEADER.size)
            text_bytes, blob_bytes = HEADER.unpack(header)
            if text_bytes > _TEXT_BYTES or blob_bytes:
                await self.refuse("the message is too long")
            text = (await self.reader.readexactly(text_bytes)).decode()
            if _nesting(text) > _NESTING:
                await self.refuse("the message is nested too deeply")
            message = json.loads(text)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise EOFError from None
        except ValueError:
            await self.refuse("the message cannot be read")
        if not isinstance(message, dict):
            await self.refuse("the message is no object")
        return message

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; EOFError if the visitor is gone."""
        try:
            self.writer.write(pack_frame(message))
            await self.writer.drain()
        except ConnectionError:
            raise EOFError from None

    async def refuse(self, reason: str) -> None:
        """Tell the visitor why, and raise Refused."""
        with contextlib.suppress(EOFError):
            await self.send({"refused": reason})
        raise Refused(reason)

    async def receive(self) -> dict[str, Any]:
        """What the visitor asks for, proven if there is a secret; raises as `read`."""
        try:
            return await asyncio.wait_for(self._receive(), _SECONDS)
        except asyncio.TimeoutError:
            await self.refuse(f"nothing was said for {_SECONDS:g} s")
            raise

    async def _receive(self) -> dict[str, Any]:
        await self.send(
            {
                "tvm-rpc": PROTOCOL,
                "role": self._role,
                "nonce": self._nonce,
                "secret": bool(self._secret),
            }
        )
        answer = await self.read()
        if answer.get("tvm-rpc") != PROTOCOL:
            await self.refuse(
                f"it speaks version {PROTOCOL} of the protocol and you do not; install the same "
                "tvm at both ends"
            )
        nonce, text = answer.get("nonce"), answer.get("request")
        if not isinstance(nonce, str) or not isinstance(text, str):
            await self.refuse("the greeting is incomplete")
        self._other_nonce = str(nonce)
        if self._secret:
            wanted = self._proof("client", self._other_nonce, self._nonce, str(text))
            given = answer.get("proof")
            given = given if isinstance(given, str) and given.isascii() else ""
            if not hmac.compare_digest(wanted, given):
                await self.refuse(
                    "the secret is wrong; give both programs the same TVM_RPC_SECRET_FILE"
                )
        try:
            request = json.loads(str(text)) if _nesting(str(text)) <= _NESTING else None
        except ValueError:
            request = None
        if not isinstance(request, dict):
            await self.refuse("the request cannot be read")
        assert isinstance(request, dict)
        return request

    async def accept(self, reply: dict[str, Any]) -> None:
        """Let the visitor in."""
        text = json.dumps(reply)
        message = {"reply": text}
        if self._secret:
            message["proof"] = self._proof("server", self._nonce, self._other_nonce, text)
        await self.send(message)

    def _proof(self, side: str, own: str, other: str, text: str) -> str:
        said = f"tvm-rpc {PROTOCOL} {side}\n{own}\n{other}\n{text}".encode()
        return hmac.new(self._secret.encode(), said, hashlib.sha256).hexdigest()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError, OSError):
            await self.writer.wait_closed()
