"""The optimizer and the gradient policy: budgets, resuming, interruptions, damaged files."""

from __future__ import annotations

import errno
import json
import math
import re

import pytest
import torch

from tvm import auto_scheduler, felix, te, topi
from tvm.auto_scheduler import (
    BuildResult,
    LibraryCandidate,
    MeasureErrorNo,
    MeasureResult,
    ProgramBuilder,
    ProgramMeasurer,
    ProgramRunner,
    measure_session,
)
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.auto_scheduler.measure_record import careful_file, library_records
from tvm.auto_scheduler.task_scheduler import make_search_policies
from tvm.felix import perf_func, sym_task
from tvm.felix.checkpoint import packaged_checkpoint
from tvm.felix.evolution import EvolutionPolicy
from tvm.felix.optim import Optimizer
from tvm.felix.policy import FelixPolicy
from tvm.felix.search import SearchSettings
from tvm.felix.sym_task import extract_tasks, make_task, merge_tasks
from tvm.target.machine import host_triple


def dense(rows: int) -> list[te.Tensor]:
    data = te.placeholder((rows, 32), name="data")
    weight = te.placeholder((48, 32), name="weight")
    return [data, weight, topi.nn.relu(topi.nn.dense(data, weight))]


OTHER = "x86_64" if host_triple().startswith("aarch64") else "aarch64"


class Compiled(ProgramBuilder):
    """Builds nothing, four at once."""

    def __init__(self):
        super().__init__(n_parallel=4)

    def build(self, candidates, unscheduled=False):
        return [BuildResult("", [], 0, None, 0.0) for _ in candidates]


class Timed(ProgramRunner):
    """Latencies that only depend on the program; interrupted after `stop_after` of them.

    `library` is the latency of the operator library's schedules, or one for each count of rows.
    """

    def __init__(self, stop_after=None, fail=False, library=None):
        super().__init__()
        self.left, self.fail, self.library = stop_after, fail, library

    def run(self, candidates, programs, best_seconds=None, references=None, on_result=None):
        results = []
        for position, candidate in enumerate(candidates):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left = None if self.left is None else self.left - 1
            if isinstance(candidate, LibraryCandidate):
                seconds = self.library
                if isinstance(seconds, dict):
                    seconds = seconds[int(candidate.task.compute_dag.tensors[0].shape[0])]
                results.append(MeasureResult([seconds], 0, None, 0.1, 1.0))
                on_result(position, results[-1])
                continue
            lengths = [int(text) for text in re.findall(r"\d+", str(candidate.state))]
            cost = 1e10 if self.fail else 1e-3 / (1 + sum(lengths) % 97)
            error_no = MeasureErrorNo.RUN_TIMEOUT if self.fail else 0
            results.append(MeasureResult([cost], error_no, "too late", 0.1, 1.0))
            on_result(position, results[-1])
        return results


SETTINGS = SearchSettings(random_share=1.0)


@pytest.fixture(scope="module")
def tasks():
    return merge_tasks([[make_task(dense(rows), desc=f"dense {rows}")] for rows in (16, 24)])


def optimizer(tasks, library=None, **runner):
    return Optimizer(
        tasks,
        MLPModelPLWrapper(seed=1),
        builder=Compiled(),
        runner=Timed(library=library, **runner),
        settings=SETTINGS,
        against_library=library is not None,
    )


def tune(optim, n, folder=None):
    return optim.tune(
        n,
        n_config_seeds=2,
        n_grad_steps=1,
        measure_per_round=4,
        log_file=None if folder is None else folder / "records.json",
        progress=False,
        on_round=None if folder is None else lambda o: o.save_state(folder),
    )


def programs(path):
    return [json.dumps(json.loads(line)["i"]) for line in path.read_text().splitlines()]


def test_tuning_uses_its_budget_and_records_every_program_once(tasks, tmp_path):
    optim = optimizer(tasks)
    result = tune(optim, 14, tmp_path)
    recorded = programs(tmp_path / "records.json")
    assert len(set(recorded)) == len(recorded) == result.n_measurements == 14
    assert [task.n_measured for task in result.tasks] == [
        len(task.search.measured) for task in optim.tasks
    ]
    for row in result.tasks:
        best = optim.session.measurer.best_seconds[row.workload_key]
        assert row.best_seconds == pytest.approx(best)
    network = [seconds for _, _, seconds in result.history]
    assert network == sorted(network, reverse=True)
    assert len(optim.data_builder) == 14


