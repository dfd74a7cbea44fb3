"""Tuners find what is fast, visit each point once, and learn from records."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from testing_templates import imaginary, matmul_task, tile_seconds
from tvm import autotvm
from tvm.autotvm import MeasureInput, MeasureResult
from tvm.autotvm.tuner.model_based_tuner import submodular_pick

pytest.importorskip("xgboost")

BEST = 1e-6
TUNERS: dict[str, Callable[..., Any]] = {
    "random": autotvm.tuner.RandomTuner,
    "grid": autotvm.tuner.GridSearchTuner,
    "genetic": lambda task: autotvm.tuner.GATuner(task, pop_size=10),
    "xgb": lambda task: autotvm.tuner.XGBTuner(task, plan_size=8),
    "xgb_rank": lambda task: autotvm.tuner.XGBTuner(task, plan_size=8, loss_type="rank"),
    "xgb_knob": lambda task: autotvm.tuner.XGBTuner(
        task, plan_size=8, feature_type="knob", diversity_filter_ratio=2
    ),
    "xgb_curve": lambda task: autotvm.tuner.XGBTuner(task, plan_size=8, feature_type="curve"),
    "felix": lambda task: autotvm.tuner.FelixTuner(task, plan_size=8),
}


@pytest.mark.parametrize("name", TUNERS)
def test_whole_spaces_are_visited_once(name: str) -> None:
    autotvm.GLOBAL_SCOPE.seed(0)
    task, monitor = matmul_task(16, 16, 4), autotvm.callback.Monitor()
    seen: list[int] = []
    tuner = TUNERS[name](task)
    tuner.tune(
        100,
        imaginary(),
        callbacks=[monitor, lambda _, i, r: seen.extend(x.config.index for x in i)],
    )
    assert sorted(seen) == list(range(25)) and not tuner.has_next()
    assert tuner.best_config["tile_y"].size == tuner.best_config["tile_x"].size == [-1, 16]
    assert tuner.best_flops == pytest.approx(task.flop / BEST) == max(monitor.trial_scores())


@pytest.mark.parametrize("name", ["genetic", "xgb", "xgb_knob", "felix"])
def test_learners_need_fewer_measurements_than_chance(name: str) -> None:
    # Of 121 points one is the best, which chance finds after 61 on average.
    found = []
    for seed in range(2):
        autotvm.GLOBAL_SCOPE.seed(seed)
        with torch.inference_mode():  # as a caller may have it, who is about to run a network
            tuner = TUNERS[name](matmul_task(1024, 1024, 4))
            tuner.tune(60, imaginary())
        found.append(tuner.best_iter if tuner.best_measure_pair[1].costs[0] == BEST else 61)
    assert np.mean(found) < 45


def test_droplet_descends_to_the_valley() -> None:
    tuner = autotvm.tuner.DropletTuner(matmul_task(1024, 1024, 4))
    tuner.tune(60, imaginary())
    assert tuner.best_config["tile_y"].size == tuner.best_config["tile_x"].size == [-1, 16]
    assert tuner.best_iter < 40
    with pytest.raises(ValueError, match="start_position"):
        autotvm.tuner.DropletTuner(matmul_task(), start_position=[99, 0])


def test_limits_of_a_run() -> None:
    autotvm.GLOBAL_SCOPE.seed(1)
    tuner = autotvm.tuner.GridSearchTuner(matmul_task())
    tuner.tune(3, imaginary())
    assert tuner.n_trial == 3 and len(tuner.visited) == 3
    tuner = autotvm.tuner.GridSearchTuner(matmul_task())
    tuner.tune(49, imaginary(), early_stopping=8)
    assert len(tuner.visited) < 49
    with pytest.raises(IndexError, match="range_idx"):
        autotvm.tuner.RandomTuner(matmul_task(), range_idx=(40, 60))
    with pytest.raises(ValueError, match="SI prefix"):
        tuner.tune(1, imaginary(), si_prefix="x")
    with pytest.raises(ValueError, match="feature_type 'loops'"):
        autotvm.tuner.XGBTuner(matmul_task(), feature_type="loops")


def _records(task: Any, count: int) -> list[tuple[MeasureInput, MeasureResult]]:
    points = [task.config_space.get(i % 49) for i in range(count)]
    return [
        (MeasureInput(task.target, task, p), MeasureResult((tile_seconds(p),), 0, 0.1, 0.0))
        for p in points
    ]


@pytest.mark.parametrize("name", ["xgb", "felix"])
def test_history_is_learned_from(name: str) -> None:
    task = matmul_task()
    tuner = TUNERS[name](task)
    tuner.load_history(_records(task, 49), min_seed_records=50)
    assert not tuner.trials
    tuner.load_history(_records(task, 49), min_seed_records=49)
    first = tuner.trials[0]
    assert tile_seconds(task.config_space.get(first)) <= 2 * BEST


def test_records_count_as_visited() -> None:
    task = matmul_task()
    for tuner in (autotvm.tuner.RandomTuner(task), autotvm.tuner.GATuner(task)):
        tuner.load_history(_records(task, 40))
        option = imaginary()
        tuner.tune(100, option)
        assert option["runner"].count == 9


def test_a_run_of_failures_says_why(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(autotvm.measure.Runner):
        def run(self, measure_inputs: Any, build_results: Any) -> list[MeasureResult]:
            return [
                MeasureResult((RuntimeError("no device"),), 4, 0.0, 0.0) for _ in measure_inputs
            ]

    tuner = autotvm.tuner.GridSearchTuner(matmul_task())
    tuner.set_error_threshold(10)
    with caplog.at_level(logging.WARNING, "autotvm"):
        tuner.tune(20, autotvm.measure_option(imaginary()["builder"], Broken()))
    assert "no device" in caplog.text and tuner.best_config is None


def test_picking_prefers_differing_points() -> None:
    knobs = [[0, 0], [0, 0], [5, 5]]
    assert submodular_pick(np.array([1.0, 0.99, 0.9]), knobs, 2) == [0, 2]
