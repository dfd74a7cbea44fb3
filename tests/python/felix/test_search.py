"""Gradient search inside one task, without measuring."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tvm import te, topi
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix import features
from tvm.felix.perf_func import TaskPerfFunc
from tvm.felix.search import ConfigInfo, SearchSettings, SingleTaskOptimizer
from tvm.felix.sym_task import load_tasks, make_task, save_tasks
from tvm.felix.tape import Tape


def dense_with_relu() -> list[te.Tensor]:
    data = te.placeholder((32, 96), name="data")
    weight = te.placeholder((64, 96), name="weight")
    return [data, weight, topi.nn.relu(topi.nn.dense(data, weight))]


@pytest.fixture(scope="module")
def task():
    return make_task(dense_with_relu(), desc="dense relu")


@pytest.fixture
def search(task):
    return new_search(task)


def new_search(task) -> SingleTaskOptimizer:
    model = MLPModelPLWrapper(seed=1)
    function = TaskPerfFunc(task.task.sketches, task.instances[0].flop, "dense", model)
    rows = [
        f.features.rows(f.features.config_maker.make(8, np.random.default_rng(0)))[
            ..., : function.n_features
        ].reshape(-1, function.n_features)
        for f in function.sketch_funcs.values()
    ]
    model.ensure_built(function.n_features, torch.from_numpy(np.concatenate(rows)))
    return SingleTaskOptimizer(function, np.random.default_rng(5))


def test_gradient_steps_lower_the_predicted_cost(search):
    function = next(iter(search.task_f.sketch_funcs.values()))
    start = function.features.config_maker.make(16, np.random.default_rng(2))
    points = torch.from_numpy(start).requires_grad_()
    optimizer = torch.optim.Adam([points], lr=0.05)
    costs = [search.optimize_step(function, points, optimizer) for _ in range(100)]
    assert costs[-1] < costs[0]


def test_a_sketch_that_is_searched_for_long_gets_a_simplified_tape(search, monkeypatch):
    monkeypatch.setattr(features, "_STEPS_WORTH_SIMPLIFYING", (3, 8))
    simplified = []
    original = Tape.simplify
    monkeypatch.setattr(Tape, "simplify", lambda tape: simplified.append(tape) or original(tape))
    function = next(iter(search.task_f.sketch_funcs.values()))
    start = function.features.config_maker.make(4, np.random.default_rng(2))
    before = function.features.rows(start)
    search.descend(function, start, 2)
    assert not simplified
    search.descend(function, start, 5)
    assert len(simplified) == 1
    # Later once more, and what is simplified then is the result, not the tape of the beginning.
    search.descend(function, start, 5)
    assert [len(tape) for tape in simplified] == [
        len(function.features.pack.tape),
        len(original(function.features.pack.tape).tape),
    ]
    np.testing.assert_allclose(function.features.rows(start), before, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("favourite", [0, 1])
def test_start_points_go_to_the_sketches_that_promise_most(task, monkeypatch, favourite):
    search = new_search(task)
    first = search.optimize_round(8, 4, 16)
    assert len({info.sketch for info in first}) > 1
    for info in first:
        info.seconds = 1e-4 if info.sketch == favourite else 1e-2
        search.record(info)
    search.end_round()
    given = {}

    def descend(function, start, n_steps):
        given[function.sketch.index] = len(start)
        return start

    monkeypatch.setattr(search, "descend", descend)
    search.optimize_round(32, 4, 8)
    # The better half of the sketches, the best one with as many as all others.
    assert len(given) == (len(search.task_f.sketch_funcs) + 1) // 2
    assert next(iter(given)) == favourite
    assert given.pop(favourite) >= sum(given.values())


def test_candidates_are_valid_distinct_and_sorted_by_prediction(search):
    trajectories = {
        index: search.descend(f, search.start_points(f, 8), 10)
        for index, f in search.task_f.sketch_funcs.items()
    }
    ranked = search.task_f.rounded_sorted_configs(trajectories)
    assert ranked
    scores = [candidate.score for candidate in ranked]
    assert scores == sorted(scores, reverse=True)
    for candidate in ranked:
        function = search.task_f.sketch_funcs[candidate.sketch]
        assert function.features.config_maker.valid(candidate.point[None]).all()
    keys = {(c.sketch, c.point.tobytes()) for c in ranked}
    assert len(keys) == len(ranked)


def test_predictions_belong_to_their_configurations(search):
    function = next(iter(search.task_f.sketch_funcs.values()))
    visited = function.features.config_maker.make(32, np.random.default_rng(3))
    index = function.sketch.index
    for candidate in search.task_f.rounded_sorted_configs({index: visited}, polish=0)[:10]:
        again = function.features.point(function.features.config(candidate.point))
        assert function.scores(again[None])[0] == pytest.approx(candidate.score, abs=1e-5)


def test_no_configuration_is_proposed_twice(search):
    seen: set[tuple] = set()
    for _ in range(3):
        for info in search.optimize_round(8, 5, 6):
            assert info.key not in seen
            seen.add(info.key)
            search.record(ConfigInfo(info.sketch, info.config, info.pred_perf, 1e-3, 0))
        search.end_round()
    assert search.least_lat_history == [1e-3] * 3


def test_equal_seeds_propose_equal_configurations(task):
    first, second = (
        [info.key for info in new_search(task).optimize_round(8, 5, 6)] for _ in range(2)
    )
    assert first == second


# A vector of 96 elements takes six registers of 512 bits, and twelve of the sixteen of 256 bits.
@pytest.mark.parametrize("processor, widest", [("skylake-avx512", [96]), ("haswell", [])])
def test_a_task_that_has_been_measured_completely_is_not_measured_again(processor, widest):
    x = te.placeholder((4, 24), name="x")
    target = f"llvm -mcpu={processor} -num-cores=1"
    search = new_search(make_task([x, topi.nn.relu(x)], target))
    # Vectors of the divisors of 24 are all there is, and random rounds come to an end of them.
    for settings in (SearchSettings(random_share=1.0), SearchSettings()):
        search.settings = settings
        for _ in range(40):
            infos = search.optimize_round(4, 2, 16)
            for info in infos:
                search.record(ConfigInfo(info.sketch, info.config, 0.0, 1e-3, 0))
            if not infos:
                break
        assert not infos
    widths = {
        sketch: sorted(
            info.config["sp_0_0"] for info in search.measured.values() if info.sketch == sketch
        )
        for sketch in range(2)
    }
    # In rows, and in one row of all 96 elements.
    assert widths == {
        0: [1, 2, 3, 4, 6, 8, 12, 24],
        1: [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, *widest],
    }


def test_configuration_to_state_to_configuration_is_the_identity(task):
    for sketch in task.task.sketches:
        function = TaskPerfFunc([sketch], 1.0, "dense", MLPModelPLWrapper()).sketch_funcs[
            sketch.index
        ]
        for point in function.features.config_maker.make(5, np.random.default_rng(0)):
            config = function.features.config(point)
            assert sketch.config_from_state(sketch.state_from_config(config)) == config
            assert (function.features.point(config) == point).all()


def test_a_configuration_of_another_sketch_is_not_taken_for_ones_own(task):
    first, second = task.task.sketches[:2]
    function = TaskPerfFunc([first], 1.0, "dense", MLPModelPLWrapper()).sketch_funcs[first.index]
    (point,) = function.features.config_maker.make(1, np.random.default_rng(0))
    state = first.state_from_config(function.features.config(point))
    assert second.config_from_state(state) is None


def test_a_value_with_a_foreign_prime_is_refused(search):
    function = next(iter(search.task_f.sketch_funcs.values()))
    config = function.features.config(
        function.features.config_maker.make(1, np.random.default_rng(0))[0]
    )
    knob = next(iter(config))
    with pytest.raises(ValueError, match="is not a product of"):
        function.features.point({**config, knob: 11})
    del config[knob]
    with pytest.raises(ValueError, match=f"the configuration lacks {knob}"):
        function.features.point(config)


def test_tiles_that_do_not_divide_their_loop_are_no_program(task):
    """As where the shape in a notebook was changed, and the tiles of before are asked for."""
    sketch = task.task.sketches[0]
    config = {str(knob.name): 1 for group in sketch.context.split_groups for knob in group.vars}
    sketch.state_from_config(config | {"sp_1_0": 2, "sp_1_2": 16})
    for broken, tile in (({"sp_1_0": 3, "sp_1_2": 16}, 48), ({"sp_1_2": 0}, 0)):
        with pytest.raises(ValueError, match=f"multiply to {tile}, which is no divisor of 64"):
            sketch.state_from_config(config | broken)


def test_saved_tasks_read_back_with_equal_keys_and_sketches(task, tmp_path):
    save_tasks([task], tmp_path / "tasks.json")
    (again,) = load_tasks(tmp_path / "tasks.json")
    assert again.instances[0].ansor_task.workload_key == task.instances[0].ansor_task.workload_key
    assert [s.state_repr for s in again.task.sketches] == [s.state_repr for s in task.task.sketches]
    for text in ('{"format": 1}', '{"format": 1, "tasks": 5}'):
        (tmp_path / "tasks.json").write_text(text)
        with pytest.raises(ValueError, match=r"tasks\.json: there is no list of tasks"):
            load_tasks(tmp_path / "tasks.json")


def test_a_program_that_two_sketches_come_to_is_chosen_once(task):
    search = new_search(task)
    first, second, *_ = search.task_f.sketch_funcs.values()
    assert first.sketch.state_repr != second.sketch.state_repr
    # They differ in which outer loop is outside of the other.
    one_block = {"sp_0_0": 1, "sp_0_1": 8, "sp_0_2": 4, "sp_1_0": 1, "sp_1_1": 4, "sp_1_2": 16}
    blocks = {**one_block, "sp_0_1": 4, "sp_1_1": 2}
    for config, is_same in (({**one_block, "sp_2_0": 96}, True), ({**blocks, "sp_2_0": 96}, False)):
        assert (first.program(config) == second.program(config)) == is_same
        assert search.is_other(ConfigInfo(first.sketch.index, config, 0.0))
        again = ConfigInfo(second.sketch.index, config, 0.0)
        assert search.is_other(again) != is_same
    # What was measured counts, too: here in a run before this one.
    resumed = new_search(task)
    measured = ConfigInfo(first.sketch.index, {**one_block, "sp_2_0": 96}, 0.0, seconds=1e-5)
    resumed.record(measured)
    resumed.learn_from([measured])
    assert not resumed.is_other(ConfigInfo(second.sketch.index, measured.config, 0.0))