def test_equal_seeds_measure_equal_programs(tasks, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        tune(optimizer(tasks), 10, tmp_path / name)
    assert programs(tmp_path / "a" / "records.json") == programs(tmp_path / "b" / "records.json")


def test_interrupted_round_is_kept_and_resumed_once(tasks, tmp_path):
    result = tune(optimizer(tasks, stop_after=10), 30, tmp_path)
    assert (result.interrupted, result.n_measurements) == (True, 10)

    def resumed():
        optim = optimizer(tasks)
        assert optim.restore(tmp_path / "records.json") == 10
        optim.load_state(tmp_path)
        return optim

    # Two whole rounds were saved; the half of the third is one more entry of its task.
    first = resumed()
    rounds = [list(task.search.least_lat_history) for task in first.tasks]
    assert sum(map(len, rounds)) == 3
    assert len(first.history) == 2
    # However often a run is taken up again, it has the same history.
    first.save_state(tmp_path)
    for _ in range(3):
        again = resumed()
        assert [task.search.least_lat_history for task in again.tasks] == rounds
        assert again.history == first.history
        again.save_state(tmp_path)
    assert again.restore(tmp_path / "records.json") == 0
    assert again.n_measure == 10

    tune(again, 20, tmp_path)
    recorded = programs(tmp_path / "records.json")
    assert len(set(recorded)) == len(recorded) == 20


def test_records_without_a_state_are_one_round_of_each_task(tasks, tmp_path):
    tune(optimizer(tasks), 12, tmp_path)
    (tmp_path / "state.json").unlink()
    optim = optimizer(tasks)
    assert optim.restore(tmp_path / "records.json") == 12
    optim.load_state(tmp_path)
    assert [len(task.search.least_lat_history) for task in optim.tasks] == [1, 1]


def test_record_that_does_not_fit_on_the_disk_is_written_when_there_is_room(
    tasks, tmp_path, monkeypatch
):
    append, failures = measure_session.append_lines, [False, False, True]

    def full_at_times(path, lines):
        if failures and failures.pop(0):
            raise OSError(errno.ENOSPC, "cannot append: No space left on device", str(path))
        append(path, lines)

    monkeypatch.setattr(measure_session, "append_lines", full_at_times)
    optim = optimizer(tasks)
    with pytest.raises(OSError, match=r"No space left on device.*records\.json"):
        tune(optim, 12, tmp_path)
    assert optim.n_measure == 3
    assert len(programs(tmp_path / "records.json")) == 3
    assert sum(len(task.search.measured) for task in optim.tasks) == 3


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("missing/records.json", FileNotFoundError, "there is no folder .*missing; make it"),
        ("", IsADirectoryError, "is a folder; name a file in it"),
    ],
)
def test_a_log_that_cannot_be_is_refused_before_anything_is_measured(
    tasks, tmp_path, name, kind, reason
):
    optim = optimizer(tasks, library=1.0)
    with pytest.raises(kind, match=reason):
        optim.tune(4, log_file=tmp_path / name, progress=False)
    assert optim.n_measure == 0 and not optim.session.library_seconds
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("cuda", "this machine has no GPU to measure on"),
        (f"llvm -mtriple={OTHER}-linux-gnu", f"programs for {OTHER} cannot be measured"),
    ],
)
def test_what_cannot_run_here_is_refused_before_anything_is_measured(monkeypatch, target, reason):
    monkeypatch.setattr("tvm.runtime.Device.exist", property(lambda self: False))
    optim = Optimizer([make_task(dense(8), target)], MLPModelPLWrapper())
    with pytest.raises(ValueError, match=reason):
        optim.tune(4, progress=False)
    assert optim.n_measure == 0
    with pytest.raises(ValueError, match=reason):
        felix.tune(torch.nn.Linear(8, 4), torch.ones(2, 8), target=target, progress=False)


def test_record_that_never_fits_is_in_the_log(tasks, tmp_path, monkeypatch, caplog):
    def full(path, lines):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(measure_session, "append_lines", full)
    with pytest.raises(OSError, match="No space left"):
        tune(optimizer(tasks), 4, tmp_path)
    assert "these records are in no file" in caplog.text
    [line] = [line for line in caplog.text.splitlines() if line.startswith('{"i"')]
    auto_scheduler.load_record_from_string(line)


