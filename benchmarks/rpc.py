"""What a session costs: bandwidth beside a plain socket, a null call, and measuring beside local.

    python benchmarks/rpc.py

Both sides of every comparison run in turns, and the best of each counts.
"""

from __future__ import annotations

import multiprocessing
import socket
import time

import numpy as np

import tvm
from tvm import auto_scheduler, rpc, te

MIB = 1 << 20
ARRAY_MIB = 64
ROUNDS = 15
CANDIDATES = 10


def _sink(port_queue: multiprocessing.Queue) -> None:
    """Receive arrays into one buffer, and answer each with a byte; send one back for each."""
    listener = socket.create_server(("127.0.0.1", 0))
    port_queue.put(listener.getsockname()[1])
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = memoryview(bytearray(ARRAY_MIB * MIB))
    while command := connection.recv(1):
        if command == b"w":
            at = 0
            while at < len(buffer):
                at += connection.recv_into(buffer[at:])
            connection.sendall(b"k")
        else:
            connection.sendall(buffer)


def bandwidth() -> None:
    """GB/s of copying an array there and back, and of the same bytes over a plain socket."""
    ports: multiprocessing.Queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=_sink, args=(ports,), daemon=True)
    process.start()
    plain = socket.create_connection(("127.0.0.1", ports.get()))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = rpc.Server(port=0, silent=True)
    session = rpc.connect(server.host, server.port)
    values = np.random.default_rng(0).integers(0, 255, ARRAY_MIB * MIB, dtype="uint8")
    there = tvm.nd.empty(values.shape, "uint8", session.cpu(0))
    here = tvm.nd.empty(values.shape, "uint8")
    back = memoryview(bytearray(values.nbytes))

    def plain_write() -> None:
        plain.sendall(b"w")
        plain.sendall(values)
        plain.recv(1)

    def plain_read() -> None:
        plain.sendall(b"r")
        at = 0
        while at < len(back):
            at += plain.recv_into(back[at:])

    work = {
        "socket, to": plain_write,
        "session, to": lambda: there.copyfrom(values),
        "socket, from": plain_read,
        "session, from": lambda: here.copyfrom(there),
    }
    best = dict.fromkeys(work, float("inf"))
    for _ in range(ROUNDS):
        for name, function in work.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name:14s} {values.nbytes / seconds / 1e9:6.2f} GB/s")
    for way in ("to", "from"):
        print(f"share {way:8s} {best[f'socket, {way}'] / best[f'session, {way}']:6.0%}")
    function = session.get_function("rpc.test.addone")
    times = []
    for _ in range(5000):
        start = time.perf_counter()
        function(1)
        times.append(time.perf_counter() - start)
    print(f"null call      {np.min(times) * 1e6:6.1f} us (median {np.median(times) * 1e6:.1f})")
    server.terminate()
    process.terminate()


def measuring() -> None:
    """Milliseconds of measuring a candidate, through a tracker and in a local worker."""
    n = 64
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    dag = auto_scheduler.ComputeDAG([a, b, c])
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key="benchmark", target="llvm")
    candidates = [auto_scheduler.MeasureInput(task, dag.init_state)] * CANDIDATES
    builder = auto_scheduler.LocalBuilder(n_parallel=1)
    programs = builder.build(candidates)
    builder.pool.close()
    context = auto_scheduler.LocalRPCMeasureContext(number=1)
    local = auto_scheduler.LocalRunner(number=1, min_repeat_ms=0)
    best = {"local": float("inf"), "rpc": float("inf")}
    for _ in range(6):
        for name, runner in (("local", local), ("rpc", context.runner)):
            start = time.perf_counter()
            results = runner.run(candidates, programs)
            assert all(int(result.error_no) == 0 for result in results)
            best[name] = min(best[name], (time.perf_counter() - start) / CANDIDATES)
    local.pool.close()
    for name, seconds in best.items():
        print(f"{name:14s} {seconds * 1e3:6.2f} ms a candidate")
    print(f"overhead       {(best['rpc'] - best['local']) * 1e3:6.2f} ms a candidate")


if __name__ == "__main__":
    bandwidth()
    measuring()
