"""Record lines and files."""

from __future__ import annotations

import json
import logging
import pickle

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler
from tvm.auto_scheduler import MeasureInput, MeasureResult
from tvm.auto_scheduler.measure_record import dump_record_to_string, load_record_from_string

# The example of the format: i split into 16 x 16, j into 8 x 16, outer loops parallel, inner
# vectorized.
EXAMPLE = (
    '{"i": [["[\\"test_matmul\\", 256, 128, 64]", "llvm -keys=cpu", [8, 64, 64, 0, 0, 0, 0, 0], '
    '"", 1, []], [[], [["SP", 2, 0, 256, [16], 1], ["SP", 2, 2, 128, [16], 1], '
    '["RE", 2, [0, 2, 4, 1, 3]], ["FU", 2, [0, 1]], ["AN", 2, 0, 3], ["AN", 2, 3, 2], '
    '["PR", 2, 0, "auto_unroll_max_step$64"]]]], '
    '"r": [[0.000213], 0, 0.84, 1700000000], "v": "v0.6"}'
)


def _pair(cost=0.5, error=0, message=None, size=16):
    task = auto_scheduler.SearchTask(func="test_matmul", args=(size, 16, 16), target="llvm")
    state = task.compute_dag.get_init_state()
    state.split(2, state[2].iters[0], [4])
    return MeasureInput(task, state), MeasureResult([cost], error, message, 0.25, 1700000000)


def test_example_of_the_format_is_read():
    measure_input, result = load_record_from_string(EXAMPLE)
    assert [float(c) for c in result.costs] == [0.000213]
    assert measure_input.task.hardware_params.num_cores == 8
    assert str(measure_input.state) == (
        "Placeholder: A, B\n"
        "C auto_unroll: 64\n"
        "parallel i.0@j.0@ (0,128)\n"
        "  for k (0,64)\n"
        "    for i.1 (0,16)\n"
        "      vectorize j.1 (0,16)\n"
        "        C = ...\n"
    )


def test_a_record_names_the_machine_that_it_is_of():
    target = str(_pair()[0].task.target)
    assert f"-mcpu={tvm.target.Target('llvm').mcpu}" in target
    assert "-num-cores=" in target
    # A target with its machine written out parses back to itself.
    assert str(tvm.target.Target(target).with_machine()) == target


def test_records_of_another_machine_are_not_taken_but_named(tmp_path, caplog):
    path = tmp_path / "records.json"
    other = "llvm -keys=arm_cpu,cpu -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu"
    line = json.loads(EXAMPLE)
    line["i"][0][1] = other
    path.write_text(json.dumps(line) + "\n")
    key = line["i"][0][0]
    wanted = "llvm -mcpu=znver3 -mtriple=x86_64-linux-gnu"
    with caplog.at_level(logging.WARNING):
        assert auto_scheduler.load_best_record(path, key, wanted) == (None, None)
    assert other in caplog.text
    assert "-mcpu=znver3" in caplog.text
    found, _ = auto_scheduler.load_best_record(path, key, other)
    assert str(found.task.target).startswith(other)
    # A record that names no processor, as those of old do, passes for any.
    path.write_text(path.read_text() + EXAMPLE + "\n")
    found, _ = auto_scheduler.load_best_record(path, key, wanted)
    assert found is not None


def test_record_survives_writing_and_reading():
    assert (
        json.loads(dump_record_to_string(*load_record_from_string(EXAMPLE)))["i"][1]
        == (json.loads(EXAMPLE)["i"][1])
    )
    cost = 1.2345678901234567e-05
    measure_input, result = _pair(cost)
    again_input, again = load_record_from_string(dump_record_to_string(measure_input, result))
    assert float(again.costs[0]) == cost
    assert again_input.state == measure_input.state
    assert again_input.task.workload_key == measure_input.task.workload_key


