"""Worker processes: whatever a job does, its outcome comes back and the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tvm.runtime.workers import Job, WorkerPool

MEMORY_BYTES = 1 << 30


def job(name, blob=b"", **arguments):
    return Job(f"testing_jobs:{name}", arguments, blob)


@pytest.fixture(autouse=True)
def jobs_on_path(monkeypatch):
    here = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def pool(jobs_on_path):
    with WorkerPool(1, timeout=20, memory_bytes=MEMORY_BYTES) as started:
        yield started


@pytest.fixture
def hasty_pool(jobs_on_path):
    with WorkerPool(2, timeout=1.0, memory_bytes=MEMORY_BYTES) as started:
        yield started


def test_result_and_bytes_come_back_in_order(hasty_pool):
    outcomes = hasty_pool.run([job("echo", bytes([i, 7]), i=i) for i in range(8)])
    assert [o.result["i"] for o in outcomes] == list(range(8))
    assert [o.blob for o in outcomes] == [bytes([7, i]) for i in range(8)]


def test_processes_are_kept_between_jobs(pool):
    first, second = pool.run([job("process_id")]), pool.run([job("process_id")])
    assert first[0].result == second[0].result != os.getpid()


def test_large_messages_pass(pool):
    blob = os.urandom(5 << 20)
    [outcome] = pool.run([job("echo", blob, text="x" * 100_000)])
    assert outcome.blob == blob[::-1]


def test_exception_is_an_error_with_its_text(pool):
    outcomes = pool.run([job("fail", text="not today"), job("echo", i=1)])
    assert (outcomes[0].status, outcomes[0].message) == ("error", "ValueError: not today")
    assert outcomes[1].result == {"i": 1}


def test_unknown_function_is_an_error_that_names_it(pool):
    [outcome] = pool.run([job("no_such_function")])
    assert outcome.status == "error"
    assert "no_such_function" in outcome.message


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("segfault", "ended by signal SIGSEGV"),
        ("killed", "ended by signal SIGKILL"),
        ("exit_process", "exited with status 3"),
    ],
)
def test_death_of_a_worker_costs_one_job(pool, name, reason):
    outcomes = pool.run([job("echo", i=0), job(name), job("echo", i=2)])
    assert [o.status for o in outcomes] == ["done", "died", "done"]
    assert reason in outcomes[1].message


def test_jobs_that_never_return_are_killed_after_the_timeout(hasty_pool):
    hasty_pool.warm_up()
    start = time.monotonic()
    outcomes = hasty_pool.run([job("never_return"), job("hold_the_interpreter"), job("echo", i=2)])
    assert [o.status for o in outcomes] == ["timeout", "timeout", "done"]
    assert "no result after 1 s" in outcomes[0].message
    assert time.monotonic() - start < 30


def test_allocating_without_end_is_an_error_not_the_end_of_the_machine(pool):
    outcomes = pool.run([job("allocate_without_end"), job("echo", i=1)])
    assert outcomes[0].message == "MemoryError: out of memory"
    assert outcomes[1].status == "done"


def test_printing_does_not_disturb_the_answers(pool):
    outcomes = pool.run([job("print_much"), job("echo", i=1)])
    assert [o.result for o in outcomes] == ["still in step", {"i": 1}]


def test_worker_killed_while_idle_is_replaced(pool):
    pool.warm_up()
    [process] = pool.process_ids()
    os.kill(process, signal.SIGKILL)
    [outcome] = pool.run([job("echo", i=1)])
    # The job may reach the worker before its death shows; then it fails, and the next one runs.
    assert outcome.status in ("done", "died")
    assert pool.run([job("echo", i=2)])[0].status == "done"


def test_started_workers_are_waited_for_by_the_first_job(pool):
    pool.start()
    processes = pool.process_ids()
    assert len(processes) == pool.size
    assert pool.run([job("echo", i=1)])[0].status == "done"
    assert pool.process_ids() == processes


def test_closing_ends_all_processes(jobs_on_path):
    pool = WorkerPool(2, timeout=5)
    pool.warm_up()
    processes = pool.process_ids()
    assert len(processes) == 2
    pool.close()
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_callback_error_leaves_no_job_behind(hasty_pool):
    def refuse(position, outcome):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hasty_pool.run([job("echo", i=0), job("never_return")], refuse)
    assert hasty_pool.run([job("echo", i=3)])[0].result == {"i": 3}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the Linux kernel")
def test_hung_workers_die_with_a_killed_parent(tmp_path):
    marker = tmp_path / "started"
    script = (
        "from tvm.runtime.workers import Job, WorkerPool\n"
        "pool = WorkerPool(1, timeout=100)\n"
        "pool.warm_up()\n"
        "print(pool.process_ids()[0], flush=True)\n"
        f"pool.run([Job('testing_jobs:report_and_hang', {{'file': {str(marker)!r}}})])\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    deadline = time.monotonic() + 30
    while not marker.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        state = Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[0]
        if state == "Z":
            return  # dead; nobody collected it yet
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_worker_that_cannot_start_says_why(jobs_on_path):
    with (
        WorkerPool(1, timeout=5, modules=["no_such_module_anywhere"]) as pool,
        pytest.raises(RuntimeError, match="did not start.*no_such_module_anywhere"),
    ):
        pool.run([job("echo")])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [({"size": 0, "timeout": 1}, "size must be >= 1"), ({"size": 1, "timeout": 0}, "timeout")],
)
def test_limits_out_of_range_are_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        WorkerPool(**arguments)
