"""The base of search policies: rounds, budgets, and policies written in Python."""

from __future__ import annotations

import gc
import math

import pytest

from tvm.auto_scheduler import (
    BuildResult,
    MeasureInput,
    MeasureResult,
    MeasureSession,
    ProgramBuilder,
    ProgramMeasurer,
    ProgramRunner,
    SearchPolicy,
    SearchTask,
    TuningOptions,
    auto_schedule,
    load_records,
    measure_session,
)
from tvm.auto_scheduler.measure_record import careful_file


class Compiled(ProgramBuilder):
    """Builds nothing."""

    def build(self, candidates, unscheduled=False):
        return [BuildResult("", [], 0, None, 0.0) for _ in candidates]


class Timed(ProgramRunner):
    """The latency of a candidate is one over the length of its innermost loop."""

    def run(self, candidates, programs, best_seconds=None, references=None, on_result=None):
        results = []
        for position, candidate in enumerate(candidates):
            length = int(candidate.state.stages[-1].iters[-1].range.extent)
            results.append(MeasureResult([1.0 / length], 0, None, 0.1, 1.0))
            on_result(position, results[-1])
        return results


class Descending(SearchPolicy):
    """Proposes split lengths from a list."""

    def __init__(self, task, lengths):
        super().__init__(task)
        self.lengths = list(lengths)
        self.seen = []

    def propose(self, n):
        taken, self.lengths = self.lengths[:n], self.lengths[n:]
        return [self.split(length) for length in taken]

    def split(self, length):
        task = self.search_task
        state = task.compute_dag.get_init_state()
        out = list(task.compute_dag.tensors)[-1]
        *_, last = state[out].iters
        state.split(out, last, [length])
        return MeasureInput(task, task.compute_dag.infer_bound_from_state(state))

    def observe(self, candidates, results):
        self.seen += [result.mean_cost for result in results]


@pytest.fixture
def task():
    return SearchTask(func="test_matmul", args=(32, 32, 64), target="llvm")


@pytest.fixture
def measurer():
    return ProgramMeasurer(Compiled(), Timed())


def test_a_round_proposes_measures_and_observes(task, measurer):
    policy = Descending(task, [2, 8, 4])
    inputs, results = policy.continue_search_one_round(2, measurer)
    assert [result.mean_cost for result in results] == [1 / 2, 1 / 8] == policy.seen
    assert measurer.best[task.workload_key].same_as(inputs[1])
    assert len(policy.continue_search_one_round(2, measurer)[0]) == 1
    assert policy.continue_search_one_round(2, measurer) == ([], [])


@pytest.mark.parametrize(
    ("trials", "early_stopping", "measured"),
    [(3, None, 3), (5, None, 5), (100, None, 6), (100, 1, 4), (100, 2, 5)],
)
def test_search_ends_with_its_budget_its_candidates_or_its_patience(
    task, measurer, trials, early_stopping, measured
):
    policy = Descending(task, [2, 16, 4, 2, 4, 2])
    best = policy.search(trials, early_stopping, 1, measurer)
    assert len(policy.seen) == measured
    assert measurer.best[task.workload_key].same_as(best)
    assert measurer.best_seconds[task.workload_key] == 1 / 16


def test_search_of_one_trial_measures_nothing(task, measurer):
    policy = Descending(task, [4, 2])
    best = policy.search(1, None, 1, measurer)
    assert (measurer.ct, policy.seen) == (0, [])
    assert int(best.state.stages[-1].iters[-1].range.extent) == 4


def test_callbacks_are_told_of_the_policy(task):
    told = []
    measurer = ProgramMeasurer(Compiled(), Timed(), [lambda policy, *_: told.append(policy)])
    policy = Descending(task, [4])
    policy.continue_search_one_round(1, measurer)
    assert told[0].same_as(policy)


