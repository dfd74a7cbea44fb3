"""Damaged, cut, reordered and oversized messages end a connection and nothing else.

``TVM_RPC_FUZZ`` is the number of messages; `make test-fuzz-rpc` sends a million.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket

import pytest

import tvm
from tvm import rpc
from tvm.rpc import _ffi_api
from tvm.rpc.proxy_service import ProxyService
from tvm.rpc.tracker_service import TrackerService
from tvm.runtime.workers.wire import pack_frame

COUNT = int(os.environ.get("TVM_RPC_FUZZ", "4000"))
# A message for each operation, and values of each kind.
REQUESTS = [
    ({"op": "get", "name": "rpc.test.addone"}, b""),
    ({"op": "get", "name": "runtime.ShapeTuple"}, b""),
    ({"op": "call", "h": 1, "args": [1]}, b""),
    ({"op": "call", "h": 2, "args": [1, 2, {"$": "bytes", "size": 4}]}, b"1234"),
    ({"op": "call", "h": 1, "args": [{"$": "yours", "what": "object", "h": 2}]}, b""),
    ({"op": "call", "h": 1, "args": [{"$": "mine", "what": "function", "h": 3}]}, b""),
    ({"op": "call", "h": 2, "args": [{"$": "dict", "items": [[1, 2]]}, [[], None, 1.5]]}, b""),
    (
        {
            "op": "call",
            "h": 1,
            "args": [
                {
                    "$": "yours",
                    "what": "array",
                    "h": 3,
                    "at": 0,
                    "shape": [2, 4],
                    "dtype": "float32",
                }
            ],
        },
        b"",
    ),
    ({"op": "alloc", "device": [1, 0], "bytes": 64}, b""),
    ({"op": "write", "h": 3, "at": 8}, b"12345678"),
    ({"op": "read", "h": 3, "at": 8, "bytes": 16}, b""),
    ({"op": "copy", "h": 3, "at": 0, "to": 3, "to_at": 32, "bytes": 8}, b""),
    ({"op": "member", "h": 4, "name": "main", "imports": True}, b""),
    ({"op": "attribute", "device": [1, 0], "kind": 0}, b""),
    ({"op": "sync", "device": [1, 0]}, b""),
    ({"op": "free", "handles": [2, 3]}, b""),
]
ANSWERS = [
    ({"ok": {"$": "mine", "what": "function", "h": 1, "type": "runtime.PackedFunc"}}, b""),
    ({"ok": {"$": "mine", "what": "module", "h": 1, "type": "runtime.Module"}}, b""),
    ({"ok": {"$": "mine", "what": "object", "h": 1, "type": "runtime.ShapeTuple"}}, b""),
    (
        {
            "ok": {
                "$": "mine",
                "what": "array",
                "h": 1,
                "at": 0,
                "shape": [2, 3],
                "dtype": "int8",
                "device": {"$": "device", "type": 1, "id": 0},
            }
        },
        b"",
    ),
    ({"ok": {"$": "bytes", "size": 3}}, b"abc"),
    ({"ok": None}, b""),
    ({"error": "no", "kind": "ValueError"}, b""),
    ({"end": "it was late", "kind": "RPCSessionTimeoutError"}, b""),
    ({"op": "call", "h": 1, "args": []}, b""),
    ({"op": "get", "name": "rpc.test.addone"}, b""),
]
GREETING = {"tvm-rpc": 1, "nonce": "0" * 32, "request": '{"role": "server", "key": "a", "port": 9}'}
VISITS = [
    GREETING,
    {**GREETING, "request": '{"role": "client", "key": "a"}'},
    {**GREETING, "proof": "0" * 64},
    {"op": "put", "match": "a:1"},
    {"op": "ping", "match": "a:1"},
    {"op": "summary"},
    {"op": "request", "key": "a", "priority": 3},
]
ODD = [None, True, -1, 0, 2**31, 2**63 - 1, -(2**63), 2**70, 1e300, "", "\0", "x" * 300, [], {}]
ODD += [[[[[[]]]]], {"$": "mine"}, {"$": "tuple", "items": 3}, [0] * 50]


def _odd_value(value, rng):
    """The value with one part of it replaced."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _odd_value(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], _odd_value(value[at], rng), *value[at + 1 :]]
    return rng.choice(ODD)


