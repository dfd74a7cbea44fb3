"""Programs, functions and arrays of other machines, as if they were here.

A server runs what is measured or used from afar, a tracker gives servers to those who ask for a
kind of device, and a proxy brings clients to servers that nobody can reach. See docs/rpc.md.
"""

from __future__ import annotations

from tvm.error import RPCError, RPCSessionTimeoutError

from . import base, proxy, server, tracker
from .base import RPC_SESS_MASK
from .client import (
    LocalSession,
    PopenSession,
    RPCSession,
    TrackerSession,
    connect,
    connect_tracker,
    device_is_there,
)
from .minrpc import with_minrpc
from .program import native_server
from .proxy import Proxy
from .server import Server
from .tls import TLS
from .tracker import Tracker

__all__ = [
    "RPC_SESS_MASK",
    "TLS",
    "LocalSession",
    "PopenSession",
    "Proxy",
    "RPCError",
    "RPCSession",
    "RPCSessionTimeoutError",
    "Server",
    "Tracker",
    "TrackerSession",
    "base",
    "connect",
    "connect_tracker",
    "device_is_there",
    "native_server",
    "proxy",
    "server",
    "tracker",
    "with_minrpc",
]
