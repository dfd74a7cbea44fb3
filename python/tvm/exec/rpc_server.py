"""A server: it lets clients load and run programs here, each client in a process of its own."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from tvm.error import RPCError, TVMError
from tvm.rpc import _ffi_api
from tvm.rpc.base import load_secret, parse_address
from tvm.rpc.command_line import announce, at_least, listen, parser, run, tls_of
from tvm.rpc.loading import link_archive, load_uploaded
from tvm.runtime import load_module
from tvm.runtime.workers.serve import resolve

__all__ = ["main"]

_WHO = "rpc_server"


def _serve(options: argparse.Namespace) -> None:
    secret = load_secret(options.secret_file)
    if options.through_proxy:
        if options.proxy:
            raise ValueError("--through-proxy takes the proxy from --host and --port, not --proxy")
        options.proxy = f"{options.host}:{options.port}"
    at_least(options, "max_sessions", 1)
    at_least(options, "session_timeout", 0)
    at_least(options, "max_message_bytes", 1)
    tls = tls_of(options)
    tracker = parse_address(options.tracker, "--tracker") if options.tracker else ("", 0)
    proxy = parse_address(options.proxy, "--proxy") if options.proxy else ("", 0)
    if tracker[0] and not options.key:
        raise RPCError(f"{_WHO}: a server of a tracker needs a --key")
    if tls is not None:
        # Sessions and connections use these later; what is wrong with them is said now.
        if not proxy[0]:
            tls.accepting()
        if proxy[0] or tracker[0]:
            tls.connecting()
    paths = [path for given in options.load_library for path in given.split(":") if path]
    try:
        libraries = [load_module(path) for path in paths]
    except (TVMError, ValueError) as reason:
        raise RPCError(f"{_WHO}: --load-library: {reason}") from None
    if options.init:
        _init_function(options.init)()
    if options.work_dir and not os.path.isdir(options.work_dir):
        raise ValueError(f"--work-dir: there is no folder {options.work_dir}; make it first")
    descriptor, port = (-1, proxy[1]) if proxy[0] else listen(options, _WHO, secret)
    allowed = ["*"] if options.open else [*_ffi_api.DefaultAllowedFunctions(), *options.allow]
    with tempfile.TemporaryDirectory(prefix="tvm_rpc_", dir=options.work_dir) as folder:
        place = f"waiting for clients at the proxy {options.proxy}" if proxy[0] else ""
        announce(options, _WHO, {"port": port, "place": place})
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


def _init_function(name: str) -> Callable[..., Any]:
    try:
        return resolve(name)
    except (ImportError, AttributeError, ValueError) as reason:
        raise ValueError(f"--init: {reason}; expected MODULE:FUNCTION of a module here") from None


def main() -> int:
    """Run a server until it is told to end."""
    made = parser("Serves sessions of tvm.rpc.", 9091)
    made.add_argument("--key", default="", help="kind of device that clients ask for")
    made.add_argument("--tracker", default="", help="HOST:PORT of a tracker to register with")
    made.add_argument("--proxy", default="", help="HOST:PORT of a proxy to wait for clients at")
    made.add_argument(
        "--through-proxy", action="store_true", help="--host and --port are those of a proxy"
    )
    made.add_argument("--custom-addr", default="", help="address that the tracker tells clients")
    made.add_argument(
        "--load-library",
        action="append",
        default=[],
        help="library to load first, or several with ':' between; may be repeated",
    )
    made.add_argument("--init", default="", help="MODULE:FUNCTION to call first")
    made.add_argument(
        "--allow", action="append", default=[], help="registered function that clients may call too"
    )
    made.add_argument("--open", action="store_true", help="clients may call every function")
    made.add_argument(
        "--no-fork", action="store_true", help="taken for TVM's sake; sessions are processes anyway"
    )
    made.add_argument("--max-sessions", type=int, default=1, help="sessions at a time")
    made.add_argument(
        "--session-timeout",
        type=float,
        default=0.0,
        help="seconds a session may last at most; 0 for any",
    )
    made.add_argument(
        "--max-message-bytes", type=int, default=1 << 30, help="of one upload or one argument"
    )
    made.add_argument("--work-dir", help="folder for the sessions' files")
    return run(_WHO, made.parse_args(), _serve)


if __name__ == "__main__":
    sys.exit(main())