def test_error_text_is_kept():
    line = dump_record_to_string(*_pair(1e10, 4, "segmentation fault"))
    _, result = load_record_from_string(line)
    assert (int(result.error_no), str(result.error_msg)) == (4, "segmentation fault")


@pytest.mark.parametrize("kept", [2, 3, 5])
def test_short_task_headers_take_defaults(kept):
    data = json.loads(EXAMPLE)
    data["i"][0] = data["i"][0][:kept]
    measure_input, _ = load_record_from_string(json.dumps(data))
    assert measure_input.task.target_host is None


def test_unknown_keys_are_refused():
    data = json.loads(EXAMPLE)
    data["z"] = 1
    with pytest.raises(ValueError, match=r"unknown keys \['z'\]"):
        load_record_from_string(json.dumps(data))


def test_a_torn_last_line_is_skipped_and_does_not_spoil_the_next(tmp_path, caplog):
    path = tmp_path / "records.json"
    auto_scheduler.save_records(path, *[[x] for x in _pair(0.5)])
    path.write_text("# a comment\n\n" + path.read_text() + EXAMPLE[:40])
    with caplog.at_level(logging.WARNING, logger="auto_scheduler"):
        assert len(list(auto_scheduler.load_records(path))) == 1
    assert "is not a whole record" in caplog.text
    auto_scheduler.save_records(path, *[[x] for x in _pair(0.25)])
    costs = [float(r.costs[0]) for _, r in auto_scheduler.load_records(path)]
    assert costs == [0.5, 0.25]


def test_reader_skips_and_limits_lines(tmp_path):
    path = tmp_path / "records.json"
    pairs = [_pair(cost) for cost in (0.1, 0.2, 0.3)]
    auto_scheduler.save_records(path, [p[0] for p in pairs], [p[1] for p in pairs])
    inputs, results = auto_scheduler.RecordReader(path).read_lines(max_lines=1, skip_lines=1)
    assert len(inputs) == 1
    assert float(results[0].costs[0]) == 0.2


def test_reader_goes_on_where_it_was_and_sees_what_comes_later(tmp_path):
    path = tmp_path / "records.json"
    pairs = [_pair(cost) for cost in (0.1, 0.2, 0.3)]
    auto_scheduler.save_records(path, [p[0] for p in pairs], [p[1] for p in pairs])
    reader = auto_scheduler.RecordReader(path)
    assert str(reader.filename) == str(path)
    assert [r.mean_cost for r in reader.read_lines(1)[1]] == [0.1]
    assert [r.mean_cost for _, r in reader] == [0.2, 0.3]
    assert list(reader) == []
    auto_scheduler.save_records(path, *[[x] for x in _pair(0.4)])
    assert [r.mean_cost for r in reader.read_lines()[1]] == [0.4]
    path.write_text(EXAMPLE + "\n" + '{"i": 1, "r": 2}\n')
    with pytest.raises(ValueError, match=r"records\.json:2: "):
        list(auto_scheduler.RecordReader(path))
    with pytest.raises(FileNotFoundError, match="none does not exist"):
        auto_scheduler.RecordReader(tmp_path / "none")


def test_keys_without_shapes_are_warned_of(tmp_path, caplog):
    measure_input, result = _pair()
    key = '["0123456789abcdef0123456789abcdef"]'
    auto_scheduler.register_workload_tensors(key, measure_input.task.compute_dag.tensors)
    task = auto_scheduler.SearchTask(workload_key=key, target="llvm")
    path = tmp_path / "records.json"
    old = auto_scheduler.MeasureInput(task, measure_input.state)
    auto_scheduler.save_records(path, [measure_input, old], [result, result])
    with caplog.at_level(logging.WARNING, logger="auto_scheduler"):
        auto_scheduler.RecordReader(path).read_lines(1)
        assert not caplog.records
        auto_scheduler.RecordReader(path).read_lines()
    assert "0123456789abcdef" in caplog.text and "tells no shapes" in caplog.text


