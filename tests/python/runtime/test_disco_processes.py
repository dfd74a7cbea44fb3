"""Workers that are processes, and what happens when they or their controller end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from testing_disco import arrays_of
from tvm.runtime import disco


@pytest.fixture
def processes(disco_functions):
    session = disco.ProcessSession(3)
    session.import_python_module(disco_functions)
    yield session
    del session


def assert_over(session, reason):
    with pytest.raises(RuntimeError, match=f"session is over: worker 1 is gone, .*{reason}"):
        session.sync_worker_0()
    with pytest.raises(RuntimeError, match=reason):
        session.empty((1,), "float32")
    session.shutdown()


def test_a_killed_process_is_reported_to_who_waits_for_it(processes):
    result = processes.get_global_func("test.disco.sleep_on")(1)
    killer = threading.Timer(0.2, os.kill, (processes.process_ids[0], signal.SIGKILL))
    killer.start()
    with pytest.raises(RuntimeError, match=r"worker 1 is gone, its process \d+ ended .* SIGKILL"):
        result.debug_get_from_remote(1)
    assert_over(processes, "ended by signal SIGKILL")


def test_a_killed_process_does_not_keep_others_waiting(processes):
    ref = processes.empty((1,), "float32")
    ref.debug_get_from_remote(1)
    processes.get_global_func("test.disco.sleep_on")(1)
    processes.allreduce(ref, ref)
    os.kill(processes.process_ids[0], signal.SIGKILL)
    assert_over(processes, "ended by signal SIGKILL")


def test_shutdown_does_not_repeat_what_a_call_said(processes):
    ref = processes.empty((1,), "float32")
    processes.get_global_func("test.disco.sleep_on")(1)
    processes.allreduce(ref, ref)
    os.kill(processes.process_ids[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="the session is over: worker 1 is gone"):
        while True:
            processes.empty((1,), "float32")
            time.sleep(0.01)
    processes.shutdown()


def test_a_process_killed_while_idle_is_noticed(processes):
    ref = processes.empty((1,), "float32")
    os.kill(processes.process_ids[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="SIGKILL"):
        ref.debug_get_from_remote(1)
    assert_over(processes, "SIGKILL")


def test_a_process_that_exits_is_reported_by_status_even_at_shutdown(processes):
    processes.get_global_func("test.disco.leave")(1, 5)
    with pytest.raises(RuntimeError, match=r"ended early: worker 1 is gone, .* status 5"):
        processes.shutdown()


def test_shutdown_ends_the_processes_and_waits(processes):
    ref = processes.broadcast(np.ones(1 << 16, "float32"))
    processes.allreduce(ref, ref)
    ids = processes.process_ids
    processes.shutdown()
    for pid in ids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_large_arrays_pass_the_pipes(processes):
    # Far more than a pipe holds, in both directions at once.
    ref = processes.broadcast(np.arange(1 << 20, dtype="float32"))
    for got in arrays_of(processes.allreduce(ref, ref)):
        np.testing.assert_array_equal(got, 3 * np.arange(1 << 20, dtype="float32"))


def test_an_entry_point_of_ones_own_registers_functions(disco_functions, tmp_path, monkeypatch):
    (tmp_path / "own_worker.py").write_text(
        "import testing_disco\nfrom tvm.exec.disco_worker import main\nmain()\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    session = disco.ProcessSession(2, entrypoint="own_worker")
    assert session.get_global_func("test.disco.tagged")(0).debug_get_from_remote(1) == "0 in 1"
    session.shutdown()


def test_an_entry_point_that_does_not_start_is_refused(capfd):
    with pytest.raises(RuntimeError, match='"no.such.module" does not start: .*status 1'):
        disco.ProcessSession(2, entrypoint="no.such.module")
    assert "no.such.module" not in capfd.readouterr().out


def run_script(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(("last_words", "status"), [("pass", 0), ("os.kill(os.getpid(), 9)", -9)])
def test_processes_end_with_a_controller_that_forgets_or_is_killed(last_words, status):
    script = f"""
        import os
        from tvm.runtime import disco
        session = disco.ProcessSession(2)
        {last_words}
    """
    # A worker holds the other end of our pipe, so this waits for its end as well.
    done = run_script(script)
    assert done.returncode == status, done.stderr


def test_sessions_need_the_runtime_only_and_are_not_loaded_before():
    script = """
        import sys, tvm
        assert not any("disco" in name for name in sys.modules)
        for kind in (tvm.runtime.disco.ThreadedSession, tvm.runtime.disco.ProcessSession):
            session = kind(2)
            shape = session.get_global_func("runtime.disco.worker_id")()
            print(shape.debug_get_from_remote(1))
            session.shutdown()
        assert "tvm.ir" not in sys.modules
    """
    done = run_script(script, TVM_USE_RUNTIME_LIB="1")
    assert done.stdout.split("\n")[:2] == ["ShapeTuple([1])"] * 2, done.stderr


def test_the_worker_program_explains_itself():
    done = subprocess.run(
        [sys.executable, "-m", "tvm.exec.disco_worker"], capture_output=True, text=True, check=False
    )
    assert "a ProcessSession starts this program" in done.stderr
