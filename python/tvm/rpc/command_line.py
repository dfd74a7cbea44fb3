"""What the command lines of tracker, server and proxy have in common."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from tvm import error

from . import _ffi_api
from .base import load_secret
from .tls import TLS

__all__ = ["announce", "listen", "parser", "run", "serve_asyncio", "tls_of"]

# A program that another one started ends this soon after it.
_PARENT_SECONDS = 0.5
# Of a stranger who connects and does not speak TLS.
_HANDSHAKE_SECONDS = 10.0

Visit = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def parser(description: str, port: int) -> argparse.ArgumentParser:
    """A parser with the options that all programs have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--host", default="127.0.0.1", help="address to listen on")
    made.add_argument("--port", type=int, default=port, help="first port to try; 0 for any")
    made.add_argument("--port-end", type=int, default=9199, help="port below which to stop trying")
    connecting(made)
    made.add_argument("--silent", action="store_true", help="print nothing once it runs")
    made.add_argument("--ready-fd", type=int, default=-1, help=argparse.SUPPRESS)
    made.add_argument("--parent", type=int, default=0, help=argparse.SUPPRESS)
    return made


def connecting(to: argparse.ArgumentParser) -> None:
    """Add the options of programs that connect."""
    to.add_argument(
        "--secret-file",
        help="file of the shared secret; else TVM_RPC_SECRET_FILE or TVM_RPC_SECRET",
    )
    to.add_argument("--tls-authority", default="", help="PEM file of who signs certificates")
    to.add_argument(
        "--tls-certificate", default="", help="PEM file with which this program says who it is"
    )
    to.add_argument("--tls-key", default="", help="PEM file of the certificate's key")


def tls_of(options: argparse.Namespace) -> TLS | None:
    """The certificates that were given, if any."""
    if options.tls_key and not options.tls_certificate:
        raise ValueError("--tls-key is the key of a certificate; give that too: --tls-certificate")
    if not options.tls_certificate and not options.tls_authority:
        return None
    return TLS(options.tls_certificate, options.tls_key, options.tls_authority)


def at_least(options: argparse.Namespace, name: str, least: float) -> None:
    """ValueError if a number that was given is smaller."""
    value = getattr(options, name)
    if not value >= least:
        raise ValueError(f"--{name.replace('_', '-')} is at least {least}, got {value:g}")


def listen(options: argparse.Namespace, who: str, secret: str) -> tuple[int, int]:
    """A socket that listens as the options say, and its port; RPCError if that cannot be."""
    descriptor, port = _ffi_api.Listen(
        who, options.host, options.port, options.port_end, bool(secret)
    )
    return int(descriptor), int(port)


def announce(options: argparse.Namespace, who: str, message: dict[str, Any]) -> None:
    """Say that the program runs: to the process that started it, or to its user.

    Parameters
    ----------
    message : ``port``, with the ``place`` where clients come to it if that is not the address on
        which it listens; or ``error``.
    """
    if options.ready_fd >= 0:
        with contextlib.suppress(OSError):
            os.write(options.ready_fd, json.dumps(message).encode() + b"\n")
        os.close(options.ready_fd)
        options.ready_fd = -1
    elif "error" not in message and not options.silent:
        place = message.get("place") or f"listening on {options.host}:{message['port']}"
        print(f"{who}: {place}", flush=True)
    if options.silent and "error" not in message:
        # Warnings come from C++, and sessions inherit the stream.
        with open(os.devnull, "wb") as nothing:
            for stream in (sys.stdout, sys.stderr):
                os.dup2(nothing.fileno(), stream.fileno())


def run(
    who: str, options: argparse.Namespace, program: Callable[[argparse.Namespace], None]
) -> int:
    """Run a program; what goes wrong is one line."""
    try:
        program(options)
        return 0
    except (error.TVMError, ValueError, OSError, ImportError, AttributeError) as reason:
        text = str(reason)
        if getattr(options, "ready_fd", -1) >= 0:
            announce(options, who, {"error": text})
        print(text if text.startswith((who, "rpc")) else f"{who}: {text}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def serve_asyncio(options: argparse.Namespace, who: str, make: Callable[[int, str], Visit]) -> None:
    """Serve connections until SIGTERM or SIGINT.

    Parameters
    ----------
    make : port and secret to the function that serves one connection.
    """
    secret = load_secret(options.secret_file)
    tls = tls_of(options)
    context = None if tls is None else tls.accepting()
    descriptor, port = listen(options, who, secret)

    async def serve() -> None:
        async def visit_quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # The end of the program cancels its visits, which streams would report as errors.
            with contextlib.suppress(asyncio.CancelledError):
                await visit(reader, writer)

        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        visit = make(port, secret)
        connection = socket.socket(fileno=descriptor)
        connection.setblocking(False)
        server = await asyncio.start_server(
            visit_quietly,
            sock=connection,
            ssl=context,
            ssl_handshake_timeout=None if context is None else _HANDSHAKE_SECONDS,
        )
        announce(options, who, {"port": port})
        while not stop.is_set():
            if options.parent and os.getppid() != options.parent:
                break
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stop.wait(), _PARENT_SECONDS)
        server.close()

    asyncio.run(serve())
