"""Calls in other processes: results, errors, timeouts, replaced processes."""

import math
import operator
import os
import time

import pytest

from tvm.contrib.popen_pool import MapResult, PopenPoolExecutor, PopenWorker, StatusKind


def test_results_errors_and_timeouts_of_one_process():
    worker = PopenWorker()
    assert not worker.is_alive()
    worker.send(math.factorial, [5])
    assert worker.recv() == 120
    assert worker.is_alive()
    worker.send(operator.truediv, [1, 0])
    with pytest.raises(ZeroDivisionError):
        worker.recv()
    worker.send(time.sleep, [60], timeout=0.2)
    with pytest.raises(TimeoutError, match=r"no result after 0\.2 s"):
        worker.recv()
    worker.send(os._exit, [3])
    with pytest.raises(ChildProcessError, match="3"):
        worker.recv()
    worker.send(int, kwargs={"base": 2}, args=["101"])
    assert worker.recv() == 5
    worker.kill()
    assert not worker.is_alive()


def test_calls_are_taken_one_by_one():
    worker = PopenWorker()
    with pytest.raises(RuntimeError, match="send a call first"):
        worker.recv()
    worker.send(abs, [-1])
    with pytest.raises(RuntimeError, match="recv first"):
        worker.send(abs, [-2])
    assert worker.recv() == 1
    worker.join()
    assert not worker.is_alive()


def test_processes_are_prepared_and_replaced():
    worker = PopenWorker(os.chdir, ["/"], maximum_uses=2)
    ids = []
    for _ in range(3):
        worker.send(os.getpid)
        ids.append(worker.recv())
    assert ids[0] == ids[1] != ids[2]
    worker.send(os.getcwd)
    assert worker.recv() == "/"


def test_pools_catch_what_fails():
    pool = PopenPoolExecutor(max_workers=2, timeout=30)
    results = list(pool.map_with_error_catching(math.sqrt, [4.0, -1.0, 9.0]))
    assert results[0] == MapResult(StatusKind.COMPLETE, 2.0)
    assert results[1].status == StatusKind.EXCEPTION
    assert isinstance(results[1].value, ValueError)
    assert results[2].value == 3.0
    assert pool.submit(pow, 2, 10).result() == 1024
    slow = PopenPoolExecutor(max_workers=1, timeout=0.2)
    (late,) = slow.map_with_error_catching(time.sleep, [60])
    assert late.status == StatusKind.TIMEOUT
