"""A tracker: servers register with it, and clients get them from it."""

from __future__ import annotations

import argparse
import sys

from tvm.rpc.command_line import parser, run, serve_asyncio
from tvm.rpc.tracker_service import TrackerService

__all__ = ["main"]

_WHO = "rpc_tracker"


def _serve(options: argparse.Namespace) -> None:
    serve_asyncio(options, _WHO, lambda _, secret: TrackerService(secret).visit)


def main() -> int:
    """Run a tracker until it is told to end."""
    return run(_WHO, parser("Gives servers of tvm.rpc to clients.", 9190).parse_args(), _serve)


if __name__ == "__main__":
    sys.exit(main())
