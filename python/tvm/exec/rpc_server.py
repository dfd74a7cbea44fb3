"""A server: it lets clients load and run programs here, each client in a process of its own."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from tvm.error import RPCError
from tvm.rpc import _ffi_api
from tvm.rpc.base import load_secret, parse_address
from tvm.rpc.command_line import announce, listen, parser, run, tls_of
from tvm.rpc.loading import link_archive, load_uploaded
from tvm.runtime import load_module
from tvm.runtime.workers.serve import resolve

__all__ = ["main"]

_WHO = "rpc_server"


def _serve(options: argparse.Namespace) -> None:
    secret = load_secret(options.secret_file)
    tls = tls_of(options)
    tracker = parse_address(options.tracker, "--tracker") if options.tracker else ("", 0)
    proxy = parse_address(options.proxy, "--proxy") if options.proxy else ("", 0)
    if tracker[0] and not options.key:
        raise RPCError(f"{_WHO}: a server of a tracker needs a --key")
    if options.max_sessions < 1:
        raise ValueError(f"{_WHO}: --max-sessions is at least 1, got {options.max_sessions}")
    libraries = [load_module(path) for path in options.load_library]
    if options.init:
        resolve(options.init)()
    descriptor, port = (-1, proxy[1]) if proxy[0] else listen(options, _WHO, secret)
    allowed = ["*"] if options.open else [*_ffi_api.DefaultAllowedFunctions(), *options.allow]
    with tempfile.TemporaryDirectory(prefix="tvm_rpc_", dir=options.work_dir) as folder:
        announce(options, _WHO, {"port": port})
        _ffi_api.Serve(
            {
                "socket": descriptor,
                "port": port,
                "key": options.key,
                "secret": secret,
                "tracker_host": tracker[0] if not proxy[0] else "",
                "tracker_port": tracker[1],
                "custom_address": options.custom_addr,
                "proxy_host": proxy[0],
                "proxy_port": proxy[1],
                "work_folder": folder,
                "allowed": allowed,
                "blob_bytes": options.max_message_bytes,
                "max_sessions": options.max_sessions,
                "session_timeout": options.session_timeout,
                "parent": options.parent,
                "load_module": load_uploaded,
                "link_module": link_archive,
                "fork": os.fork,
                "secure": None if tls is None else tls.in_a_process(),
            }
        )
    # Held until here: code of a library must stay while sessions run it.
    del libraries


def main() -> int:
    """Run a server until it is told to end."""
    made = parser("Serves sessions of tvm.rpc.", 9091)
    made.add_argument("--key", default="", help="kind of device that clients ask for")
    made.add_argument("--tracker", default="", help="HOST:PORT of a tracker to register with")
    made.add_argument("--proxy", default="", help="HOST:PORT of a proxy to wait for clients at")
    made.add_argument("--custom-addr", default="", help="address that the tracker tells clients")
    made.add_argument(
        "--load-library", action="append", default=[], help="library to load first; may be repeated"
    )
    made.add_argument("--init", default="", help="MODULE:FUNCTION to call first")
    made.add_argument(
        "--allow", action="append", default=[], help="registered function that clients may call too"
    )
    made.add_argument("--open", action="store_true", help="clients may call every function")
    made.add_argument("--max-sessions", type=int, default=1, help="sessions at a time")
    made.add_argument(
        "--session-timeout", type=float, default=0.0, help="seconds a session may last; 0 for any"
    )
    made.add_argument(
        "--max-message-bytes", type=int, default=1 << 30, help="of one upload or one argument"
    )
    made.add_argument("--work-dir", help="folder for the sessions' files")
    return run(_WHO, made.parse_args(), _serve)


if __name__ == "__main__":
    sys.exit(main())