def test_task_that_only_fails_is_dropped_with_its_errors_counted(tasks):
    optim = optimizer(tasks, fail=True)
    result = tune(optim, 100)
    assert result.n_measurements < 100
    for row in result.tasks:
        assert row.best_seconds is None
        assert row.errors == {int(MeasureErrorNo.RUN_TIMEOUT): row.n_measured}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[:-20], r"state\.json:1: column.*; remove state\.json"),
        (lambda text: text.replace('"n_rounds"', '"rounds"'), r"state\.json: .*'n_rounds'"),
        (
            lambda text: text.replace('"seconds": ', '"seconds": "long", "s": '),
            r"state\.json: .*long",
        ),
        (lambda text: "[]", r"state\.json: no valid state.*; remove state\.json"),
    ],
)
def test_damaged_state_is_named(tasks, tmp_path, change, reason):
    tune(optimizer(tasks), 4, tmp_path)
    path = tmp_path / "state.json"
    path.write_text(change(path.read_text()))
    optim = optimizer(tasks)
    optim.restore(tmp_path / "records.json")
    with pytest.raises(ValueError, match=reason):
        optim.load_state(tmp_path)


def test_a_damaged_model_says_how_to_go_on(tasks, tmp_path):
    tune(optimizer(tasks), 8, tmp_path)
    path = tmp_path / "cost_model.ckpt"
    path.write_bytes(path.read_bytes()[:200])
    optim = optimizer(tasks)
    optim.restore(tmp_path / "records.json")
    with pytest.raises(ValueError, match=r"cost_model\.ckpt: .*; remove cost_model\.ckpt to go on"):
        optim.load_state(tmp_path)
    path.unlink()
    optim.load_state(tmp_path)
    assert tune(optim, 12, tmp_path).n_measurements == 12


def test_schedules_slower_than_the_librarys_count_as_its_latency(tasks, tmp_path):
    optim = optimizer(tasks, library=1e-6)
    result = tune(optim, 12, tmp_path)
    for row in result.tasks:
        assert row.keeps_library
        assert row.best_seconds == 1e-6 < row.best.seconds
    assert result.network_seconds == pytest.approx(2e-6)
    path = tmp_path / "records.json"
    # The records hold states, as ever; what was measured of the library stands beside them.
    assert len(list(auto_scheduler.load_records(path))) == 12
    found = library_records(path)
    assert [key for key, _ in found] == [task.key for task in optim.tasks]
    again = optimizer(tasks, library=1.0)
    assert again.restore(path) == 12
    assert again.network_seconds() == pytest.approx(2e-6)
    assert again.restore(path) == 0


def test_winners_are_measured_again_beside_the_library(tasks, tmp_path):
    optim = optimizer(tasks, library=1.0)
    result = tune(optim, 12, tmp_path)
    path = tmp_path / "records.json"
    for row in result.tasks:
        assert not row.keeps_library
        again = [
            str(i.state)
            for i, _ in auto_scheduler.load_records(careful_file(path))
            if i.workload_key == row.workload_key
        ]
        best, record = auto_scheduler.load_best_record(path, row.workload_key)
        assert again == [str(best.state)]
        assert record.mean_cost == pytest.approx(row.best_seconds)


def test_a_small_budget_goes_where_the_time_is(caplog):
    rows = (8, 16, 24, 32, 40)
    many = merge_tasks([[make_task(dense(n), desc=f"dense {n}") for n in rows]])
    optim = optimizer(many, library={8: 5e-4, 16: 1e-6, 24: 1e-3, 32: 1e-6, 40: 1e-6})
    result = tune(optim, 4)
    assert "4 programs to measure for 5 kernels" in caplog.text
    measured = {row.desc: row.n_measured for row in result.tasks if row.n_measured}
    # Half rounds, so that more of them are reached.
    assert measured == {"dense 24": 2, "dense 8": 2}
    caplog.clear()
    tune(optim, 12)
    assert "programs to measure for" not in caplog.text


