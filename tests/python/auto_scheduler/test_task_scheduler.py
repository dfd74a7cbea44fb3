"""Which task gets the next measurements, when it ends, and how it goes on from a log."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler import (
    BuildResult,
    MeasureInput,
    MeasureResult,
    ProgramBuilder,
    ProgramRunner,
    RecordToFile,
    SearchPolicy,
    TaskScheduler,
    TuningOptions,
)
from tvm.auto_scheduler.task_scheduler import (
    LogEstimatedLatency,
    PrintTableInfo,
    TaskSchedulerCallback,
    make_search_policies,
)


class NoBuilder(ProgramBuilder):
    """Builds nothing."""

    def build(self, candidates, unscheduled=False):
        return [BuildResult(None, [], 0, None, 0.0) for _ in candidates]


class Made(ProgramRunner):
    """Costs that a function of the candidate and its number makes up."""

    def __init__(self, cost):
        super().__init__()
        self.cost, self.counts = cost, Counter()

    def run(self, candidates, programs, best_seconds=None, references=None, on_result=None):
        results = []
        for i, candidate in enumerate(candidates):
            n = int(candidate.task.compute_dag.tensors[0].shape[0])
            self.counts[n] += 1
            results.append(MeasureResult([self.cost(n, self.counts[n])], 0, None, 1, 1))
            on_result(i, results[-1])
        return results


class Tiles(SearchPolicy):
    """Proposes one state after the other, until there are no more."""

    def __init__(self, task, limit=10**6):
        super().__init__(task, verbose=0)
        self.left = limit
        self.observed = 0

    def propose(self, n):
        n = min(n, self.left)
        self.left -= n
        state = self.search_task.compute_dag.get_init_state()
        return [MeasureInput(self.search_task, state) for _ in range(n)]

    def observe(self, candidates, results):
        self.observed += len(candidates)


def make_tasks(*sizes, tag=None):
    tasks = []
    for n in sizes:
        a = te.placeholder((n, 8), name="A")
        attrs = {"auto_scheduler_task_scheduler_tag": tag} if tag else {}
        b = te.compute((n, 8), lambda i, j, a=a: a[i, j] * 2.0, name="B", attrs=attrs)
        tasks.append(auto_scheduler.SearchTask(compute_dag=[a, b], target="llvm -num-cores=4"))
    return tasks


def options(cost, trials, per_round=1, **others):
    """Options whose programs cost what a function says, and how many were measured by size."""
    runner = Made(cost)
    option = TuningOptions(
        trials,
        num_measures_per_round=per_round,
        verbose=0,
        builder=NoBuilder(),
        runner=runner,
        **others,
    )
    return option, runner.counts


def test_round_robin_serves_all_alike():
    tasks = make_tasks(2, 4, 8)
    scheduler = TaskScheduler(tasks, strategy="round-robin", callbacks=[])
    option, counts = options(lambda n, count: 1.0 / count, 6)
    scheduler.tune(option, [Tiles(task) for task in tasks])
    assert counts == {2: 2, 4: 2, 8: 2}
    assert scheduler.ct == 6
    assert scheduler.task_cts == [2, 2, 2]
    assert [len(history) for history in scheduler.task_costs_history] == [2, 2, 2]


def test_the_gradient_follows_the_objective():
    tasks = make_tasks(2, 4)
    scheduler = TaskScheduler(tasks, objective_func=lambda costs: 1e5 * costs[0], callbacks=[])
    option, counts = options(lambda n, count: 1.0 / count, 7)
    scheduler.tune(option, [Tiles(task) for task in tasks])
    assert counts == {2: 6, 4: 1}


def test_the_heavier_task_gets_more():
    tasks = make_tasks(2, 4)
    scheduler = TaskScheduler(tasks, task_weights=[1, 50], callbacks=[])
    option, counts = options(lambda n, count: 1.0, 12)
    scheduler.tune(option, [Tiles(task) for task in tasks])
    assert counts[4] > counts[2]


def test_a_task_without_candidates_is_left_alone():
    tasks = make_tasks(2, 4)
    scheduler = TaskScheduler(tasks, callbacks=[])
    option, counts = options(lambda n, count: 1.0, 40, per_round=4)
    scheduler.tune(option, [Tiles(tasks[0], limit=6), Tiles(tasks[1], limit=8)])
    assert counts == {2: 6, 4: 8}
    assert scheduler.dead_tasks == {0, 1}


def test_tuning_stops_early():
    tasks = make_tasks(2, 4)
    scheduler = TaskScheduler(tasks, strategy="round-robin", callbacks=[])
    option, counts = options(lambda n, count: 1.0, 1000, per_round=2, early_stopping=10)
    scheduler.tune(option, [Tiles(task) for task in tasks])
    assert scheduler.ct == 14
    scheduler = TaskScheduler(tasks, callbacks=[])
    option, counts = options(lambda n, count: 1.0, 1000, per_round=2)
    scheduler.tune(option, [Tiles(task) for task in tasks], per_task_early_stopping=6)
    assert counts == {2: 8, 4: 8}


def test_it_goes_on_from_a_log(tmp_path):
    tasks = make_tasks(2, 4)
    log = tmp_path / "records.json"
    first, _ = options(lambda n, count: 1.0 / (n * count), 6, measure_callbacks=[RecordToFile(log)])
    TaskScheduler(tasks, strategy="round-robin", callbacks=[]).tune(
        first, [Tiles(t) for t in tasks]
    )
    scheduler = TaskScheduler(tasks, strategy="round-robin", load_log_file=str(log), callbacks=[])
    option, counts = options(lambda n, count: 1.0, 2)
    scheduler.tune(option, [Tiles(task) for task in tasks])
    assert scheduler.task_cts == [4, 4]
    assert scheduler.best_costs.tolist() == pytest.approx([1 / 6, 1 / 12])
    assert scheduler.ct == 2


def test_similar_tasks_expect_each_others_speed():
    tasks = make_tasks(50, 51, tag="scale")
    scheduler = TaskScheduler(tasks, callbacks=[])
    assert list(scheduler.groups.values()) == [[0, 1]]
    scheduler.best_costs[:] = [1e-3, 4e-3]
    scheduler.task_cts = [10, 10]
    scheduler.task_costs_history = [[1e-3] * 10, [4e-3] * 10]
    assert scheduler.gradient(1) < scheduler.gradient(0) < 0
    # One that stays behind for long is not like the others after all.
    scheduler.task_cts = [4, 10]
    scheduler._leave_group(1)
    assert list(scheduler.groups.values()) == [[0]]
    assert TaskScheduler(make_tasks(50, 51), callbacks=[]).groups == {}


def scheduler_of(histories, weights=None):
    """A scheduler by expected gain of equal tasks with these latencies after each round."""
    tasks = make_tasks(*(64 for _ in histories))
    scheduler = TaskScheduler(tasks, weights, strategy="expected-gain", callbacks=[])
    for i, history in enumerate(histories):
        scheduler.resume(i, history)
    return scheduler


def test_by_expected_gain_untouched_tasks_come_first_heaviest_first():
    assert scheduler_of([[1e-3], [], []], [1, 1, 4]).next_task() == 2


def test_by_expected_gain_first_rounds_go_where_the_time_is():
    scheduler = scheduler_of([[], [], []], [1, 1, 2])
    scheduler.unsearched_costs[:] = [1e-3, 5e-3, 2e-3]
    assert scheduler.next_task() == 1
    scheduler.end_round(1, 4.5e-3, 4)
    assert scheduler.next_task() == 2
    # What nothing is known of comes first.
    scheduler.unsearched_costs[0] = 1e10
    assert scheduler.next_task() == 0
    scheduler.end_round(0, 1e-3, 4)
    assert scheduler.next_task() == 2


def test_the_task_with_the_most_weighted_latency_to_gain_is_chosen():
    assert scheduler_of([[2e-3, 1e-3], [2e-3, 1e-3]], [1, 8]).next_task() == 1


def test_by_expected_gain_the_objective_of_the_user_counts():
    scheduler = scheduler_of([[2e-3, 1e-3], [2e-3, 1e-3]], [1, 8])
    scheduler.objective_func = lambda costs: costs[0] + 0.5 * costs[1]
    assert scheduler.next_task() == 0


def test_a_task_that_only_fails_is_dropped_and_never_absorbs_the_budget():
    scheduler = scheduler_of([[np.inf] * 2, [1e-3]])
    assert scheduler.next_task() == 1
    scheduler.end_round(0, np.inf, 4)
    scheduler.resume(1, [1e-3] * 10)
    assert scheduler.next_task() is None


def test_a_stalled_task_is_dropped():
    assert scheduler_of([[1e-3] * 10, [1e-6]]).next_task() == 1


@pytest.mark.parametrize("strategy", ["gradient", "round-robin", "expected-gain"])
def test_nothing_is_chosen_when_every_task_is_finished(strategy):
    scheduler = TaskScheduler(make_tasks(2, 4), strategy=strategy, callbacks=[])
    first = scheduler.next_task()
    scheduler.end_round(first, 1e-3, 0)
    second = scheduler.next_task()
    assert {first, second} == {0, 1}
    scheduler.end_round(second, 1e-3, 0)
    assert scheduler.next_task() is None


def test_all_strategies_spend_all_trials():
    for strategy in ("gradient", "round-robin", "expected-gain"):
        tasks = make_tasks(2, 4, 8)
        scheduler = TaskScheduler(tasks, strategy=strategy, callbacks=[])
        option, counts = options(lambda n, count: 1.0 / count, 12, per_round=2)
        scheduler.tune(option, [Tiles(task) for task in tasks])
        assert sum(counts.values()) == scheduler.ct == 12
        assert min(counts.values()) >= 2


def test_an_earlier_run_is_resumed():
    scheduler = scheduler_of([[np.inf, 3e-3, 2e-3, 2e-3], []])
    assert scheduler.task_cts == [4, 0]
    assert scheduler.task_best_cts == [3, 0]
    assert scheduler.best_costs.tolist() == [2e-3, 1e10]
    assert scheduler.task_costs_history[0] == [1e10, 3e-3, 2e-3, 2e-3]


def test_callbacks_hear_of_each_round(tmp_path, capsys):
    tasks = make_tasks(2, 4)
    heard = []

    class Listener(TaskSchedulerCallback):
        def pre_tune(self, task_scheduler, task_id):
            heard.append(("pre", task_id))

        def post_tune(self, task_scheduler, task_id):
            heard.append(("post", task_id))

    log = tmp_path / "latency.tsv"
    scheduler = TaskScheduler(
        tasks, callbacks=[Listener(), PrintTableInfo(), LogEstimatedLatency(log)]
    )
    option = TuningOptions(
        2, num_measures_per_round=1, builder=NoBuilder(), runner=Made(lambda n, count: 0.002)
    )
    scheduler.tune(option, [Tiles(task) for task in tasks])
    assert heard == [("pre", 0), ("post", 0), ("pre", 1), ("post", 1)]
    out = capsys.readouterr().out
    assert "[ Task Scheduler ]" in out
    assert re.search(r"\|    0 \|        2.000 \|", out)
    lines = log.read_text().splitlines()
    assert lines[0].split("\t")[3] == "N/A"
    assert lines[1].split("\t")[2:] == ["EstimatedLatency(ms)", "4.000", "Trials", "2"]


def test_what_is_not_known_is_refused_with_what_is():
    tasks = make_tasks(2, 4)
    with pytest.raises(
        ValueError, match="unknown strategy 'best'; known are gradient, round-robin"
    ):
        TaskScheduler(tasks, strategy="best")
    with pytest.raises(ValueError, match="3 weights for 2 tasks"):
        TaskScheduler(tasks, task_weights=[1, 2, 3])
    for name in ("evolution", "sketch", "sketch.", "felix.xgb"):
        with pytest.raises(ValueError, match=r"known are default, sketch.xgb, .*felix"):
            make_search_policies(name, None, tasks, 1, 0)
    with pytest.raises(ValueError, match="unknown cost model 'svm'; known are xgb, mlp, random"):
        make_search_policies("sketch.svm", None, tasks, 1, 0)
    with pytest.raises(TypeError, match="a list with the policy of each task; got Tiles"):
        make_search_policies(Tiles(tasks[0]), None, tasks, 1, 0)
    with pytest.raises(TypeError, match="objective_func must return a number, got 'fast'"):
        TaskScheduler(tasks, objective_func=lambda costs: "fast", callbacks=[]).tune(
            options(lambda n, count: 1.0, 2)[0], [Tiles(task) for task in tasks]
        )
    with pytest.raises(ValueError, match="1 policies for 2 tasks"):
        make_search_policies([Tiles(tasks[0])], None, tasks, 1, 0)
    with pytest.raises(ValueError, match="2 tasks need at least 2"):
        TaskScheduler(tasks, callbacks=[]).tune(
            options(lambda n, count: 1.0, 1)[0], "sketch.random"
        )


@pytest.mark.parametrize("policy", ["sketch.random", "sketch.xgb"])
def test_policies_are_made_by_name(policy):
    tasks = make_tasks(16, 32)
    policies = make_search_policies(policy, {"sample_init_min_population": 4}, tasks, 2, 0)
    assert [p.search_task.workload_key for p in policies] == [t.workload_key for t in tasks]
    scheduler = TaskScheduler(tasks, callbacks=[])
    option, counts = options(lambda n, count: 1.0 / count, 4, per_round=2)
    scheduler.tune(option, policies)
    assert scheduler.ct == 4


def test_a_tuned_task_computes_what_it_should(tmp_path):
    a, b = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="B")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((32, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    task = auto_scheduler.SearchTask(compute_dag=[a, b, c], target="llvm")
    log = tmp_path / "records.json"
    option = TuningOptions(
        4,
        num_measures_per_round=2,
        verbose=0,
        builder=auto_scheduler.LocalBuilder(n_parallel=1),
        runner=auto_scheduler.LocalRunner(min_repeat_ms=1),
        measure_callbacks=[RecordToFile(log)],
    )
    params = {"sample_init_min_population": 4, "evolutionary_search_num_iters": 1}
    params["evolutionary_search_population"] = 16
    model = auto_scheduler.XGBModel(num_warmup_sample=2, verbose_eval=0)
    task.tune(option, auto_scheduler.SketchPolicy(task, model, params=params, verbose=0))
    assert len(list(auto_scheduler.load_records(log))) == 4
    assert model.bst is not None
    schedule, args = task.apply_best(str(log))
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(-1, 1, (32, 32)).astype("float32") for _ in range(2))
    out = tvm.nd.empty((32, 32))
    tvm.build(schedule, args, target="llvm")(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-4, atol=1e-4)
    replayed = te.create_schedule(task.compute_dag.tensors[-1].op)
    exec(task.print_best(str(log)), {"s": replayed, "te": te})
    expected, _ = task.apply_best(str(log), layout_rewrite_option=0)
    tvm.ir.assert_structural_equal(
        tvm.lower(replayed, args), tvm.lower(expected, args), map_free_vars=True
    )
    option.builder.pool.close()
    option.runner.pool.close()


@pytest.mark.parametrize("policy", ["sketch.random", "felix"])
def test_a_single_task_is_tuned_by_a_policy_of_a_name(policy, tmp_path):
    task = auto_scheduler.SearchTask(func="test_matmul", args=(16, 16, 16), target="llvm")
    log = str(tmp_path / "records.json")
    options = TuningOptions(2, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)])
    task.tune(options, policy)
    assert len(list(auto_scheduler.load_records(log))) == 2
    with pytest.raises(ValueError, match=r"unknown search policy 'foo'; known are default, sketch"):
        task.tune(options, "foo")


def test_policies_of_ones_own_have_a_name():
    seen = []

    @auto_scheduler.register_search_policy("test_tiles")
    def make(tasks, params, verbose, load_model_file, load_log_file):
        seen.append((params, verbose, load_model_file, load_log_file))
        return [Tiles(task) for task in tasks]

    tasks = make_tasks(2, 4)
    option, counts = options(lambda n, count: 1.0 / count, 4)
    TaskScheduler(tasks, strategy="round-robin", callbacks=[]).tune(
        option, "test_tiles", {"depth": 3}
    )
    assert counts == {2: 2, 4: 2}
    assert [params for params, *_ in seen] == [{"depth": 3}]
    with pytest.raises(RuntimeError, match="'test_tiles' is registered already"):
        auto_scheduler.register_search_policy("test_tiles", make)
    with pytest.raises(RuntimeError, match="'sketch.mine' is a name of Ansor's policies"):
        auto_scheduler.register_search_policy("sketch.mine", make)
    with pytest.raises(ValueError, match="known are default, .*test_tiles"):
        make_search_policies("tiles", None, tasks, 1, 0)


def test_a_model_that_cannot_be_saved_is_refused_before_anything_is_measured(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*none to save the model in"):
        make_search_policies(
            "sketch.xgb", None, make_tasks(8), 8, 0, load_model_file=str(tmp_path / "none/m.json")
        )
