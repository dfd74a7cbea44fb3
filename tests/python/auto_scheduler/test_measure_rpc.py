"""Measuring on devices of a tracker."""

from __future__ import annotations

import os

import pytest

from tvm import auto_scheduler, rpc, te
from tvm.auto_scheduler import BuildResult, MeasureErrorNo, MeasureInput, RPCRunner, SearchTask
from tvm.contrib import cc


def matmul(n):
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    k = te.reduce_axis((0, n), name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")]


@pytest.fixture(scope="module")
def task():
    dag = auto_scheduler.ComputeDAG(matmul(32))
    return SearchTask(compute_dag=dag, workload_key="rpc_matmul_32", target="llvm")


@pytest.fixture(scope="module")
def built(task):
    builder = auto_scheduler.LocalBuilder(n_parallel=1)
    candidate = MeasureInput(task, task.compute_dag.init_state)
    [program] = builder.build([candidate])
    builder.pool.close()
    return candidate, program


@pytest.fixture(scope="module")
def context():
    made = auto_scheduler.LocalRPCMeasureContext(number=1, n_parallel=2, timeout=20)
    yield made
    del made


def test_candidates_are_timed_and_reported(built, context):
    candidate, program = built
    heard = []
    results = context.runner.run(
        [candidate] * 3, [program] * 3, on_result=lambda at, result: heard.append(at)
    )
    assert [int(r.error_no) for r in results] == [0, 0, 0], results[0].error_msg
    assert all(0 < r.mean_cost < 1 for r in results)
    assert sorted(heard) == [0, 1, 2]


def test_bad_programs_cost_one_result_each(built, context):
    candidate, program = built
    failed = BuildResult(None, [], MeasureErrorNo.COMPILE_HOST, "no", 0.1)
    damaged = BuildResult(
        None,
        [],
        0,
        None,
        0.1,
        b"no object file",
        {"functions": ["main"], "args": [], "transforms": []},
    )
    results = context.runner.run([candidate] * 3, [failed, damaged, program])
    numbers = [int(result.error_no) for result in results]
    assert numbers == [MeasureErrorNo.COMPILE_HOST, MeasureErrorNo.COMPILE_HOST, 0]
    assert "failed" in str(results[1].error_msg)


def test_outputs_are_compared(built, context):
    candidate, program = built
    runner = RPCRunner(
        "local", context.tracker.host, context.tracker.port, number=1, min_repeat_ms=0, timeout=20
    )
    [result] = runner.run([candidate], [program], references={str(candidate.workload_key): program})
    assert int(result.error_no) == 0, result.error_msg


def test_program_that_takes_too_long_is_a_result(context, built):
    candidate, program = built
    runner = RPCRunner(
        "local", context.tracker.host, context.tracker.port, timeout=0.3, min_repeat_ms=5000
    )
    results = runner.run([candidate], [program])
    assert int(results[0].error_no) == MeasureErrorNo.RUN_TIMEOUT


def test_device_that_is_not_there_and_options_out_of_range_are_refused(context, monkeypatch):
    monkeypatch.setattr("tvm.auto_scheduler.measure._DEVICE_SECONDS", 0.2)
    with pytest.raises(rpc.RPCError, match="has no device of key 'phone'"):
        RPCRunner("phone", context.tracker.host, context.tracker.port)
    with pytest.raises(ValueError, match="n_parallel must be >= 1"):
        RPCRunner("local", context.tracker.host, context.tracker.port, n_parallel=0)
    with pytest.raises(ValueError, match="port must be"):
        RPCRunner("local", "127.0.0.1", 0)


def test_candidates_outlive_the_server_and_the_tracker(built):
    candidate, program = built
    context = auto_scheduler.LocalRPCMeasureContext(number=1, min_repeat_ms=0, timeout=20)
    tracker = (context.tracker.host, context.tracker.port)
    assert int(context.runner.run([candidate], [program])[0].error_no) == 0
    # In mid-run; whoever watches over them starts them again.
    restarted = []

    def restart(at, result):
        if restarted:
            return
        for lost in (context.server.proc, context.tracker.proc):
            lost.kill()
            lost.wait()
        restarted.append(rpc.Tracker(port=tracker[1], port_end=tracker[1] + 1, silent=True))
        restarted.append(rpc.Server(port=0, key="local", tracker_addr=tracker, silent=True))

    results = context.runner.run([candidate] * 3, [program] * 3, on_result=restart)
    assert [int(result.error_no) for result in results] == [0, 0, 0], results
    for process in restarted:
        process.terminate()
    with pytest.raises(rpc.RPCError, match=f"127.0.0.1:{tracker[1]}"):
        RPCRunner("local", *tracker).run([candidate], [program])


def test_a_candidate_that_ends_its_sessions_is_a_result(built, context, tmp_path, monkeypatch):
    candidate, program = built
    source, library = tmp_path / "crash.c", tmp_path / "crash.so"
    source.write_text("__attribute__((constructor)) static void crash(void) { __builtin_trap(); }")
    cc.create_shared(str(library), [str(source)], options=["-xc"])
    runner = context.runner
    with monkeypatch.context() as patched:
        patched.setattr("tvm.auto_scheduler.measure_rpc._library", lambda *args: library)
        [result] = runner.run([candidate], [program])
    assert int(result.error_no) == MeasureErrorNo.RUNTIME_DEVICE
    assert "signal" in str(result.error_msg)
    assert int(runner.run([candidate], [program])[0].error_no) == 0


def test_a_context_ends_its_processes():
    context = auto_scheduler.LocalRPCMeasureContext()
    processes = [context.tracker.proc.pid, context.server.proc.pid]
    del context
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
