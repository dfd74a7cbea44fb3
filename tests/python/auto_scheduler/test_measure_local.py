"""Builder, runner and measurer on real programs and on injected failures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tvm import auto_scheduler, te
from tvm.auto_scheduler import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    ProgramMeasurer,
    SearchTask,
    measure,
)
from tvm.auto_scheduler.measure import BuiltProgram


@pytest.fixture(autouse=True)
def jobs_on_path(monkeypatch):
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))


def matmul(n=32, layout_free=False):
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    attrs = {"layout_free_placeholders": [b]} if layout_free else {}
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C", attrs=attrs)
    return [a, b, c]


@pytest.fixture(scope="module")
def task():
    return SearchTask(compute_dag=matmul(), target="llvm")


@pytest.fixture(scope="module")
def measurer():
    started = ProgramMeasurer(
        LocalBuilder(n_parallel=1), LocalRunner(min_repeat_ms=1, check_correctness=True)
    )
    yield started
    started.close()


def tiled(task, factor):
    state = task.compute_dag.get_init_state()
    out = list(task.compute_dag.tensors)[-1]
    i, j, k = state[out].iters
    outer, inner = state.split(out, j, [factor])
    state.reorder(out, [i, outer, k, inner])
    state.vectorize(out, inner)
    return MeasureInput(task, state)


def test_programs_are_timed_and_the_best_is_kept(task, measurer):
    inputs = [MeasureInput(task, task.compute_dag.init_state), tiled(task, 8)]
    seen = []
    results = measurer.measure(inputs, on_result=lambda position, _: seen.append(position))
    assert seen == [0, 1]
    for result in results:
        assert int(result.error_no) == MeasureErrorNo.NO_ERROR, result.error_msg
        assert 0 < result.mean_cost < 1 < 10 + result.all_cost
    best = min(result.mean_cost for result in results)
    assert measurer.best_seconds[task.workload_key] == best


def test_rewritten_layout_gives_the_right_answer(measurer):
    task = SearchTask(
        compute_dag=matmul(layout_free=True),
        target="llvm",
        layout_rewrite_option=auto_scheduler.LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
    )
    [result] = measurer.measure([tiled(task, 8)])
    assert int(result.error_no) == MeasureErrorNo.NO_ERROR, result.error_msg


def test_program_of_another_computation_is_a_wrong_answer(task, measurer):
    """The runner is handed the object code of A + B where A @ B was expected."""
    a, b, _ = matmul()
    other = SearchTask(
        compute_dag=[a, b, te.compute((32, 32), lambda i, j: a[i, j] + b[i, j], name="D")],
        target="llvm",
    )
    wrong, right = measurer.builder.build(
        [
            MeasureInput(other, other.compute_dag.init_state),
            MeasureInput(task, task.compute_dag.init_state),
        ]
    )
    measure_input = MeasureInput(task, task.compute_dag.init_state)
    result = measurer.runner.run_one(measure_input, wrong, reference=right)
    assert int(result.error_no) == MeasureErrorNo.WRONG_ANSWER
    assert "differs from the unscheduled program" in str(result.error_msg)


def test_hopeless_program_is_run_only_briefly(task, measurer):
    runner = LocalRunner(min_repeat_ms=30_000, timeout=60)
    measure_input = MeasureInput(task, task.compute_dag.init_state)
    [program] = measurer.builder.build([measure_input])
    try:
        result = runner.run_one(measure_input, program, best_seconds=1e-9)
    finally:
        runner.pool.close()
    assert int(result.error_no) == MeasureErrorNo.NO_ERROR
    # One whole repeat takes 30 s.
    assert result.all_cost - program.time_cost < 30


def test_state_that_does_not_replay_is_an_instantiation_error(task, measurer, monkeypatch):
    text = measure.dump_input(tiled(task, 8)).replace('"SP", 2, 1', '"SP", 9, 1')
    monkeypatch.setattr(measure, "dump_input", lambda _: text)
    [program] = measurer.builder.build([MeasureInput(task, task.compute_dag.init_state)])
    assert program.error_no == MeasureErrorNo.INSTANTIATION_ERROR


def test_code_that_does_not_load_is_a_device_compile_error(task, measurer):
    measure_input = MeasureInput(task, task.compute_dag.init_state)
    [good] = measurer.builder.build([measure_input])
    result = measurer.runner.run_one(measure_input, BuiltProgram(b"no code", good.description))
    assert int(result.error_no) == MeasureErrorNo.COMPILE_DEVICE


@pytest.mark.parametrize(
    ("behaviour", "error_no", "reason"),
    [
        ("segfault", MeasureErrorNo.RUNTIME_DEVICE, "SIGSEGV"),
        ("killed", MeasureErrorNo.RUNTIME_DEVICE, "SIGKILL"),
        ("fail", MeasureErrorNo.RUNTIME_DEVICE, "KeyError"),
        ("allocate_without_end", MeasureErrorNo.RUNTIME_DEVICE, "out of memory"),
        ("hold_the_interpreter", MeasureErrorNo.RUN_TIMEOUT, "no result after 4 s"),
    ],
)
def test_bad_program_costs_one_result_and_the_batch_goes_on(task, behaviour, error_no, reason):
    runner = LocalRunner(timeout=4, run_func="measure_faults:run_by_name", memory_bytes=1 << 28)
    measure_input = MeasureInput(task, task.compute_dag.init_state)
    try:
        results = [
            runner.run_one(measure_input, BuiltProgram(b"", {"behaviour": what}))
            for what in ("0.5", behaviour, "0.25")
        ]
    finally:
        runner.pool.close()
    assert [int(result.error_no) for result in results] == [0, error_no, 0]
    assert [float(result.costs[0]) for result in results] == [0.5, 1e10, 0.25]
    assert reason in str(results[1].error_msg)


@pytest.mark.parametrize(
    ("function", "error_no"),
    [
        ("segfault", MeasureErrorNo.COMPILE_HOST),
        ("fail", MeasureErrorNo.COMPILE_HOST),
        ("never_return", MeasureErrorNo.BUILD_TIMEOUT),
    ],
)
def test_failed_build_is_a_result_and_is_not_run(task, function, error_no):
    measurer = ProgramMeasurer(
        LocalBuilder(timeout=1, n_parallel=1, build_func=f"measure_faults:{function}"),
        LocalRunner(run_func="measure_faults:segfault"),
    )
    [result] = measurer.measure([MeasureInput(task, task.compute_dag.init_state)])
    measurer.close()
    assert int(result.error_no) == error_no
    assert not measurer.runner.pool.process_ids()


def test_results_are_recorded_once_a_batch(task, tmp_path):
    path = tmp_path / "records.json"
    measurer = ProgramMeasurer(
        LocalBuilder(n_parallel=1),
        LocalRunner(min_repeat_ms=1),
        callbacks=[auto_scheduler.RecordToFile(path)],
    )
    measurer.measure([tiled(task, 4), tiled(task, 8)])
    measurer.close()
    records = list(auto_scheduler.load_records(path))
    assert [int(result.error_no) for _, result in records] == [0, 0]


def test_endless_failure_ends_the_measuring(task):
    measurer = ProgramMeasurer(
        LocalBuilder(n_parallel=1, build_func="measure_faults:fail"),
        LocalRunner(),
        max_consecutive_errors=3,
    )
    inputs = [MeasureInput(task, task.compute_dag.init_state)] * 5
    with pytest.raises(RuntimeError, match="3 candidates failed in a row"):
        measurer.measure(inputs)
    measurer.close()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"number": 0}, "number must be >= 1, got 0"),
        ({"min_repeat_ms": -1}, "min_repeat_ms must be >= 0"),
        ({"run_func": "fast"}, "run_func must be"),
    ],
)
def test_runner_refuses_options_out_of_range(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        LocalRunner(**arguments)


def test_builder_refuses_a_function_without_module():
    with pytest.raises(ValueError, match='build_func must be "default" or "module:function"'):
        LocalBuilder(build_func="tar")