def test_sketches_are_made_of_what_the_budget_reaches(tmp_path, monkeypatch):
    library = {8: 5e-4, 16: 1e-6, 24: 1e-3, 32: 1e-6, 40: 1e-6}

    def many():
        return merge_tasks([[make_task(dense(n), desc=f"dense {n}") for n in library]])

    described: list[str] = []
    make = sym_task.ffi.generate_all_sym_sketches

    def noted(task, *options):
        described.append(str(task.desc))
        return make(task, *options)

    monkeypatch.setattr(sym_task.ffi, "generate_all_sym_sketches", noted)
    optim = optimizer(many(), library=library)
    assert described == []
    result = tune(optim, 4, tmp_path)
    assert sorted(described) == ["dense 24", "dense 8"]
    by_desc = {row.desc: row for row in result.tasks}
    assert by_desc["dense 24"].n_sketches > 0 and by_desc["dense 24"].search == "gradient"
    left = by_desc["dense 16"]
    assert (left.n_sketches, left.search, left.n_measured, left.errors) == (None, "none", 0, {})
    assert left.keeps_library and left.best_seconds == 1e-6
    # A run that goes on makes those it has records of, and ends with the rest as it would have.
    described.clear()
    again = optimizer(many(), library=library)
    assert again.restore(tmp_path / "records.json") == 4
    again.load_state(tmp_path)
    assert sorted(described) == ["dense 24", "dense 8"]
    result = tune(again, 40, tmp_path)
    assert result.n_measurements == 40 and all(row.n_sketches for row in result.tasks)
    assert len(set(programs(tmp_path / "records.json"))) == 40


def test_a_model_of_other_features_is_refused_before_anything_is_measured(tasks, monkeypatch):
    model = LatencyModel(pretrained=packaged_checkpoint())
    Optimizer(tasks, model)
    monkeypatch.setattr(perf_func, "feature_version", lambda: 2)
    with pytest.raises(ValueError, match=r"cpu_mlp_\d+\.ckpt has features of another version"):
        Optimizer(tasks, model)


class Timeless(Timed):
    """Tells of no error, and of no time either, for programs of 16 rows."""

    def __init__(self, costs, library):
        super().__init__(library=library)
        self.costs = costs

    def run(self, candidates, programs, best_seconds=None, references=None, on_result=None):
        def tell(position, result):
            candidate = candidates[position]
            rows = int(candidate.task.compute_dag.tensors[0].shape[0])
            if rows == 16 and not isinstance(candidate, LibraryCandidate):
                result = MeasureResult(self.costs, 0, None, 0.1, 1.0)
            on_result(position, result)
            return result

        told = []
        super().run(candidates, programs, on_result=lambda *of: told.append(tell(*of)))
        return told


@pytest.mark.parametrize("costs", [[math.nan], [1e-5, 0.0], []])
def test_a_task_without_times_costs_few_measurements_and_no_records(tasks, tmp_path, costs):
    def begin():
        runner = Timeless(costs, library=1e-3)
        return Optimizer(
            tasks, MLPModelPLWrapper(seed=1), builder=Compiled(), runner=runner, settings=SETTINGS
        )

    result = tune(begin(), 24, tmp_path)
    counts = {row.desc: row.n_measured for row in result.tasks}
    assert counts == {"dense 16": 12, "dense 24": 12}
    (failed,) = (row for row in result.tasks if row.desc == "dense 16")
    assert failed.errors == {int(MeasureErrorNo.RUNTIME_DEVICE): 12}
    assert failed.keeps_library and failed.best_seconds == 1e-3
    # The run goes on, and what only failed is not tried again.
    again = begin()
    assert again.restore(tmp_path / "records.json") == 24
    again.load_state(tmp_path)
    counts = {row.desc: row.n_measured for row in tune(again, 32, tmp_path).tasks}
    assert counts == {"dense 16": 12, "dense 24": 20}


def test_what_programs_for_felix_hand_over_is_refused_with_what_is_taken(tasks):
    model = LatencyModel()
    pairs = [pair for group in tasks for pair in group.pairs]
    with pytest.raises(TypeError, match=r"got a tuple; a pair of Felix is SymTaskAndInstances\("):
        Optimizer(pairs, model)
    with pytest.raises(TypeError, match=r"MLPModelPLWrapper\(pretrained=file\), got a str"):
        Optimizer(tasks, "model.ckpt")
    with pytest.raises(TypeError, match="n_measurements must be a whole number, got 8.0"):
        Optimizer(tasks, model).tune(8.0)
    with pytest.raises(ValueError, match="measure_per_round must be >= 1, got 0"):
        Optimizer(tasks, model).tune(8, measure_per_round=0)
    with pytest.raises(TypeError, match="got None; the file to write is given by name, save_to="):
        extract_tasks(torch.nn.Linear(2, 2), torch.ones(1, 2), None)


