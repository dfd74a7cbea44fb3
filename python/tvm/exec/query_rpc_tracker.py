"""Which servers a tracker has, and how many wait for them."""

from __future__ import annotations

import argparse
import os
import sys

from tvm.rpc import connect_tracker
from tvm.rpc.command_line import connecting, run, tls_of

__all__ = ["main"]


def _query(options: argparse.Namespace) -> None:
    tracker = connect_tracker(
        options.host, options.port, secret_file=options.secret_file, tls=tls_of(options)
    )
    print(f"Tracker {options.host}:{options.port}\n")
    print(tracker.text_summary(), end="")


def main() -> int:
    """Print the summary of a tracker."""
    made = argparse.ArgumentParser(description="Shows the servers of a tracker of tvm.rpc.")
    made.add_argument(
        "--host",
        default=os.environ.get("TVM_TRACKER_HOST", "127.0.0.1"),
        help="else TVM_TRACKER_HOST, else 127.0.0.1",
    )
    made.add_argument(
        "--port",
        type=int,
        default=os.environ.get("TVM_TRACKER_PORT", "9190"),
        help="else TVM_TRACKER_PORT, else 9190",
    )
    connecting(made)
    return run("query_rpc_tracker", made.parse_args(), _query)


if __name__ == "__main__":
    sys.exit(main())
