"""Networks give tasks, and their builds take the best recorded state of each."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, relax
from tvm.auto_scheduler import (
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
    MeasureInput,
    MeasureResult,
)
from tvm.auto_scheduler.measure_record import careful_file
from tvm.target import Target

TARGET = Target("llvm -mcpu=znver3 -num-cores=4")


@pytest.fixture
def network():
    """relu(x @ weight), weight a constant."""
    weight = relax.const(np.ones((8, 16), "float32"))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, weight))
            out = builder.emit_output(relax.op.nn.relu(product))
        builder.emit_func_output(out)
    return builder.get()


def tiled(task, tile):
    s = task.compute_dag.get_init_state()
    stage = len(s.stages) - 1
    s.split(stage, s[stage].iters[1], [tile])
    return s


def record(task, tile, seconds, error_no=0):
    return (
        MeasureInput(task, tiled(task, tile)),
        MeasureResult([seconds], error_no, None, 1, 1),
    )


def step_of(state):
    """The tile in the last split of a state that `tiled` made."""
    return [int(n) for n in state.transform_steps[-1].lengths]


def test_a_network_gives_its_tasks_with_weights(network, tmp_path):
    log = tmp_path / "dags.json"
    tasks, weights = auto_scheduler.extract_tasks(
        network, None, TARGET, dump_workload_to_dag_log=log
    )
    assert weights == [1]
    assert "dense" in str(tasks[0].desc)
    assert list(json.loads(log.read_text())) == [str(tasks[0].workload_key)]
    with pytest.raises(ValueError, match="one target"):
        auto_scheduler.extract_tasks(network, None, TARGET, other_targets=[TARGET])


def test_two_equal_layers_are_one_task_of_weight_two():
    torch = pytest.importorskip("torch")
    layers = [torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(8, 3))
    tasks, weights = auto_scheduler.extract_tasks(model, (torch.zeros(2, 8),), TARGET)
    assert sorted(weights) == [1, 2]
    assert len(tasks) == 2


def test_the_best_record_of_the_machine_wins(network, tmp_path):
    [task], _ = auto_scheduler.extract_tasks(network, None, TARGET)
    other = Target("llvm -mcpu=skylake-avx512 -num-cores=4")
    [elsewhere], _ = auto_scheduler.extract_tasks(network, None, other)
    key = str(task.workload_key)
    log = tmp_path / "records.json"
    pairs = [record(task, 2, 3e-3), record(task, 4, 1e-3), record(elsewhere, 8, 1e-4)]
    auto_scheduler.save_records(log, *map(list, zip(*pairs)))
    context = ApplyHistoryBest(log)
    assert step_of(context.query(TARGET, key)) == [4]
    assert step_of(context.query(other, key)) == [8]
    context.load([record(task, 16, 5e-4), record(task, 1, 1e-9, error_no=4)])
    assert step_of(context.query(TARGET, key)) == [16]
    assert step_of(ApplyHistoryBest(log, n_lines=1).query(TARGET, key)) == [2]
    context.update(TARGET, key, tiled(task, 1))
    assert step_of(context.query(TARGET, key)) == [1]
    context.update(TARGET, key, None)
    assert step_of(context.query(TARGET, key)) == [16]
    assert context.query(TARGET, '["unknown"]') is None
    entry, name, arguments = ApplyHistoryBest.get_workload_entry(
        context.best_by_targetkey, "cpu", key
    )
    assert name == json.loads(key)[0]
    assert {best.seconds for best in entry[arguments].values()} == {5e-4, 1e-4}


def test_nothing_slower_than_the_librarys_schedule_is_built(network, tmp_path, caplog):
    [task], _ = auto_scheduler.extract_tasks(network, None, TARGET)
    key, log = str(task.workload_key), tmp_path / "records.json"
    pairs = [record(task, 2, 3e-3), record(task, 4, 1e-3)]
    auto_scheduler.save_records(log, *map(list, zip(*pairs)))
    library = auto_scheduler.LibraryCandidate(task)

    def measured_carefully(candidate, seconds):
        result = auto_scheduler.MeasureResult([seconds], 0, None, 0.1, 1.0)
        with careful_file(log).open("a") as file:
            file.write(candidate.record(result) + "\n")

    measured_carefully(library, 2e-3)
    assert step_of(ApplyHistoryBest(log).query(TARGET, key)) == [4]
    # A winner that was only lucky loses when it is measured again.
    measured_carefully(pairs[1][0], 4e-3)
    assert ApplyHistoryBest(log).query(TARGET, key) is None
    assert not caplog.records
    best, result = auto_scheduler.load_best_record(log, key, TARGET)
    assert (step_of(best.state), result.mean_cost) == ([2], 3e-3)


def test_records_of_others_are_left_unread_or_warned_of(network, tmp_path, caplog):
    [task], _ = auto_scheduler.extract_tasks(network, None, TARGET)
    other = Target("llvm -mcpu=skylake-avx512 -num-cores=4")
    [elsewhere], _ = auto_scheduler.extract_tasks(network, None, other)
    key = str(task.workload_key)
    log = tmp_path / "records.json"
    auto_scheduler.save_records(log, *map(list, zip(record(elsewhere, 8, 1e-4))))
    foreign = json.loads(log.read_text())
    foreign["i"][0][0] = '["ffffffffffffffffffffffffffffffff", [3]]'
    log.write_text(log.read_text() + json.dumps(foreign) + "\n")
    # Nobody registered the second record's computation, which matters to no query for the first.
    context = ApplyHistoryBest(log)
    assert step_of(context.query(other, key)) == [8]
    for _ in range(2):
        assert context.query(TARGET, key) is None
    told = [r.message for r in caplog.records if "other machines" in r.message]
    assert len(told) == 1
    assert "skylake-avx512" in told[0]
    log.write_text('{"i": [[]], "r": []}\n')
    with pytest.raises(ValueError, match=r"records\.json:1: "):
        ApplyHistoryBest(log)


def test_builds_ask_for_their_own_target(network):
    asked = []

    class Spy(DispatchContext):
        def _query_inside(self, target, workload_key, dag, func_name):
            asked.append(str(target))

    target = Target("llvm -num-cores=3")
    with Spy():
        relax.build(network, target)
    assert asked == [str(target)]


def test_a_workload_may_take_a_compatible_one():
    auto_scheduler.register_workload("dispatch_scale", _scale, override=True)
    task = auto_scheduler.SearchTask(func="dispatch_scale", args=(8,), target=TARGET)
    wanted = auto_scheduler.make_workload_key("dispatch_scale", (16,))
    assert ApplyHistoryBest([record(task, 4, 1e-3)]).query(TARGET, wanted) is None
    compatible = ApplyHistoryBest([record(task, 4, 1e-3)], include_compatible=True)
    assert step_of(compatible.query(TARGET, wanted)) == [4]


def _scale(n):
    a = tvm.te.placeholder((n, n), name="A")
    return [a, tvm.te.compute((n, n), lambda i, j: a[i, j] * 2.0, name="B")]


def test_contexts_nest_and_builds_ask_the_innermost(network):
    [task], _ = auto_scheduler.extract_tasks(network, None, "llvm")
    key = str(task.workload_key)
    assert DispatchContext.current is None
    asked = []

    class Spy(FallbackContext):
        def query(self, target, workload_key, *rest, **named):
            asked.append(workload_key)
            return super().query(target, workload_key, *rest, **named)

    x = np.random.default_rng(0).uniform(-1, 1, (4, 8)).astype("float32")
    with ApplyHistoryBest([record(task, 4, 1e-3)]) as outer:
        with Spy(verbose=0) as inner:
            assert DispatchContext.current is inner
            assert step_of(inner.query(Target("llvm"), key)) == [4]
            executable = relax.build(network, "llvm")
        assert DispatchContext.current is outer
    assert DispatchContext.current is None
    assert asked == [key, key]
    out = relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.nd.array(x))
    expected = np.maximum(x @ np.ones((8, 16), "float32"), 0)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)
    relax.build(network, "llvm")
    assert asked == [key, key]


def test_a_fallback_warns_once_of_what_nobody_knows(caplog):
    context = FallbackContext()
    for _ in range(2):
        assert context.query(TARGET, '["nobody"]', True, None, "fused_matmul") is None
    assert [r.message for r in caplog.records if "fused_matmul" in r.message] == [
        caplog.records[0].message
    ]
    context.query(TARGET, '["simple"]', has_complex_op=False)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("num_measure", [-1, 2])
def test_what_nobody_recorded_is_sampled(network, num_measure):
    [task], _ = auto_scheduler.extract_tasks(network, None, "llvm")
    context = auto_scheduler.ApplyHistoryBestOrSample(None, num_measure=num_measure)
    key = str(task.workload_key)
    state = context.query(task.target, key, True, task.compute_dag)
    assert len(state.transform_steps) > 0
    # It is sampled once.
    assert context.query(task.target, key, True, task.compute_dag) == state
    assert context.query(task.target, '["simple"]', has_complex_op=False) is None


@pytest.mark.parametrize("tile", [-1, 0, "four", None])
def test_a_record_whose_program_cannot_be_made_is_named_and_left_out(
    network, tmp_path, caplog, tile
):
    [task], _ = auto_scheduler.extract_tasks(network, None, TARGET)
    log = tmp_path / "records.json"
    pairs = [record(task, 2, 3e-3), record(task, 4, 1e-3), record(task, 8, 2e-3)]
    auto_scheduler.save_records(log, *map(list, zip(*pairs)))
    lines = log.read_text().splitlines()
    damaged = json.loads(lines[1])
    damaged["i"][1][1][-1][4] = tile if isinstance(tile, list) else [tile]
    log.write_text("\n".join([lines[0], json.dumps(damaged), lines[2]]) + "\n")
    with TARGET, ApplyHistoryBest(log) as context:
        executable = relax.build(network, TARGET)
        assert executable is not None
        assert step_of(context.query(TARGET, str(task.workload_key))) == [8]
    assert f"{log}:2" in caplog.text and "not used" in caplog.text


@pytest.mark.parametrize("cost", [-1.0, float("inf"), float("nan")])
def test_costs_that_cannot_be_are_refused_by_file_and_line(network, tmp_path, cost):
    [task], _ = auto_scheduler.extract_tasks(network, None, TARGET)
    log = tmp_path / "records.json"
    pairs = [record(task, 2, 3e-3), record(task, 4, cost)]
    auto_scheduler.save_records(log, *map(list, zip(*pairs)))
    with pytest.raises(ValueError, match=r"records\.json:2: record: costs.* must be "):
        ApplyHistoryBest(log)
    with pytest.raises(ValueError, match=r"records\.json:2: record: costs.* must be "):
        list(auto_scheduler.load_records(log))