def test_a_model_that_learned_nothing_is_not_taken_for_a_trained_one(tasks, tmp_path):
    first = optimizer(tasks)
    tune(first, 4, tmp_path)
    again = optimizer(tasks)
    again.restore(tmp_path / "records.json")
    again.load_state(tmp_path)
    assert not again.perf_model.trained
    tune(again, 40, tmp_path)


def test_library_measurements_outlive_an_interruption(tasks, tmp_path):
    many = merge_tasks([[make_task(dense(n), desc=f"dense {n}") for n in (8, 16, 24, 32)]])
    result = tune(optimizer(many, library=1e-3, stop_after=3), 8, tmp_path)
    assert result.interrupted
    found = library_records(tmp_path / "records.json")
    assert len(found) == 3
    again = optimizer(many, library=2e-3)
    again.restore(tmp_path / "records.json")
    tune(again, 4, tmp_path)
    seconds = [again.library_seconds(task) for task in again.tasks]
    assert sorted(seconds) == [1e-3, 1e-3, 1e-3, 2e-3]


def without_sketch():
    (group,) = merge_tasks([[make_task(dense(8), desc="no sketch")]])
    group.task._max_sketches = 0
    return group


def test_task_without_a_sketch_evolves_beside_the_others(tasks, tmp_path, caplog):
    optim = optimizer([*tasks, without_sketch()])
    result = tune(optim, 24, tmp_path)
    assert "no sketch: searched by evolution of concrete programs: no sketch for" in caplog.text
    (row,) = [row for row in result.tasks if row.search == "evolution"]
    assert row.desc == "no sketch" and row.n_sketches == 0 and row.n_measured > 0
    assert row.note.startswith("searched by evolution of concrete programs: no sketch for task")
    assert len(result.tasks) == 3 and sum(r.n_measured for r in result.tasks) == 24
    assert len(set(programs(tmp_path / "records.json"))) == 24
    # The network's time has all three, and the best record is what the task's best says.
    assert result.network_seconds == pytest.approx(sum(r.best_seconds for r in result.tasks))
    _, record = auto_scheduler.load_best_record(tmp_path / "records.json", row.workload_key)
    assert record.mean_cost == pytest.approx(row.best_seconds)


def test_an_evolving_task_goes_on_where_it_stopped(tasks, tmp_path):
    group = without_sketch()
    tune(optimizer([*tasks, group], library=1.0), 16, tmp_path)
    again = optimizer([*tasks, group], library=1.0)
    assert again.restore(tmp_path / "records.json") == 16
    again.load_state(tmp_path)
    result = tune(again, 32, tmp_path)
    assert result.n_measurements == 32
    assert len(set(programs(tmp_path / "records.json"))) == 32


def test_a_network_without_any_sketch_evolves(tmp_path):
    result = tune(optimizer([without_sketch()], library=1.0), 8, tmp_path)
    (row,) = result.tasks
    assert (row.search, row.n_measured) == ("evolution", 8)
    assert row.best_seconds < 1.0 and not row.keeps_library


def test_task_without_any_valid_program_keeps_the_library_and_says_so(tasks, monkeypatch):
    def none_valid(self, n):
        raise ValueError("SketchPolicy: none of 64 programs is valid\nand more")

    monkeypatch.setattr(auto_scheduler.SketchPolicy, "propose", none_valid)
    result = tune(optimizer([*tasks, without_sketch()], library=1.0), 16)
    (row,) = [row for row in result.tasks if row.search == "none"]
    assert (row.n_measured, row.best_seconds, row.keeps_library) == (0, 1.0, True)
    assert "finds nothing either: SketchPolicy: none of 64 programs is valid" in row.note
    assert result.n_measurements == 16 and result.network_seconds > 1.0


