"""Functions in a copy of the process: what they do to it is told, and costs nothing else."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tvm.runtime.workers import child_environment
from tvm.runtime.workers.forked import can_fork, run_forked

pytestmark = pytest.mark.skipif(not can_fork(), reason="needs fork")


def test_results_come_back_and_state_does_not():
    kept = []

    def function(clock):
        kept.append(1)
        return {"id": os.getpid(), "long": "x" * 1_000_000}

    outcome = run_forked(function, math.inf)
    assert outcome.status == "done" and len(outcome.result["long"]) == 1_000_000
    assert outcome.result["id"] != os.getpid() and not kept


def test_exceptions_are_told():
    def function(clock):
        raise ValueError("not today")

    outcome = run_forked(function, math.inf)
    assert (outcome.status, outcome.kind) == ("error", "ValueError")
    assert outcome.message == "ValueError: not today"
    # What cannot be said in JSON is the function's mistake.
    assert run_forked(lambda clock: object(), math.inf).kind == "TypeError"


def test_a_copy_does_not_handle_what_its_parent_does():
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    try:
        outcome = run_forked(lambda clock: os.kill(os.getpid(), signal.SIGTERM), math.inf)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert outcome.message == "the process ended by signal SIGTERM"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_death_is_told(number):
    outcome = run_forked(lambda clock: os.kill(os.getpid(), number), math.inf)
    assert (outcome.status, outcome.message) == (
        "died",
        f"the process ended by signal {number.name}",
    )


def test_exits_are_told():
    outcome = run_forked(lambda clock: os._exit(3), math.inf)
    assert (outcome.status, outcome.message) == ("died", "the process exited with status 3")


def test_only_what_is_on_the_clock_is_limited():
    def slow_around(clock):
        time.sleep(0.4)
        clock.start()
        clock.stop()
        time.sleep(0.4)
        return "done"

    outcome = run_forked(slow_around, 0.3)
    assert outcome.status == "done" and outcome.seconds < 0.3

    def endless(clock):
        clock.start()
        while True:
            pass

    outcome = run_forked(endless, 0.2)
    assert outcome.status == "timeout" and outcome.seconds >= 0.2
    assert "killed" in outcome.message


def test_ignored_signals_do_not_save_it():
    def stubborn(clock):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        clock.start()
        time.sleep(60)

    assert run_forked(stubborn, 0.1).status == "timeout"


def test_copies_end_with_the_process_that_waits(tmp_path):
    script = """if True:
        import os, pathlib, sys, time
        from tvm.runtime.workers.forked import run_forked
        def function(clock):
            path = pathlib.Path(sys.argv[1])
            path.with_suffix(".part").write_text(str(os.getpid()))
            path.with_suffix(".part").rename(path)
            time.sleep(600)
        run_forked(function, float("inf"))
    """
    path = tmp_path / "pid"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, env=child_environment()) as waiting:
        while not path.exists():
            assert waiting.poll() is None
            time.sleep(0.05)
        child = int(path.read_text())
        os.kill(child, 0)
        waiting.kill()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":  # gone, and not yet taken note of by whoever inherits it
            return
        time.sleep(0.05)
    raise AssertionError("the copy goes on")
