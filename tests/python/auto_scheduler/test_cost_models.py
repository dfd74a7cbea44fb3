"""Cost models that learn from measurements, their files, data sets and metrics."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import MeasureInput, MeasureResult
from tvm.auto_scheduler.cost_model import XGBModel
from tvm.auto_scheduler.cost_model.dataset import ConfigMeta, DatasetBuilder
from tvm.auto_scheduler.cost_model.metric import (
    LEVELS,
    METRICS,
    evaluate,
    log_error,
    pair_accuracy,
    r_squared,
    random_baseline,
    rmse,
    top_k_recall,
)
from tvm.auto_scheduler.cost_model.mlp_model import MLPModel


@auto_scheduler.register_workload("cost_model_matmul")
def matmul(n, m, k):
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


def tiled(task, tile_i, tile_j, vectorized):
    s = task.compute_dag.get_init_state()
    c = s.stage_ops[2]
    i, j, k = s[c].iters
    io, ii = s.split(c, i, [tile_i])
    jo, ji = s.split(c, j, [tile_j])
    s.reorder(c, [io, jo, k, ii, ji])
    if vectorized:
        s.vectorize(c, ji)
    return s


@pytest.fixture(scope="module")
def measured():
    """Programs whose made-up cost follows from tile and vectors, with their task."""
    task = auto_scheduler.SearchTask(func="cost_model_matmul", args=(128, 128, 64), target="llvm")
    inputs, results = [], []
    for tile_i in (1, 2, 4, 8, 16, 32):
        for tile_j in (1, 2, 4, 8, 16, 32):
            for vectorized in (False, True):
                inputs.append(MeasureInput(task, tiled(task, tile_i, tile_j, vectorized)))
                seconds = 1e-4 * (1 + abs(tile_i - 4)) * (1.0 if vectorized else 3.0) / tile_j**0.5
                results.append(MeasureResult([seconds], 0, None, 1, 1))
    return task, inputs, results


def throughputs_of(results):
    costs = np.array([result.mean_cost for result in results])
    return costs.min() / costs


def test_trees_learn_the_throughput_of_what_they_saw(measured):
    task, inputs, results = measured
    model = XGBModel(num_warmup_sample=-1, verbose_eval=0)
    model.update(inputs, results)
    predicted = np.array(model.predict(task, [i.state for i in inputs]))
    assert rmse(predicted, throughputs_of(results)) < 0.05
    # More measurements go on from the trees that there are.
    trees = model.bst.num_boosted_rounds()
    model.update(inputs[:4], results[:4])
    assert model.bst.num_boosted_rounds() > trees


def test_scores_are_random_while_too_little_is_measured(measured):
    task, inputs, results = measured
    model = XGBModel(num_warmup_sample=100, verbose_eval=0)
    model.update(inputs[:10], results[:10])
    scores = model.predict(task, [i.state for i in inputs])
    assert len(set(scores)) == len(inputs)
    assert all(0 < score < 1 for score in scores)


def test_a_model_that_saw_only_failures_is_not_saved(measured, tmp_path):
    """A search with a model file begins with tasks of which nothing may have run."""
    _, inputs, results = measured
    model = XGBModel(num_warmup_sample=-1, verbose_eval=0, model_file=tmp_path / "model")
    model.update(inputs[:2], [MeasureResult([1e10], 4, "crashed", 1, 1)] * 2)
    assert not (tmp_path / "model").exists()
    model.update(inputs[:9], results[:9])
    assert (tmp_path / "model").exists()


def test_adaptive_training_waits_for_a_fifth_of_new_programs(measured):
    task, inputs, results = measured
    model = XGBModel(num_warmup_sample=-1, verbose_eval=0, adaptive_training=True)
    model.update(inputs[:40], results[:40])
    trees = model.bst.num_boosted_rounds()
    model.update(inputs[40:44], results[40:44])
    assert model.bst.num_boosted_rounds() == trees
    model.update(inputs[44:50], results[44:50])
    assert model.bst.num_boosted_rounds() != trees


def test_history_keeps_the_fastest_and_the_newest(measured):
    _, inputs, results = measured
    model = XGBModel(num_warmup_sample=-1, verbose_eval=0, max_history=20)
    model.update(inputs[:60], results[:60])
    assert len(model.inputs) == len(model.results) == 20
    costs = [result.mean_cost for result in model.results]
    assert min(costs) == min(result.mean_cost for result in results[:60])
    assert costs[-10:] == [result.mean_cost for result in results[50:60]]


def test_an_illegal_state_scores_minus_infinity(measured):
    task = auto_scheduler.SearchTask(
        func="cost_model_matmul",
        args=(128, 128, 64),
        target="cuda",
        hardware_params=auto_scheduler.HardwareParams(max_threads_per_block=8, target="cuda"),
    )
    s = task.compute_dag.get_init_state()
    c = s.stage_ops[2]
    block, thread = s.split(c, s.fuse(c, s[c].iters[:2]), [64])
    s.bind(c, block, "blockIdx.x")
    s.bind(c, thread, "threadIdx.x")
    for model in (XGBModel(), MLPModel()):
        assert list(model.predict(task, [s])) == [-np.inf]


def test_scores_of_stages_add_up(measured):
    task, inputs, results = measured
    model = XGBModel(num_warmup_sample=-1, verbose_eval=0)
    model.update(inputs, results)
    packed = model.predict_stages(task, [i.state for i in inputs[:2]])
    first, second, n_stages, *stages = packed
    assert n_stages == 3
    assert stages[:2] == [0, 0]
    assert stages[2] == pytest.approx(first)
    assert packed[-1] == pytest.approx(second)


@pytest.mark.parametrize("kind", [XGBModel, MLPModel])
def test_a_saved_model_scores_the_same(kind, measured, tmp_path):
    task, inputs, results = measured
    model = kind(num_warmup_sample=-1)
    model.update(inputs, results)
    path = tmp_path / "model"
    model.save(path)
    other = kind()
    other.load(path)
    states = [i.state for i in inputs]
    np.testing.assert_array_equal(model.predict(task, states), other.predict(task, states))


def damage(data, kind):
    middle = len(data) // 2
    return {
        "empty": b"",
        "cut": data[:middle],
        "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "foreign": b"cos\nsystem\n(S'echo executed'\ntR.",
        "json": json.dumps({"kind": [1, 2]}).encode(),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (model, how)
        for model in (XGBModel, MLPModel)
        for how in ("empty", "cut", "flipped", "foreign", "json")
    ],
)
def test_a_damaged_model_is_refused_by_name(kind, how, measured, tmp_path):
    task, inputs, results = measured
    model = kind(num_warmup_sample=-1)
    model.update(inputs[:20], results[:20])
    path = tmp_path / "broken_model"
    model.save(path)
    path.write_bytes(damage(path.read_bytes(), how))
    before = model.predict(task, [inputs[0].state])
    with pytest.raises(ValueError, match="broken_model"):
        model.load(path)
    np.testing.assert_array_equal(model.predict(task, [inputs[0].state]), before)
    with pytest.raises(FileNotFoundError, match="no_model"):
        model.load(tmp_path / "no_model")


def test_a_perceptron_orders_programs_that_it_has_not_seen(measured):
    task, inputs, results = measured
    rng = np.random.default_rng(0)
    order = rng.permutation(len(inputs))
    train, rest = order[:54], order[54:]
    with torch.inference_mode():  # as a caller may have it, who is about to run a network
        model = MLPModel(num_warmup_sample=-1)
        for _ in range(3):
            model.update([inputs[i] for i in train], [results[i] for i in train])
    predicted = np.array(model.predict(task, [inputs[i].state for i in rest]))
    metrics = evaluate(predicted, throughputs_of([results[i] for i in rest]))
    assert metrics["spearman"] > 0.5


def test_importing_tvm_loads_nothing_that_takes_long():
    code = (
        "import sys, tvm.auto_scheduler\n"
        "print({'torch', 'xgboost', 'scipy.stats'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_data_set_of_logs_is_cached_until_the_log_changes(measured, tmp_path):
    _, inputs, results = measured
    log, cache = tmp_path / "records.json", tmp_path / "cache"
    auto_scheduler.save_records(log, inputs, results)
    auto_scheduler.save_records(log, inputs[:1], [MeasureResult([1e10], 4, "crash", 1, 1)])
    data = DatasetBuilder.from_logs([log], cache)
    assert len(data) == len(inputs)
    np.testing.assert_allclose(data.normalized_throughputs(), throughputs_of(results), rtol=1e-6)
    [cached] = cache.iterdir()
    again = DatasetBuilder.from_logs([log], cache)
    np.testing.assert_array_equal(again.batch().features, data.batch().features)
    auto_scheduler.save_records(log, inputs[:1], results[:1])
    assert len(DatasetBuilder.from_logs([log], cache)) == len(inputs) + 1
    assert len(DatasetBuilder.from_logs([log], cache, min_programs=1000)) == 0
    cached.write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(ValueError, match=cached.name):
        DatasetBuilder.load(cached)


def test_the_cache_of_features_goes_by_content(measured, tmp_path, caplog):
    """Not by name and time: copies keep the time, and a machine may be another one."""
    _, inputs, results = measured
    log, cache = tmp_path / "records.json", tmp_path / "cache"

    def labels():
        return DatasetBuilder.from_logs([log], cache, min_programs=1).batch().labels

    first, second = ([MeasureResult([s], 0, "", 1, 1)] for s in (1e-3, 2e-3))
    auto_scheduler.save_records(log, inputs[:1], first)
    slow = tmp_path / "slow.json"
    auto_scheduler.save_records(slow, inputs[:1], second)
    before, state = labels(), log.stat()
    slow_text = slow.read_text()
    assert len(slow_text) == state.st_size
    log.write_text(slow_text)
    os.utime(log, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert labels() == pytest.approx(before - np.log(2), abs=1e-4)
    # The same content under another name is found.
    assert len(list(cache.iterdir())) == 2
    log = log.rename(tmp_path / "moved.json")
    labels()
    assert len(list(cache.iterdir())) == 2
    # A damaged file of the cache is no reason to stop.
    for file in cache.iterdir():
        file.write_bytes(b"PK\x03\x04 not an archive")
    assert labels() == pytest.approx(before - np.log(2), abs=1e-4)
    assert "the features are made again" in caplog.text


def test_training_and_search_have_one_definition_of_features(measured):
    task, inputs, results = measured
    learned, _, _ = auto_scheduler.feature.get_per_store_features_from_measure_pairs(
        inputs, results
    )
    searched = auto_scheduler.feature.get_per_store_features_from_states(
        [i.state for i in inputs], task
    )
    for rows, same in zip(learned, searched):
        np.testing.assert_array_equal(rows, same)
    names = auto_scheduler.feature.get_per_store_feature_names()
    trees = XGBModel(num_warmup_sample=-1)
    trees.update(inputs, results)
    assert {rows.shape[1] for rows in learned} == {len(names)} == {trees.bst.num_features()}


def test_splits_share_what_they_say():
    data = DatasetBuilder()
    for task in "abcd":
        for target in ("llvm", "cuda"):
            for i in range(10):
                rows = np.full((1, 3), i, np.float32)
                data.add(rows, 1e9, ConfigMeta(task, -1, {}, 1e-3 * (i + 1), target))
    rng = np.random.default_rng(0)
    train, test = data.split_by_task(0.5, rng)
    assert not {m.task for m in train.conf_meta} & {m.task for m in test.conf_meta}
    train, test = data.split_by_target(0.5, rng)
    assert {m.target for m in train.conf_meta} != {m.target for m in test.conf_meta}
    for split in (data.split_by_task, data.split_by_target, data.split_within_task):
        with pytest.raises(ValueError, match=rf"{split.__name__}: .* in \[0, 1\], got 1.5"):
            split(1.5, rng)
    train, test = data.split_within_task(0.8, rng)
    assert (len(train), len(test)) == (64, 16)
    assert len({(m.task, m.target) for m in test.conf_meta}) == 8


@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=20, unique=True))
def test_perfect_predictions_have_the_best_value_of_every_metric(values):
    measured = np.array(values)
    best = evaluate(measured, measured)
    assert set(best) == set(METRICS)
    assert best == pytest.approx(
        {name: 0.0 if name in ("rmse", "log_error") else 1.0 for name in METRICS}
    )


def test_metrics_of_known_predictions():
    measured = np.array([1.0, 0.5, 0.25, 0.125])
    assert top_k_recall(np.array([4.0, 1, 3, 2]), measured, 2) == 0.5
    assert r_squared(np.full(4, measured.mean()), measured) == pytest.approx(0)
    assert pair_accuracy(np.full(4, -np.inf), measured) == 0.5
    assert pair_accuracy(np.array([2.0, 1.0, 1.0]), np.array([3.0, 3.0, 2.0])) == 0.75
    assert pair_accuracy(measured, np.ones(4)) == 0.5
    assert log_error(measured * np.array([2.0, 0.5, 2.0, 0.5]), measured) == pytest.approx(
        np.log(2)
    )
    assert evaluate(measured, measured, levels=False).keys() == METRICS.keys() - set(LEVELS)
    # Where all programs of a group are as fast, there is no variance to explain.
    flat = evaluate(measured, np.array([0.5, 0.5, 0.25, 0.125]), np.array([0, 0, 1, 1]))
    assert flat["r2"] == 1.0 and flat["rmse"] > 0
    baseline = random_baseline(np.tile(measured, 50), np.repeat(np.arange(50), 4), repeats=20)
    assert baseline["pair_accuracy"] == pytest.approx(0.5, abs=0.05)
    assert baseline["spearman"] == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize(
    ("predicted", "groups", "message"),
    [
        ([1.0, 2.0], None, "2 predictions and 3 measurements; there must be one of each"),
        ([1.0, 2.0, 3.0], [0, 1], "3 measurements of 2 groups"),
        ([1.0, float("nan"), 3.0], None, "prediction 1 is NaN"),
    ],
)
def test_predictions_without_an_order_are_refused(predicted, groups, message):
    with pytest.raises(ValueError, match=f"evaluate: .*{message}"):
        evaluate(np.array(predicted), np.array([1.0, 2.0, 3.0]), groups)


def test_a_model_goes_away_with_the_policies_that_were_given_it():
    a, b = te.placeholder((8, 8), name="a"), te.placeholder((8, 8), name="b")
    task = auto_scheduler.SearchTask(compute_dag=[a, b, topi.add(a, b)], target="llvm")
    model = XGBModel(num_warmup_sample=1)
    gone = weakref.ref(model)
    policy = auto_scheduler.SketchPolicy(task, model, seed=0, verbose=0)
    del model
    gc.collect()
    assert gone() is not None and policy.evolutionary_search(policy.sample_initial_population(), 2)
    del policy
    gc.collect()
    assert gone() is None
