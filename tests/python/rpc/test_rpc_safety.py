"""Who is let in: secrets, addresses, TLS, functions; and what bad input says."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import shutil
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest

import tvm
from tvm import rpc
from tvm.rpc import _ffi_api
from tvm.rpc.base import load_secret, random_key, split_random_key
from tvm.runtime.workers import child_environment


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text("a secret of more than 16 bytes\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("program", [rpc.Server, rpc.Tracker, rpc.Proxy])
def test_other_machines_are_not_let_in_without_a_secret(program):
    with pytest.raises(rpc.RPCError, match="takes a shared secret"):
        program("0.0.0.0", 0, silent=True)


def test_both_ends_prove_that_they_know_the_secret(secret_file, tmp_path):
    tracker = rpc.Tracker(port=0, silent=True, secret_file=secret_file)
    server = rpc.Server(
        port=0,
        key="board",
        tracker_addr=(tracker.host, tracker.port),
        silent=True,
        secret_file=secret_file,
    )
    client = rpc.connect_tracker(tracker.host, tracker.port, secret_file=secret_file)
    session = client.request("board", request_timeout=20)
    assert session.get_function("rpc.test.addone")(1) == 2
    session.close()
    wrong = tmp_path / "wrong"
    wrong.write_text("another secret of 16 bytes")
    wrong.chmod(0o600)
    for connect, program in ((rpc.connect, server), (rpc.connect_tracker, tracker)):
        with pytest.raises(rpc.RPCError, match="the secret is wrong"):
            connect("127.0.0.1", program.port, secret_file=wrong)
        with pytest.raises(rpc.RPCError, match="wants a secret"):
            connect("127.0.0.1", program.port)
    server.terminate()
    tracker.terminate()
    bare = rpc.Server(port=0, silent=True)
    with pytest.raises(rpc.RPCError, match="cannot prove who it is"):
        rpc.connect(bare.host, bare.port, secret_file=secret_file)
    bare.terminate()


def test_secrets_that_are_no_secrets_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.write_text("short")
    with pytest.raises(rpc.RPCError, match="chmod 600"):
        load_secret(path)
    path.chmod(0o600)
    with pytest.raises(rpc.RPCError, match="take at least 16"):
        load_secret(path)
    with pytest.raises(rpc.RPCError, match="cannot be read"):
        load_secret(tmp_path / "nothing")
    path.write_bytes(bytes(range(128, 160)))
    with pytest.raises(rpc.RPCError, match="is no text"):
        load_secret(path)
    monkeypatch.setenv("TVM_RPC_SECRET", "0123456789abcdef")
    assert load_secret() == "0123456789abcdef"


def test_program_of_another_kind_is_said():
    tracker, server = rpc.Tracker(port=0, silent=True), rpc.Server(port=0, silent=True)
    with pytest.raises(rpc.RPCError, match="is a tracker, where a server or a proxy is wanted"):
        rpc.connect(tracker.host, tracker.port)
    with pytest.raises(rpc.RPCError, match="is a server, where a tracker is wanted"):
        rpc.connect_tracker(server.host, server.port)
    server.terminate()
    tracker.terminate()


def test_hmac_is_that_of_the_standard_library():
    for size in (0, 1, 55, 56, 63, 64, 65, 200):
        key, text = "k" * size, "t" * (2 * size)
        wanted = hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
        assert _ffi_api.HmacSha256(key, text) == wanted


def test_functions_off_the_list_are_not_called():
    server = rpc.Server(port=0, silent=True, allow=["runtime.GetLib*"])
    session = rpc.connect(server.host, server.port)
    with pytest.raises(rpc.RPCError, match="--allow runtime.ModuleLoadFromFile"):
        session.get_function("runtime.ModuleLoadFromFile")
    assert session.get_function("runtime.GetLibraryPath")()
    server.terminate()


def test_servers_need_the_runtime_library_only():
    environment = {**child_environment(), "TVM_USE_RUNTIME_LIB": "1"}
    code = (
        "import tvm; from tvm import rpc; s = rpc.Server(port=0, silent=True);"
        "r = rpc.connect(s.host, s.port);"
        "assert r.get_function('rpc.test.addone')(1) == 2; print('served')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout == "served\n", done.stderr


@pytest.mark.parametrize(
    ("key", "port", "message"),
    [
        ("phone", None, 'key "phone" is not that of this server'),
        ("board", 1, "is a tracker or server running there"),
    ],
)
def test_what_cannot_be_reached_is_said_in_one_line(key, port, message):
    server = rpc.Server(port=0, key="board", silent=True)
    with pytest.raises(rpc.RPCError, match=message) as raised:
        rpc.connect(server.host, port or server.port, key)
    assert "\n" not in str(raised.value)
    server.terminate()


def test_unknown_host_and_taken_port_are_said():
    with pytest.raises(rpc.RPCError, match="not known here"):
        rpc.connect("no.such.host.invalid", 9090)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(rpc.RPCError, match="choose another port"):
            rpc.Server(port=port, port_end=port + 1, silent=True)


def test_program_of_another_protocol_is_said():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        answers = [b"HTTP/1.0 400 Bad Request\r\n", _frame(b'{"tvm-rpc": 99}')]
        for answer, message in zip(answers, ("is it a tvm.rpc program", "speaks version 99")):
            thread = threading.Thread(target=_greet, args=(other, answer))
            thread.start()
            with pytest.raises(rpc.RPCError, match=message):
                rpc.connect("127.0.0.1", port)
            thread.join()


def _greet(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(answer)
        with contextlib.suppress(ConnectionError):
            connection.recv(100)


def _frame(text: bytes) -> bytes:
    return len(text).to_bytes(4, "little") + bytes(8) + text


def test_keys_of_assignments_are_not_guessed():
    key = random_key("127.0.0.1:5555")
    assert split_random_key(key)[0] == "127.0.0.1:5555"
    assert random_key("a", cmap={key}) != key


def test_command_lines_say_what_is_wrong_in_one_line():
    for program, arguments, message in (
        ("rpc_server", ["--tracker", "nowhere"], "--tracker: expected HOST:PORT"),
        ("rpc_server", ["--init", "os:nothing"], "--init: module 'os' has no attribute 'nothing'"),
        ("rpc_server", ["--load-library", "no.so"], "--load-library: load_module: ./no.so"),
        ("rpc_server", ["--work-dir", "no/folder"], "--work-dir: there is no folder no/folder"),
        ("rpc_server", ["--session-timeout", "-1"], "--session-timeout is at least 0, got -1"),
        ("rpc_server", ["--max-message-bytes", "0"], "--max-message-bytes is at least 1, got 0"),
        ("rpc_server", ["--tls-certificate", "no.pem"], "of no.pem, one is missing"),
        ("rpc_server", ["--tls-key", "no.pem"], "give that too: --tls-certificate"),
        ("rpc_server", ["--secret-file", "."], "is a folder; name the file in it"),
        ("rpc_server", ["--through-proxy", "--proxy", "a:1"], "--through-proxy takes the proxy"),
        ("rpc_proxy", ["--timeout-client", "-1"], "--timeout-client is at least 0, got -1"),
        ("rpc_tracker", ["--host", "0.0.0.0"], "takes a shared secret"),
        ("query_rpc_tracker", ["--port", "1"], "cannot connect"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", f"tvm.exec.{program}", *arguments],
            capture_output=True,
            text=True,
            env=child_environment(),
        )
        assert done.returncode == 1
        assert message in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_sessions_run_over_tls(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    tls = rpc.TLS(str(certificate), str(key), str(certificate))
    tracker = rpc.Tracker(port=0, silent=True, tls=tls)
    server = rpc.Server(
        port=0, key="board", tracker_addr=(tracker.host, tracker.port), silent=True, tls=tls
    )
    client = rpc.connect_tracker(tracker.host, tracker.port, tls=tls)
    session = client.request("board", request_timeout=30)
    session.upload(bytes(range(256)) * 4096, "data")
    assert session.download("data") == bytes(range(256)) * 4096
    # A thread of Python encrypts, so nothing that waits for the other end may hold its lock.
    values = np.arange(1 << 18)
    there = tvm.nd.array(values, session.cpu(0))
    assert (there.copyto(session.cpu(0)).numpy() == values).all()
    session.close()
    command = [sys.executable, "-m", "tvm.exec.query_rpc_tracker", "--port", str(tracker.port)]
    authority, own = ("--tls-authority", certificate), ("--tls-certificate", certificate)
    for options, said in (
        ((*authority, *own, "--tls-key", key), "board"),
        (authority, "wants TLS: then give this program certificates, one of its own"),
    ):
        done = subprocess.run(
            [*command, *map(str, options)], capture_output=True, text=True, env=child_environment()
        )
        assert said in done.stdout + done.stderr
    with pytest.raises(rpc.RPCSessionTimeoutError, match="did not say in time what it is"):
        rpc.connect(server.host, server.port, connect_timeout=0.5)
    server.terminate()
    tracker.terminate()