def test_numbers_are_read_as_numbers_and_by_value():
    _, result = _pair(0.25)
    assert [float(c) for c in result.costs] == [c.value for c in result.costs] == [0.25]
    assert np.mean(result.costs) == 0.25
    steps = {type(s).__name__: s for s in load_record_from_string(EXAMPLE)[0].state.transform_steps}
    assert [i.value for i in steps["ReorderStep"].after_ids] == [0, 2, 4, 1, 3]
    assert steps["FuseStep"].fused_ids == [0, 1]


def test_measure_inputs_print_in_a_line():
    text = str(load_record_from_string(EXAMPLE)[0])
    assert "test_matmul" in text and "llvm" in text and "7 steps" in text
    assert len(text.splitlines()) == 1


def test_padding_by_a_loop_that_is_summed_over_changes_nothing():
    task = _pair()[0].task
    dag = task.compute_dag
    state = dag.get_init_state()
    product = dag.ops[-1]
    state.storage_align(product, state[product].iters[-1], 8, 4)
    line = dump_record_to_string(auto_scheduler.MeasureInput(task, state), _pair()[1])
    again = load_record_from_string(line)[0].state
    assert dag.infer_bound_from_state(again) == dag.infer_bound_from_state(state)
    schedule, args = dag.apply_steps_from_state(state)
    plain, plain_args = dag.apply_steps_from_state(dag.get_init_state())
    tvm.ir.assert_structural_equal(
        tvm.lower(schedule, args), tvm.lower(plain, plain_args), map_free_vars=True
    )
    assert "storage_align" not in dag.print_python_code_from_state(state)


def test_best_record_has_the_lowest_valid_cost(tmp_path):
    path = tmp_path / "records.json"
    for pair in (_pair(0.5), _pair(0.2), _pair(0.1, 4), _pair(0.05, size=32)):
        auto_scheduler.save_records(path, [pair[0]], [pair[1]])
    key = str(_pair()[0].task.workload_key)
    measure_input, result = auto_scheduler.load_best_record(path, key, "llvm")
    assert float(result.costs[0]) == 0.2
    assert str(measure_input.task.workload_key) == key
    assert auto_scheduler.load_best_record(path, '["other", 1]') == (None, None)


def test_compatible_records_cost_in_proportion(tmp_path):
    path = tmp_path / "records.json"
    auto_scheduler.save_records(path, *[[x] for x in _pair(0.2)])
    double = auto_scheduler.make_workload_key("test_matmul", (32, 16, 16))
    assert auto_scheduler.load_best_record(path, double) == (None, None)
    found, _ = auto_scheduler.load_best_record(path, double, include_compatible=True)
    assert found is not None


def test_inputs_and_results_can_be_pickled():
    measure_input, result = _pair()
    again_input, again = pickle.loads(pickle.dumps((measure_input, result)))
    assert again_input.state == measure_input.state
    assert [float(c) for c in again.costs] == [float(c) for c in result.costs]


@pytest.mark.parametrize("apart", [False, True])
def test_the_host_of_a_target_is_kept(tmp_path, apart):
    host = "llvm -mtriple=aarch64-linux-gnu"
    given = (
        {"target": "llvm", "target_host": host}
        if apart
        else {"target": tvm.target.Target("llvm", host)}
    )
    task = auto_scheduler.SearchTask(func="test_matmul", args=(4, 4, 4), **given)
    inp = MeasureInput(task, task.compute_dag.init_state)
    log = tmp_path / "log.json"
    auto_scheduler.save_records(str(log), [inp], [MeasureResult([0.1], 0, "", 0.2, 1)])
    [read], _ = auto_scheduler.RecordReader(str(log)).read_lines()
    for each in (read, auto_scheduler.measure.recover_measure_input(read)):
        assert each.task.target.host.attrs["mtriple"] == "aarch64-linux-gnu"
