"""Trackers and proxies: matching by key, priorities, and what happens when one of them ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tvm import rpc
from tvm.runtime.workers import child_environment


def _wait_for(true, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@pytest.fixture
def tracker():
    started = rpc.Tracker(port=0, silent=True)
    yield started
    started.terminate()


def _server(tracker, key="board"):
    return rpc.Server(port=0, key=key, tracker_addr=(tracker.host, tracker.port), silent=True)


def _queue(client, key="board"):
    return client.summary()["queue_info"].get(key, {"free": 0, "pending": 0})


def test_servers_of_a_key_are_counted_and_given_out(tracker):
    servers = [_server(tracker) for _ in range(2)]
    client = rpc.connect_tracker(tracker.host, tracker.port)
    _wait_for(lambda: _queue(client)["free"] == 2)
    ports = {s["addr"][1] for s in client.summary()["server_info"]}
    assert ports == {server.port for server in servers}
    session = client.request("board")
    assert session.get_function("rpc.test.addone")(1) == 2
    assert _queue(client)["free"] == 1
    del session
    _wait_for(lambda: _queue(client)["free"] == 2)
    servers[0].terminate()
    _wait_for(lambda: _queue(client)["free"] == 1)
    shown = client.text_summary()
    assert f"127.0.0.1:{servers[1].port}" in shown and "board" in shown
    # Nobody goes past the tracker.
    with pytest.raises(rpc.RPCError, match="ask the tracker"):
        rpc.connect("127.0.0.1", servers[1].port, "board")
    servers[1].terminate()
    _wait_for(lambda: _queue(client)["free"] == 0)


def test_higher_priority_goes_first_and_a_client_that_leaves_is_forgotten(tracker):
    server = _server(tracker)
    client = rpc.connect_tracker(tracker.host, tracker.port)
    _wait_for(lambda: _queue(client)["free"] == 1)
    holder = client.request("board")
    order: list[int] = []

    def ask(priority: int) -> None:
        other = rpc.connect_tracker(tracker.host, tracker.port)
        session = other.request("board", priority=priority)
        order.append(priority)
        session.close()

    threads = []
    for count, priority in enumerate((1, 5, 3), start=1):
        threads.append(threading.Thread(target=ask, args=(priority,)))
        threads[-1].start()
        _wait_for(lambda count=count: _queue(client)["pending"] == count)
    with pytest.raises(rpc.RPCSessionTimeoutError, match="1 of that key are there and busy"):
        client.request("board", request_timeout=0.2)
    _wait_for(lambda: _queue(client)["pending"] == 3)
    holder.close()
    for thread in threads:
        thread.join(20)
    assert order == [5, 3, 1]
    server.terminate()


def test_no_server_of_the_key_is_said(tracker):
    client = rpc.connect_tracker(tracker.host, tracker.port)
    how = f"rpc_server --tracker 127.0.0.1:{tracker.port} --key phone"
    with pytest.raises(rpc.RPCSessionTimeoutError, match=f"none is registered under it.*{how}"):
        client.request("phone", request_timeout=0.2)


def test_a_request_that_waits_says_for_what(tracker, monkeypatch, caplog):
    monkeypatch.setattr(rpc.client, "_NOTICE_SECONDS", 0.1)
    client = rpc.connect_tracker("127.0.0.1", tracker.port)
    with pytest.raises(rpc.RPCSessionTimeoutError):
        client.request("phone", request_timeout=3)
    (record,) = caplog.records
    assert "no server of key 'phone' is free for 0.1 s; none is registered" in record.message
    assert record.message.endswith("going on to wait (request_timeout limits it)")


def test_servers_come_back_to_a_tracker_that_was_started_again(tracker):
    server = _server(tracker)
    client = rpc.connect_tracker(tracker.host, tracker.port)
    _wait_for(lambda: _queue(client)["free"] == 1)
    tracker.terminate()
    with pytest.raises(rpc.RPCError, match="cannot connect|is gone"):
        client.summary()
    again = rpc.Tracker(port=tracker.port, port_end=tracker.port + 1, silent=True)
    _wait_for(lambda: _queue(client)["free"] == 1)
    assert client.request("board").get_function("rpc.test.addone")(1) == 2
    server.terminate()
    again.terminate()


def test_work_goes_on_at_another_server_when_a_session_breaks(tracker):
    servers = [_server(tracker) for _ in range(2)]
    client = rpc.connect_tracker(tracker.host, tracker.port)
    _wait_for(lambda: _queue(client)["free"] == 2)
    attempts = []

    def work(session):
        attempts.append(session)
        if len(attempts) == 1:
            session.close()
        return session.get_function("rpc.test.addone")(1)

    assert client.request_and_run("board", work) == 2
    for server in servers:
        server.terminate()


@pytest.mark.parametrize("tracked", [False, True])
def test_server_behind_a_proxy_is_reached(tracker, tracked):
    address = (tracker.host, tracker.port) if tracked else None
    proxy = rpc.Proxy(port=0, tracker_addr=address, silent=True)
    server = rpc.Server(proxy.host, proxy.port, is_proxy=True, key="board", silent=True)
    for _ in range(2):
        if tracked:
            session = rpc.connect_tracker(*address).request("board", session_timeout=30)
        else:
            session = rpc.connect(proxy.host, proxy.port, "board")
        assert session.get_function("rpc.test.addone")(1) == 2
        session.close()
    server.terminate()
    proxy.terminate()


def test_session_through_a_proxy_ends_in_time():
    proxy = rpc.Proxy(port=0, silent=True)
    server = rpc.Server(proxy.host, proxy.port, is_proxy=True, key="board", silent=True)
    session = rpc.connect(proxy.host, proxy.port, "board", session_timeout=0.5)
    function = session.get_function("rpc.test.addone")
    time.sleep(1)
    with pytest.raises(rpc.RPCSessionTimeoutError):
        function(1)
    server.terminate()
    proxy.terminate()


@pytest.mark.parametrize("program", ["rpc_tracker", "rpc_proxy"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_end_of_a_program_with_visitors_prints_nothing(program, number):
    process = subprocess.Popen(
        [sys.executable, "-m", f"tvm.exec.{program}", "--port", "0", "--port-end", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    port = int(process.stdout.readline().rpartition(":")[2])
    if program == "rpc_tracker":
        client = rpc.connect_tracker("127.0.0.1", port)
        server = rpc.Server(port=0, key="a", tracker_addr=("127.0.0.1", port), silent=True)
        _wait_for(lambda: _queue(client, "a")["free"] == 1)
    else:
        server = rpc.Server("127.0.0.1", port, is_proxy=True, key="a", silent=True)
        client = rpc.connect("127.0.0.1", port, "a")
    process.send_signal(number)
    assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == 0
    client.close()
    server.terminate()


def test_programs_are_silent_if_told():
    tracker = rpc.Tracker(port=0, silent=True)
    command = ["rpc_server", "--silent", "--no-fork", "--port", "0", "--key", "a", "--tracker"]
    process = subprocess.Popen(
        [sys.executable, "-m", f"tvm.exec.{command[0]}", *command[1:], f"127.0.0.1:{tracker.port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    client = rpc.connect_tracker("127.0.0.1", tracker.port)
    _wait_for(lambda: _queue(client, "a")["free"] == 1)
    # Without the option it says that its tracker is gone.
    tracker.terminate()
    time.sleep(1.5)
    process.terminate()
    assert process.communicate(timeout=20) == ("", "")


def test_proxy_is_named_by_host_and_port_too():
    proxy = rpc.Proxy(port=0, silent=True)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tvm.exec.rpc_server", "--through-proxy", "--key", "a"),
            *("--host", proxy.host, "--port", str(proxy.port)),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    assert process.stdout.readline() == (
        f"rpc_server: waiting for clients at the proxy 127.0.0.1:{proxy.port}\n"
    )
    session = rpc.connect(proxy.host, proxy.port, "a")
    assert session.get_function("rpc.test.addone")(1) == 2
    session.close()
    process.terminate()
    process.communicate(timeout=20)
    proxy.terminate()


def test_tracker_that_stands_still_holds_nobody_up():
    tracker = rpc.Tracker(port=0, silent=True)
    proxy = rpc.Proxy(port=0, tracker_addr=(tracker.host, tracker.port), silent=True)
    server = rpc.Server(proxy.host, proxy.port, is_proxy=True, key="a", silent=True)
    client = rpc.connect_tracker(tracker.host, tracker.port)
    _wait_for(lambda: _queue(client, "a")["free"] == 1)
    os.kill(tracker.proc.pid, signal.SIGSTOP)
    try:
        with pytest.raises(rpc.RPCSessionTimeoutError, match="does not answer within 0.2 s"):
            client.summary(0.2)
        with pytest.raises(rpc.RPCSessionTimeoutError, match="gone or stands still"):
            client.request("b", request_timeout=0.2)
        # Asks the tracker every two seconds; an answer would be waited for now.
        time.sleep(2.5)
        os.kill(proxy.proc.pid, signal.SIGTERM)
        # Well before its question to the tracker would be given up.
        assert proxy.proc.wait(4) == 0
    finally:
        os.kill(tracker.proc.pid, signal.SIGCONT)
    server.terminate()
    tracker.terminate()


def test_query_prints_the_summary(tracker):
    server = _server(tracker)
    command = [sys.executable, "-m", "tvm.exec.query_rpc_tracker", "--port", str(tracker.port)]
    _wait_for(
        lambda: (
            "board"
            in subprocess.run(
                command, capture_output=True, text=True, env=child_environment(), check=True
            ).stdout
        )
    )
    server.terminate()