def test_auto_schedule_gives_the_best_program(task):
    options = TuningOptions(
        num_measure_trials=3,
        num_measures_per_round=2,
        builder=Compiled(),
        runner=Timed(),
        verbose=0,
    )
    schedule, args = auto_schedule(task, Descending(task, [4, 16, 2]), options)
    assert len(args) == 3
    assert [int(it.dom.extent) for it in schedule[args[-1]].op.axis] == [32, 32]
    # 32 = 2 * 16: the loop that was split has parts on the schedule's stage.
    assert len(schedule[args[-1]].leaf_iter_vars) == 4
    with pytest.raises(RuntimeError, match="no program of .*test_matmul.* proposed none"):
        auto_schedule(task, Descending(task, []), options)
    other = SearchTask(compute_dag=task.compute_dag, workload_key='["other"]', target="llvm")
    with pytest.raises(ValueError, match="policy searches for .*other.* make a policy of this"):
        auto_schedule(task, Descending(other, [4]), options)


def test_a_search_in_which_all_failed_says_why(task):
    class Failing(Timed):
        def run(self, candidates, programs, best_seconds=None, references=None, on_result=None):
            results = [MeasureResult([1e10], 3, "no compiler", 0.1, 1.0) for _ in candidates]
            for position, result in enumerate(results):
                on_result(position, result)
            return results

    options = TuningOptions(3, builder=Compiled(), runner=Failing(), verbose=0)
    with pytest.raises(RuntimeError, match="could be measured; the last of 3 failures: no compil"):
        auto_schedule(task, Descending(task, [4, 16, 2]), options)


def test_policy_written_in_python_is_collected_with_its_last_reference(task):
    class Noted(Descending):
        gone = 0

        def __del__(self):
            Noted.gone += 1

    policy = Noted(task, [4])
    policy.propose(1)
    del policy
    gc.collect()
    assert Noted.gone == 1


def test_policy_without_its_methods_is_refused(task):
    with pytest.raises(TypeError, match="a SearchPolicy defines `observe`"):
        type("Half", (SearchPolicy,), {"propose": lambda self, n: []})(task)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"num_measures_per_round": 0}, "num_measures_per_round must be >= 1, got 0"),
        ({"num_measure_trials": -1}, "num_measure_trials must be >= 0, got -1"),
        ({"runner": "rpc"}, "unknown runner 'rpc'; known: 'local'"),
    ],
)
def test_options_out_of_range_are_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        TuningOptions(**options)


def test_options_have_ansors_defaults():
    options = TuningOptions()
    assert (options.num_measure_trials, options.early_stopping) == (0, -1)
    assert (options.num_measures_per_round, options.verbose) == (64, 1)
    assert (float(options.builder.timeout), float(options.runner.timeout)) == (15, 10)
    assert (options.runner.number, options.runner.repeat) == (3, 1)
    assert float(options.runner.min_repeat_ms) == 100


def test_good_programs_are_measured_again_in_turns(task, tmp_path, monkeypatch):
    policy = Descending(task, [])
    programs = [policy.split(length) for length in (2, 4, 8, 16)]
    timed = []

    class Disturbed(ProgramRunner):
        """A neighbour makes all of the first turn slow; the last program never runs."""

        def run(self, candidates, built, best_seconds=None, references=None, on_result=None):
            positions = [programs.index(candidate) for candidate in candidates]
            slower = 1 if timed else 2
            timed.extend(positions)
            return [
                MeasureResult([slower * (4.0 - i), slower * (5.0 - i)], 0, None, 0.1, 1.0)
                if i < 3
                else MeasureResult([1e10], 4, "crashed", 0.1, 1.0)
                for i in positions
            ]

    monkeypatch.setattr(measure_session, "LocalRunner", lambda **_: Disturbed())
    records = tmp_path / "records.json"
    with MeasureSession(Compiled(), records=records) as session:
        assert session.measure_again(programs) == [4.0, 3.0, 2.0, math.inf]
    assert timed == [0, 1, 2, 3] + 4 * [0, 1, 2]
    kept = [(str(i.state), r.costs) for i, r in load_records(careful_file(records))]
    assert kept == [(str(p.state), [c]) for p, c in zip(programs, [4.0, 3.0, 2.0, 1e10])]
