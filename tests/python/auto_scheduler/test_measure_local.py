"""Builders, runners and the measurer on real programs and injected failures, and of one's own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler import (
    BuildResult,
    LibraryCandidate,
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    ModuleCandidate,
    ProgramBuilder,
    ProgramMeasurer,
    ProgramRunner,
    PythonBasedMeasureCallback,
    SearchTask,
    measure_node,
)


@pytest.fixture(autouse=True)
def jobs_on_path(monkeypatch):
    here = str(Path(__file__).parents[1])
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
    results = measurer.measure(inputs)
    for result in results:
        assert int(result.error_no) == MeasureErrorNo.NO_ERROR, result.error_msg
        assert 0 < result.mean_cost < 1 < 10 + result.all_cost
    best = min(result.mean_cost for result in results)
    assert measurer.best_seconds[task.workload_key] == best
    assert measurer.best[task.workload_key].same_as(
        inputs[[result.mean_cost for result in results].index(best)]
    )


def test_all_messages_show_the_loops_of_each_program(task, measurer, capfd):
    candidate = tiled(task, 8)
    shown = ProgramMeasurer(measurer.builder, measurer.runner, verbose=2)
    shown.measure([candidate])
    out = capfd.readouterr().out
    assert "No: 1\tGFLOPS: " in out
    assert str(candidate.state) in out


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
    references = {task.workload_key: right}
    [result] = measurer.runner.run([measure_input], [wrong], references=references)
    assert int(result.error_no) == MeasureErrorNo.WRONG_ANSWER
    assert "differs from the unscheduled program" in str(result.error_msg)


def test_hopeless_program_is_run_only_briefly(task, measurer):
    runner = LocalRunner(min_repeat_ms=30_000, timeout=60)
    measure_input = MeasureInput(task, task.compute_dag.init_state)
    [program] = measurer.builder.build([measure_input])
    try:
        known = {task.workload_key: 1e-9}
        [result] = runner.run([measure_input], [program], best_seconds=known)
    finally:
        runner.pool.close()
    assert int(result.error_no) == MeasureErrorNo.NO_ERROR
    # One whole repeat takes 30 s.
    assert result.all_cost - program.time_cost < 30


def test_state_that_does_not_replay_is_an_instantiation_error(task, measurer, monkeypatch):
    text = measure_node.dump_input(tiled(task, 8)).replace('"SP", 2, 1', '"SP", 9, 1')
    monkeypatch.setattr(measure_node, "dump_input", lambda _: text)
    [program] = measurer.builder.build([MeasureInput(task, task.compute_dag.init_state)])
    assert program.error_no == MeasureErrorNo.INSTANTIATION_ERROR


def test_code_that_does_not_load_is_a_device_compile_error(task, measurer):
    measure_input = MeasureInput(task, task.compute_dag.init_state)
    [good] = measurer.builder.build([measure_input])
    description = json.loads(good.description)
    broken = BuildResult(None, [], 0, None, 0.0, b"no code", description)
    [result] = measurer.runner.run([measure_input], [broken])
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
    runner = LocalRunner(timeout=4, run_func="testing_jobs:run_by_name", memory_bytes=1 << 28)
    measure_input = MeasureInput(task, task.compute_dag.init_state)
    try:
        programs = [
            BuildResult(None, [], 0, None, 0.0, b"", {"behaviour": what})
            for what in ("0.5", behaviour, "0.25")
        ]
        results = runner.run([measure_input] * 3, programs)
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
        LocalBuilder(timeout=1, n_parallel=1, build_func=f"testing_jobs:{function}"),
        LocalRunner(run_func="testing_jobs:segfault"),
    )
    [result] = measurer.measure([MeasureInput(task, task.compute_dag.init_state)])
    measurer.close()
    assert int(result.error_no) == error_no
    assert not measurer.runner.pool.process_ids()


def test_results_are_recorded_once(task, tmp_path):
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


class Flaky(ProgramRunner):
    """Gives what it is told to, one result a program."""

    def __init__(self, outcomes):
        super().__init__(timeout=1)
        self.outcomes = outcomes

    def run(self, candidates, programs, best_seconds=None, references=None, on_result=None):
        results = []
        for position, program in enumerate(programs):
            outcome = self.outcomes[int(program.filename)]
            if isinstance(outcome, BaseException):
                raise outcome
            error_no = 0 if outcome < 1 else MeasureErrorNo.RUN_TIMEOUT
            results.append(MeasureResult([outcome], error_no, "late", 0.1, 1.0))
            on_result(position, results[-1])
        return results


class Numbering(ProgramBuilder):
    """Programs whose file names are numbers, which Flaky reads."""

    def __init__(self, n_parallel=1):
        super().__init__(n_parallel)
        self.built = 0
        self.batches = []

    def build(self, candidates, unscheduled=False):
        self.batches.append(len(candidates))
        first, self.built = self.built, self.built + len(candidates)
        return [BuildResult(str(first + i), [], 0, None, 0.0) for i in range(len(candidates))]


class Diary(PythonBasedMeasureCallback):
    """Writes down what it hears."""

    def __init__(self):
        super().__init__()
        self.results, self.batches = [], []

    def on_result(self, policy, candidate, result):
        self.results.append(float(result.costs[0]))

    def callback(self, policy, candidates, results):
        self.batches.append([float(result.costs[0]) for result in results])


def test_builders_and_runners_of_ones_own_measure_in_batches_of_twice_the_builders_width(task):
    builder, diary, told = Numbering(n_parallel=2), Diary(), []
    measurer = ProgramMeasurer(
        builder,
        Flaky([0.5, 1e10, 0.25, 0.75, 0.125]),
        callbacks=[diary, lambda policy, inputs, results: told.append(len(results))],
    )
    inputs = [tiled(task, factor) for factor in (2, 4, 8, 16, 32)]
    results = measurer.measure(inputs)
    assert [result.mean_cost for result in results] == [0.5, 1e10, 0.25, 0.75, 0.125]
    assert builder.batches == [4, 1] == told
    assert diary.results == [0.5, 1e10, 0.25, 0.75, 0.125]
    assert diary.batches == [[0.5, 1e10, 0.25, 0.75], [0.125]]
    assert (measurer.ct, measurer.error_ct) == (5, 1)
    assert measurer.best[task.workload_key].same_as(inputs[4])
    measurer.reset()
    assert (measurer.ct, dict(measurer.best_seconds)) == (0, {})


class Silent(Flaky):
    """Tells of the results at `told` only, and returns all."""

    def __init__(self, outcomes, told=()):
        super().__init__(outcomes)
        self.told = told

    def run(self, candidates, programs, best_seconds=None, references=None, on_result=None):
        results = super().run(candidates, programs, on_result=lambda *_: None)
        for position in self.told:
            on_result(position, results[0])
        return results


def test_a_runner_that_returns_its_results_need_not_tell_of_each(task):
    diary = Diary()
    measurer = ProgramMeasurer(
        Numbering(n_parallel=2), Silent([0.5, 0.25, 0.75]), callbacks=[diary], verbose=0
    )
    inputs = [tiled(task, factor) for factor in (2, 4, 8)]
    assert [r.mean_cost for r in measurer.measure(inputs)] == [0.5, 0.25, 0.75]
    assert diary.results == [0.5, 0.25, 0.75]
    assert measurer.best[task.workload_key].same_as(inputs[1])


@pytest.mark.parametrize(
    ("told", "message"),
    [((0, 0), "position 0 twice"), ((2,), "position 2 of 2"), ((-1,), "position -1 of 2")],
)
def test_a_runner_that_tells_of_what_it_was_not_given_is_refused(task, told, message):
    measurer = ProgramMeasurer(Numbering(), Silent([0.5, 0.25], told), verbose=0)
    with pytest.raises(RuntimeError, match=f"ProgramMeasurer: the runner told .*{message}"):
        measurer.measure([tiled(task, factor) for factor in (2, 4)])


def test_interrupt_keeps_what_was_measured_and_arrives_unchanged(task, tmp_path):
    path, diary = tmp_path / "records.json", Diary()
    measurer = ProgramMeasurer(
        Numbering(n_parallel=4),
        Flaky([0.5, 0.25, KeyboardInterrupt("enough")]),
        callbacks=[auto_scheduler.RecordToFile(path), diary],
    )
    with pytest.raises(KeyboardInterrupt, match="enough"):
        measurer.measure([tiled(task, factor) for factor in (2, 4, 8, 16)])
    assert diary.batches == [[0.5, 0.25]]
    assert [r.mean_cost for _, r in auto_scheduler.load_records(path)] == [0.5, 0.25]
    assert measurer.best_seconds[task.workload_key] == 0.25


def test_record_that_no_disk_takes_is_in_the_log(task, caplog):
    measurer = ProgramMeasurer(
        Numbering(), Flaky([0.25]), callbacks=[auto_scheduler.RecordToFile("/dev/full")]
    )
    candidate = tiled(task, 4)
    with pytest.raises(OSError, match=r"cannot append: No space left.*/dev/full"):
        measurer.measure([candidate])
    line = caplog.messages[-1].splitlines()[-1]
    _, result = auto_scheduler.load_record_from_string(line)
    assert [float(cost) for cost in result.costs] == [0.25]
    assert json.loads(line)["i"] == json.loads(auto_scheduler.measure_record.dump_input(candidate))


def test_runner_that_tells_of_nothing_is_refused(task):
    class Silent(Flaky):
        def run(self, *arguments, **options):
            return []

    with pytest.raises(ValueError, match="0 results for 1 candidates"):
        ProgramMeasurer(Numbering(), Silent([])).measure([tiled(task, 4)])


@pytest.mark.parametrize(("base", "method"), [(ProgramBuilder, "build"), (ProgramRunner, "run")])
def test_class_without_the_method_is_refused(base, method):
    with pytest.raises(TypeError, match=f"defines `{method}`"):
        type("Idle", (base,), {})()


def test_function_that_was_scheduled_elsewhere_is_a_candidate(measurer, tmp_path):
    func = te.create_prim_func(matmul(16))
    candidate = ModuleCandidate(func, "llvm", "matmul_16", origin=["by hand", 1], flop=2 * 16**3)
    path = tmp_path / "records.json"
    own = ProgramMeasurer(
        measurer.builder, LocalRunner(min_repeat_ms=1), [auto_scheduler.RecordToFile(path)]
    )
    [result] = own.measure([candidate])
    own.runner.pool.close()
    assert int(result.error_no) == MeasureErrorNo.NO_ERROR, result.error_msg
    assert own.best_seconds["matmul_16"] == result.mean_cost
    record = json.loads(path.read_text())
    assert (record["workload"], record["origin"]) == ("matmul_16", ["by hand", 1])
    assert record["r"][0] == [float(result.costs[0])]
    with pytest.raises(ValueError, match="no unscheduled form"):
        measurer.measure([candidate])


def test_library_file_is_timed(task, tmp_path):
    schedule, args = task.compute_dag.apply_steps_from_state(task.compute_dag.init_state)
    path = tmp_path / "matmul.so"
    tvm.build(schedule, args, target="llvm").export_library(path)
    runner = LocalRunner(min_repeat_ms=1)
    program = BuildResult(str(path), list(args), 0, None, 0.0)
    [result] = runner.run([MeasureInput(task, task.compute_dag.init_state)], [program])
    runner.pool.close()
    assert int(result.error_no) == MeasureErrorNo.NO_ERROR, result.error_msg


def test_endless_failure_makes_the_measurer_talk_and_ends_nothing(task, capfd):
    measurer = ProgramMeasurer(
        LocalBuilder(n_parallel=1, build_func="testing_jobs:fail"),
        LocalRunner(),
        max_continuous_error=3,
    )
    inputs = [MeasureInput(task, task.compute_dag.init_state)] * 5
    results = measurer.measure(inputs)
    measurer.close()
    assert [int(result.error_no) for result in results] == [MeasureErrorNo.COMPILE_HOST] * 5
    shown = capfd.readouterr().out
    assert "3 candidates failed in a row" in shown
    assert shown.count("GFLOPS") == 3


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


def test_the_librarys_schedule_is_a_candidate_like_any_other(task, measurer):
    candidate = LibraryCandidate(task)
    assert candidate.workload_key == task.workload_key
    # The runner compares with the unscheduled program.
    [result] = measurer.measure([candidate])
    assert int(result.error_no) == 0, result.error_msg
    record = json.loads(candidate.record(result))
    assert record["origin"] == "library"
    assert record["workload"] == task.workload_key
    assert record["r"][0] == [float(cost) for cost in result.costs]


# 104 columns end inside of a vector of 512 bits; weights get zeros behind them on wide units.
@pytest.mark.parametrize("columns", [96, 104])
def test_the_librarys_schedule_of_constant_weights_packs_them(measurer, columns):
    def dense(rows, depth, columns):
        x, w = te.placeholder((rows, depth), name="x"), te.placeholder((columns, depth), name="w")
        return [x, w, tvm.topi.nn.relu(tvm.topi.nn.dense(x, w))]

    task = SearchTask(
        compute_dag=dense(10, 24, columns),
        target=tvm.target.Target("llvm"),
        layout_rewrite_option=auto_scheduler.LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED,
    )
    candidate = LibraryCandidate(task)
    assert candidate.request().arguments["weights_are_constant"]
    # The runner compares with the unscheduled program, whose weights are as they come.
    [result] = measurer.measure([candidate])
    assert int(result.error_no) == 0, result.error_msg
