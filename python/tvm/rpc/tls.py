"""TLS around connections, by the standard library's ``ssl``.

The protocol is spoken by C++ over plain sockets. Where TLS is asked for, the socket it gets is one
end of a pair; who holds the other end encrypts and decrypts.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tvm import error

__all__ = ["TLS"]

_PIECE = 1 << 18


@dataclass(frozen=True)
class TLS:
    """Certificates for TLS.

    Attributes
    ----------
    certificate, key : files (PEM) with which this program proves who it is; servers, trackers and
        proxies need them.
    authority : file (PEM) of the certificates that this program trusts; connecting programs need
        it, and accepting ones that have it ask their clients for a certificate.
    hostname : name that the other side's certificate must be for; by default it need only be signed
        by the authority.
    """

    certificate: str = ""
    key: str = ""
    authority: str = ""
    hostname: str = ""

    def accepting(self) -> ssl.SSLContext:
        """What an accepting program uses.

        Raises
        ------
        RPCError : a file is missing or no certificate.
        """
        if not self.certificate:
            raise error.RPCError("rpc: a program that listens with TLS needs a certificate")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._load(context)
        if self.authority:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def connecting(self) -> ssl.SSLContext:
        """What a connecting program uses; raises as `accepting`."""
        if not self.authority:
            raise error.RPCError(
                "rpc: a program that connects with TLS needs the authority to trust"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = bool(self.hostname)
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        names = ", ".join(filter(None, (self.certificate, self.key, self.authority)))
        try:
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
            if self.authority:
                context.load_verify_locations(self.authority)
        except (OSError, ssl.SSLError) as reason:
            raise error.RPCError(
                f"rpc: of {names}, one is missing or no certificate or key: {reason}"
            ) from None

    def _wrap(self, descriptor: int, accepted: bool) -> ssl.SSLSocket:
        plain = socket.socket(fileno=descriptor)
        plain.settimeout(10)
        context = self.accepting() if accepted else self.connecting()
        try:
            secured = context.wrap_socket(
                plain,
                server_side=accepted,
                server_hostname=None if accepted else self.hostname or None,
            )
        except (OSError, ssl.SSLError) as reason:
            plain.close()
            raise error.RPCError(
                f"rpc: TLS failed ({reason}); is it on at both ends, with certificates that fit?"
            ) from None
        secured.setblocking(False)
        return secured

    def in_a_thread(self) -> Callable[[int, bool], int]:
        """A function (socket, whether it was accepted) to a plain socket, for clients."""

        def secure(descriptor: int, accepted: bool) -> int:
            secured = self._wrap(descriptor, accepted)
            ours, theirs = socket.socketpair()
            threading.Thread(
                target=_pump, args=(secured, ours), name="rpc-tls", daemon=True
            ).start()
            return theirs.detach()

        return secure

    def in_a_process(self) -> Callable[[int, bool], int]:
        """The same with a process of its own, for servers: they fork, so they have no threads."""

        def secure(descriptor: int, accepted: bool) -> int:
            secured = self._wrap(descriptor, accepted)
            ours, theirs = socket.socketpair()
            if os.fork() == 0:
                theirs.close()
                with contextlib.suppress(BaseException):
                    _pump(secured, ours)
                os._exit(0)
            secured.close()
            ours.close()
            return theirs.detach()

        return secure


def _pump(secured: ssl.SSLSocket, plain: socket.socket) -> None:
    """Hand bytes on in both directions until one end closes."""
    plain.setblocking(False)
    to_plain, to_secured = bytearray(), bytearray()
    with secured, plain, selectors.DefaultSelector() as selector:
        selector.register(secured, selectors.EVENT_READ)
        selector.register(plain, selectors.EVENT_READ)
        while True:
            # What is still to be handed on comes before more is taken.
            selector.modify(secured, _events(to_plain, to_secured))
            selector.modify(plain, _events(to_secured, to_plain))
            # Decrypted bytes may wait inside of the TLS layer, where select does not see them.
            selector.select(0 if secured.pending() and not to_plain else None)
            try:
                if not to_plain and not _take(secured, to_plain):
                    return
                if not to_secured and not _take(plain, to_secured):
                    return
                _give(secured, to_secured)
                _give(plain, to_plain)
            except OSError:
                return


def _events(incoming: bytearray, outgoing: bytearray) -> int:
    read = 0 if incoming else selectors.EVENT_READ
    write = selectors.EVENT_WRITE if outgoing else 0
    # Never nothing: the end of the other side must be seen.
    return (read | write) or selectors.EVENT_READ


_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def _take(source: socket.socket, into: bytearray) -> bool:
    """False at the end of the stream."""
    try:
        data = source.recv(_PIECE)
    except _NOT_NOW:
        return True
    into += data
    return bool(data)


def _give(sink: socket.socket, data: bytearray) -> None:
    while data:
        try:
            del data[: sink.send(data)]
        except _NOT_NOW:
            return
