"""A proxy: servers that nobody can reach come to it, and clients reach them through it."""

from __future__ import annotations

import argparse
import sys

from tvm.rpc.base import parse_address
from tvm.rpc.command_line import at_least, parser, run, serve_asyncio, tls_of
from tvm.rpc.proxy_service import ProxyService

__all__ = ["main"]

_WHO = "rpc_proxy"


def _serve(options: argparse.Namespace) -> None:
    tracker = parse_address(options.tracker, "--tracker") if options.tracker else None
    at_least(options, "timeout_client", 0)
    tls = tls_of(options)
    secure = tls.in_a_thread() if tls is not None and tls.authority else None

    def make(port: int, secret: str):  # type: ignore[no-untyped-def]
        return ProxyService(port, secret, tracker, options.timeout_client, secure).visit

    serve_asyncio(options, _WHO, make)


def main() -> int:
    """Run a proxy until it is told to end."""
    made = parser("Brings clients of tvm.rpc to servers that come here.", 9091)
    made.add_argument("--tracker", default="", help="HOST:PORT to register the servers with")
    made.add_argument(
        "--timeout-client", type=float, default=600.0, help="seconds that a client waits"
    )
    return run(_WHO, made.parse_args(), _serve)


if __name__ == "__main__":
    sys.exit(main())
