"""What a tracker does: it knows which servers are free, and gives them to who asks first."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from dataclasses import dataclass, field
from typing import Any

from .reception import Refused, Visitor

__all__ = ["TrackerService"]

# Names of devices that are remembered, so that summaries show those without servers.
_MOST_KEYS = 10_000
_MOST_VISITORS = 4096
_MOST_PRIORITY = 1 << 30


@dataclass(eq=False)
class _Server:
    """A server that is connected, and the match key under which it waits, if it does."""

    key: str
    host: str
    port: int
    match: str = ""


@dataclass(order=True)
class _Request:
    """A client that waits; smaller ones come first."""

    rank: tuple[int, int]
    found: asyncio.Future[_Server] = field(compare=False)


class TrackerService:
    """Servers register and wait under a key; clients ask for a key and get the host, the port and
    the match key of one server, which it lets in once.

    Parameters
    ----------
    secret : that every visitor has to know; empty for none.
    """

    def __init__(self, secret: str = "") -> None:
        self._secret = secret
        self._servers: list[_Server] = []
        self._requests: dict[str, list[_Request]] = {}
        self._count = itertools.count()
        self._visitors = 0

    async def visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        visitor = Visitor(reader, writer, "tracker", self._secret)
        self._visitors += 1
        try:
            if self._visitors > _MOST_VISITORS:
                return
            request = await visitor.receive()
            if request.get("role") == "server":
                await self._serve_server(visitor, request)
            elif request.get("role") == "client":
                await self._serve_client(visitor)
            else:
                await visitor.refuse("this is a tracker; servers and clients come here")
        except (EOFError, Refused):
            return
        finally:
            self._visitors -= 1
            await visitor.close()

    # ------------------------------------------------------------ servers

    async def _serve_server(self, visitor: Visitor, request: dict[str, Any]) -> None:
        key, port = request.get("key"), request.get("port")
        if not isinstance(key, str) or not key:
            await visitor.refuse("a server of a tracker needs a key; give it one with --key")
        if not isinstance(port, int) or not 0 < port < 65536:
            await visitor.refuse("a server says at which port it is")
        if str(key) not in self._requests and len(self._requests) >= _MOST_KEYS:
            await visitor.refuse("there are as many keys as a tracker remembers")
        seen = visitor.writer.get_extra_info("peername")[0]
        server = _Server(str(key), str(request.get("address") or seen), int(str(port)))
        self._requests.setdefault(server.key, [])
        await visitor.accept({})
        self._servers.append(server)
        try:
            while True:
                message = await visitor.read()
                match = message.get("match")
                if message.get("op") == "put" and isinstance(match, str) and match:
                    server.match = match
                    self._assign(server.key)
                    await visitor.send({"ok": True})
                elif message.get("op") == "ping":
                    waiting = bool(match) and match == server.match
                    await visitor.send({"waiting": waiting})
                else:
                    await visitor.send({"error": "a server puts itself up and pings"})
        finally:
            self._servers.remove(server)

    def _assign(self, key: str) -> None:
        """Give free servers of a key to who waits for them."""
        requests = self._requests[key]
        for server in self._servers:
            if server.key != key or not server.match:
                continue
            while requests:
                request = heapq.heappop(requests)
                if not request.found.done():
                    request.found.set_result(
                        _Server(server.key, server.host, server.port, server.match)
                    )
                    server.match = ""
                    break

    # ------------------------------------------------------------ clients

    async def _serve_client(self, visitor: Visitor) -> None:
        await visitor.accept({})
        while True:
            message = await visitor.read()
            if message.get("op") == "summary":
                await visitor.send({"summary": self.summary()})
            elif message.get("op") == "request":
                await self._answer(visitor, message)
            else:
                await visitor.send({"error": "a client asks for a server or for a summary"})

    async def _answer(self, visitor: Visitor, message: dict[str, Any]) -> None:
        key, priority = message.get("key"), message.get("priority", 1)
        if not isinstance(key, str) or not isinstance(priority, int):
            await visitor.send({"error": "a request has a key and an integer as priority"})
            return
        if key not in self._requests and len(self._requests) >= _MOST_KEYS:
            await visitor.send({"error": "there are as many keys as a tracker remembers"})
            return
        found = asyncio.get_running_loop().create_future()
        rank = -max(-_MOST_PRIORITY, min(priority, _MOST_PRIORITY))
        requests = self._requests.setdefault(key, [])
        entry = _Request((rank, next(self._count)), found)
        heapq.heappush(requests, entry)
        self._assign(key)
        # A client that waits says nothing; whatever comes from it is the end.
        gone = asyncio.ensure_future(visitor.reader.read(1))
        try:
            await asyncio.wait({found, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not found.done():
                raise EOFError
            server = found.result()
        finally:
            found.cancel()
            with contextlib.suppress(ValueError):
                requests.remove(entry)
                heapq.heapify(requests)
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await gone
        await visitor.send({"host": server.host, "port": server.port, "match": server.match})

    def summary(self) -> dict[str, Any]:
        """Servers that are connected, and for each key how many are free and how many wait."""
        queues = {
            key: {
                "free": sum(s.key == key and bool(s.match) for s in self._servers),
                "pending": len(requests),
            }
            for key, requests in self._requests.items()
        }
        servers = [
            {"key": f"server:{server.key}", "addr": [server.host, server.port]}
            for server in self._servers
        ]
        return {"queue_info": queues, "server_info": servers}