def _damaged(messages, rng) -> bytes:
    """Some messages in a row, most of which are not what they should be."""
    frames = []
    for message, blob in rng.choices(messages, k=rng.randint(1, 4)):
        if rng.random() < 0.5:
            message = _odd_value(message, rng)
        frames.append(bytearray(pack_frame(message, blob)))
    data = bytearray().join(frames)
    how = rng.random()
    if how < 0.2:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif how < 0.35:
        del data[rng.randrange(len(data)) :]
    elif how < 0.45:
        at = rng.choice([0, 4])
        data[at : at + 4] = rng.choice([2**32 - 1, 2**20, 2**30]).to_bytes(4, "little")
    elif how < 0.5:
        data[rng.randrange(len(data)) : 0] = rng.randbytes(rng.randint(1, 40))
    elif how < 0.55:
        data[:] = pack_frame(json.loads("[" * 100 + "]" * 100))
    return bytes(data)


@contextlib.contextmanager
def _nothing_left_over():
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) <= before


def test_serving_session_survives_what_is_sent(tmp_path):
    rng = random.Random(1)
    allowed = [*_ffi_api.DefaultAllowedFunctions()]
    with _nothing_left_over():
        for number in range(COUNT // 2):
            ours, theirs = socket.socketpair()
            data = _damaged(REQUESTS, rng)
            ours.sendall(data)
            ours.shutdown(socket.SHUT_WR)
            with ours, contextlib.suppress(tvm.TVMError, ValueError):
                _ffi_api.ServeSocket(theirs.detach(), str(tmp_path), allowed)
            assert number >= 0, data
    assert rpc.LocalSession().get_function("rpc.test.addone")(1) == 2


def test_using_session_survives_what_is_answered():
    rng = random.Random(2)
    with _nothing_left_over():
        for _ in range(COUNT // 4):
            ours, theirs = socket.socketpair()
            session = rpc.RPCSession(_ffi_api.SessionOver(theirs.detach(), "a fuzzer"))
            with contextlib.suppress(tvm.TVMError, ValueError):
                ours.sendall(_damaged(ANSWERS, rng))
                ours.shutdown(socket.SHUT_WR)
                with ours:
                    value = session.get_function("rpc.test.addone")
                    value(1)
            ours.close()
            session.close()


class _Nowhere:
    """A writer of asyncio whose reader is gone."""

    def get_extra_info(self, name):
        return ("127.0.0.1", 1) if name == "peername" else socket.socket

    def write(self, data):
        pass

    async def drain(self):
        pass

    def close(self):
        pass

    async def wait_closed(self):
        pass


@pytest.mark.parametrize("program", ["tracker", "proxy"])
@pytest.mark.parametrize("secret", ["", "0123456789abcdef"])
def test_tracker_and_proxy_survive_their_visitors(program, secret, monkeypatch):
    monkeypatch.setattr("tvm.rpc.reception.keep_alive", lambda connection: None)
    rng = random.Random(3)

    async def visit_all():
        service = (
            TrackerService(secret) if program == "tracker" else ProxyService(1, secret, None, 0.001)
        )
        for _ in range(COUNT // 16):
            reader = asyncio.StreamReader()
            first = [(GREETING, b""), (VISITS[1], b"")]
            reader.feed_data(pack_frame(*rng.choice(first)) if rng.random() < 0.7 else b"")
            reader.feed_data(_damaged([(message, b"") for message in VISITS], rng))
            reader.feed_eof()
            await asyncio.wait_for(service.visit(reader, _Nowhere()), 20)
        if program == "tracker":
            assert service.summary()["server_info"] == []
            assert all(q["pending"] == 0 for q in service.summary()["queue_info"].values())

    asyncio.run(visit_all())


def test_server_goes_on_after_strangers():
    rng = random.Random(4)
    server = rpc.Server(port=0, silent=True)
    for _ in range(max(COUNT // 100, 20)):
        address = (server.host, server.port)
        with contextlib.suppress(ConnectionError), socket.create_connection(address) as connection:
            if rng.random() < 0.5:
                connection.sendall(pack_frame({**GREETING, "request": '{"key": ""}'}))
            connection.sendall(_damaged([(m, b"") for m in VISITS] + REQUESTS, rng))
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(20)
            while connection.recv(1 << 16):
                pass
    assert rpc.connect(server.host, server.port).get_function("rpc.test.addone")(1) == 2
    server.terminate()