def test_damaged_record_is_named_with_its_line(tasks, tmp_path):
    tune(optimizer(tasks), 4, tmp_path)
    path = tmp_path / "records.json"
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace('"SP"', '"ZZ"')
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"records\.json:3: .*ZZ"):
        optimizer(tasks).restore(path)


def test_state_of_another_network_is_refused(tasks, tmp_path):
    tune(optimizer(tasks), 4, tmp_path)
    with pytest.raises(ValueError, match=r"state\.json: 2 tasks that are not the 1 of the network"):
        optimizer(tasks[:1]).load_state(tmp_path)


def test_gradient_policy_is_found_by_name_and_works_like_any_other(tmp_path):
    # On one core, a program whose outer loop runs once is of two sketches.
    task = auto_scheduler.SearchTask(compute_dag=dense(8), target="llvm -num-cores=2")
    records = tmp_path / "records.json"
    params = {"n_config_seeds": 4, "n_grad_steps": 4, "random_share": 0.5}
    [policy] = make_search_policies("felix", params, [task], 4, verbose=0)
    measurer = ProgramMeasurer(Compiled(), Timed(), [auto_scheduler.RecordToFile(records)])
    best = policy.search(12, None, 4, measurer)
    assert measurer.ct == len(policy.search_state.measured) == 12
    assert best.task.workload_key == task.workload_key
    fastest = policy.search_state.best
    assert measurer.best_seconds[task.workload_key] == pytest.approx(fastest.seconds)
    # Another policy takes over what this one has seen.
    [other] = make_search_policies(
        "felix", params, [task], 4, verbose=0, load_log_file=str(records)
    )
    assert other.search_state.measured.keys() == policy.search_state.measured.keys()
    assert other.search_state.best.key == fastest.key


def test_a_task_without_a_sketch_does_not_stop_the_policies_of_the_others(monkeypatch):
    tasks = [auto_scheduler.SearchTask(compute_dag=dense(n), target="llvm") for n in (8, 12)]
    make = sym_task.ffi.generate_all_sym_sketches

    def only_the_second(task, *options):
        return make(task, *options) if task is tasks[1] else ([], ["nothing to be lowered"])

    monkeypatch.setattr(sym_task.ffi, "generate_all_sym_sketches", only_the_second)
    kinds = [type(p) for p in make_search_policies("felix", {}, tasks, 4, verbose=0)]
    assert kinds == [EvolutionPolicy, FelixPolicy]
    with pytest.raises(ValueError, match="no_such_space"):
        make_search_policies("felix", {"search_space": "no_such_space"}, tasks, 4, verbose=0)


def test_unknown_parameter_lists_the_known_ones():
    task = auto_scheduler.SearchTask(compute_dag=dense(8), target="llvm")
    with pytest.raises(ValueError, match="unknown parameters 'population'; known are seed, .*lr"):
        make_search_policies("felix", {"population": 3}, [task], 4, verbose=0)


def test_records_of_any_search_are_weighed_against_the_library(tasks, tmp_path):
    records = tmp_path / "records.json"
    tune(optimizer(tasks), 12, tmp_path)
    assert not careful_file(records).exists()
    ours = [pair[1].ansor_task for group in tasks for pair in group.pairs]

    def confirmed(library):
        auto_scheduler.confirm_records(records, ours, Compiled(), Timed(library=library))
        again = [json.loads(line) for line in careful_file(records).read_text().splitlines()]
        best = auto_scheduler.ApplyHistoryBest(records)
        found = [best.query(task.target, task.workload_key) is not None for task in ours]
        careful_file(records).unlink()
        return sum("i" in line for line in again), sum("origin" in line for line in again), found

    # Far behind, nothing is worth timing again; far ahead, the library is not.
    assert confirmed(1e-9) == (0, 2, [False, False])
    assert confirmed(1.0) == (2, 2, [True, True])


def test_what_was_confirmed_is_not_measured_again(tasks, tmp_path):
    records = tmp_path / "records.json"
    tune(optimizer(tasks), 8, tmp_path)
    ours = [pair[1].ansor_task for group in tasks for pair in group.pairs]
    auto_scheduler.confirm_records(records, ours, Compiled(), Timed(library=1e-9))
    before = careful_file(records).read_text()
    auto_scheduler.confirm_records(records, ours, Compiled(), Timed(stop_after=0))
    assert careful_file(records).read_text() == before
