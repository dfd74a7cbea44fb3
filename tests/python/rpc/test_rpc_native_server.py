"""The server that needs no Python."""

from __future__ import annotations

import signal
import subprocess
import time

import numpy as np
import pytest

import tvm
from tvm import rpc, te


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "add_one.so"
    a = te.placeholder((102,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="add_one").export_library(path)
    return path


def _try(session, library):
    session.upload(library)
    module = session.load_module("add_one.so")
    values = np.arange(102, dtype="float32")
    a = tvm.nd.array(values, session.cpu(0))
    b = tvm.nd.empty((102,), "float32", session.cpu(0))
    timed = module.time_evaluator("add_one", session.cpu(0), number=3)
    assert timed(a, b).mean > 0
    assert (b.numpy() == values + 1).all()


def test_it_serves_a_session_over_its_input(library):
    session = rpc.PopenSession(rpc.native_server())
    _try(session, library)
    session.close()
    assert session._process.returncode == 0
    with pytest.raises(rpc.RPCError, match="cannot start"):
        rpc.PopenSession("/no/such/program")


def test_it_serves_the_clients_of_a_tracker(library, tmp_path):
    tracker = rpc.Tracker(port=0, silent=True)
    server = subprocess.Popen(
        [
            *(rpc.native_server(), "--port", "0", "--key", "board", "--work-dir", str(tmp_path)),
            *("--tracker", f"{tracker.host}:{tracker.port}"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert "listening on 127.0.0.1" in server.stdout.readline()
    client = rpc.connect_tracker(tracker.host, tracker.port)
    for _ in range(2):
        session = client.request("board", request_timeout=20)
        _try(session, library)
        session.upload(b"no archive", "x.tar")
        with pytest.raises(ValueError, match="cannot link"):
            session.load_module("x.tar")
        session.close()
    server.send_signal(signal.SIGTERM)
    assert server.wait(10) == 0
    server.stdout.close()
    deadline = time.monotonic() + 5
    while list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
    tracker.terminate()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "takes a shared secret"),
        (["--tracker", "here"], "expected HOST:PORT"),
        (["--tracker", "127.0.0.1:9190"], "needs a --key"),
        (["--port", "many"], "expected a number"),
        (["--fast"], "no option"),
    ],
)
def test_it_says_what_is_wrong_in_one_line(arguments, message):
    done = subprocess.run(
        [rpc.native_server(), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
