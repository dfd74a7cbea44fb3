"""What a proxy does: servers that nobody can reach come to it and wait for clients."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm import error

from .base import random_key
from .connection import open_connection, receive_message, send_message
from .reception import Refused, Visitor

__all__ = ["ProxyService"]

_PIECE = 1 << 18
_MOST_VISITORS = 1024
_PING_SECONDS = 2.0
_RETRY_SECONDS = 2.0
# Of the tracker.
_ANSWER_SECONDS = 5.0


@dataclass(eq=False)
class _Waiting:
    """A server that waits; `taken` is set once it has a client, `silent` when nobody listens to it
    any more."""

    visitor: Visitor
    key: str
    match: str
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    silent: asyncio.Event = field(default_factory=asyncio.Event)


class ProxyService:
    """Pairs clients with servers of the key that they ask for, and hands their bytes on.

    Parameters
    ----------
    port : of this proxy, which the tracker tells clients.
    secret : that every visitor has to know; empty for none.
    tracker : host and port of a tracker to register the servers with; clients come with its match
        keys then.
    patience : seconds that a client waits for a server.
    secure : TLS for the connection to the tracker.
    """

    def __init__(
        self,
        port: int,
        secret: str = "",
        tracker: tuple[str, int] | None = None,
        patience: float = 600.0,
        secure: Callable[[int, bool], int] | None = None,
    ) -> None:
        self._port, self._secret, self._tracker = port, secret, tracker
        self._patience, self._secure = patience, secure
        self._waiting: list[_Waiting] = []
        self._arrival = asyncio.Condition()
        self._visitors = 0
        # Whether its user knows that the tracker does not answer.
        self._told = False

    async def visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        visitor = Visitor(reader, writer, "proxy", self._secret)
        self._visitors += 1
        try:
            if self._visitors > _MOST_VISITORS:
                return
            request = await visitor.receive()
            key = request.get("key")
            if not isinstance(key, str):
                await visitor.refuse("a visitor of a proxy names a key")
            if request.get("role") == "server":
                await self._keep(visitor, str(key))
            else:
                await self._pair(visitor, str(key), request)
        except (EOFError, Refused):
            return
        finally:
            self._visitors -= 1
            await visitor.close()

    async def _keep(self, visitor: Visitor, key: str) -> None:
        """Keep a server until a client has used it, or it is gone."""
        await visitor.accept({})
        waiting = _Waiting(visitor, key, random_key(key) if self._tracker else key)
        registered = asyncio.ensure_future(self._register(waiting)) if self._tracker else None
        async with self._arrival:
            self._waiting.append(waiting)
            self._arrival.notify_all()
        try:
            # A server that waits says nothing; whatever comes from it is the end.
            gone = asyncio.ensure_future(visitor.reader.read(1))
            taken = asyncio.ensure_future(waiting.taken.wait())
            try:
                await asyncio.wait({gone, taken}, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    raise EOFError
            finally:
                for one in (gone, taken):
                    one.cancel()
                await asyncio.gather(gone, taken, return_exceptions=True)
                waiting.silent.set()
            await waiting.visitor.writer.wait_closed()
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            if registered is not None:
                registered.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await registered

    async def _pair(self, visitor: Visitor, key: str, request: dict[str, Any]) -> None:
        server = await self._take(visitor, key)
        await server.silent.wait()
        timeout = request.get("timeout", 0)
        try:
            await server.visitor.send({"timeout": float(timeout)})
            await visitor.accept({"key": server.key})
            ends = (visitor, server.visitor)
            both = [asyncio.ensure_future(_hand_on(a, b)) for a, b in (ends, ends[::-1])]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in both:
                    one.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        finally:
            server.visitor.writer.close()

    async def _take(self, visitor: Visitor, key: str) -> _Waiting:
        """A server of the key, waiting for one if need be."""

        def found() -> _Waiting | None:
            return next((w for w in self._waiting if w.match == key), None)

        async with self._arrival:
            if found() is None:
                await visitor.send({"wait": f"no server of key {key!r} waits at the proxy"})
                try:
                    await asyncio.wait_for(
                        self._arrival.wait_for(lambda: found() is not None), self._patience
                    )
                except asyncio.TimeoutError:
                    await visitor.refuse(f"no server of key {key!r} came to the proxy in time")
            server = found()
            assert server is not None
            self._waiting.remove(server)
            server.taken.set()
            return server

    async def _register(self, waiting: _Waiting) -> None:
        """Let the tracker know of a waiting server for as long as this task runs."""
        assert self._tracker is not None
        loop = asyncio.get_running_loop()
        request = {"role": "server", "key": waiting.key, "port": self._port, "address": ""}
        while True:
            try:
                connection, _ = await loop.run_in_executor(
                    None,
                    open_connection,
                    *self._tracker,
                    request,
                    _ANSWER_SECONDS,
                    self._secret,
                    self._secure,
                )
                self._told = False
                with connection:
                    connection.settimeout(_ANSWER_SECONDS)
                    try:
                        await self._stay(connection, waiting)
                    finally:
                        # Wakes the thread that waits for an answer: the proxy ends after it.
                        with contextlib.suppress(OSError):
                            connection.shutdown(socket.SHUT_RDWR)
            except (error.RPCError, OSError, EOFError) as reason:
                if not self._told:
                    host, port = self._tracker
                    why = str(reason) or "it closed the connection"
                    print(
                        f"rpc_proxy: the tracker at {host}:{port} does not answer ({why}); trying "
                        "again until it does",
                        file=sys.stderr,
                        flush=True,
                    )
                self._told = True
                await asyncio.sleep(_RETRY_SECONDS)

    @staticmethod
    async def _stay(connection: socket.socket, waiting: _Waiting) -> None:
        """Put a server up at the tracker and keep it there."""
        loop = asyncio.get_running_loop()
        operation = "put"
        while True:
            message = {"op": operation, "match": waiting.match}
            await loop.run_in_executor(None, send_message, connection, message)
            await loop.run_in_executor(None, receive_message, connection)
            operation = "ping"
            await asyncio.sleep(_PING_SECONDS)


async def _hand_on(source: Visitor, sink: Visitor) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.reader.read(_PIECE):
            sink.writer.write(data)
            await sink.writer.drain()
